//! Starts the controllers of the reconcile layer.
use std::{sync::Arc, time::Duration};

use super::{
    Error, Manager, Scope,
    controller::{Related, UNSYNCED, add, affected, paged},
};
use crate::{
    ObjectKey,
    apply::Applier,
    cache::{Cache, Change},
    cause,
    compressed::Dictionary,
    explain,
    follow::{guarded, metadata},
    queue::WorkQueue,
    reconcile::{
        self, CachedObject, Object, OwnWrites, Projection, Reconciler, Secrets, Shared, Starting, TakenNames,
        Unreadable,
    },
    rollout::Slots,
    samples::{ObjectGauge, ObjectSample},
    worker::Done,
};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Resource,
    api::ApiResource,
    core::{PartialObjectMeta, error_boundary::InvalidObject},
    runtime::watcher,
};
use tokio::sync::OnceCell;

impl Manager {
    /// Starts a controller. Its permissions are checked before the first reconcile: each missing one is logged with the reason for it.
    pub fn add<R: Reconciler>(&self, controller: reconcile::Controller<R>) {
        let parts = controller.into_parts();
        let limits = parts.limits(self.limits);
        let queue: Arc<WorkQueue<ObjectKey>> = self.queue(&parts.name);
        let field_manager = parts
            .field_manager
            .unwrap_or_else(|| self.events.controller().to_owned());
        let kind = format!("{}.{}", R::Object::kind(&()), R::Object::group(&()));
        let known = (kind.clone(), field_manager.clone());
        let mut setup = self.setup();
        setup.check_first = true;
        setup.grants.extend(parts.grants.iter().cloned());
        if let Some(first) = setup.reconcilers.insert(known, parts.name.clone()) {
            setup.misuse = Some(Error::SameFieldManager {
                first,
                second: parts.name.clone(),
                kind,
                manager: field_manager.clone(),
            });
        }
        drop(setup);
        let applier = Arc::new(Applier::new(self.client(), field_manager.clone()));
        let forgetting = Arc::clone(&applier);
        let starting = Starting {
            queue: Arc::clone(&queue),
            manager: field_manager.clone(),
            forget: Arc::new(move |resource: &ApiResource, key: &ObjectKey| forgetting.forget(resource, key)),
        };
        let stores = parts.owned.into_iter().map(|start| start(self, &starting)).collect();
        for start in parts.watched {
            start(self, &queue);
        }
        let observed = parts.observed.into_iter().map(|start| start(self, &queue)).collect();
        let objects: Cache<CachedObject<R::Object>> = Cache::default();
        let has_secrets = parts.secrets.is_some();
        let gauges = parts.gauges.into_iter().enumerate();
        let (gauges, samplers): (Vec<_>, _) = gauges
            .map(|(index, (name, help, sample))| ((index, name, help), sample))
            .unzip();
        let projection = Arc::new(Projection {
            manager: field_manager,
            references: parts.secrets,
            samplers,
            dictionary: Dictionary::default(),
        });
        let secrets = has_secrets.then(|| {
            let by_secret = objects.index(|object: &CachedObject<R::Object>| object.references.to_vec());
            let secrets = Arc::new(Secrets::new(self.client()));
            let (queue, read) = (Arc::clone(&queue), Arc::clone(&secrets));
            let project = |text: &[u8]| Ok(metadata(text)?.resource_version);
            let changed = move |key: &ObjectKey, change: Change<String>| {
                if change.after.is_none() {
                    read.forget(key);
                }
                let cause = || change.cause_for_others("Secret", key);
                if change.before != change.after {
                    by_secret
                        .keys(key)
                        .into_iter()
                        .for_each(|object| add(&queue, object, change.listed, cause()));
                }
            };
            let config = paged(watcher::Config::default());
            self.watch_text::<PartialObjectMeta<Secret>, _, _, _>(&secrets.versions, config, project, changed);
            secrets
        });
        for (index, name, help) in gauges {
            let objects = objects.clone();
            let visit = move |each: &mut dyn FnMut(&ObjectKey, ObjectSample)| {
                objects.for_each(|key, object| {
                    if let Some(Some(sample)) = object.samples.get(index) {
                        each(key, sample.clone());
                    }
                });
            };
            let gauge = ObjectGauge {
                name,
                help,
                visit: Box::new(visit),
            };
            self.metrics()
                .with(|registry| registry.register_collector(Box::new(gauge)));
        }
        let slots = parts.rollouts.map(|budget| Arc::new(Slots::new(budget)));
        if let Some(slots) = &slots {
            let name = "rollout_queue_length";
            self.metrics()
                .with(|registry| registry.register(name, "Objects that wait for their rollout", slots.waiting.clone()));
            self.while_leading(open(Arc::clone(slots), Arc::clone(&queue)));
        }
        let shared = Arc::new(Shared {
            client: self.client(),
            applier,
            events: self.events(),
            objects: objects.clone(),
            projection: Arc::clone(&projection),
            queue: Arc::clone(&queue),
            stores,
            observed,
            secrets,
            finalizer: parts.finalizer,
            adds_finalizer: parts.adds_finalizer,
            writes_status: parts.writes_status,
            slots,
            resource: ApiResource::erase::<R::Object>(&()),
            written: OwnWrites::default(),
            unreadable: Unreadable::default(),
            taken: TakenNames::default(),
            structures: OnceCell::new(),
            #[cfg(feature = "olm")]
            rollouts: self.rollouts.clone(),
        });
        let (keys, gone) = (Arc::clone(&queue), Arc::clone(&shared));
        let relevant = parts.relevant;
        let changed = move |key: &ObjectKey, change: Change<CachedObject<R::Object>>| {
            if change.after.is_none() {
                gone.applier.forget_status(&gone.resource, key);
                gone.forget(key);
            }
            let is_own = change
                .after
                .as_ref()
                .is_some_and(|after| gone.written.is_own(after.version));
            let is_relevant = match &relevant {
                Some(relevant) => relevant(&reconcile::unpacked(&change)),
                None => reconcile::is_relevant(&change),
            };
            if is_relevant || !is_own && reconcile::lost_status(&change) {
                add(&keys, key.clone(), change.listed, change.cause(|object| object.seen));
            }
        };
        objects.count_unreadable(self.metrics().unreadable(&R::Object::plural(&())));
        let limit = parts.object_limit;
        let (reader, noting, keys) = (objects.clone(), Arc::clone(&shared), Arc::clone(&queue));
        let project = move |text: &[u8]| {
            let mut guard = guarded::<R::Object>(text)?;
            let is_large = limit.is_some_and(|limit| text.len() > limit);
            if let (true, Ok(object)) = (is_large, &guard.0) {
                guard.0 = Err(InvalidObject {
                    error: String::new(),
                    metadata: object.meta().clone(),
                });
            }
            if let Err(invalid) = &guard.0 {
                let key = ObjectKey::of(&guard);
                let error = match limit {
                    Some(limit) if invalid.error.is_empty() => format!("it is larger than {limit} bytes"),
                    _ => explain::mismatch(&invalid.error),
                };
                noting.unreadable.note(&key, &invalid.metadata, error);
                keys.add_because(key, cause::UNREADABLE);
            }
            let object = reader.readable(guard);
            Ok(object.map(|object| projection.project(&object, text)))
        };
        self.watch_text::<R::Object, _, _, _>(&objects, paged(parts.selecting), project, changed);
        let readiness = self.readiness().clone();
        let reconciler = Arc::new(parts.reconciler);
        let work = move |key: ObjectKey| {
            let (reconciler, shared, objects) = (Arc::clone(&reconciler), Arc::clone(&shared), objects.clone());
            let readiness = readiness.clone();
            async move {
                // A deletion needs no more than the object.
                let is_deleted = |object: &Arc<CachedObject<R::Object>>| object.seen.is_deleting;
                if !objects.get(&key).as_ref().is_some_and(is_deleted) {
                    shared.load_structures().await;
                }
                let namespaced = <R::Object as Resource>::Scope::NAMESPACED;
                let is_synced = !namespaced || readiness.is_synced_in(&key.namespace);
                let object = objects.get(&key).filter(|object| is_synced || is_deleted(object));
                match object.and_then(|object| object.read()) {
                    Some(object) => match reconcile::reconcile(reconciler, shared, object).await {
                        // It was deleted in between.
                        Err(_) if objects.get(&key).is_none() => Ok(Done::nothing("gone")),
                        result => result,
                    },
                    None if let Some(unreadable) = shared.unreadable.take(&key) => {
                        reconcile::leave_alone(&shared, &key, unreadable).await
                    }
                    None if is_synced => Ok(Done::nothing("gone")),
                    None => Ok(Done::nothing("namespace not synced").requeue_after(UNSYNCED)),
                }
            }
        };
        self.work_within(&parts.name, queue, limits, work);
    }

    /// Reconciles the objects whose keys `map` returns when an object of kind `C` changes.
    pub(crate) fn watch_related<C: Object>(
        &self,
        config: watcher::Config,
        queue: &Arc<WorkQueue<ObjectKey>>,
        map: impl Fn(&C) -> Vec<ObjectKey> + Clone + Send + Sync + 'static,
    ) {
        let cache = Cache::default();
        cache.count_unreadable(self.metrics().unreadable(&C::plural(&())));
        let reader = cache.clone();
        let project = move |text: &[u8]| {
            let Some(object) = reader.readable::<C>(guarded(text)?) else {
                return Ok(None);
            };
            let related = Related::new(map(&object), object.meta().clone());
            Ok((!related.keys.is_empty()).then_some(related))
        };
        let queue = Arc::clone(queue);
        let changed = move |changed: &ObjectKey, change: Change<Related>| {
            let cause = || change.cause_for_others(&C::kind(&()), changed);
            affected(&change)
                .into_iter()
                .for_each(|key| add(&queue, key, change.listed, cause()));
        };
        self.watch_text::<C, _, _, _>(&cache, paged(config), project, changed);
    }
}

/// Lets rollouts begin when every object was reconciled once. Then the oldest object and the rollouts of an earlier leader are
/// known.
async fn open(slots: Arc<Slots>, queue: Arc<WorkQueue<ObjectKey>>) {
    while !queue.caught_up() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let waiting = slots.open().into_iter();
    waiting.for_each(|key| queue.add_because(key, cause::SLOT));
}
