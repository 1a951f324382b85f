//! OLM v1 without a cluster: operator-controller's checks of a bundle, and the objects it would apply.
//!
//! The rules are those of operator-controller 1.11. They are checked against recorded answers of its code.
//!
//! ```
//! use olmkit_bundle::load::Tree;
//! use olmkit_v1::{self as olmv1, Gates};
//!
//! let annotations = b"annotations:\n  operators.operatorframework.io.bundle.package.v1: demo\n";
//! let csv = b"apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: demo.v1\n";
//! let tree = Tree::from_files([
//!     ("metadata/annotations.yaml", annotations.to_vec()),
//!     ("manifests/csv.yaml", csv.to_vec()),
//! ]);
//! let bundle = olmv1::Bundle::read(&tree)?;
//! let refusal = olmv1::support(&bundle, Gates::default()).expect_err("no install modes");
//! assert_eq!(
//!     refusal.to_string(),
//!     "unsupported bundle: bundle does not support AllNamespaces install mode"
//! );
//! # Ok::<(), olmv1::ReadError>(())
//! ```

mod config;
mod config_types;
mod dependencies;
mod installer;
mod later;
mod metadata;
pub mod migrate;
mod modes;
mod property;
mod provider;
mod read;
mod release;
mod render;
mod resolve;
mod stream;
mod summary;
mod validators;
mod version_range;

pub use config::{Config, ConfigError};
pub use dependencies::{Dependency, dependencies, is_in_annotation};
pub use installer::{Installer, Rights, TooManyRights};
pub use later::{Trouble, leases, refused_later, works_with_olm_v0};
pub use modes::{InstallMode, InstallModes};
pub use provider::{Gates, Unsupported, complaints, support};
pub use read::{Bundle, Object, Place, Places, ReadError, definitions};
pub use release::{Release, UnknownRelease};
pub use render::{Certificates, Options, RenderError, objects, render};
pub use resolve::{
    Candidate, Installed, InstalledError, Outcome, Policy, Request, Resolution, Source, Unresolved, resolve,
};
pub use stream::ComparedValues;
pub use summary::{Summary, TooManyPermissions, summary};
pub use validators::{Complaint, VALIDATORS, Validator};
pub use version_range::{VersionRange, VersionRangeError};

/// The string at a JSON pointer. Empty if there is none.
fn text<'v>(value: &'v serde_json::Value, pointer: &str) -> &'v str {
    let text = value.pointer(pointer).and_then(serde_json::Value::as_str);
    text.unwrap_or_default()
}

/// The list at a JSON pointer. Empty if there is none.
fn list<'v>(value: &'v serde_json::Value, pointer: &str) -> &'v [serde_json::Value] {
    let list = value.pointer(pointer).and_then(serde_json::Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}
