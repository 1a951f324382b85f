//! Objects of other owners that have the name of a child. They do not have the operator's label, so the watch of the children does
//! not show their deletion.
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kube::{
    Api,
    api::{ApiResource, DynamicObject},
    runtime::wait,
};

use super::{Object, run::Shared};
use crate::ObjectKey;

/// At most this many are watched at the same time. The reconciles that need the others are retried.
const MOST: usize = 64;

/// A watch ends after this time. The next retry starts another one.
const LIMIT: Duration = Duration::from_mins(10);

/// The objects that are watched, by kind and key.
#[derive(Default)]
pub struct Taken(Mutex<HashSet<(String, ObjectKey)>>);

impl Taken {
    fn change<T>(&self, change: impl FnOnce(&mut HashSet<(String, ObjectKey)>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Reconciles `owner` when the object `key`, which has the name of its child, is deleted.
pub fn watch<K: Object>(shared: &Arc<Shared<K>>, resource: &ApiResource, key: &ObjectKey, owner: ObjectKey) {
    let entry = (format!("{}/{}", resource.group, resource.kind), key.clone());
    let is_new = |all: &mut HashSet<_>| all.len() < MOST && all.insert(entry.clone());
    if !shared.taken.change(is_new) {
        return;
    }
    let objects: Api<DynamicObject> = match key.namespace.as_str() {
        "" => Api::all_with(shared.client.clone(), resource),
        namespace => Api::namespaced_with(shared.client.clone(), namespace, resource),
    };
    let (shared, name) = (Arc::clone(shared), key.name.clone());
    tokio::spawn(async move {
        let is_deleted = |object: Option<&DynamicObject>| object.is_none();
        let deleted = tokio::time::timeout(LIMIT, wait::await_condition(objects, &name, is_deleted)).await;
        shared.taken.change(|all| all.remove(&entry));
        if matches!(deleted, Ok(Ok(_))) {
            shared.queue.add(owner);
        }
    });
}
