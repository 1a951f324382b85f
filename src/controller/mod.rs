//! Reconciles Memcacheds: their managed objects and their status.
//!
//! | module | what it does |
//! |---|---|
//! | [`observed`] | projections of watched objects |
//! | [`watches`] | the watches that feed the caches and the queue |
//! | [`reconcile`] | reconciles one Memcached |
//! | [`ensure`] | creates or updates one managed object if it differs |
//! | [`finalize`] | the finalizer |
//! | [`report`] | the status: a pure function of the observed state |
//! | [`trouble`] | why servers do not start |
//! | [`upgradeable`] | blocks upgrades by OLM during rollouts |
pub mod ensure;
mod error;
pub mod finalize;
pub mod observed;
pub mod reconcile;
pub mod report;
pub mod trouble;
pub mod upgradeable;
pub mod watches;

pub use error::Error;
use kube::Client;
use olmkit_manager::{events::Publisher, metrics::Metrics, probes::Readiness};
pub use reconcile::reconcile;
pub use watches::{Caches, Queue};

use crate::settings::Settings;

/// Field manager of the applied fields.
pub const FIELD_MANAGER: &str = "memcached-operator";

/// The context of a reconcile.
pub struct Context {
    /// Connection to the API server.
    pub client: Client,
    /// Settings for all Memcacheds.
    pub settings: Settings,
    /// The watched objects.
    pub caches: Caches,
    /// Publishes events.
    pub events: Publisher,
    /// Rollouts that block upgrades of the operator.
    pub rollouts: upgradeable::Rollouts,
}

/// Readiness and metrics of the watches.
#[derive(Clone)]
pub struct Instruments {
    /// Has one gate for each watch, opened after the first complete list.
    pub readiness: Readiness,
    /// Counts failed watches.
    pub metrics: Metrics,
}
