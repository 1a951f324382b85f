//! Commands on a cluster: install and remove OLM, run a bundle, upgrade, clean up, diagnose.
//!
//! Decisions are pure functions from an observation ([`Observation`]) to causes ([`Cause`]), to objects to create
//! ([`intent`]) and to objects to delete; only [`Cluster`] sends requests.
//!
//! This example is compiled but not run, because it needs a cluster:
//!
//! ```no_run
//! use olmkit_cluster::{Cluster, diagnose};
//!
//! # async fn example() -> Result<(), olmkit_cluster::Error> {
//! let cluster = Cluster::connect(None, Some("shop")).await?;
//! for finding in diagnose::diagnose(&cluster, None).await? {
//!     println!("{}: {}", finding.package, if finding.healthy { "healthy" } else { "not healthy" });
//!     for cause in &finding.causes {
//!         println!("{cause}");
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The severity of a cause decides whether an operation can succeed:
//!
//! ```
//! use olmkit_cluster::{Code, Severity};
//!
//! assert_eq!(Code::NamespaceMissing.as_str(), "namespace-missing");
//! assert!(Severity::Error < Severity::Warning);
//! ```

mod adopt;
pub mod bundle_source;
pub mod catalog_pod;
pub mod cause;
mod causes;
pub mod cleanup;
mod client;
mod cluster_objects;
mod crd_origin;
pub mod diagnose;
mod discovery;
mod error;
pub mod extension;
mod facts;
mod health;
mod host_address;
mod host_catalog;
mod install_mode;
mod intent;
mod json;
mod kinds;
mod late;
mod limits;
pub mod migrate;
mod names;
mod object_ref;
mod observe;
pub mod olm;
mod origin;
mod ownership;
mod preflight;
mod progress;
mod record;
pub mod release;
mod removal;
pub mod reporter;
mod rerun;
pub mod rights;
pub mod run_bundle;
pub mod scorecard;
pub mod serve_from;
pub mod serving;
pub mod subscribe;
pub mod upgrade;
mod wait;

pub use cause::{Cause, Code};
pub use client::{Cluster, ObjectRef};
pub use error::Error;
pub use facts::BundleFacts;
pub use install_mode::InstallMode;
pub use observe::Observation;
pub use olmkit::diagnostics::Severity;
pub use reporter::{ProgressReporter, Step};
