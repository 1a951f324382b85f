//! Reconciles one Memcached.
use std::{sync::Arc, time::Duration};

use k8s_openapi::{api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
};
use kube_manager::{
    ObjectKey,
    events::{Event, Severity},
    worker::Done,
};

use super::{Context, Error, finalize::finalize, observed::Subject, pass::Pass, writes::without_finalizer};
use crate::api::v1alpha1::{FINALIZER, Memcached};

/// An object in a namespace that is not synced is looked at again after this time.
const UNSYNCED: Duration = Duration::from_secs(10);

/// While an object is being deleted that will be made anew, it is looked at in this interval: a watch that was down in all of its
/// life does not tell of its end, and the back-off may have become minutes.
const DELETION: Duration = Duration::from_secs(2);

/// Brings the managed objects of the Memcached `key` to the desired state and updates its status.
///
/// Reads from the caches and writes only differences: reconciling a settled object sends no request.
///
/// # Errors
/// The first error; the caller retries later. Errors that users can fix are reported in the status.
pub async fn reconcile(context: Arc<Context>, key: ObjectKey) -> Result<Done, Error> {
    let subject = context.caches.memcacheds.get(&key);
    let memcached = subject.as_deref().and_then(Subject::memcached);
    let metadata = match (&memcached, subject.as_deref()) {
        (Some(memcached), _) => Some(&memcached.metadata),
        (None, Some(Subject::Unreadable { metadata, .. })) => Some(metadata.as_ref()),
        (None, _) => None,
    };
    // A deletion needs nothing but the object: a missing right to other kinds must not block it.
    let is_deleted = metadata.is_some_and(|metadata| metadata.deletion_timestamp.is_some());
    if !is_deleted && !context.readiness.is_synced_in(&key.namespace) {
        context.leave_line(&key);
        return Ok(done(0, "namespace not synced", Some(UNSYNCED)));
    }
    let Some(memcached) = memcached else {
        context.forget(&key);
        return match subject.as_deref() {
            Some(Subject::Unreadable { metadata, error }) => unreadable(&context, &key, metadata, error).await,
            _ => Ok(done(0, "gone", None)),
        };
    };
    let mut pass = Pass {
        context: &context,
        memcached: Arc::new(memcached),
        key,
        writes: 0,
        requeue_after: None,
    };
    let result = if pass.memcached.metadata.deletion_timestamp.is_some() {
        context.forget(&pass.key);
        finalize(&mut pass).await
    } else {
        pass.converge().await
    };
    match result {
        // The Memcached was deleted meanwhile: nothing is left to do.
        Err(error) if error.is_not_found() && pass.is_gone() => Ok(done(pass.writes, "gone", None)),
        Err(error) if error.awaits_deletion() => Ok(done(pass.writes, &error.to_string(), Some(DELETION))),
        result => result.map(|outcome| done(pass.writes, &outcome, pass.requeue_after)),
    }
}

fn done(writes: u32, outcome: &str, requeue_after: Option<Duration>) -> Done {
    Done {
        writes,
        outcome: outcome.to_owned(),
        requeue_after,
    }
}

/// A Memcached that cannot be deserialized is reported and left alone, but does not have to stay for ever.
async fn unreadable(context: &Context, key: &ObjectKey, metadata: &ObjectMeta, why: &str) -> Result<Done, Error> {
    let finalizers = metadata.finalizers.clone().unwrap_or_default();
    if metadata.deletion_timestamp.is_some() && finalizers.iter().any(|known| known == FINALIZER) {
        let api: Api<Memcached> = Api::namespaced(context.client.clone(), &key.namespace);
        let patch = without_finalizer(FINALIZER, &finalizers, metadata.uid.as_deref());
        let removed = api
            .patch_metadata(&key.name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        removed.map_err(|source| Error::Request {
            action: "remove the finalizer of",
            kind: "Memcached".to_owned(),
            name: key.name.clone(),
            source: Box::new(source),
        })?;
        return Ok(done(1, "finalized without reading it", None));
    }
    let regarding = ObjectReference {
        api_version: Some(Memcached::api_version(&()).into_owned()),
        kind: Some(Memcached::kind(&()).into_owned()),
        namespace: Some(key.namespace.clone()),
        name: Some(key.name.clone()),
        uid: metadata.uid.clone(),
        ..ObjectReference::default()
    };
    tracing::error!(object = %key, error = why, "cannot deserialize object, leaving it alone");
    let note = format!(
        "This version of the operator cannot read the object and leaves it alone: {why}. Upgrade the operator, or correct \
         the field"
    );
    let event = Event {
        severity: Severity::Warning,
        reason: "Unreadable",
        action: "Reconcile",
        note,
    };
    context.events.queue_about(regarding, event);
    Ok(done(0, "unreadable", None))
}

#[cfg(test)]
#[path = "reconcile_tests.rs"]
mod tests;
