//! Typed views of the objects of the Operator Lifecycle Manager.

mod catalog_source;
mod condition;
pub mod convert;
mod csv_status;
pub mod decode;
pub mod encode;
pub mod go_json;
pub mod go_number;
pub mod go_text;
mod install_plan;
mod operator_group;
pub mod structs;
mod subscription;
pub mod time;
pub mod unknown;
pub mod zero;

pub use catalog_source::{CatalogSource, CatalogSourceSpec, CatalogSourceStatus, ConnectionState};
pub use condition::Condition;
pub use csv_status::{
    DeployedCsv, DeployedCsvStatus, InstallModeSupport, NamedDeployment, OwnedDefinition, RequirementStatus,
};
pub use install_plan::{InstallPlan, InstallPlanSpec, InstallPlanStatus, InstallPlanStep, StepResource};
pub use operator_group::{OperatorGroup, OperatorGroupSpec, OperatorGroupStatus};
pub use subscription::{ObjectReference, Subscription, SubscriptionSpec, SubscriptionStatus};
