//! Reconciles Memcacheds: their managed objects and their status.
//!
//! | module | what it does |
//! |---|---|
//! | [`observed`] | projections of watched objects |
//! | [`watches`] | the watches that feed the caches and the queue |
//! | [`reconcile`] | reconciles one Memcached: which way it goes |
//! | `converge` | brings the managed objects to the desired state |
//! | [`pass`] | the state of reconciling one Memcached |
//! | [`applied`] | what a Deployment says of the template that was applied last |
//! | [`ensure`] | creates or updates one managed object if it differs |
//! | [`contests`] | fields that do not stay as they were applied |
//! | [`finalize`] | the finalizer |
//! | `ownership` | whom a managed object belongs to |
//! | [`report`] | the status: a pure function of the observed state |
//! | `writes` | what a pass writes about its Memcached |
//! | [`rollout`] | whose change of the servers it is, and whether its turn has come |
//! | [`slots`] | how many Memcacheds are rolled out at the same time |
//! | [`trouble`] | why servers do not start |
//! | [`upgradeable`] | blocks upgrades by OLM during rollouts |
pub mod applied;
pub mod contests;
mod converge;
pub mod ensure;
mod error;
pub mod finalize;
pub mod observed;
mod ownership;
pub mod pass;
pub mod reconcile;
pub mod report;
pub mod rollout;
pub mod slots;
pub mod trouble;
pub mod upgradeable;
pub mod watches;
mod writes;

use std::sync::Arc;

pub use error::Error;
use kube::Client;
use kube_manager::{ObjectKey, events::Publisher, probes::Readiness};
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
    /// The Memcacheds to reconcile.
    pub queue: Arc<Queue>,
    /// Which namespaces are synced.
    pub readiness: Readiness,
    /// Fields that are left to others.
    pub contests: contests::Contests,
    /// How many Memcacheds the operator rolls out at the same time.
    pub slots: slots::Slots,
    /// Publishes events.
    pub events: Publisher,
    /// Rollouts that block upgrades of the operator.
    pub rollouts: upgradeable::Rollouts,
}

impl Context {
    /// Drops what is remembered of `key`, which is gone or going.
    fn forget(&self, key: &ObjectKey) {
        self.rollouts.note(key, false);
        self.contests.forget(key);
        self.caches.own_statuses.forget(key);
        self.leave_line(key);
    }

    /// `key` needs no slot: lets the next begin.
    fn leave_line(&self, key: &ObjectKey) {
        for next in self.slots.leave(key) {
            self.queue.add(next);
        }
    }
}
