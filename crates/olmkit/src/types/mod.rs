//! Typed views of the objects of the Operator Lifecycle Manager.

pub mod canonical_quantity;
pub mod convert;
pub mod decode;
pub mod encode;
pub mod go_json;
pub mod go_number;
pub mod go_text;
pub mod quantity;
pub mod structs;
pub mod time;
pub mod zero;
mod catalog_source;
mod condition;
mod csv_status;
mod install_plan;
mod operator_group;
mod subscription;

pub use catalog_source::{CatalogSource, CatalogSourceSpec, CatalogSourceStatus, ConnectionState};
pub use condition::Condition;
pub use csv_status::{
    DeployedCsv, DeployedCsvStatus, InstallModeSupport, NamedDeployment, OwnedDefinition, RequirementStatus,
};
pub use install_plan::{InstallPlan, InstallPlanSpec, InstallPlanStatus, InstallPlanStep, StepResource};
pub use operator_group::{OperatorGroup, OperatorGroupSpec, OperatorGroupStatus};
pub use subscription::{ObjectReference, Subscription, SubscriptionSpec, SubscriptionStatus};
