//! Watches that feed caches.
use std::{collections::HashSet, fmt::Debug, sync::Arc, time::Duration};

use futures::{Stream, StreamExt};
use kube::{
    Api, Resource,
    runtime::watcher::{self, Event},
};
use prometheus_client::metrics::counter::Counter;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use crate::{
    ObjectKey,
    backoff::Backoff,
    cache::{Cache, Change, Revision},
    explain,
    probes::Gate,
};

/// Between two attempts to list or to watch. Liveness counts on the cap.
const BACKOFF: Backoff = Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(30),
    jitter: 0.5,
};

/// A failure this long after the one before begins a new row: that a watch has been opened is no event.
const FORGOTTEN: Duration = Duration::from_secs(120);

/// Failures of a watch in a row. kube-runtime's own back-off takes the beginning of a list for a success, so that one that is
/// refused would be asked for once a second.
#[derive(Default)]
struct Failures {
    count: u32,
    last: Option<Instant>,
}

impl Failures {
    /// How long to wait after one more.
    fn next(&mut self) -> Duration {
        if self.last.is_some_and(|last| last.elapsed() > FORGOTTEN) {
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.last = Some(Instant::now());
        BACKOFF.delay(self.count)
    }
}

/// A watch of one kind, in one namespace or in all, that feeds a cache.
pub struct Follow<T, P, C> {
    /// Opened after the first complete list, refused when the right to list or watch is missing.
    pub gate: Gate,
    /// Projects and stores the objects.
    pub source: Source<T, P, C>,
}

/// How the objects of one watch are projected and stored.
pub struct Source<T, P, C> {
    /// The cache to feed. Several watches may feed one cache if their scopes do not overlap.
    pub cache: Cache<T>,
    /// The namespace that is watched; `None` for all.
    pub scope: Option<String>,
    /// Projects an object; `None` treats it as absent.
    pub project: P,
    /// Called after each change of the cache.
    pub changed: C,
    /// Counts broken watches.
    pub errors: Counter,
}

impl<T, P, C> Follow<T, P, C> {
    /// Watches the objects of `api` that `config` selects. Never returns: broken watches are restarted with back-off.
    pub async fn run<K>(self, api: Api<K>, config: watcher::Config)
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
        P: Fn(K) -> Option<T>,
        C: Fn(&ObjectKey, Change<T>),
    {
        self.feed(watcher::watcher(api, config)).await;
    }

    pub(crate) async fn feed<K>(self, events: impl Stream<Item = watcher::Result<Event<K>>>)
    where
        K: Resource<DynamicType = ()>,
        P: Fn(K) -> Option<T>,
        C: Fn(&ObjectKey, Change<T>),
    {
        let Self { source, gate } = self;
        let scope = source.scope.clone().unwrap_or_default();
        // Keys of the current list: at its end, keys in the cache that it lacks have been deleted.
        let mut listed = HashSet::new();
        let mut began = Instant::now();
        let mut failures = Failures::default();
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => {
                    listed.clear();
                    began = Instant::now();
                    source.cache.rewind(&scope);
                }
                Ok(Event::InitApply(object)) => {
                    listed.insert(source.store(object, Some(began), &scope));
                }
                Ok(Event::InitDone) => {
                    failures = Failures::default();
                    let listed = std::mem::take(&mut listed);
                    for (key, change) in source.cache.retain(&listed, source.scope.as_deref(), began) {
                        (source.changed)(&key, change);
                    }
                    gate.open();
                }
                Ok(Event::Apply(object)) => {
                    failures = Failures::default();
                    source.store(object, None, &scope);
                }
                Ok(Event::Delete(object)) => {
                    failures = Failures::default();
                    let revision = Revision::of(&object);
                    if let Some(change) = source.cache.remove(&revision, &scope) {
                        (source.changed)(&revision.key, change);
                    }
                }
                Err(error) => {
                    let delay = failures.next();
                    source.watch_failed::<K>(&error, delay);
                    if is_forbidden(&error) {
                        gate.refuse(explain::watch(&error));
                    }
                    sleep(delay).await;
                }
            }
        }
    }
}

/// Whether the operator lacks the right to list or watch.
fn is_forbidden(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status)) => status.code == 403,
        _ => false,
    }
}

impl<T, P, C: Fn(&ObjectKey, Change<T>)> Source<T, P, C> {
    fn store<K: Resource>(&self, object: K, list: Option<Instant>, scope: &str) -> ObjectKey
    where
        P: Fn(K) -> Option<T>,
    {
        let revision = Revision::of(&object);
        let key = revision.key.clone();
        // A new list holds mostly what is known.
        let known = list.and_then(|_| self.cache.in_state(&revision));
        let value = known.or_else(|| (self.project)(object).map(Arc::new));
        if let Some(change) = self.cache.apply(revision, value, list, scope) {
            (self.changed)(&key, change);
        }
        key
    }

    fn watch_failed<K: Resource<DynamicType = ()>>(&self, error: &watcher::Error, retry: Duration) {
        self.errors.inc();
        let kind = K::plural(&());
        let namespace = self.scope.as_deref().unwrap_or("all namespaces");
        let retry_ms = u64::try_from(retry.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(%kind, %namespace, error = %explain::watch(error), retry_ms, "watch failed, restarting it");
    }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
