//! Watches that feed caches.
use std::{collections::HashSet, fmt::Debug, sync::Arc, time::Duration};

use futures::StreamExt;
use kube::{
    Api, Resource,
    api::{WatchEvent, WatchParams},
    runtime::watcher::{self, Event},
};
use prometheus_client::metrics::counter::Counter;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    ObjectKey,
    backoff::Backoff,
    cache::{Cache, Change, Revision},
    explain,
    listing::Listing,
    probes::Gate,
};

/// Between two attempts to list or to watch. Liveness counts on the cap.
const BACKOFF: Backoff = Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(30),
    jitter: 0.5,
};

/// A failure this long after the previous one begins a new row.
const FORGOTTEN: Duration = Duration::from_secs(120);

/// A watch that stayed open for this long did its work, even if it sent no event.
const WORKED: Duration = Duration::from_secs(5);

/// Failures of a watch in a row. kube-runtime's own back-off treats the beginning of a list as a success, so that it would ask
/// for a refused one once a second.
#[derive(Default)]
struct Failures {
    count: u32,
    last: Option<Instant>,
    /// The pause after the last failure.
    paused: Duration,
    /// Since when the current watch is open.
    opened: Option<Instant>,
}

impl Failures {
    /// The API server has granted a watch.
    fn opened(&mut self) {
        self.opened = Some(Instant::now());
    }

    /// How long to wait after one more.
    fn next(&mut self) -> Duration {
        let is_old = self.last.is_some_and(|last| last.elapsed() > FORGOTTEN);
        // A load balancer that cuts quiet connections must not make the pauses longer than the watches.
        let least = self.paused.max(WORKED);
        let has_worked = self.opened.take().is_some_and(|opened| opened.elapsed() >= least);
        if is_old || has_worked {
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.last = Some(Instant::now());
        self.paused = BACKOFF.delay(self.count);
        self.paused
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
    /// The namespace that is watched. `None` for all.
    pub scope: Option<String>,
    /// Projects an object. `None` treats it as absent.
    pub project: P,
    /// Called after each change of the cache.
    pub changed: C,
    /// Counts broken watches.
    pub errors: Counter,
}

impl<T, P, C> Follow<T, P, C> {
    /// Watches the objects of `api` that `config` selects. Never returns: broken watches are restarted with back-off. Lists are
    /// read object by object, whatever the size of their pages.
    pub async fn run<K>(self, api: Api<K>, config: watcher::Config)
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
        P: Fn(K) -> Option<T>,
        C: Fn(&ObjectKey, Change<T>),
    {
        let parameters = WatchParams {
            label_selector: config.label_selector.clone(),
            field_selector: config.field_selector.clone(),
            timeout: config.timeout,
            bookmarks: config.bookmarks,
            send_initial_events: false,
        };
        let listing = Listing::new(api.clone(), config);
        let mut feeder = Feeder::new(self);
        loop {
            feeder.take(Ok(Event::Init)).await;
            let listed = listing.each(|object: K| feeder.list(object)).await;
            let mut version = match listed {
                Ok(version) if version.is_empty() => {
                    feeder.take::<K>(Err(watcher::Error::NoResourceVersion)).await;
                    continue;
                }
                Ok(version) => version,
                Err(error) => {
                    feeder.take::<K>(Err(watcher::Error::InitialListFailed(error))).await;
                    continue;
                }
            };
            feeder.take::<K>(Ok(Event::InitDone)).await;
            while feeder.watch(&api, &parameters, &mut version).await {}
        }
    }

    #[cfg(test)]
    pub(crate) async fn feed<K>(self, events: impl futures::Stream<Item = watcher::Result<Event<K>>>)
    where
        K: Resource<DynamicType = ()>,
        P: Fn(K) -> Option<T>,
        C: Fn(&ObjectKey, Change<T>),
    {
        let mut feeder = Feeder::new(self);
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            feeder.take(event).await;
        }
    }
}

/// Feeds a cache with the events of one watch.
struct Feeder<T, P, C> {
    source: Source<T, P, C>,
    gate: Gate,
    scope: String,
    /// Keys of the current list: at its end, keys in the cache that it lacks have been deleted.
    listed: HashSet<ObjectKey>,
    began: Instant,
    failures: Failures,
}

impl<T, P, C> Feeder<T, P, C> {
    fn new(follow: Follow<T, P, C>) -> Self {
        let Follow { gate, source } = follow;
        Self {
            gate,
            scope: source.scope.clone().unwrap_or_default(),
            source,
            listed: HashSet::new(),
            began: Instant::now(),
            failures: Failures::default(),
        }
    }

    fn list<K>(&mut self, object: K)
    where
        K: Resource<DynamicType = ()>,
        P: Fn(K) -> Option<T>,
        C: Fn(&ObjectKey, Change<T>),
    {
        let key = self.source.store(object, Some(self.began), &self.scope);
        self.listed.insert(key);
    }

    /// Watches once, from `version` on. Returns true if the next watch can continue from the last version. Otherwise the
    /// caller lists all objects again.
    async fn watch<K>(&mut self, api: &Api<K>, parameters: &WatchParams, version: &mut String) -> bool
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static,
        P: Fn(K) -> Option<T>,
        C: Fn(&ObjectKey, Change<T>),
    {
        let events = match api.watch(parameters, version).await {
            Ok(events) => events,
            Err(error) => {
                let is_gone = matches!(&error, kube::Error::Api(status) if status.code == 410);
                self.take::<K>(Err(watcher::Error::WatchStartFailed(error))).await;
                return !is_gone;
            }
        };
        self.failures.opened();
        let mut events = std::pin::pin!(events);
        // A watch that sends nothing for longer than the API server keeps one is over. kube asks for 290 seconds.
        let silent = Duration::from_secs(u64::from(parameters.timeout.unwrap_or(290)) + 5);
        loop {
            let Ok(Some(event)) = timeout(silent, events.next()).await else {
                return true;
            };
            let event = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => Event::Apply(object),
                Ok(WatchEvent::Deleted(object)) => Event::Delete(object),
                Ok(WatchEvent::Bookmark(bookmark)) => {
                    *version = bookmark.metadata.resource_version;
                    continue;
                }
                Ok(WatchEvent::Error(status)) => {
                    let is_gone = status.code == 410;
                    let error = watcher::Error::WatchError(status.boxed());
                    self.take::<K>(Err(error)).await;
                    if is_gone {
                        return false;
                    }
                    continue;
                }
                Err(error) => {
                    self.take::<K>(Err(watcher::Error::WatchFailed(error))).await;
                    continue;
                }
            };
            if let Event::Apply(object) | Event::Delete(object) = &event {
                match &object.meta().resource_version {
                    Some(reached) if !reached.is_empty() => version.clone_from(reached),
                    _ => {
                        self.take::<K>(Err(watcher::Error::NoResourceVersion)).await;
                        return false;
                    }
                }
            }
            self.take(Ok(event)).await;
        }
    }

    async fn take<K>(&mut self, event: watcher::Result<Event<K>>)
    where
        K: Resource<DynamicType = ()>,
        P: Fn(K) -> Option<T>,
        C: Fn(&ObjectKey, Change<T>),
    {
        let Self { source, gate, .. } = self;
        match event {
            Ok(Event::Init) => {
                self.listed.clear();
                self.began = Instant::now();
                source.cache.rewind(&self.scope);
            }
            Ok(Event::InitApply(object)) => self.list(object),
            Ok(Event::InitDone) => {
                self.failures = Failures::default();
                let listed = std::mem::take(&mut self.listed);
                for (key, change) in source.cache.retain(&listed, source.scope.as_deref(), self.began) {
                    (source.changed)(&key, change);
                }
                gate.open();
            }
            Ok(Event::Apply(object)) => {
                self.failures = Failures::default();
                source.store(object, None, &self.scope);
            }
            Ok(Event::Delete(object)) => {
                self.failures = Failures::default();
                let revision = Revision::new(&object);
                if let Some(change) = source.cache.remove(&revision, &self.scope) {
                    (source.changed)(&revision.key, change);
                }
            }
            Err(error) => {
                let delay = self.failures.next();
                source.watch_failed::<K>(&error, delay);
                if is_forbidden(&error) {
                    gate.refuse(explain::watch(&error));
                }
                sleep(delay).await;
            }
        }
    }
}

/// Returns true if the operator lacks the right to list or watch.
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
        let revision = Revision::new(&object);
        let key = revision.key.clone();
        // A new list contains mostly known objects.
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
