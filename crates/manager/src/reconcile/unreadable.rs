//! Objects that do not match their Rust type, because a newer version of the operator may have written them, and objects that are too
//! large.
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::ObjectKey;

/// The unreadable objects that were not reported yet.
#[derive(Default)]
pub struct Unreadable(Mutex<HashMap<ObjectKey, UnreadableObject>>);

/// An unreadable object.
pub struct UnreadableObject {
    pub metadata: ObjectMeta,
    pub error: String,
}

impl Unreadable {
    /// A larger list of finalizers is not touched.
    const FINALIZERS: usize = 16 << 10;

    /// `error` is without content of the object.
    pub fn note(&self, key: &ObjectKey, metadata: &ObjectMeta, error: String) {
        let finalizers = metadata.finalizers.clone();
        let is_short = |all: &Vec<String>| all.iter().map(String::len).sum::<usize>() <= Self::FINALIZERS;
        let found = UnreadableObject {
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

    pub fn take(&self, key: &ObjectKey) -> Option<UnreadableObject> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key)
    }
}
