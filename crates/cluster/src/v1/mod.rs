//! OLM v1: installs, inspects, upgrades and removes a ClusterExtension, from a local bundle or from the catalogs of a
//! cluster.
//!
//! As for OLM v0, observation ([`Seen`]) and conclusions (`explain`) are separate from the requests.

mod conditions;
mod diagnose;
mod explain;
mod install;
mod objects;
mod preflight;
mod publish;
mod pulls;
mod remove;
mod run;
mod seen;
mod status;
mod wait;

pub(crate) use diagnose::findings;
pub use install::{CatalogChoice, InstallOptions, InstallReport, install};
pub use objects::{Policy, catalog_name};
pub use publish::{Loaded, Repositories, load};
pub use remove::{RemoveOptions, remove};
pub use run::{RunOptions, run, upgrade};
pub use seen::ExtensionState;
pub use status::{CatalogStatus, ConditionStatus, DeploymentStatus, Status, status};
