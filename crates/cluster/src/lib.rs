//! Commands on a cluster: install and remove OLM, run a bundle, upgrade, clean up, diagnose.
//!
//! Decisions are pure functions from an observation ([`Observation`]) to causes ([`Cause`]), to objects to create
//! (`v0::intent`) and to objects to delete. Only [`Cluster`] sends requests.
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

mod base;
pub mod bundle;
pub mod diagnose;
mod kube;
pub mod migrate;
mod observe;
pub mod olm;
pub mod rights;
pub mod scorecard;
pub mod v0;
pub mod v1;

pub use base::cause::{Cause, Code, has_errors};
pub use base::error::Error;
pub use base::finding::Finding;
pub use base::install_mode::InstallMode;
pub use base::object_ref::ObjectRef;
pub use base::outcome::{Conclusion, Outcome};
pub use base::reporter::{ProgressLog, ProgressReporter, Step};
pub use bundle::facts::BundleFacts;
pub use kube::client::Cluster;
pub use observe::observation::Observation;
pub use olmkit::diagnostics::Severity;
