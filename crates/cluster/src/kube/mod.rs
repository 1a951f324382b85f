//! Requests to the API server, and what any command does with single objects.

pub mod client;
pub mod conditions;
pub mod crd;
mod discovery;
pub mod finalizers;
pub mod late;
pub mod logs;
pub mod operator_pods;
pub mod origin;
pub mod owned;
pub mod ownership;
pub(crate) mod path;
pub mod removal;
