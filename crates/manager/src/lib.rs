//! Leader election, probes, metrics, back-off and orderly shutdown for kube-rs operators.
//!
//! kube-rs has the client, the watches and the derive for custom resources. This crate has the rest of what an operator
//! process needs in production, as parts that can be taken one by one:
//!
//! | module | what it does |
//! |---|---|
//! | [`cache`] | follows a kind by watches, in all namespaces or in some, and keeps of each object what the operator needs |
//! | [`queue`] | hands out the names of the objects that need work: each once, never twice at a time, failed ones later |
//! | [`backoff`] | how much later: exponential, with jitter and a cap |
//! | [`worker`] | works through the queue: limits on concurrency and time, metrics, and an end that lets running work finish |
//! | [`lease`] | lets one of several replicas lead, by the rules of client-go |
//! | [`drift`] | tells from a watched object whether it still is as it was applied |
//! | [`events`] | publishes events about objects; repeated ones are counted instead of repeated |
//! | [`explain`] | errors in one line for people |
//! | [`access`] | asks the API server at start whether the operator may do what it needs to do |
//! | [`probes`] | liveness, readiness and metrics over HTTP |
//! | [`proxy`] | the API server is reached without the environment's proxy where `NO_PROXY` says so |
//! | [`metrics`] | the metrics, under the names that dashboards for other operators know |
//! | [`namespaces`] | which namespaces to watch |
//! | [`shutdown`] | SIGTERM and SIGINT |
pub mod access;
pub mod backoff;
pub mod cache;
pub mod drift;
pub mod events;
pub mod explain;
pub mod lease;
pub mod metrics;
pub mod namespaces;
pub mod probes;
pub mod proxy;
mod quantity;
pub mod queue;
pub mod shutdown;
pub mod worker;

use std::fmt;

/// Namespace and name of an object; the namespace of a cluster-scoped one is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// The key of the object `name` in `namespace`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of `object`.
    pub fn of<K: kube::Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self::new(
            meta.namespace.clone().unwrap_or_default(),
            meta.name.clone().unwrap_or_default(),
        )
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{}", self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}
