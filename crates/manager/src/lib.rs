//! A manager for kube-rs operators: controllers, leader election, probes, metrics, back-off and orderly shutdown.
//!
//! kube-rs has the client, the watches and the derive for custom resources. This crate adds what an operator process
//! needs in production. [`Manager`] combines the parts. You can also use each part without it:
//!
//! | module | what it does |
//! |---|---|
//! | [`manager`] | caches, leader election, workers, servers and an orderly end. Controllers |
//! | [`options`] | flags and environment variables, as arguments of clap (feature `flags`) |
//! | `log` | the log, whose level can be changed at run time (feature `log`) |
//! | [`reconcile`] | reconcilers: apply, ownership, deletion, finalizer, conditions, status and events from one function |
//! | [`apply`] | applies objects where they differ, detects drift and conflicts |
//! | [`rollout`] | limits how many objects change their pods at the same time |
//! | [`health`] | readiness of workloads, by the rules of kstatus |
//! | [`conditions`] | conditions with stable transition times |
//! | [`names`] | names of children and label values within Kubernetes' limits |
//! | [`cache`] | watches a kind, in all namespaces or in some, and stores a projection of each object |
//! | [`packed`] | keeps what a cache stores compressed against a sample of its kind |
//! | [`queue`] | work queue of object keys: deduplicated, never two workers on one key, failed keys delayed |
//! | [`backoff`] | delay after failures: exponential, with jitter and a cap |
//! | [`worker`] | reconciles the keys of the queue: concurrency and time limits, metrics, graceful shutdown |
//! | [`finalizer`] | keeps an object until the operator has cleaned up |
//! | [`lease`] | leader election by the rules of client-go |
//! | [`drift`] | detects from a watched object whether an applied field has changed |
//! | [`events`] | publishes events about objects. Repeated events increase a count |
//! | [`explain`] | formats errors on one line |
//! | [`access`] | checks at start that the operator has the permissions it needs |
//! | [`probes`] | liveness, readiness and metrics over HTTP |
//! | [`reviews`] | lets only authorized users read or change a page |
//! | `certificates` | certificates of servers, mounted or self-signed, read again when they change (feature `tls`) |
//! | `webhooks` | validating, mutating and converting webhooks (feature `webhooks`) |
//! | [`metrics`] | metrics under the names of controller-runtime and client-go |
//! | [`connection`] | connects to the API server: through a proxy or not, and without delays of small packets |
//! | [`transport`] | time limits on requests and watches; when a watch was last heard |
//! | [`namespaces`] | which namespaces to watch |
//! | [`shutdown`] | SIGTERM and SIGINT |
pub mod access;
pub mod apply;
pub mod backoff;
pub mod cache;
mod cause;
#[cfg(feature = "tls")]
pub mod certificates;
mod compressed;
pub mod conditions;
pub mod connection;
pub mod drift;
pub mod events;
pub mod explain;
mod exposition;
mod failure;
pub mod finalizer;
pub mod follow;
pub mod health;
mod lanes;
pub mod lease;
mod listener;
#[cfg(feature = "log")]
pub mod log;
pub mod manager;
pub mod metrics;
pub mod names;
pub mod namespaces;
#[cfg(feature = "olm")]
pub mod olm;
pub mod options;
pub mod probes;
pub mod queue;
mod readiness;
pub mod reconcile;
pub mod reviews;
pub mod rollout;
mod samples;
mod scan;
pub mod shutdown;
mod tenure;
pub mod transport;
#[cfg(feature = "webhooks")]
pub mod webhooks;
pub mod worker;

use std::{fmt, sync::Arc};

pub use manager::Manager;
/// Amounts such as `500m` and `1Gi`, compared and read as Kubernetes does.
pub use olmkit_go::quantity;

/// The example of the README is compiled.
#[cfg(all(doctest, feature = "flags", feature = "log"))]
#[doc = include_str!("../README.md")]
struct ReadMe;

/// Namespace and name of an object. The namespace of a cluster-scoped one is empty. Clones share the text: an object's key is
/// kept in many places.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Namespace. Empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// The key of the object `name` in `namespace`.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of `object`.
    pub fn of<K: kube::Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self::new(
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default(),
        )
    }

    /// `None` without a namespace.
    pub(crate) fn in_namespace(&self) -> Option<&str> {
        Some(&*self.namespace).filter(|namespace| !namespace.is_empty())
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
