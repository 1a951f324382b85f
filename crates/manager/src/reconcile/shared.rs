//! State that all reconciles of a controller share.
use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
};
use serde_json::Value;

#[cfg(feature = "olm")]
use super::Outcome;
use super::{
    Object,
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
    cache::Cache,
    events::{Event, Publisher, Severity},
    manager::Scope as _,
    queue::WorkQueue,
    rollout::Slots,
};

/// The object as the cache keeps it. The trees in `managedFields` would take more memory than the rest of it, so they are text.
pub fn compact<K: Object>(mut object: K) -> K {
    for entry in object.meta_mut().managed_fields.iter_mut().flatten() {
        if let Some(FieldsV1(tree)) = &mut entry.fields_v1 {
            *tree = Value::String(tree.to_string());
        }
    }
    object
}

/// The object as reconcilers get it: without `managedFields`, as no API server accepts the text.
pub fn without_owners<K: Object>(object: &K) -> K {
    let mut object = object.clone();
    object.meta_mut().managed_fields = None;
    object
}

/// State that all reconciles of a controller share.
pub struct Shared<K: Object> {
    pub client: Client,
    pub applier: Arc<Applier>,
    pub events: Publisher,
    pub objects: Cache<K>,
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
    #[cfg(feature = "olm")]
    pub rollouts: crate::olm::Rollouts,
}

impl<K: Object> Shared<K> {
    pub fn store<C: Object>(&self) -> Option<&Store> {
        self.stores.get(&TypeId::of::<C>()).map(Arc::as_ref)
    }

    /// The object needs its slot of the rollout budget no longer.
    pub fn release(&self, key: &ObjectKey) {
        if let Some(slots) = &self.slots {
            self.wake(slots.release(key));
        }
    }

    /// Reconciles objects that may begin their rollout.
    pub fn wake(&self, keys: Vec<ObjectKey>) {
        keys.into_iter().for_each(|key| self.queue.add(key));
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

    /// The API server answered `object` to a write.
    pub(super) fn wrote(&self, object: &Value) -> Option<Arc<K>> {
        let object: K = serde_json::from_value(object.clone()).ok()?;
        self.written.note(object.meta().resource_version.clone());
        self.objects.written(&object, compact(object.clone()));
        Some(Arc::new(object))
    }
}
