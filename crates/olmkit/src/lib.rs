//! Packages Kubernetes operators for the Operator Lifecycle Manager (OLM): bundles, catalogs, images, and the cluster
//! flows around them. `docs/architecture.md` tells which module may know which.

// The command line names the library as any other user of it does.
extern crate self as olmkit;

pub mod bundle;
pub mod catalog;
mod cli;
pub mod cluster;
#[cfg(test)]
#[path = "../tests/support/corpus.rs"]
mod corpus;
pub mod crd;
pub mod diagnostics;
pub mod image;
pub mod in_pod;
pub mod object;
pub mod project;
pub mod rbac;
pub mod serve;
pub mod types;
pub mod validate;
pub mod yaml;

/// The programs of this package, for its binaries.
#[doc(hidden)]
pub use cli::program;
