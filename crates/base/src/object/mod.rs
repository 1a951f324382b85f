//! Common parts of Kubernetes objects and their formats: group-version-kind, names and labels, quantities, versions and
//! version ranges, image references.

use std::borrow::Cow;

pub mod comments;
mod digest;
mod document;
mod group_version_kind;
mod name;
mod path_part;
mod reference;
mod references_in;
pub mod scalars;
pub mod selector;
mod set_at;
mod shell;
mod untrusted_text;
mod version;
mod version_range;

pub use digest::{Algorithm, Digest, InvalidDigest};
pub use document::Document;
pub use group_version_kind::{GroupVersionKind, split_api_version};
pub use name::{
    dns1035_label_problems, dns1123_label_problems, dns1123_subdomain_problems, label_value_problems,
    qualified_name_problems,
};
pub use path_part::{InvalidPathPart, PathPart};
pub use reference::{InvalidReference, Reference, ReferenceError};
pub use references_in::{references_in, replace_references};
pub use set_at::SetAt;
pub use shell::shell_word;
pub use untrusted_text::UntrustedText;
pub use version::{PreRelease, Version, VersionError};
pub use version_range::{RangeError, VersionRange};

#[cfg(test)]
mod corpus_tests;

/// One part of a JSON pointer (RFC 6901) for a key.
pub fn pointer_part(key: &str) -> Cow<'_, str> {
    // Called for each key of large schemas, few of which need escapes.
    if memchr::memchr2(b'~', b'/', key.as_bytes()).is_none() {
        return Cow::Borrowed(key);
    }
    Cow::Owned(key.replace('~', "~0").replace('/', "~1"))
}

/// The annotation that determines the CSV field for a binding's rules. On a ClusterRoleBinding the value `namespaced`
/// moves them to `permissions`, which OLM grants only in the watched namespaces. On a RoleBinding the value
/// `own-namespace` keeps it and its Role as objects, which OLM creates in the operator's own namespace.
pub const PERMISSIONS_ANNOTATION: &str = "olmkit.dev/permissions";
