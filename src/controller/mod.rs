//! Keeps the objects of each Memcached as it says, and its status as things are.
//!
//! | module | what it does |
//! |---|---|
//! | [`observed`] | what is kept of the objects that are watched |
//! | [`watches`] | the watches that keep it current and say which Memcached needs work |
//! | [`reconcile`] | one pass over one Memcached |
//! | [`ensure`] | one object of a Memcached: compare, and write only where it differs |
//! | [`finalize`] | the last words before a Memcached goes |
//! | [`report`] | the status: a pure function of what was observed |
//! | [`trouble`] | why servers do not start, in words for the status |
//! | [`upgradeable`] | OLM is asked to wait with upgrades while servers are being replaced |
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

/// The name under which the operator owns the fields that it applies.
pub const FIELD_MANAGER: &str = "memcached-operator";

/// Everything that a reconcile works with.
pub struct Context {
    /// Connection to the API server.
    pub client: Client,
    /// Settings for all Memcacheds.
    pub settings: Settings,
    /// What the watches saw.
    pub caches: Caches,
    /// Publishes events.
    pub events: Publisher,
    /// What holds upgrades of the operator back.
    pub rollouts: upgradeable::Rollouts,
}

/// What the watches report to besides the caches.
#[derive(Clone)]
pub struct Instruments {
    /// Each watch holds it back until its first list is complete.
    pub readiness: Readiness,
    /// Counts broken watches.
    pub metrics: Metrics,
}
