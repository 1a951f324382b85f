//! OLM v1: install, look at, upgrade and remove a ClusterExtension, from a bundle at hand or from the catalogs of a cluster.
//!
//! As in the flows for OLM v0, what is seen ([`Seen`]) and what is concluded from it ([`explain`]) are kept apart from the
//! requests.

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
mod selector;
mod status;
mod wait;

pub(crate) use diagnose::findings;
pub use install::{CatalogChoice, InstallOptions, InstallReport, install};
pub use objects::{Policy, catalog_name};
pub use publish::{Loaded, Repositories, load};
pub use remove::{RemoveOptions, remove};
pub use run::{RunOptions, run, upgrade};
pub use seen::Seen;
pub use selector::selects;
pub use status::{CatalogStatus, ConditionStatus, DeploymentStatus, Status, status};
