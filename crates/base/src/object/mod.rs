//! Common parts of Kubernetes objects and their formats: group-version-kind, names and labels, quantities, versions and
//! version ranges, image references.

pub mod comments;
mod digest;
mod document;
mod formats;
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

pub use olmkit_go::json::pointer_part;
pub use olmkit_go::semver::{PreRelease, RangeError, Version, VersionError, VersionRange};

pub use digest::{Algorithm, Digest, InvalidDigest};
pub use document::Document;
pub use formats::{STRING_FORMATS, is_string_format};
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

#[cfg(test)]
mod corpus_tests;

/// The annotation that determines the CSV field for a binding's rules. On a ClusterRoleBinding the value `namespaced`
/// moves them to `permissions`, which OLM grants only in the watched namespaces. On a RoleBinding the value
/// `own-namespace` keeps it and its Role as objects, which OLM creates in the operator's own namespace.
pub const PERMISSIONS_ANNOTATION: &str = "olmkit.dev/permissions";
