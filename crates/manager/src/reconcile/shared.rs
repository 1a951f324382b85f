//! State that all reconciles of a controller share.
use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::Arc,
};

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
};
use serde_json::Value;
use tokio::sync::OnceCell;

#[cfg(feature = "olm")]
use super::Outcome;
use super::{
    Object,
    cached::{CachedObject, Projection},
    store::{Secrets, Store},
    taken::TakenNames,
    unreadable::Unreadable,
    written::OwnWrites,
};
#[cfg(feature = "olm")]
use crate::health::Ready;
use crate::{
    ObjectKey,
    apply::Applier,
    cache::{Cache, Revision},
    cause,
    events::{Event, Publisher, Severity},
    manager::Scope as _,
    queue::WorkQueue,
    rollout::Slots,
};

/// State that all reconciles of a controller share.
pub struct Shared<K: Object> {
    pub client: Client,
    pub applier: Arc<Applier>,
    pub events: Publisher,
    pub objects: Cache<CachedObject<K>>,
    pub projection: Arc<Projection<K>>,
    pub queue: Arc<WorkQueue<ObjectKey>>,
    pub stores: HashMap<TypeId, Arc<Store>>,
    pub observed: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    pub secrets: Option<Arc<Secrets>>,
    pub finalizer: Option<&'static str>,
    /// New objects get the finalizer.
    pub adds_finalizer: bool,
    pub writes_status: bool,
    pub slots: Option<Arc<Slots>>,
    pub resource: ApiResource,
    /// Versions of the objects that this process wrote.
    pub written: OwnWrites,
    pub unreadable: Unreadable,
    pub taken: TakenNames,
    /// Set when the structures of kinds were loaded for the first reconciles.
    pub structures: OnceCell<()>,
    #[cfg(feature = "olm")]
    pub rollouts: crate::olm::Rollouts,
}

impl<K: Object> Shared<K> {
    pub fn store<C: Object>(&self) -> Option<&Store> {
        self.stores.get(&TypeId::of::<C>()).map(Arc::as_ref)
    }

    /// Loads the structures of the kinds in the caches, once. After a start all workers need them at the same time, and a worker that
    /// waits with its objects in memory takes a hundred kilobytes. An error is left to the reconciles, which try again.
    pub async fn load_structures(&self) {
        let load = async || {
            let stores = self.stores.values().filter(|store| !store.cache.is_empty());
            let mut kinds: Vec<&ApiResource> = stores.map(|store| &store.resource).collect();
            // Without children there is nothing to compare, and the first one must not wait.
            if self.writes_status && !kinds.is_empty() {
                kinds.push(&self.resource);
            }
            let _ = self.applier.load(&kinds).await;
        };
        self.structures.get_or_init(load).await;
    }

    /// The object needs its slot of the rollout budget no longer.
    pub fn release(&self, key: &ObjectKey) {
        if let Some(slots) = &self.slots {
            self.wake(slots.release(key));
        }
    }

    /// Reconciles objects that may begin their rollout.
    pub fn wake(&self, keys: Vec<ObjectKey>) {
        keys.into_iter()
            .for_each(|key| self.queue.add_because(key, cause::SLOT));
    }

    /// Forgets an object that was deleted or is being deleted.
    pub fn forget(&self, key: &ObjectKey) {
        self.release(key);
        #[cfg(feature = "olm")]
        self.rollouts.note(key, false);
    }

    /// Tells OLM whether a rollout that a user asked for is in progress.
    #[cfg(feature = "olm")]
    pub(super) fn note_rollout(&self, key: &ObjectKey, outcome: Option<&Outcome>) {
        let waits = outcome.is_some_and(|outcome| !outcome.paused && matches!(outcome.ready, Ready::Waiting { .. }));
        let failed = outcome.is_some_and(Outcome::is_failed);
        let slots = self.slots.as_ref();
        let is_by_user = slots.is_some_and(|slots| slots.is_by_user(key, failed));
        self.rollouts.note(key, waits && is_by_user);
    }

    pub fn api(&self, key: &ObjectKey) -> Api<DynamicObject> {
        match K::Scope::NAMESPACED {
            true => Api::namespaced_with(self.client.clone(), &key.namespace, &self.resource),
            false => Api::all_with(self.client.clone(), &self.resource),
        }
    }

    pub(super) fn event(&self, object: &K, severity: Severity, reason: &'static str, note: String) {
        self.events.queue(
            object,
            Event {
                severity,
                reason,
                action: "Reconcile",
                note,
            },
        );
    }

    /// The API server gave this answer to a write.
    pub(super) fn wrote(&self, answer: &Value) {
        let Some(revision) = Revision::of(answer) else { return };
        // Its event is often faster.
        if self.objects.in_state(&revision).is_some() {
            return;
        }
        let Ok(text) = serde_json::to_vec(answer) else { return };
        let Ok(object) = serde_json::from_slice::<K>(&text) else {
            return;
        };
        self.written.note(object.meta().resource_version.as_deref());
        let cached = self.projection.project(&object, &text);
        self.objects.written(&object, cached);
    }
}
