//! Runs an operator: caches, leader election, workers, servers and an orderly end.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use kube::{CustomResource, ResourceExt};
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_manager::{Manager, worker::Done};
//!
//! # #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! # #[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
//! # struct GreetingSpec { name: String }
//! # async fn run() -> Result<(), kube_manager::manager::Error> {
//! let manager = Manager::builder("greeter").start().await?;
//! let client = manager.client();
//! manager
//!     .controller::<Greeting>("greeting")
//!     .owns::<ConfigMap>(Default::default())
//!     .run(move |greeting: Arc<Greeting>| {
//!         let client = client.clone();
//!         async move {
//!             // Apply a ConfigMap that greeting owns, with client.
//!             # let _ = (client, greeting.name_any());
//!             Ok::<_, kube::Error>(Done::nothing("greeted"))
//!         }
//!     });
//! manager.run().await
//! # }
//! ```
//!
//! [`Builder::start`] connects, binds the servers (a port in use ends the process before any work begins) and lets watches
//! begin. [`Manager::run`] then runs these steps:
//!
//! 1. Every cache is filled. A replica that cannot watch never takes part in the election, so it does not block other replicas.
//! 2. The replica is ready, as a standby, and waits for the lease.
//! 3. While it leads, [controllers](Manager::controller) and [further work](Manager::while_leading) run.
//! 4. On SIGTERM or SIGINT the replica is no longer ready, and no more reconciles begin. Those that run get a few seconds.
//!    Then the lease is released, so that the next leader does not wait. [Webhooks](Manager::serve_webhooks) are served until
//!    all requests are answered and none has come for a second. The last events are sent, and `run` returns.
//!
//! A replica that loses the lease returns [`Error::LeadershipLost`] at once: another may lead already.
mod builder;
mod controller;
mod leading;
mod reconciler;
mod scope;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt::Debug,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Client, Resource, runtime::watcher};
use kube_grants::{Grant, Scope as GrantScope};
use serde::de::DeserializeOwned;
use tokio::{
    task::{JoinHandle, JoinSet},
    time::Instant,
};

pub use builder::Builder;
pub use controller::Controller;
pub(crate) use controller::{add_owner, paged, significant};
pub use scope::Scope;

#[cfg(feature = "tls")]
use crate::certificates;
use crate::{
    ObjectKey, access,
    backoff::Backoff,
    cache::{Cache, Change},
    events::Publisher,
    follow::{Follow, Source, Turns},
    lease,
    metrics::Metrics,
    namespaces::Namespaces,
    probes::{BindError, Readiness},
    queue::{QueueKey, WorkQueue},
    shutdown::CancellationToken,
    tenure::Tenure,
    worker::{self, Done, Failure, Limits},
};

/// The delay between the start and the check of the permissions, which gives priority to the first lists and reconciles.
/// A list without permission fails at once and reports it.
const CHECK_AFTER: Duration = Duration::from_secs(1);

/// Reconciles do not wait longer for the check of the permissions.
const CHECK_LIMIT: Duration = Duration::from_secs(10);

/// Time for sending the last events.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// Why an operator stopped, or did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither a kubeconfig nor a ServiceAccount.
    #[error("no cluster configuration: found neither a kubeconfig nor a ServiceAccount: {0}")]
    NoCluster(#[source] Box<kube::config::InferConfigError>),
    /// The kubeconfig of `--kubeconfig` cannot be used.
    #[error("cannot use kubeconfig {path}: {source}", path = path.display())]
    Kubeconfig {
        /// The file.
        path: std::path::PathBuf,
        /// Why not.
        source: Box<kube::config::KubeconfigError>,
    },
    /// The client cannot be made.
    #[error("cannot create a client for {server}: {source}")]
    Client {
        /// The API server's address.
        server: String,
        /// Why not.
        source: Box<kube::Error>,
    },
    /// Signals cannot be listened for.
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] std::io::Error),
    /// A port is in use.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A certificate cannot be used.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Certificate(#[from] certificates::Error),
    /// Metrics over TLS were asked for.
    #[error("metrics over TLS need the feature tls of kube-manager: build with it, or set --metrics-secure=false")]
    NoTls,
    /// Another replica leads, or may lead: this one must stop.
    #[error("leadership lost: exiting, to restart as a standby")]
    LeadershipLost,
    /// A task that should run forever ended.
    #[error("{0} ended unexpectedly")]
    Ended(&'static str),
    /// Two controllers of one kind have the same field manager. Each would delete the other's children.
    #[error(
        "controllers {first} and {second} reconcile {kind} with the same field manager {manager}; give one of them another with `Controller::field_manager`"
    )]
    SameFieldManager {
        /// The controller that was added first.
        first: String,
        /// The other controller.
        second: String,
        /// The kind with its group.
        kind: String,
        /// The field manager.
        manager: String,
    },
}

/// Work that runs while this replica leads.
type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An operator that has started. See the [module](self).
#[must_use = "nothing is reconciled before `run`"]
pub struct Manager {
    client: Client,
    tenure: Tenure,
    metrics: Metrics,
    readiness: Readiness,
    namespaces: Namespaces,
    namespace: String,
    identity: String,
    events: Publisher,
    publishing: JoinHandle<()>,
    /// Ends `publishing`.
    published: CancellationToken,
    /// The Lease, unless there is no election.
    lease: Option<lease::Config>,
    limits: Limits,
    drain: Duration,
    stop: CancellationToken,
    /// Webhooks are to end. Cancelled by `stop` too.
    closing: CancellationToken,
    setup: Mutex<Setup>,
    #[cfg(feature = "olm")]
    rollouts: crate::olm::Rollouts,
}

/// All that an operator adds between the start and [`Manager::run`]. Behind a lock, so that a controller that is not complete
/// prevents no other call.
#[derive(Default)]
struct Setup {
    grants: Vec<Grant>,
    /// Reconciles wait for the check of the permissions.
    check_first: bool,
    /// The names of reconcilers' controllers, by kind and field manager.
    reconcilers: BTreeMap<(String, String), String>,
    /// Why the manager cannot run.
    misuse: Option<Error>,
    watches: JoinSet<()>,
    turns: Turns,
    servers: JoinSet<()>,
    /// Servers whose requests are answered before the end.
    webhooks: JoinSet<()>,
    /// How often a name of a gate has been used.
    gates: BTreeMap<String, u32>,
    /// Tasks that begin with the leadership, in this order.
    beside: Vec<Work>,
    workers: Vec<Work>,
}

impl Setup {
    /// Two watches of one kind have different gates.
    fn gate_name(&mut self, name: String) -> String {
        let used = self.gates.entry(name.clone()).or_insert(0);
        *used += 1;
        if *used == 1 { name } else { format!("{name}-{used}") }
    }
}

impl Manager {
    /// A manager for the operator `name`, which is its name in events and, unless a flag sets another, of its Lease.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder::new(name.into())
    }

    /// Permissions for leader election, which a manager needs in addition to those of its controllers.
    pub fn grants() -> Vec<Grant> {
        let why = "one of several replicas leads";
        vec![Grant::of::<Lease>(GrantScope::Own, ["create", "get", "update"], why)]
    }

    /// The connection to the API server, with time limits on everything.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Publishes events about objects.
    pub fn events(&self) -> Publisher {
        self.events.clone()
    }

    /// The metrics of the process.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Readiness and liveness. [`Readiness::check_ready`] and [`Readiness::check_live`] add checks.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// The namespaces that are watched.
    pub fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    /// The namespace that the operator runs in.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The identity of this replica in the Lease: the pod's name and a part that changes when the container restarts.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Cancelled when the operator is to stop.
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Watches the objects of kind `K` that `config` selects: a namespaced kind in the watched namespaces, another in the
    /// cluster. `cache` contains the projection of each object. `changed` is called after each change of it. The operator
    /// is not ready before the cache is filled.
    ///
    /// [`controller`](Self::controller) does this for the common case.
    pub fn watch<K, T, P, C>(&self, cache: &Cache<T>, config: watcher::Config, project: P, changed: C)
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + 'static,
        K::Scope: Scope,
        T: Send + Sync + 'static,
        P: Fn(K) -> Option<T> + Clone + Send + Sync + 'static,
        C: Fn(&ObjectKey, Change<T>) + Clone + Send + Sync + 'static,
    {
        let project = move |text: &[u8]| Ok(project(serde_json::from_slice(text)?));
        self.watch_text::<K, _, _, _>(cache, config, project, changed);
    }

    /// As [`watch`](Self::watch), with a projection that reads the JSON of an object. Its error is a failure of the watch.
    pub(crate) fn watch_text<K, T, P, C>(&self, cache: &Cache<T>, config: watcher::Config, project: P, changed: C)
    where
        K: Resource<DynamicType = ()> + 'static,
        K::Scope: Scope,
        T: Send + Sync + 'static,
        P: Fn(&[u8]) -> serde_json::Result<Option<T>> + Clone + Send + Sync + 'static,
        C: Fn(&ObjectKey, Change<T>) + Clone + Send + Sync + 'static,
    {
        let resource = K::plural(&());
        for scope in K::Scope::scopes(&self.namespaces) {
            let api = K::Scope::api::<K>(self.client.clone(), scope.as_deref());
            let gate = match &scope {
                None => {
                    let name = self.setup().gate_name(format!("watch-{resource}"));
                    self.readiness.gate(name)
                }
                Some(namespace) => {
                    let name = self.setup().gate_name(format!("watch-{resource}-in-{namespace}"));
                    self.readiness.gate_in(name, namespace)
                }
            };
            let source = Source {
                cache: cache.clone(),
                scope,
                project: project.clone(),
                changed: changed.clone(),
                errors: self.metrics.watch_errors(&resource),
            };
            let follow = Follow { gate, source };
            let mut setup = self.setup();
            let turns = setup.turns.clone();
            setup.watches.spawn(follow.run_text(api, config.clone(), turns));
        }
    }

    /// A poisoned lock is safe to use: nothing is half added.
    fn setup(&self) -> MutexGuard<'_, Setup> {
        self.setup.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty queue with metrics. Where several namespaces are watched, one occupies at most three quarters of the workers:
    /// one tenant whose webhook hangs leaves the others some. Keys without a namespace may occupy all.
    pub fn queue<K: QueueKey + Send + Sync + 'static>(&self, controller: &str) -> Arc<WorkQueue<K>> {
        let sole = match &self.namespaces {
            Namespaces::These(names) if names.len() == 1 => names.first().cloned(),
            _ => None,
        };
        let queue = WorkQueue::new(Backoff::default(), Some(self.metrics.queue(controller)));
        let queue = Arc::new(queue.fair(sole));
        let sampled = Arc::clone(&queue);
        self.metrics.sample_queue(controller, move || sampled.unfinished());
        let waiting = Arc::clone(&queue);
        self.events.give_way(move || !waiting.is_empty());
        queue
    }

    /// Reconciles the keys of `queue` while this replica leads. [`controller`](Self::controller) does this for the common
    /// case.
    pub fn work<K, R, F, E>(&self, controller: &str, queue: Arc<WorkQueue<K>>, reconcile: R)
    where
        K: QueueKey + std::fmt::Display + Send + Sync + 'static,
        R: Fn(K) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Done, E>> + Send + 'static,
        E: Failure + Send + 'static,
    {
        self.work_within(controller, queue, self.limits, reconcile);
    }

    fn work_within<K, R, F, E>(&self, controller: &str, queue: Arc<WorkQueue<K>>, limits: Limits, reconcile: R)
    where
        K: QueueKey + std::fmt::Display + Send + Sync + 'static,
        R: Fn(K) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Done, E>> + Send + 'static,
        E: Failure + Send + 'static,
    {
        let (metrics, stop) = (self.metrics.workers(controller), self.stop.clone());
        let (reconcile, tenure) = (Arc::new(reconcile), self.tenure.clone());
        let reconcile = move |key: K| {
            let (reconcile, tenure) = (Arc::clone(&reconcile), tenure.clone());
            async move {
                if tenure.is_over() {
                    // The manager is about to end with the error.
                    std::future::pending::<()>().await;
                }
                reconcile(key).await
            }
        };
        metrics.limit.set(i64::try_from(limits.concurrency).unwrap_or(i64::MAX));
        let work = worker::run(queue, limits, metrics, stop, reconcile);
        self.setup().workers.push(Box::pin(work));
    }

    /// Runs `work` from the beginning of the leadership until the last reconcile has finished. The code before its first
    /// `await` that waits runs before any reconcile. It may end earlier.
    pub fn while_leading(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.setup().beside.push(Box::pin(work));
    }

    /// Serves webhooks from now on, on standby replicas too: `options` say where and with which certificate. Without
    /// webhooks, or where they are disabled, nothing is served and no certificate needed.
    ///
    /// # Errors
    /// When there is no certificate, or the port is in use.
    #[cfg(feature = "webhooks")]
    pub async fn serve_webhooks(
        &self,
        webhooks: crate::webhooks::Webhooks,
        options: &crate::webhooks::Options,
    ) -> Result<(), crate::webhooks::Error> {
        let Some(address) = options.webhook_bind_address.filter(|_| !webhooks.is_empty()) else {
            return Ok(());
        };
        let certificates = options.certificates()?;
        let server = webhooks.bind(address, &certificates).await?;
        if let Ok(address) = server.address() {
            tracing::info!(server = "webhooks", %address, "listening");
        }
        let closing = self.closing.clone();
        let mut setup = self.setup();
        setup
            .webhooks
            .spawn(async move { server.serve_until(closing.cancelled()).await });
        setup.servers.spawn(certificates.follow());
        Ok(())
    }

    /// Runs until SIGTERM or SIGINT (or the token of [`Builder::stop`] is cancelled), and ends in order.
    ///
    /// # Errors
    /// When the lease is lost, a watch or server ends, or two controllers of one kind have the same field manager.
    pub async fn run(self) -> Result<(), Error> {
        let Self {
            client,
            tenure,
            metrics,
            readiness,
            namespaces,
            namespace,
            events,
            mut publishing,
            published,
            lease,
            drain,
            stop,
            closing,
            setup,
            ..
        } = self;
        let Setup {
            grants,
            check_first,
            misuse,
            mut watches,
            mut servers,
            mut webhooks,
            beside,
            workers,
            ..
        } = setup.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(misuse) = misuse {
            return Err(misuse);
        }
        drop(events);
        let (checked, check_ended) = tokio::sync::oneshot::channel::<()>();
        let check = {
            let client = client.clone();
            tokio::spawn(async move {
                if !check_first {
                    tokio::time::sleep(CHECK_AFTER).await;
                }
                access::report(&client, &grants, &namespace, &namespaces).await;
                drop(checked);
            })
        };
        let together = leading::together(beside, workers, stop.clone());
        let work = async move {
            if check_first {
                // Its result is logged. The rest works without a missing permission.
                let _ = tokio::time::timeout(CHECK_LIMIT, check_ended).await;
            }
            together.await;
        };
        let mut stopped = None;
        // The API server asks other replicas as soon as this one is unready, and this one until then.
        let unready = async {
            stop.cancelled().await;
            stopped = Some(Instant::now());
            readiness.end();
            std::future::pending::<Infallible>().await
        };
        let no_webhooks = async {
            if webhooks.join_next().await.is_none() || stop.is_cancelled() {
                std::future::pending::<()>().await;
            }
        };
        let candidate = leading::Candidate {
            client,
            tenure,
            lease,
            readiness: readiness.clone(),
            metrics,
            stop: stop.clone(),
            drain,
        };
        let result = tokio::select! {
            result = candidate.run(work) => result,
            Some(_) = watches.join_next() => Err(Error::Ended("a watch")),
            Some(_) = servers.join_next() => Err(Error::Ended("a server")),
            () = no_webhooks => Err(Error::Ended("a server")),
            never = unready => match never {},
        };
        readiness.end();
        closing.cancel();
        let left = drain.saturating_sub(stopped.map_or(Duration::ZERO, |stopped| stopped.elapsed()));
        let answers = async { while webhooks.join_next().await.is_some() {} };
        if tokio::time::timeout(left, answers).await.is_err() {
            tracing::warn!("some requests to webhooks were not answered in time");
        }
        check.abort();
        published.cancel();
        if tokio::time::timeout(LAST_EVENTS, &mut publishing).await.is_err() {
            publishing.abort();
            tracing::warn!("some events were not sent in time");
        }
        result
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
