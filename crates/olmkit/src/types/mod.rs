//! Typed views of the objects of the Operator Lifecycle Manager. Their Go types are in [`olmkit_go::structs`].

mod catalog_source;
mod condition;
mod csv_status;
mod install_plan;
mod operator_group;
mod subscription;
#[doc(hidden)]
pub mod unknown;

pub use catalog_source::{CatalogSource, CatalogSourceSpec, CatalogSourceStatus, ConnectionState};
pub use condition::Condition;
pub use csv_status::{
    DeployedCsv, DeployedCsvStatus, InstallModeSupport, NamedDeployment, OwnedDefinition, RequirementStatus,
};
pub use install_plan::{InstallPlan, InstallPlanSpec, InstallPlanStatus, InstallPlanStep, StepResource};
pub use operator_group::{OperatorGroup, OperatorGroupSpec, OperatorGroupStatus};
pub use subscription::{ObjectReference, Subscription, SubscriptionSpec, SubscriptionStatus};
