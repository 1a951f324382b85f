//! Objects of other owners that have the name of a child. They do not have the operator's label, so the watch of the children does
//! not show their deletion.
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PartialObjectMeta},
};

use crate::{ObjectKey, cause, follow, queue::WorkQueue};

/// At most this many are watched at the same time. The reconciles that need the others are retried.
const MOST: usize = 64;

/// A watch ends after this time. The next retry starts another one.
const LIMIT: Duration = Duration::from_mins(10);

/// The objects that are watched, by kind and key.
#[derive(Clone, Default)]
pub struct TakenNames(Arc<Mutex<HashSet<(String, ObjectKey)>>>);

impl TakenNames {
    fn change<T>(&self, change: impl FnOnce(&mut HashSet<(String, ObjectKey)>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds `owner` to the queue when the object `key`, which has the name of its child, is deleted.
    pub fn watch(
        &self,
        client: &Client,
        queue: &Arc<WorkQueue<ObjectKey>>,
        resource: &ApiResource,
        key: &ObjectKey,
        owner: ObjectKey,
    ) {
        let entry = (format!("{}/{}", resource.group, resource.kind), key.clone());
        let is_new = |all: &mut HashSet<_>| all.len() < MOST && all.insert(entry.clone());
        if !self.change(is_new) {
            return;
        }
        let objects: Api<PartialObjectMeta<DynamicObject>> = match &*key.namespace {
            "" => Api::all_with(client.clone(), resource),
            namespace => Api::namespaced_with(client.clone(), namespace, resource),
        };
        let (taken, queue, kind, key) = (self.clone(), Arc::clone(queue), resource.kind.clone(), key.clone());
        tokio::spawn(async move {
            let deleted = tokio::time::timeout(LIMIT, follow::until_deleted(objects, &key.name)).await;
            taken.change(|all| all.remove(&entry));
            if matches!(deleted, Ok(Ok(()))) {
                let cause = cause::other(&kind, &key, false, true);
                queue.add_because(owner, cause);
            }
        });
    }
}
