//! The objects of one kind, kept current by watches.
//!
//! The cache stores a projection of each object, not the object: fields that the operator never reads take no memory.
//! `docs/architecture.md` compares this with kube-runtime's `Store`.
//!
//! One object that does not deserialize breaks the watch of its whole kind. Stored custom resources can become
//! undeserializable when their schema changes: watch them as [`DeserializeGuard`] and let [`readable`] log and skip them.
//! Watch built-in kinds without the guard, which costs a copy of each object. Metadata-only watches must not use it: the
//! guard turns them into watches of whole objects.
use std::{
    collections::{HashMap, HashSet},
    fmt::Debug,
    sync::{Arc, PoisonError, RwLock},
};

use futures::{Stream, StreamExt};
use kube::{
    Api, Resource,
    core::DeserializeGuard,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event},
    },
};
use prometheus_client::metrics::counter::Counter;
use serde::de::DeserializeOwned;

use crate::{ObjectKey, explain, probes::Gate};

/// Objects of one kind, projected to `T`. Clones share the same objects.
pub struct Cache<T> {
    objects: Arc<RwLock<HashMap<ObjectKey, Arc<T>>>>,
}

impl<T> Clone for Cache<T> {
    fn clone(&self) -> Self {
        Self {
            objects: Arc::clone(&self.objects),
        }
    }
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self {
            objects: Arc::default(),
        }
    }
}

/// How an object changed. `before` is `None` for a new object, `after` for a deleted one; never both.
#[derive(Debug)]
pub struct Change<T> {
    /// The object before the change.
    pub before: Option<Arc<T>>,
    /// The object after the change.
    pub after: Option<Arc<T>>,
}

impl<T> Cache<T> {
    /// The object `key`, if the cache has it.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.objects
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(key)
            .cloned()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn insert(&self, key: ObjectKey, value: Arc<T>) -> Option<Arc<T>> {
        self.objects
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, value)
    }

    fn remove(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).remove(key)
    }

    /// The keys of all objects in the namespace `scope`, or of all objects.
    fn keys(&self, scope: Option<&str>) -> Vec<ObjectKey> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects
            .keys()
            .filter(|key| scope.is_none_or(|namespace| key.namespace == namespace))
            .cloned()
            .collect()
    }
}

/// A watch of one kind, in one namespace or in all, that feeds a cache.
pub struct Follow<T, P, C> {
    /// Opened after the first complete list.
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

    async fn feed<K>(self, events: impl Stream<Item = watcher::Result<Event<K>>>)
    where
        K: Resource<DynamicType = ()>,
        P: Fn(K) -> Option<T>,
        C: Fn(&ObjectKey, Change<T>),
    {
        let Self { source, gate } = self;
        let mut gate = Some(gate);
        // Keys of the current list: at its end, keys in the cache that it lacks have been deleted.
        let mut listed = HashSet::new();
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) => {
                    listed.insert(source.store(object));
                }
                Ok(Event::InitDone) => {
                    source.retain(&std::mem::take(&mut listed));
                    if let Some(gate) = gate.take() {
                        gate.open();
                    }
                }
                Ok(Event::Apply(object)) => {
                    source.store(object);
                }
                Ok(Event::Delete(object)) => source.remove(&ObjectKey::of(&object)),
                Err(error) => source.watch_failed::<K>(&error),
            }
        }
    }
}

impl<T, P, C: Fn(&ObjectKey, Change<T>)> Source<T, P, C> {
    fn store<K: Resource>(&self, object: K) -> ObjectKey
    where
        P: Fn(K) -> Option<T>,
    {
        let key = ObjectKey::of(&object);
        match (self.project)(object) {
            Some(value) => {
                let value = Arc::new(value);
                let before = self.cache.insert(key.clone(), Arc::clone(&value));
                (self.changed)(
                    &key,
                    Change {
                        before,
                        after: Some(value),
                    },
                );
            }
            None => self.remove(&key),
        }
        key
    }

    fn remove(&self, key: &ObjectKey) {
        if let Some(before) = self.cache.remove(key) {
            (self.changed)(
                key,
                Change {
                    before: Some(before),
                    after: None,
                },
            );
        }
    }

    /// Removes the objects that a complete list does not contain.
    fn retain(&self, listed: &HashSet<ObjectKey>) {
        for key in self.cache.keys(self.scope.as_deref()) {
            if !listed.contains(&key) {
                self.remove(&key);
            }
        }
    }

    fn watch_failed<K: Resource<DynamicType = ()>>(&self, error: &watcher::Error) {
        self.errors.inc();
        let kind = K::plural(&());
        let namespace = self.scope.as_deref().unwrap_or("all namespaces");
        tracing::warn!(%kind, %namespace, error = %explain::watch(error), "watch failed, restarting it");
    }
}

/// The object in `guard`; an object that cannot be deserialized is logged and skipped.
pub fn readable<K: Resource<DynamicType = ()>>(guard: DeserializeGuard<K>) -> Option<K> {
    let key = ObjectKey::of(&guard);
    guard
        .0
        .inspect_err(|invalid| {
            tracing::error!(kind = %K::kind(&()), object = %key, error = %invalid.error, "cannot deserialize object, skipping it");
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::stream;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::core::ObjectMeta;

    use super::*;
    use crate::probes::Readiness;

    fn map(name: &str, version: &str) -> DeserializeGuard<ConfigMap> {
        DeserializeGuard(Ok(ConfigMap {
            metadata: ObjectMeta {
                namespace: Some("ns".to_owned()),
                name: Some(name.to_owned()),
                resource_version: Some(version.to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }))
    }

    /// Feeds `events` to a cache of resource versions and returns the cache, and the changes as `name:before>after`.
    async fn feed(cache: &Cache<String>, events: Vec<Event<DeserializeGuard<ConfigMap>>>) -> (bool, Vec<String>) {
        let readiness = Readiness::default();
        let changes = Mutex::new(Vec::new());
        let source = Source {
            cache: cache.clone(),
            scope: Some("ns".to_owned()),
            project: |map: DeserializeGuard<ConfigMap>| readable(map)?.metadata.resource_version,
            changed: |key: &ObjectKey, change: Change<String>| {
                let side = |side: Option<Arc<String>>| side.map(|version| version.to_string()).unwrap_or_default();
                changes
                    .lock()
                    .unwrap()
                    .push(format!("{}:{}>{}", key.name, side(change.before), side(change.after)));
            },
            errors: Counter::default(),
        };
        let follow = Follow {
            gate: readiness.gate("maps"),
            source,
        };
        follow.feed(stream::iter(events.into_iter().map(Ok))).await;
        (readiness.is_ready(), changes.into_inner().unwrap())
    }

    #[tokio::test]
    async fn a_new_list_removes_deleted_objects() {
        let cache = Cache::default();
        let (ready, changes) = feed(
            &cache,
            vec![
                Event::Init,
                Event::InitApply(map("a", "1")),
                Event::InitApply(map("b", "2")),
                Event::InitDone,
                Event::Apply(map("a", "3")),
            ],
        )
        .await;
        assert!(ready);
        assert_eq!(changes, ["a:>1", "b:>2", "a:1>3"]);
        let (_, changes) = feed(
            &cache,
            vec![Event::Init, Event::InitApply(map("a", "3")), Event::InitDone],
        )
        .await;
        assert_eq!(changes, ["a:3>3", "b:2>"]);
        assert_eq!(cache.len(), 1);
    }

    #[tokio::test]
    async fn not_ready_before_the_list_is_complete() {
        let (ready, _) = feed(&Cache::default(), vec![Event::Init, Event::InitApply(map("a", "1"))]).await;
        assert!(!ready);
    }

    #[tokio::test]
    async fn other_namespaces_of_the_same_cache_are_left_alone() {
        let cache = Cache::default();
        cache.insert(ObjectKey::new("other", "x"), Arc::new("1".to_owned()));
        feed(&cache, vec![Event::Init, Event::InitDone]).await;
        assert_eq!(cache.len(), 1);
    }

    #[tokio::test]
    async fn an_unreadable_object_is_absent_and_does_not_stop_the_watch() {
        let cache = Cache::default();
        let text =
            r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns", "name": "bad"}, "data": 7}"#;
        let unreadable: DeserializeGuard<ConfigMap> = serde_json::from_str(text).unwrap();
        assert!(unreadable.0.is_err());
        let events = vec![
            Event::Init,
            Event::InitApply(map("bad", "1")),
            Event::InitDone,
            Event::Apply(unreadable),
            Event::Apply(map("good", "2")),
        ];
        let (_, changes) = feed(&cache, events).await;
        assert_eq!(changes, ["bad:>1", "bad:1>", "good:>2"]);
    }
}
