//! Leader election.
//!
//! The rules are those of client-go, so replicas of this and of other implementations can share a Lease:
//!
//! - A candidate never compares a time in the Lease with its own clock. It remembers when, by its own monotonic clock,
//!   it last *saw the Lease change*, and takes over only after the lease duration has passed without a change. Clocks
//!   that differ between machines are harmless.
//! - Every write replaces the Lease with the resource version that was read. Of two candidates that write at once, one
//!   gets a conflict.
//! - The leader renews every retry period. When it has not succeeded for the renew deadline, which is shorter than the
//!   lease duration, it stops: no other candidate can have taken over before. The deadline counts from when the last
//!   renewal that succeeded was *sent*: the API server may have stored it then, and its answer may be late.
//! - A leader that shuts down gracefully releases the Lease, so that its successor does not wait. A candidate with an
//!   interrupted attempt does the same, because the API server may have stored the attempt.
use std::{future::Future, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::{explain, tenure::Tenure};

/// The Lease, the candidate and the timing of an election.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the Lease.
    pub name: String,
    /// Namespace of the Lease.
    pub namespace: String,
    /// Unique name of this candidate. Must change when the container restarts.
    pub identity: String,
    /// A candidate takes over this long after it last saw the Lease change. Client-go: 15 s.
    pub lease_duration: Duration,
    /// The leader stops when it could not renew for this long. Client-go: 10 s.
    pub renew_deadline: Duration,
    /// Time between two attempts. Client-go: 2 s.
    pub retry_period: Duration,
}

impl Config {
    /// The Lease `namespace`/`name` with client-go's timing.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespace: namespace.into(),
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// Storage of the Lease: the API server, or memory in tests.
pub trait Store {
    /// Reads the Lease. `None` if it does not exist.
    fn get(&self) -> impl Future<Output = Result<Option<Lease>, Error>> + Send;
    /// Creates the Lease. [`Error::Conflict`] if it exists.
    fn create(&self, lease: &Lease) -> impl Future<Output = Result<Lease, Error>> + Send;
    /// Replaces the Lease. [`Error::Conflict`] if its resource version is not that of `lease`.
    fn replace(&self, lease: &Lease) -> impl Future<Output = Result<Lease, Error>> + Send;
}

/// Why the Lease could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another candidate wrote first.
    #[error("another candidate wrote the lease first")]
    Conflict,
    /// The API server rejected the request or is unreachable.
    #[error("cannot {action} lease {lease}: {}", explain::request(source))]
    Api {
        /// The attempt.
        action: &'static str,
        /// Namespace and name of the Lease.
        lease: String,
        /// The client's error.
        source: Box<kube::Error>,
    },
    /// The request timed out.
    #[error("no answer from the API server within {0:?}")]
    Timeout(Duration),
}

/// The Lease in the API server.
#[derive(Clone)]
pub struct ApiStore {
    api: Api<Lease>,
    name: String,
    namespace: String,
}

impl ApiStore {
    /// The Lease that `config` names, reached through `client`.
    pub fn new(client: Client, config: &Config) -> Self {
        Self {
            api: Api::namespaced(client, &config.namespace),
            name: config.name.clone(),
            namespace: config.namespace.clone(),
        }
    }

    fn error(&self, action: &'static str, source: kube::Error) -> Error {
        match &source {
            kube::Error::Api(status) if status.code == 409 => Error::Conflict,
            _ => Error::Api {
                action,
                lease: format!("{}/{}", self.namespace, self.name),
                source: Box::new(source),
            },
        }
    }
}

impl Store for ApiStore {
    async fn get(&self) -> Result<Option<Lease>, Error> {
        self.api
            .get_opt(&self.name)
            .await
            .map_err(|error| self.error("read", error))
    }

    async fn create(&self, lease: &Lease) -> Result<Lease, Error> {
        self.api
            .create(&PostParams::default(), lease)
            .await
            .map_err(|error| self.error("create", error))
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, Error> {
        self.api
            .replace(&self.name, &PostParams::default(), lease)
            .await
            .map_err(|error| self.error("renew", error))
    }
}

/// A candidate in the election.
pub struct Election<S> {
    config: Config,
    store: S,
    observed: Option<Observed>,
    /// When the last write that made or kept this candidate the leader was sent.
    renewed: Instant,
    /// Ends with the deadline of the last renewal.
    tenure: Tenure,
    /// A write was sent and its answer has not been seen: the Lease may be newer than the observed one.
    unanswered: bool,
}

/// The Lease as last seen, and when it was first seen so.
struct Observed {
    lease: Lease,
    since: Instant,
}

impl Observed {
    fn holder(&self) -> &str {
        self.spec()
            .and_then(|spec| spec.holder_identity.as_deref())
            .unwrap_or_default()
    }

    fn spec(&self) -> Option<&LeaseSpec> {
        self.lease.spec.as_ref()
    }
}

impl<S: Store> Election<S> {
    /// A candidate for the Lease in `store`.
    pub fn new(config: Config, store: S) -> Self {
        Self {
            config,
            store,
            observed: None,
            renewed: Instant::now(),
            tenure: Tenure::default(),
            unanswered: false,
        }
    }

    /// As before, and `tenure` lasts as long as this candidate may act as the leader.
    pub(crate) fn within(self, tenure: Tenure) -> Self {
        Self { tenure, ..self }
    }

    /// The holder when the Lease was last read. Empty if there is none.
    pub fn holder(&self) -> &str {
        self.observed.as_ref().map(Observed::holder).unwrap_or_default()
    }

    /// Waits until this candidate leads. Errors are logged and retried.
    pub async fn acquire(&mut self) {
        let mut last_holder = String::new();
        loop {
            match self.try_once(self.attempt_limit()).await {
                Ok(true) => {
                    tracing::info!(lease = %self.config.name, identity = %self.config.identity, "leading");
                    return;
                }
                Ok(false) => {
                    if self.holder() != last_holder {
                        last_holder = self.holder().to_owned();
                        tracing::info!(lease = %self.config.name, holder = %last_holder, "standing by");
                    }
                }
                Err(Error::Conflict) => {}
                Err(error) => {
                    tracing::warn!(lease = %self.config.name, %error, "cannot acquire the lease, retrying")
                }
            }
            // Client-go's jitter, so that candidates do not retry in step.
            sleep(self.config.retry_period.mul_f64(1.0 + 1.2 * fastrand::f64())).await;
        }
    }

    /// Renews the lease. Returns when leadership is lost. The caller must then stop its work at once.
    pub async fn hold(&mut self) {
        // A period is counted from when an attempt begins: answers may be late.
        let mut next = self.renewed + self.config.retry_period;
        loop {
            let deadline = self.renewed + self.config.renew_deadline;
            // Never sleeps past the deadline: the check has to be in time.
            sleep_until(next.min(deadline)).await;
            let now = Instant::now();
            let left = deadline.saturating_duration_since(now);
            if left.is_zero() {
                tracing::error!(lease = %self.config.name, "lost the lease: not renewed in time");
                return;
            }
            next = now + self.config.retry_period;
            match self.try_once(left.min(self.attempt_limit())).await {
                Ok(true) => {}
                Ok(false) => {
                    tracing::error!(lease = %self.config.name, holder = %self.holder(), "lost the lease to another candidate");
                    return;
                }
                Err(error) => tracing::warn!(lease = %self.config.name, %error, "cannot renew the lease, retrying"),
            }
        }
    }

    /// The time of one attempt, as in client-go: one that is never answered leaves time for another.
    fn attempt_limit(&self) -> Duration {
        self.config.renew_deadline / 2
    }

    /// Releases the lease, so that another candidate can take over at once. Does nothing if this candidate does not lead.
    ///
    /// # Errors
    /// When the Lease could not be written within `limit`. Other candidates then wait for the lease duration.
    pub async fn release(&mut self, limit: Duration) -> Result<(), Error> {
        timeout(limit, self.try_release())
            .await
            .map_err(|_| Error::Timeout(limit))?
    }

    async fn try_release(&mut self) -> Result<(), Error> {
        if self.unanswered {
            self.read().await?;
        }
        while let Some(observed) = self.led() {
            let mut lease = observed.lease.clone();
            let now = MicroTime(Timestamp::now());
            let spec = lease.spec.get_or_insert_default();
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            spec.renew_time = Some(now.clone());
            spec.acquire_time = Some(now);
            match self.store.replace(&lease).await {
                Ok(released) => {
                    self.observe(released);
                    tracing::info!(lease = %self.config.name, "released the lease");
                }
                // A renewal that was cut off, or another client's annotation, came between.
                Err(Error::Conflict) => self.read().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The observed Lease, if this candidate is its holder.
    fn led(&self) -> Option<&Observed> {
        self.observed
            .as_ref()
            .filter(|observed| observed.holder() == self.config.identity)
    }

    /// Reads the Lease.
    async fn read(&mut self) -> Result<(), Error> {
        match self.store.get().await? {
            Some(found) => self.observe(found),
            None => self.observed = None,
        }
        self.unanswered = false;
        Ok(())
    }

    /// Sends a write that makes or keeps this candidate the leader.
    async fn write(&mut self, create: bool, lease: &Lease) -> Result<(), Error> {
        let sent = Instant::now();
        self.unanswered = true;
        let written = if create {
            self.store.create(lease).await
        } else {
            self.store.replace(lease).await
        };
        // Of other errors it is not known whether the write was stored.
        if matches!(written, Ok(_) | Err(Error::Conflict)) {
            self.unanswered = false;
        }
        self.observe(written?);
        self.renewed = sent;
        self.tenure.extend(sent + self.config.renew_deadline);
        Ok(())
    }

    /// Tries once to acquire or renew the lease within `limit`.
    async fn try_once(&mut self, limit: Duration) -> Result<bool, Error> {
        match timeout(limit, self.try_acquire_or_renew()).await {
            Ok(result) => result,
            Err(_) => Err(Error::Timeout(limit)),
        }
    }

    async fn try_acquire_or_renew(&mut self) -> Result<bool, Error> {
        // While this candidate leads, its last write is most likely current: no need to read first.
        if let Some(observed) = self.led()
            && observed.since.elapsed() < self.config.lease_duration
        {
            let renewal = self.record(Some(observed));
            match self.write(false, &renewal).await {
                Ok(()) => return Ok(true),
                Err(Error::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
        self.read().await?;
        let Some(observed) = &self.observed else {
            let first = self.record(None);
            self.write(true, &first).await?;
            return Ok(true);
        };
        let held_by_other = !observed.holder().is_empty() && observed.holder() != self.config.identity;
        if held_by_other && observed.since.elapsed() < self.takeover_after(observed) {
            return Ok(false);
        }
        let record = self.record(Some(observed));
        self.write(false, &record).await?;
        Ok(true)
    }

    /// How long `observed` must stay unchanged before it may be taken over: the duration that its holder set.
    fn takeover_after(&self, observed: &Observed) -> Duration {
        observed
            .spec()
            .and_then(|spec| spec.lease_duration_seconds)
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or(self.config.lease_duration, Duration::from_secs)
    }

    /// Records `lease`. The observation time changes only with its content.
    fn observe(&mut self, lease: Lease) {
        match &mut self.observed {
            Some(observed) if observed.lease.spec == lease.spec => observed.lease = lease,
            observed => {
                *observed = Some(Observed {
                    lease,
                    since: Instant::now(),
                })
            }
        }
    }

    /// The Lease with this candidate as its holder, based on the observed one.
    fn record(&self, observed: Option<&Observed>) -> Lease {
        let now = MicroTime(Timestamp::now());
        let before = observed.and_then(Observed::spec);
        let leads = observed.is_some_and(|observed| observed.holder() == self.config.identity);
        let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        let spec = LeaseSpec {
            holder_identity: Some(self.config.identity.clone()),
            lease_duration_seconds: Some(i32::try_from(self.config.lease_duration.as_secs()).unwrap_or(i32::MAX)),
            acquire_time: if leads {
                before.and_then(|spec| spec.acquire_time.clone())
            } else {
                Some(now.clone())
            },
            renew_time: Some(now),
            lease_transitions: Some(if leads || observed.is_none() {
                transitions
            } else {
                transitions.saturating_add(1)
            }),
            ..LeaseSpec::default()
        };
        let metadata = observed.map_or_else(
            || ObjectMeta {
                name: Some(self.config.name.clone()),
                namespace: Some(self.config.namespace.clone()),
                ..ObjectMeta::default()
            },
            |observed| observed.lease.metadata.clone(),
        );
        Lease {
            metadata,
            spec: Some(spec),
        }
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
