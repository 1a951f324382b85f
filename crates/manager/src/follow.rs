//! Watches that feed caches.
use std::{collections::HashSet, fmt::Debug, sync::Arc};

use futures::{Stream, StreamExt};
use kube::{
    Api, Resource,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event},
    },
};
use prometheus_client::metrics::counter::Counter;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::{
    ObjectKey,
    cache::{Cache, Change, Revision},
    explain,
    probes::Gate,
};

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
        self.feed(watcher::watcher(api, config).default_backoff()).await;
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
                    let listed = std::mem::take(&mut listed);
                    for (key, change) in source.cache.retain(&listed, source.scope.as_deref(), began) {
                        (source.changed)(&key, change);
                    }
                    gate.open();
                }
                Ok(Event::Apply(object)) => {
                    source.store(object, None, &scope);
                }
                Ok(Event::Delete(object)) => {
                    let revision = Revision::of(&object);
                    if let Some(change) = source.cache.remove(&revision, &scope) {
                        (source.changed)(&revision.key, change);
                    }
                }
                Err(error) => {
                    source.watch_failed::<K>(&error);
                    if is_forbidden(&error) {
                        gate.refuse(explain::watch(&error));
                    }
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
        let value = (self.project)(object).map(Arc::new);
        if let Some(change) = self.cache.apply(revision, value, list, scope) {
            (self.changed)(&key, change);
        }
        key
    }

    fn watch_failed<K: Resource<DynamicType = ()>>(&self, error: &watcher::Error) {
        self.errors.inc();
        let kind = K::plural(&());
        let namespace = self.scope.as_deref().unwrap_or("all namespaces");
        tracing::warn!(%kind, %namespace, error = %explain::watch(error), "watch failed, restarting it");
    }
}
