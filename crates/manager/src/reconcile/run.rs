//! One reconcile from its beginning to its status.
use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Resource as _,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::Value;

use super::{
    Context, Error, ErrorKind, Object, Outcome, Reconciler,
    shared::Shared,
    status::{self, Reconciled},
    unreadable,
};
use crate::{
    ObjectKey,
    apply::{Conflict, StatusChange, is_missing, set},
    conditions::{self, AVAILABLE, DEGRADED},
    events::{Event, Severity},
    finalizer,
    manager::Scope as _,
    worker::{Done, Failure as _},
};

/// A failure that time usually heals is reported when it happens this often in a row.
const PATIENCE: u32 = 2;

/// An object that waits for a slot of the rollout budget is reconciled after this time, if nothing wakes it before.
const QUEUED: Duration = Duration::from_secs(10);

/// A cleanup that waits is repeated after this time, unless it names another.
const CLEANUP: Duration = Duration::from_secs(10);

/// A report in the middle of a reconcile must not delay it longer.
const REPORT: Duration = Duration::from_secs(2);

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
        shared.forget(&key);
        return clean_up(reconciler, &shared, object).await;
    }
    if let Some(finalizer) = shared.finalizer.filter(|_| shared.adds_finalizer) {
        let dynamic = metadata_only(object.as_ref());
        let added = finalizer::add(&shared.api(&key), &dynamic, finalizer).await;
        let added = added
            .map_err(|error| Error::request(format!("add the finalizer to {}", describe::<R::Object>(&key)), error))?;
        if let Some(answer) = added.and_then(|answer| serde_json::to_value(answer).ok()) {
            finalized = 1;
            shared.wrote(&answer);
            // One that is being deleted by now gets no children: the reconcile ends with the object as it was.
            let newest = shared.objects.get(&key);
            let newest = newest.filter(|newest| newest.is(object.as_ref()) && !newest.seen.is_deleting);
            object = newest.and_then(|newest| newest.read()).unwrap_or(object);
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
    if let Some(slots) = shared.slots.as_ref().filter(|_| !context.state().asked_for_turn) {
        let is_paused = result.as_ref().is_ok_and(|outcome| outcome.paused);
        shared.wake(if is_paused {
            slots.release(&key)
        } else {
            slots.leave_queue(&key)
        });
    }
    let mut done = report(reconciler.as_ref(), &shared, &key, object.as_ref(), &context, &result).await?;
    done.writes += finalized;
    match result {
        Err(error) if error.kind() != ErrorKind::Waiting => Err(error),
        _ => Ok(done),
    }
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
            // The reconcile may have written the object. The patch needs no resource version: the API server rejects it if
            // another finalizer was removed.
            let newest = shared
                .objects
                .get(&key)
                .filter(|newest| newest.is(object.as_ref()))
                .and_then(|newest| newest.read());
            let metadata = newest.as_deref().unwrap_or(object.as_ref()).meta();
            let patch = finalizer::without(finalizer, metadata);
            let api = shared.api(&key);
            match api
                .patch(&key.name, &PatchParams::default(), &Patch::Merge(patch))
                .await
            {
                Ok(answer) if answer.metadata.finalizers.as_ref().is_none_or(Vec::is_empty) => {
                    let uid = answer.metadata.uid.unwrap_or_default();
                    shared.objects.deleted(&key, &uid);
                }
                Ok(answer) => {
                    let answer = serde_json::to_value(answer).map_err(|error| Error::bug(error.to_string()))?;
                    shared.wrote(&answer);
                }
                Err(kube::Error::Api(status)) if is_missing(&status, &key.name) => {}
                Err(error) => {
                    let attempt = format!("remove the finalizer of {}", describe::<R::Object>(&key));
                    return Err(Error::request(attempt, error));
                }
            }
            shared.applier.forget_status(&shared.resource, &key);
            Ok(Done::wrote(context.state().writes + 1, "cleaned up"))
        }
        result => {
            let done = report(reconciler.as_ref(), shared, &key, object.as_ref(), &context, &result).await?;
            let delay = match result {
                Err(error) if error.kind() != ErrorKind::Waiting => return Err(error),
                Err(_) => None,
                Ok(outcome) => outcome.requeue_after,
            };
            Ok(done.requeue_after(delay.unwrap_or(CLEANUP)))
        }
    }
}

/// Writes the status if it differs, and publishes events about changes of conditions.
async fn report<R: Reconciler>(
    reconciler: &R,
    shared: &Arc<Shared<R::Object>>,
    key: &ObjectKey,
    object: &R::Object,
    context: &Context<R::Object>,
    result: &Result<Outcome, Error>,
) -> Result<Done, Error> {
    context.announce_created();
    let (conflicts, queued, mut writes) = {
        let state = context.state();
        (state.conflicts.clone(), state.queued, state.writes)
    };
    let described = reconciler.report(object, context, result);
    let outcome = described.as_ref().or(result.as_ref().ok());
    let error = result.as_ref().err();
    let text = match (error, outcome) {
        (Some(error), _) => error.to_string(),
        (None, outcome) => outcome.and_then(Outcome::message).unwrap_or("settled").to_owned(),
    };
    #[cfg(feature = "olm")]
    shared.note_rollout(key, outcome.filter(|_| error.is_none()));
    let mut requeue = Requeue::default();
    if error.is_none() {
        requeue.after(outcome.and_then(|outcome| outcome.requeue_after));
    }
    conflicts
        .iter()
        .for_each(|(_, conflict)| requeue.after(Some(conflict.retry_after)));
    requeue.after(queued.filter(|queued| queued.first).map(|_| QUEUED));
    // While other objects wait, their changes go before the status of this one, which will change soon.
    let is_deleting = object.meta().deletion_timestamp.is_some();
    if error.is_none() && conflicts.is_empty() && !is_deleting && writes > 0 && shared.queue.has_others(key) {
        shared.queue.add_last(key.clone());
        return Ok(requeue.done(writes, text));
    }
    let is_passing = error.is_some_and(|error| error.kind() == ErrorKind::Transient);
    if !is_passing || shared.queue.failures(key) >= PATIENCE {
        let found = Reconciled {
            outcome,
            error,
            queued: queued.is_some(),
            conflict: conflicts.first().map(|(note, _)| note.as_str()),
            generation: object.meta().generation,
        };
        match write_status(shared, key, object, found).await {
            Ok((written, conflict)) => {
                writes += written;
                requeue.after(conflict.map(|conflict| conflict.retry_after));
            }
            // The result of the reconcile matters more.
            Err(failed) if error.is_some() => tracing::warn!(error = %failed.text(), "cannot write the status"),
            Err(failed) => return Err(failed),
        }
    }
    Ok(requeue.done(writes, text))
}

/// Writes `outcome` into the status in the middle of a reconcile.
pub async fn report_now<K: Object>(shared: &Arc<Shared<K>>, context: &Context<K>, outcome: Outcome) {
    let object = context.object();
    let key = ObjectKey::of(object);
    let found = Reconciled {
        outcome: Some(&outcome),
        error: None,
        queued: false,
        conflict: None,
        generation: object.meta().generation,
    };
    match tokio::time::timeout(REPORT, write_status(shared, &key, object, found)).await {
        Ok(Ok((written, _))) => context.state().writes += written,
        Ok(Err(error)) => tracing::warn!(error = %error.text(), "cannot write the status"),
        Err(_) => tracing::warn!("cannot write the status within {REPORT:?}"),
    }
}

/// Writes the status if it differs. Returns the number of writes, and a conflict with another client.
async fn write_status<K: Object>(
    shared: &Arc<Shared<K>>,
    key: &ObjectKey,
    object: &K,
    found: Reconciled<'_>,
) -> Result<(u32, Option<Conflict>), Error> {
    if !shared.writes_status {
        return Ok((0, None));
    }
    let fields = shared.applier.status_fields(&shared.resource).await?;
    if !fields.exists {
        return Ok((0, None));
    }
    // The newest one: an own write may be newer than the reconcile's.
    let newest = shared.objects.get(key).filter(|newest| newest.is(object));
    let newest = newest.and_then(|newest| newest.json());
    let mut newest = match newest {
        Some(newest) => newest,
        None => serde_json::to_value(object).map_err(|error| Error::bug(error.to_string()))?,
    };
    set(&mut newest, &["apiVersion"], shared.resource.api_version.clone());
    set(&mut newest, &["kind"], shared.resource.kind.clone());
    let current = newest.get("status");
    let own = || shared.applier.own_status(&newest);
    let target = status::target(current, own, found, &fields)?;
    match shared
        .applier
        .apply_status(&shared.resource, &newest, target.clone())
        .await?
    {
        StatusChange::Unchanged => Ok((0, None)),
        StatusChange::Written(answer) => {
            shared.wrote(&answer);
            if object.meta().deletion_timestamp.is_none() {
                announce(shared, object, current, &Value::Object(target));
            }
            Ok((1, None))
        }
        StatusChange::Conflict(conflict) => {
            if conflict.new {
                tracing::warn!(field = %conflict.field, manager = %conflict.manager, "conflict over the status");
                let note = format!("{} is also set by {}", conflict.field, conflict.manager);
                shared.event(object, Severity::Warning, "Conflict", note);
            }
            Ok((0, Some(conflict)))
        }
    }
}

/// The time of the next reconcile.
#[derive(Default)]
struct Requeue(Option<Duration>);

impl Requeue {
    /// At the latest after `delay`.
    fn after(&mut self, delay: Option<Duration>) {
        self.0 = match (self.0, delay) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    fn done(self, writes: u32, text: String) -> Done {
        Done {
            requeue_after: self.0,
            ..Done::wrote(writes, text)
        }
    }
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
        // If the object is not available yet, the event Available follows.
        (Some(true), Some(false)) if state(&after, AVAILABLE) != Some(false) => {
            shared.event(object, Severity::Normal, "Recovered", message(AVAILABLE));
        }
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

/// Reports an unreadable object, and removes the finalizer of one that is being deleted: the operator cannot clean up after it, and
/// must not keep it for ever.
pub async fn leave_alone<K: Object>(
    shared: &Shared<K>,
    key: &ObjectKey,
    found: unreadable::UnreadableObject,
) -> Result<Done, Error> {
    let unreadable::UnreadableObject { metadata, error } = found;
    let is_on = |own: &&str| metadata.finalizers.iter().flatten().any(|known| known == own);
    if let Some(own) = shared.finalizer.filter(is_on)
        && metadata.deletion_timestamp.is_some()
    {
        let patch = Patch::Merge(finalizer::without(own, &metadata));
        let removed = shared
            .api(key)
            .patch_metadata(&key.name, &PatchParams::default(), &patch)
            .await;
        removed.map_err(|error| Error::request(format!("remove the finalizer of {} {key}", K::kind(&())), error))?;
        return Ok(Done::wrote(1, "unreadable: removed the finalizer"));
    }
    let regarding = ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        namespace: key.in_namespace().map(str::to_owned),
        name: Some(key.name.to_string()),
        uid: metadata.uid,
        ..ObjectReference::default()
    };
    let note = format!(
        "this version of the operator cannot read the object and leaves it alone: {error}. Upgrade the operator, or correct the field"
    );
    let event = Event::warning("Unreadable", note).action("Reconcile");
    shared.events.queue_about(regarding, event);
    Ok(Done::nothing("unreadable"))
}
