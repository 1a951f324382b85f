//! One reconcile from its beginning to its status.
use std::{any::TypeId, collections::HashMap, sync::Arc, time::Duration};

use kube::{
    Api, Client, Resource as _,
    api::{ApiResource, DynamicObject},
};
use serde_json::Value;

use super::{
    Context, Error, ErrorKind, Object, Outcome, Reconciler,
    status::{self, AVAILABLE, DEGRADED, Found},
    store::{Secrets, Store},
};
use crate::{
    ObjectKey,
    apply::{Applier, StatusChange, set},
    cache::Cache,
    conditions,
    events::{Event, Publisher, Severity},
    finalizer,
    health::Ready,
    manager::Scope as _,
    queue::WorkQueue,
    rollout::Slots,
    worker::{Done, Failure as _},
};

/// A failure that time usually heals is reported when it happens this often in a row.
const PATIENCE: u32 = 2;

/// An object that waits for a slot of the rollout budget is reconciled after this time, if nothing wakes it before.
const QUEUED: Duration = Duration::from_secs(10);

/// So many objects that wait are reconciled when a slot is free. The first ones may be in a namespace without one.
const WOKEN: usize = 32;

/// State that all reconciles of a controller share.
pub struct Shared<K: Object> {
    pub client: Client,
    pub applier: Arc<Applier>,
    pub events: Publisher,
    pub objects: Cache<K>,
    pub queue: Arc<WorkQueue<ObjectKey>>,
    pub stores: HashMap<TypeId, Arc<Store>>,
    pub secrets: Option<Arc<Secrets>>,
    pub finalizer: Option<&'static str>,
    pub writes_status: bool,
    pub slots: Option<Slots>,
    pub resource: ApiResource,
}

impl<K: Object> Shared<K> {
    pub fn store<C: Object>(&self) -> Option<&Store> {
        self.stores.get(&TypeId::of::<C>()).map(Arc::as_ref)
    }

    /// The object needs its slot of the rollout budget no longer: those that wait are reconciled.
    pub fn release(&self, key: &ObjectKey) {
        if let Some(slots) = &self.slots {
            slots
                .release(key)
                .into_iter()
                .take(WOKEN)
                .for_each(|next| self.queue.add(next));
        }
    }

    fn api(&self, key: &ObjectKey) -> Api<DynamicObject> {
        match K::Scope::NAMESPACED {
            true => Api::namespaced_with(self.client.clone(), &key.namespace, &self.resource),
            false => Api::all_with(self.client.clone(), &self.resource),
        }
    }

    fn event(&self, object: &K, severity: Severity, reason: &'static str, note: String) {
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
    fn wrote(&self, object: &Value) -> Option<Arc<K>> {
        let object: K = serde_json::from_value(object.clone()).ok()?;
        self.objects.written(&object, object.clone());
        Some(Arc::new(object))
    }
}

/// Reconciles `object`.
pub async fn reconcile<R: Reconciler>(
    reconciler: Arc<R>,
    shared: Arc<Shared<R::Object>>,
    object: Arc<R::Object>,
) -> Result<Done, Error> {
    let key = ObjectKey::of(object.as_ref());
    let mut finalized = 0;
    let mut object = object;
    if object.meta().deletion_timestamp.is_some() {
        shared.release(&key);
        return clean_up(reconciler, &shared, object).await;
    }
    if let Some(finalizer) = shared.finalizer {
        let dynamic = metadata_only(object.as_ref());
        let added = finalizer::add(&shared.api(&key), &dynamic, finalizer).await;
        let added = added
            .map_err(|error| Error::request(format!("add the finalizer to {}", describe::<R::Object>(&key)), error))?;
        if let Some(answer) = added.and_then(|answer| serde_json::to_value(answer).ok()) {
            finalized = 1;
            object = shared.wrote(&answer).unwrap_or(object);
        }
    }
    let context = Context::new(Arc::clone(&shared), Arc::clone(&object));
    let mut result = reconciler.reconcile(object.as_ref(), &context).await;
    if let Ok(outcome) = &result
        && !outcome.paused
        && let Err(error) = prune(&context, &shared).await
    {
        result = Err(error);
    }
    if context.still_wanted().is_err() {
        return Ok(Done::wrote(context.state().writes, "deleted"));
    }
    result = result.map(|outcome| take_turns(&shared, &key, &context, outcome));
    let mut done = report(&shared, &key, object.as_ref(), &context, &result).await?;
    done.writes += finalized;
    let error = match result {
        Err(error) if error.kind() != ErrorKind::Waiting => error,
        _ => return Ok(done),
    };
    Err(error)
}

/// Takes and gives back slots of the rollout budget.
fn take_turns<K: Object>(shared: &Shared<K>, key: &ObjectKey, context: &Context<K>, outcome: Outcome) -> Outcome {
    let (rolls, queued) = {
        let state = context.state();
        (state.rolls, state.queued)
    };
    let Some(slots) = shared.slots.as_ref().filter(|_| rolls) else {
        return outcome;
    };
    if let Some(ahead) = queued {
        let ready = Ready::waiting(
            "RolloutQueued",
            format!("the rollout waits for its turn; {ahead} are ahead"),
        );
        let delay = outcome.requeue_after.unwrap_or(QUEUED).min(QUEUED);
        return Outcome {
            ready,
            requeue_after: Some(delay),
            ..outcome
        };
    }
    if outcome.is_ready() {
        shared.release(key);
    } else {
        slots.hold(key);
    }
    outcome
}

/// Deletes the children that the reconcile has not applied.
async fn prune<K: Object>(context: &Context<K>, shared: &Shared<K>) -> Result<(), Error> {
    for (kind, store) in &shared.stores {
        for key in store.children(context.uid()) {
            let is_kept = context.state().kept.contains(&(*kind, key.clone()));
            if !is_kept {
                context.still_wanted()?;
                context.remove(shared, store, &key).await?;
            }
        }
    }
    Ok(())
}

/// Runs the cleanup of an object that is being deleted, and removes the finalizer.
async fn clean_up<R: Reconciler>(
    reconciler: Arc<R>,
    shared: &Arc<Shared<R::Object>>,
    object: Arc<R::Object>,
) -> Result<Done, Error> {
    let key = ObjectKey::of(object.as_ref());
    let finalizer = match shared.finalizer {
        Some(finalizer) if finalizer::is_on(object.as_ref(), finalizer) => finalizer,
        // Nothing may be written for it any more.
        _ => return Ok(Done::nothing("being deleted")),
    };
    let context = Context::new(Arc::clone(shared), Arc::clone(&object));
    let mut result = reconciler.cleanup(object.as_ref(), &context).await;
    if result.as_ref().is_ok_and(Outcome::is_ready) {
        // Children without a namespace have no owner reference, so the garbage collector leaves them.
        for store in shared
            .stores
            .values()
            .filter(|store| R::Object::is_namespaced() && !store.namespaced)
        {
            for child in store.children(context.uid()) {
                if let Err(error) = context.remove(shared, store, &child).await {
                    result = Err(error);
                }
            }
        }
    }
    match result {
        Ok(outcome) if outcome.is_ready() => {
            let dynamic = metadata_only(object.as_ref());
            let removed = finalizer::remove(&shared.api(&key), &dynamic, finalizer).await;
            let gone = matches!(&removed, Err(kube::Error::Api(status)) if status.code == 404);
            if !gone {
                removed.map_err(|error| {
                    Error::request(
                        format!("remove the finalizer of {}", describe::<R::Object>(&key)),
                        error,
                    )
                })?;
            }
            shared.applier.forget_status(&shared.resource, &key);
            Ok(Done::wrote(context.state().writes + 1, "cleaned up"))
        }
        Ok(outcome) => {
            let delay = outcome.requeue_after.unwrap_or(Duration::from_secs(10));
            let result = Ok(outcome);
            let done = report(shared, &key, object.as_ref(), &context, &result).await?;
            Ok(done.requeue_after(delay))
        }
        Err(error) => {
            let result = Err(error.clone());
            let done = report(shared, &key, object.as_ref(), &context, &result).await?;
            if error.kind() == ErrorKind::Waiting {
                Ok(done.requeue_after(Duration::from_secs(10)))
            } else {
                Err(error)
            }
        }
    }
}

/// Writes the status if it differs, and publishes events about changes of conditions.
async fn report<K: Object>(
    shared: &Arc<Shared<K>>,
    key: &ObjectKey,
    object: &K,
    context: &Context<K>,
    result: &Result<Outcome, Error>,
) -> Result<Done, Error> {
    let conflicts = context.state().conflicts.clone();
    let mut requeue = result.as_ref().ok().and_then(|outcome| outcome.requeue_after);
    for (_, conflict) in &conflicts {
        requeue = Some(requeue.map_or(conflict.retry_after, |known| known.min(conflict.retry_after)));
    }
    let outcome = match result {
        Ok(outcome) => outcome.message().unwrap_or("settled").to_owned(),
        Err(error) => error.to_string(),
    };
    let mut writes = context.state().writes;
    let is_passing = result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Transient);
    if shared.writes_status && (!is_passing || shared.queue.failures(key) >= PATIENCE) {
        // The newest one: an own write may be newer than the reconcile's.
        let newest = shared
            .objects
            .get(key)
            .filter(|newest| newest.meta().uid == object.meta().uid);
        let newest = serde_json::to_value(newest.as_deref().unwrap_or(object));
        let mut newest = newest.map_err(|error| Error::bug(error.to_string()))?;
        set(&mut newest, &["apiVersion"], shared.resource.api_version.clone());
        set(&mut newest, &["kind"], shared.resource.kind.clone());
        let fields = shared.applier.status_fields(&shared.resource).await?;
        if fields.exists {
            let current = newest.get("status");
            let found = Found {
                result,
                conflict: conflicts.first().map(|(note, _)| note.as_str()),
                own: shared.applier.own_status(&newest),
                generation: object.meta().generation,
            };
            let target = status::target(current, found, &fields)?;
            match shared
                .applier
                .apply_status(&shared.resource, &newest, target.clone())
                .await
            {
                Ok(StatusChange::Unchanged) => {}
                Ok(StatusChange::Written(answer)) => {
                    writes += 1;
                    shared.wrote(&answer);
                    announce(shared, object, current, &Value::Object(target));
                }
                Ok(StatusChange::Conflict(conflict)) => {
                    let note = format!("{} is also set by {}", conflict.field, conflict.manager);
                    if conflict.new {
                        tracing::warn!(field = %conflict.field, manager = %conflict.manager, "conflict over the status");
                        shared.event(object, Severity::Warning, "Conflict", note);
                    }
                    requeue = Some(requeue.map_or(conflict.retry_after, |known| known.min(conflict.retry_after)));
                }
                // The result of the reconcile matters more.
                Err(error) if result.is_err() => tracing::warn!(error = %error.text(), "cannot write the status"),
                Err(error) => return Err(error),
            }
        }
    }
    let done = Done::wrote(writes, outcome);
    Ok(match requeue {
        Some(delay) => done.requeue_after(delay),
        None => done,
    })
}

/// Events about the conditions that have changed.
fn announce<K: Object>(shared: &Shared<K>, object: &K, before: Option<&Value>, after: &Value) {
    let (before, after) = (status::read(before), status::read(Some(after)));
    let state = |all: &[_], kind: &str| conditions::get(all, kind).map(|found| found.status == "True");
    let message = |kind: &str| {
        conditions::get(&after, kind)
            .map(|found| found.message.clone())
            .unwrap_or_default()
    };
    match (state(&before, DEGRADED), state(&after, DEGRADED)) {
        (was, Some(true)) => {
            let reason = |all: &[_]| conditions::get(all, DEGRADED).map(|found| found.reason.clone());
            // A conflict has a separate event.
            if (was != Some(true) || reason(&before) != reason(&after)) && reason(&after).as_deref() != Some("Conflict")
            {
                shared.event(object, Severity::Warning, "Failed", message(DEGRADED));
            }
        }
        (Some(true), Some(false)) => shared.event(object, Severity::Normal, "Recovered", message(AVAILABLE)),
        _ => {}
    }
    if state(&before, AVAILABLE) != Some(true) && state(&after, AVAILABLE) == Some(true) {
        shared.event(object, Severity::Normal, "Available", message(AVAILABLE));
    }
}

/// Enough of an object for its finalizers.
fn metadata_only<K: Object>(object: &K) -> DynamicObject {
    DynamicObject {
        types: None,
        metadata: object.meta().clone(),
        data: Value::Null,
    }
}

fn describe<K: Object>(key: &ObjectKey) -> String {
    format!("{} {key}", K::kind(&()))
}

/// True if a kind has a namespace.
trait Namespaced {
    fn is_namespaced() -> bool;
}

impl<K: Object> Namespaced for K {
    fn is_namespaced() -> bool {
        K::Scope::NAMESPACED
    }
}
