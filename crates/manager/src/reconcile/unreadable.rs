//! Objects that do not match their Rust type, because a newer version of the operator may have written them, and objects that are too
//! large.
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use k8s_openapi::{api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::api::{Patch, PatchParams};

use super::{Error, Object, run::Shared};
use crate::{
    ObjectKey,
    events::{Event, Severity},
    finalizer,
    worker::Done,
};

/// The unreadable objects that were not reported yet.
#[derive(Default)]
pub struct Unreadable(Mutex<HashMap<ObjectKey, Found>>);

/// An unreadable object.
pub struct Found {
    metadata: ObjectMeta,
    error: String,
}

impl Unreadable {
    /// A larger list of finalizers is not touched.
    const FINALIZERS: usize = 16 << 10;

    /// `error` is without content of the object.
    pub fn note(&self, key: &ObjectKey, metadata: &ObjectMeta, error: String) {
        let finalizers = metadata.finalizers.clone();
        let is_short = |all: &Vec<String>| all.iter().map(String::len).sum::<usize>() <= Self::FINALIZERS;
        let found = Found {
            metadata: ObjectMeta {
                uid: metadata.uid.clone(),
                deletion_timestamp: metadata.deletion_timestamp.clone(),
                finalizers: finalizers.filter(is_short),
                ..ObjectMeta::default()
            },
            error,
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(key.clone(), found);
    }

    pub fn take(&self, key: &ObjectKey) -> Option<Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key)
    }
}

/// Reports an unreadable object, and removes the finalizer of one that is being deleted: the operator cannot clean up after it, and
/// must not keep it for ever.
pub async fn leave_alone<K: Object>(shared: &Shared<K>, key: &ObjectKey, found: Found) -> Result<Done, Error> {
    let Found { metadata, error } = found;
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
        namespace: Some(key.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        name: Some(key.name.clone()),
        uid: metadata.uid,
        ..ObjectReference::default()
    };
    let note = format!(
        "this version of the operator cannot read the object and leaves it alone: {error}. Upgrade the operator, or correct the field"
    );
    let event = Event {
        severity: Severity::Warning,
        reason: "Unreadable",
        action: "Reconcile",
        note,
    };
    shared.events.queue_about(regarding, event);
    Ok(Done::nothing("unreadable"))
}
