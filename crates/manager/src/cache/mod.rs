//! The objects of one kind, kept current by watches.
//!
//! The cache stores a projection of each object, not the object: fields that the operator never reads take no memory.
//! `docs/architecture.md` compares this with kube-runtime's `Store`.
//!
//! One object that does not deserialize breaks the watch of its whole kind. Stored custom resources can become
//! undeserializable when their schema changes: watch them as [`DeserializeGuard`] and let [`Cache::readable`] log, count and
//! skip them, as [controllers](crate::Manager::controller) do. Watch built-in kinds without the guard, which costs a copy of
//! each object. Metadata-only watches must not use it: the guard turns them into watches of whole objects.
mod index;
mod revision;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use kube::{Resource, core::DeserializeGuard};
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;

pub use index::Index;
use revision::CachedObject;
pub use revision::version;
pub(crate) use revision::{Revision, digest, number};

use crate::{
    ObjectKey,
    cause::{self, Cause, Seen},
    explain,
};

/// Objects of one kind, projected to `T`. Clones share the same objects.
pub struct Cache<T> {
    objects: Arc<RwLock<Objects<T>>>,
}

struct Objects<T> {
    known: BTreeMap<ObjectKey, CachedObject<T>>,
    /// Writes of this process that no watch has delivered yet.
    own: HashMap<ObjectKey, Own<T>>,
    /// The newest resource version that each watch has delivered, by the namespace that it watches. Empty for all.
    delivered: HashMap<String, u64>,
    /// Functions that keep the indices current.
    indices: Vec<index::Follower<T>>,
    /// The objects that cannot be read.
    unreadable: HashSet<ObjectKey>,
    /// Shows how many.
    gauge: Gauge,
}

/// A write of this process that no watch has delivered yet.
enum Own<T> {
    Written {
        at: Instant,
        /// The object that the watch delivered last.
        base: Option<Arc<T>>,
        /// True if older events were ignored. The answer to the write contains earlier changes by other clients, for
        /// which no reconcile was started.
        skipped: bool,
    },
    Deleted {
        at: Instant,
        uid: String,
    },
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
        let objects = Objects {
            known: BTreeMap::new(),
            own: HashMap::new(),
            delivered: HashMap::new(),
            indices: Vec::new(),
            unreadable: HashSet::new(),
            gauge: Gauge::default(),
        };
        Self {
            objects: Arc::new(RwLock::new(objects)),
        }
    }
}

/// How an object changed. `before` is `None` for a new object, `after` for a deleted one. Never both.
#[derive(Debug)]
pub struct Change<T> {
    /// The object before the change.
    pub before: Option<Arc<T>>,
    /// The object after the change.
    pub after: Option<Arc<T>>,
    /// The object is part of a list.
    pub listed: bool,
}

impl<T> Change<T> {
    /// Why the object itself is reconciled.
    pub(crate) fn cause(&self, seen: impl Fn(&T) -> Seen) -> Cause {
        let side = |side: &Option<Arc<T>>| side.as_deref().map(&seen);
        cause::object(side(&self.before), side(&self.after), self.listed)
    }

    /// Why objects that depend on this one, of `kind` and with `key`, are reconciled.
    pub(crate) fn cause_for_others(&self, kind: &str, key: &ObjectKey) -> Cause {
        match self.listed {
            true => cause::LISTED,
            false => cause::other(kind, key, self.before.is_none(), self.after.is_none()),
        }
    }
}

impl<T> Cache<T> {
    /// The object `key`, if the cache has it.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.read().known.get(key).map(|known| Arc::clone(&known.object))
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.read().known.len()
    }

    /// Returns true if the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `visit` for each object, in the order of the keys. The cache is locked during the calls: `visit` must not use it, not
    /// even to read, which waits for ever if a change waits too.
    pub fn for_each(&self, mut visit: impl FnMut(&ObjectKey, &T)) {
        for (key, known) in &self.read().known {
            visit(key, &known.object);
        }
    }

    /// An index of the objects by what `values` finds in each, such as the names of the Secrets that it uses. It is as
    /// current as the cache.
    ///
    /// `values` must find the same in the same object each time, and must not use this cache, which is locked during the call.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::{Pod, Secret};
    /// use kube::ResourceExt as _;
    /// use kube_manager::{Manager, ObjectKey, worker::Done};
    ///
    /// fn set_up(manager: &Manager) {
    ///     let pods = manager.controller::<Pod>("pod");
    ///     let by_secret = pods.cache().index(|pod: &Pod| {
    ///         let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    ///         let secrets = volumes.filter_map(|volume| volume.secret.as_ref()?.secret_name.clone());
    ///         let namespace = pod.namespace().unwrap_or_default();
    ///         secrets.map(|secret| ObjectKey::new(namespace.clone(), secret)).collect()
    ///     });
    ///     pods.watches::<Secret>(Default::default(), move |secret| by_secret.keys(&ObjectKey::of(secret)))
    ///         .run(|_| async { Ok::<_, kube::Error>(Done::nothing("all Secrets are there")) });
    /// }
    /// ```
    pub fn index<I>(&self, values: impl Fn(&T) -> Vec<I> + Send + Sync + 'static) -> Index<I>
    where
        I: Ord + Send + 'static,
    {
        let (index, follow) = index::index(values);
        let mut objects = self.write();
        for (key, known) in &objects.known {
            follow(key, None, Some(&known.object));
        }
        objects.indices.push(follow);
        index
    }

    /// Shows in `gauge` how many objects [`readable`](Self::readable) cannot read. Caches that share it add up.
    pub fn count_unreadable(&self, gauge: Gauge) {
        let mut objects = self.write();
        let number = i64::try_from(objects.unreadable.len()).unwrap_or(i64::MAX);
        objects.gauge.dec_by(number);
        gauge.inc_by(number);
        objects.gauge = gauge;
    }

    /// The object in `guard`, for the projection of a watch that feeds this cache. An object that cannot be deserialized is
    /// logged, counted and absent.
    pub fn readable<K: Resource<DynamicType = ()>>(&self, guard: DeserializeGuard<K>) -> Option<K> {
        let key = ObjectKey::of(&guard);
        match guard.0 {
            Ok(object) => {
                // Only a few objects, if any, are in it: no lock is needed to write.
                if self.read().unreadable.contains(&key) {
                    self.write().forget_unreadable(&key);
                }
                Some(object)
            }
            Err(invalid) => {
                tracing::error!(kind = %K::kind(&()), object = %key, error = explain::mismatch(&invalid.error), "cannot deserialize object, skipping it");
                let mut objects = self.write();
                if objects.unreadable.insert(key) {
                    objects.gauge.inc();
                }
                None
            }
        }
    }

    /// Stores what the API server answered to a write of this process, so that the next read sees it, however late its
    /// watch event is. Older events that arrive later do not undo it. If there are any, the event of the write shows the
    /// change from before them: the answer may hold what others changed too.
    pub fn written<K: Resource>(&self, answer: &K, value: T) {
        self.written_at(Revision::new(answer), value);
    }

    /// As [`written`](Self::written), for an answer in this state.
    pub(crate) fn written_at(&self, revision: Revision, value: T) {
        let mut objects = self.write();
        let newest = objects.known.get(&revision.key).map_or(0, |known| known.version);
        // A watch has delivered every version up to the one that it reached, or a newer one.
        if revision.version <= newest || revision.version <= objects.delivered_in(&revision.key.namespace) {
            return;
        }
        let before = objects.insert(revision.key.clone(), revision.known(Arc::new(value)));
        let (base, skipped) = match objects.own.remove(&revision.key) {
            Some(Own::Written { base, skipped, .. }) => (base, skipped),
            _ => (before.map(|known| known.object), false),
        };
        let at = Instant::now();
        objects.own.insert(revision.key, Own::Written { at, base, skipped });
    }

    /// Removes the object `key` with this UID, which this process deleted. Its events that arrive later are ignored, until a
    /// list that began later contains it. The answer may come after the events: an object of the same name that is younger
    /// stays.
    ///
    /// Call this for deleted objects. An object that waits for a finalizer is not: leave it to the watch, which delivers it
    /// with a time of deletion, or hand the answer to [`written`](Self::written).
    pub fn deleted(&self, key: &ObjectKey, uid: &str) {
        let mut objects = self.write();
        if objects
            .known
            .get(key)
            .is_some_and(|known| known.uid == digest(Some(uid)))
        {
            objects.remove(key);
            let own = Own::Deleted {
                at: Instant::now(),
                uid: uid.to_owned(),
            };
            objects.own.insert(key.clone(), own);
        }
    }

    /// The projection of the object in this very state, if the cache has it. Resource versions are what clients of Kubernetes go by:
    /// etcd's `--bump-revision` keeps a restored cluster from using one twice.
    pub(crate) fn in_state(&self, revision: &Revision) -> Option<Arc<T>> {
        let objects = self.read();
        let known = objects.known.get(&revision.key)?;
        let same = revision.version > 0 && known.version == revision.version;
        (same && known.uid == digest(revision.uid.as_deref())).then(|| Arc::clone(&known.object))
    }

    /// Stores what a watch delivered. Returns the change. `None` if something newer is known.
    pub(crate) fn apply(
        &self,
        revision: Revision,
        value: Option<Arc<T>>,
        list: Option<Instant>,
        scope: &str,
    ) -> Option<Change<T>> {
        let mut objects = self.write();
        objects.deliver(scope, revision.version);
        let newest = objects.known.get(&revision.key).map_or(0, |known| known.version);
        let stale = match objects.own.get_mut(&revision.key) {
            // Objects of a list that began after the write are newer, whatever their versions are: etcd may have been restored.
            Some(Own::Written { at, skipped, .. }) => {
                let stale = revision.version < newest && list.is_none_or(|began| began <= *at);
                *skipped |= stale;
                stale
            }
            Some(Own::Deleted { at, uid }) => {
                revision.uid.as_ref() == Some(uid) && list.is_none_or(|began| began <= *at)
            }
            None => false,
        };
        if stale {
            return None;
        }
        let own = objects.own.remove(&revision.key);
        let before = match &value {
            Some(value) => {
                let known = revision.known(Arc::clone(value));
                objects.insert(revision.key, known)
            }
            None => objects.remove(&revision.key),
        };
        let before = match own {
            // A list comes instead of events: some may have been missed.
            Some(Own::Written { base, skipped, .. }) if skipped || list.is_some() => base,
            _ => before.map(|known| known.object),
        };
        if before.is_none() && value.is_none() {
            return None;
        }
        Some(Change {
            before,
            after: value,
            listed: list.is_some(),
        })
    }

    /// Removes what a watch delivered as deleted. Returns the change. `None` if something newer is known, or nothing.
    pub(crate) fn remove(&self, revision: &Revision, scope: &str) -> Option<Change<T>> {
        let mut objects = self.write();
        objects.deliver(scope, revision.version);
        objects.forget_unreadable(&revision.key);
        let newest = objects.known.get(&revision.key).map_or(0, |known| known.version);
        if let Some(Own::Written { skipped, .. }) = objects.own.get_mut(&revision.key)
            && revision.version < newest
        {
            *skipped = true;
            return None;
        }
        objects.own.remove(&revision.key);
        let before = objects.remove(&revision.key)?.object;
        Some(Change {
            before: Some(before),
            after: None,
            listed: false,
        })
    }

    /// Removes what the complete list of `scope` in this version that began at `began` does not contain, and returns it.
    pub(crate) fn retain(
        &self,
        listed: &HashSet<ObjectKey>,
        scope: Option<&str>,
        began: Instant,
        version: u64,
    ) -> Vec<(ObjectKey, Change<T>)> {
        let mut objects = self.write();
        let in_scope = |key: &ObjectKey| scope.is_none_or(|namespace| *key.namespace == *namespace);
        objects.deliver(scope.unwrap_or_default(), version);
        let Objects {
            known,
            own,
            indices,
            unreadable,
            gauge,
            ..
        } = &mut *objects;
        // A list lacks what was written after its version, and the watch that follows delivers it. An older write that the list
        // lacks was undone: no event follows.
        own.retain(|key, own| match own {
            _ if !in_scope(key) => true,
            Own::Written { at, .. } => *at >= began && known.get(key).is_some_and(|known| known.version > version),
            Own::Deleted { at, .. } => *at >= began,
        });
        unreadable.retain(|key| {
            let stays = !in_scope(key) || listed.contains(key);
            if !stays {
                gauge.dec();
            }
            stays
        });
        let gone = known.extract_if(.., |key, _| {
            in_scope(key) && !listed.contains(key) && !own.contains_key(key)
        });
        gone.map(|(key, known)| {
            for follow in indices.iter() {
                follow(&key, Some(&known.object), None);
            }
            let change = Change {
                before: Some(known.object),
                after: None,
                listed: true,
            };
            (key, change)
        })
        .collect()
    }

    /// The watch of `scope` has delivered all changes up to this version.
    pub(crate) fn reach(&self, scope: &str, version: u64) {
        self.write().deliver(scope, version);
    }

    /// Forgets how far the watch of `scope` had come: a new list begins.
    pub(crate) fn rewind(&self, scope: &str) {
        self.write().delivered.remove(scope);
    }

    /// A poisoned lock is safe to use: each change is a few map operations.
    fn read(&self) -> RwLockReadGuard<'_, Objects<T>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Objects<T>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Objects<T> {
    fn insert(&mut self, key: ObjectKey, known: CachedObject<T>) -> Option<CachedObject<T>> {
        for follow in &self.indices {
            let before = self.known.get(&key).map(|known| known.object.as_ref());
            follow(&key, before, Some(&known.object));
        }
        self.known.insert(key, known)
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<CachedObject<T>> {
        let known = self.known.remove(key)?;
        for follow in &self.indices {
            follow(key, Some(&known.object), None);
        }
        Some(known)
    }

    fn deliver(&mut self, scope: &str, version: u64) {
        match self.delivered.get_mut(scope) {
            Some(newest) => *newest = version.max(*newest),
            None => {
                self.delivered.insert(scope.to_owned(), version);
            }
        }
    }

    fn forget_unreadable(&mut self, key: &ObjectKey) {
        if self.unreadable.remove(key) {
            self.gauge.dec();
        }
    }

    /// How far the watch that delivers objects in `namespace` has come.
    fn delivered_in(&self, namespace: &str) -> u64 {
        let of = |scope: &str| self.delivered.get(scope).copied();
        of(namespace).or_else(|| of("")).unwrap_or(0)
    }
}
