//! Explains why an operator is not installed, not upgraded or not running: follows the OperatorGroup, catalog,
//! Subscription, InstallPlan and ClusterServiceVersion to the pods, and reports the cause instead of the symptom. A
//! pure function of the observation.

pub mod catalog;
mod csv;
pub mod find;
mod plan;
mod resolution;
pub mod unpack;
mod webhooks;
