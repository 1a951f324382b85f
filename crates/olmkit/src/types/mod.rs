//! Typed views of the objects of the Operator Lifecycle Manager.
//!
//! The hidden modules, which decode and print values as the Go types do, are not part of the API.

mod catalog_source;
mod condition;
#[doc(hidden)]
pub mod convert;
mod csv_status;
#[doc(hidden)]
pub mod decode;
#[doc(hidden)]
pub mod encode;
mod install_plan;
mod operator_group;
#[doc(hidden)]
pub mod restore;
#[doc(hidden)]
pub mod structs;
mod subscription;
#[doc(hidden)]
pub mod unknown;
#[doc(hidden)]
pub mod zero;

pub use catalog_source::{CatalogSource, CatalogSourceSpec, CatalogSourceStatus, ConnectionState};
pub use condition::Condition;
pub use csv_status::{
    DeployedCsv, DeployedCsvStatus, InstallModeSupport, NamedDeployment, OwnedDefinition, RequirementStatus,
};
pub use install_plan::{InstallPlan, InstallPlanSpec, InstallPlanStatus, InstallPlanStep, StepResource};
pub use operator_group::{OperatorGroup, OperatorGroupSpec, OperatorGroupStatus};
pub use subscription::{ObjectReference, Subscription, SubscriptionSpec, SubscriptionStatus};
