//! A proxy in front of the API server that injects faults.
//!
//! A client under test gets a kubeconfig whose server is the proxy. Requests pass unchanged, with the client's
//! certificate if it has one, until a [`Rule`] matches. Rules can be added and removed while clients run. A seeded
//! generator decides which of the matching requests fail. The proxy records every request, so that a test can check
//! which client wrote which object, and when.
//!
//! For a client, [`Fault::Stalled`] looks like a half-open connection: an open connection on which nothing arrives.
//!
//! ```no_run
//! # async fn example(control_plane: &kube_testbed::ControlPlane) -> Result<(), kube_testbed::Error> {
//! use kube_testbed::faults::{Fault, Rule, Verb};
//!
//! let proxy = control_plane.faults(1).await?;
//! proxy.add(Rule::new(Fault::status(409)).verb(Verb::Patch).resource("deployments").times(3));
//! println!("KUBECONFIG={}", proxy.kubeconfig(control_plane.kubeconfig())?.display());
//! # Ok(())
//! # }
//! ```
mod answer;
mod clock;
mod parts;
mod request;
mod server;
mod users;
mod webhook;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use kube::{
    Client,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use tokio::{sync::Notify, time::sleep_until};

use crate::{Error, access};
pub use request::{ProxiedRequest, Verb};
pub use webhook::{DeadWebhook, Death};

/// The failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// This status code instead of the request.
    Status {
        /// The code.
        code: u16,
        /// Value of the header `Retry-After`, in seconds.
        retry_after: Option<u32>,
    },
    /// The answer is delayed by this time.
    Late(Duration),
    /// The request reaches the server. Its answer is lost and the connection is closed.
    AnswerLost,
    /// Nothing passes. The connection is closed after this time. This hits new requests: [`FaultProxy::black_hole`] silences watches
    /// that are open as well.
    BlackHole(Duration),
    /// Each event of a watch, or each part of another answer, is delayed by this time.
    EventsLate(Duration),
    /// A watch is closed after this time.
    Dropped(Duration),
    /// The connection stays open after this time, and nothing arrives.
    Stalled(Duration),
    /// After this time the watch delivers the error 410, as when its resource version is too old.
    Expired(Duration),
    /// A watch delivers bookmarks only.
    BookmarksOnly,
}

impl Fault {
    /// The status code `code` instead of the request.
    pub fn status(code: u16) -> Self {
        Self::Status {
            code,
            retry_after: None,
        }
    }

    /// Status code 429 with `Retry-After`.
    pub fn busy(seconds: u32) -> Self {
        Self::Status {
            code: 429,
            retry_after: Some(seconds),
        }
    }
}

/// The requests to which a fault applies.
#[derive(Debug, Clone)]
pub struct Rule {
    fault: Fault,
    verbs: Vec<Verb>,
    resource: Option<String>,
    namespace: Option<String>,
    share: f64,
    times: Option<u32>,
}

impl Rule {
    /// `fault` for every request.
    pub fn new(fault: Fault) -> Self {
        Self {
            fault,
            verbs: Vec::new(),
            resource: None,
            namespace: None,
            share: 1.0,
            times: None,
        }
    }

    /// Only requests with this verb. Several calls allow any of their verbs.
    #[must_use]
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verbs.push(verb);
        self
    }

    /// Only requests that write.
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.verbs.extend(Verb::WRITES);
        self
    }

    /// Only requests of this resource, by its plural name. `memcacheds/status` for a subresource.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Only requests in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only this share of the requests, at random.
    #[must_use]
    pub fn share(mut self, share: f64) -> Self {
        self.share = share;
        self
    }

    /// Only this number of times.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    fn matches(&self, request: &ProxiedRequest) -> bool {
        (self.verbs.is_empty() || self.verbs.contains(&request.verb))
            && self
                .resource
                .as_ref()
                .is_none_or(|resource| *resource == request.resource)
            && self
                .namespace
                .as_ref()
                .is_none_or(|namespace| *namespace == request.namespace)
            && self.times != Some(0)
    }
}

/// Rules, generator and record, shared by proxy and server.
pub(crate) struct Shared {
    rules: Vec<Rule>,
    random: fastrand::Rng,
    seen: Vec<ProxiedRequest>,
    /// Number of requests recorded before the first of `seen`.
    forgotten: usize,
    users: Vec<users::User>,
    /// Until then nothing passes.
    silent_until: Option<Instant>,
    /// Seconds by which the clients' clocks are ahead.
    ahead: i64,
    /// Ends all watches.
    expire: Arc<Notify>,
    /// Resources whose next watch is rejected, because the answer of the last one has no room for an error.
    expired: Vec<String>,
}

impl Shared {
    /// The fault for `request`, which is recorded. The second value is its index in the record.
    fn decide(&mut self, request: ProxiedRequest) -> (Option<Fault>, usize) {
        let mut fault = None;
        let expired = self.expired.iter().position(|resource| *resource == request.resource);
        if let Some(place) = expired.filter(|_| request.verb == Verb::Watch) {
            self.expired.remove(place);
            return (Some(Fault::status(410)), self.record(request));
        }
        for rule in &mut self.rules {
            if rule.matches(&request) && self.random.f64() < rule.share {
                rule.times = rule.times.map(|left| left - 1);
                fault = Some(rule.fault.clone());
                break;
            }
        }
        (fault, self.record(request))
    }

    /// Records `request`. Returns its index.
    fn record(&mut self, request: ProxiedRequest) -> usize {
        self.seen.push(request);
        self.count() - 1
    }

    /// Number of requests so far.
    fn count(&self) -> usize {
        self.forgotten + self.seen.len()
    }
}

/// A running proxy. It ends when it is dropped.
pub struct FaultProxy {
    url: String,
    shared: Arc<Mutex<Shared>>,
    /// True if requests have the credentials of the proxy.
    one_user: bool,
    _server: server::Server,
}

impl FaultProxy {
    /// Starts a proxy in front of `upstream`. With `one_user` all requests have its credentials. Otherwise it must have
    /// none. `seed` makes random decisions reproducible.
    pub(crate) fn start(upstream: kube::Config, one_user: bool, seed: u64) -> Result<Self, Error> {
        let shared = Arc::new(Mutex::new(Shared {
            rules: Vec::new(),
            random: fastrand::Rng::with_seed(seed),
            seen: Vec::new(),
            forgotten: 0,
            users: Vec::new(),
            silent_until: None,
            ahead: 0,
            expire: Arc::default(),
            expired: Vec::new(),
        }));
        let connect =
            move || access::passing_on(&upstream).map_err(Error::request("make a client for the fault proxy"));
        let (server, address) = server::Server::start(connect, Arc::clone(&shared))?;
        Ok(Self {
            url: format!("http://{address}"),
            shared,
            one_user,
            _server: server,
        })
    }

    /// A kubeconfig like that at `original`, whose server is the proxy. A user with a client certificate, such as the
    /// administrator, gets a token that only the proxy accepts, and the proxy uses the certificate.
    ///
    /// # Errors
    /// When `original` cannot be read or the new file not be written.
    pub fn kubeconfig(&self, original: &Path) -> Result<PathBuf, Error> {
        let kubeconfig = Kubeconfig::read_from(original)?;
        let mut value = serde_json::to_value(&kubeconfig).unwrap_or_default();
        // `token` is redacted in the typed form, but not in the file.
        let text = crate::process::read_to_string(original)?;
        if let Ok(whole) = serde_json::from_str(&text) {
            value = whole;
        }
        if !self.one_user {
            let users = users::User::with_certificates(&kubeconfig, &mut value);
            self.shared().users.extend(users);
        }
        for cluster in value
            .get_mut("clusters")
            .and_then(|list| list.as_array_mut())
            .into_iter()
            .flatten()
        {
            if let Some(cluster) = cluster.get_mut("cluster") {
                *cluster = json!({ "server": self.url });
            }
        }
        let port = self.url.rsplit(':').next().unwrap_or_default();
        let path = original.with_extension(format!("through-{port}.kubeconfig"));
        fs::write(&path, value.to_string()).map_err(Error::io("write the kubeconfig", &path))?;
        Ok(path)
    }

    /// A client of the user in the kubeconfig at `original`, through the proxy.
    ///
    /// # Errors
    /// As [`Self::kubeconfig`].
    pub async fn client(&self, original: &Path) -> Result<Client, Error> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig(original)?)?;
        let config = access::config(kubeconfig, &KubeConfigOptions::default()).await?;
        Client::try_from(config).map_err(Error::request("make a client"))
    }

    /// Adds a rule. The first that matches applies.
    pub fn add(&self, rule: Rule) {
        self.shared().rules.push(rule);
    }

    /// Removes all rules. Connections that already stall or wait continue to do so.
    pub fn clear(&self) {
        self.shared().rules.clear();
    }

    /// From now on the clients' clocks appear to be this number of seconds ahead of the API server's clock, or behind
    /// it. The times in their answers are shifted, so no client reads other clients' times unchanged.
    pub fn clock_ahead(&self, seconds: i64) {
        self.shared().ahead = seconds;
    }

    /// Blocks all traffic for this time, as if a network were cut: requests wait, and so do answers in progress and the
    /// events of open watches. Afterwards everything that a client still waits for arrives late. For a network that
    /// never recovers, use [`Fault::Stalled`].
    pub fn black_hole(&self, time: Duration) {
        let end = Instant::now() + time;
        let mut shared = self.shared();
        shared.silent_until = shared.silent_until.max(Some(end));
    }

    /// All requests so far, in the order of their arrival, without those that were [forgotten](Self::forget).
    pub fn requests(&self) -> Vec<ProxiedRequest> {
        self.shared().seen.clone()
    }

    /// Ends all open watches with the error 410, so that clients list again.
    pub fn expire_watches(&self) {
        self.shared().expire.notify_waiters();
    }

    /// The requests that arrived after the first `known` ones.
    pub fn requests_after(&self, known: usize) -> Vec<ProxiedRequest> {
        let shared = self.shared();
        let known = known.saturating_sub(shared.forgotten);
        shared.seen.iter().skip(known).cloned().collect()
    }

    /// Forgets the first `known` requests, whose bodies would fill the memory of a test that runs for hours. They still count.
    pub fn forget(&self, known: usize) {
        let mut shared = self.shared();
        let gone = known.saturating_sub(shared.forgotten).min(shared.seen.len());
        shared.seen.drain(..gone);
        shared.forgotten += gone;
    }

    /// Number of requests so far.
    pub fn count(&self) -> usize {
        self.shared().count()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `change` on the record of a request.
fn record(shared: &Mutex<Shared>, place: usize, change: impl FnOnce(&mut ProxiedRequest)) {
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let place = place.checked_sub(shared.forgotten);
    if let Some(seen) = place.and_then(|place| shared.seen.get_mut(place)) {
        change(seen);
    }
}

/// Marks the request at index `place` as answered with `code`.
fn answered(shared: &Mutex<Shared>, place: usize, code: u16) {
    record(shared, place, |seen| seen.answer = Some((code, Instant::now())));
}

/// Waits while nothing passes.
async fn silence(shared: &Mutex<Shared>) {
    let until = || shared.lock().unwrap_or_else(PoisonError::into_inner).silent_until;
    // The black hole may be extended while waiting.
    while let Some(end) = until().filter(|end| *end > Instant::now()) {
        sleep_until(end.into()).await;
    }
}
