//! The watches that feed the caches and the queue.
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, Service},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Resource,
    core::{DeserializeGuard, PartialObjectMeta},
    runtime::watcher,
};
use kube_manager::{
    Manager, ObjectKey,
    cache::{Cache, Change},
    packed::Packed,
    queue::WorkQueue,
};

use super::{
    observed::{Child, DeploymentState, Server, Subject, same_but_status, same_metadata},
    report,
};
use crate::{
    api::v1alpha1::{Memcached, MemcachedStatus},
    operand::MANAGED_BY_SELECTOR,
};

/// Objects on a page of a list. The API server holds a page as a whole, and anyone can make its objects large.
const PAGE: u32 = 50;

/// The Memcacheds to reconcile.
pub type Queue = WorkQueue<ObjectKey>;

/// The watched objects. A managed object has the key of its Memcached.
#[derive(Clone, Default)]
pub struct Caches {
    /// The Memcacheds.
    pub memcacheds: Cache<Subject>,
    /// What this process last wrote into their statuses.
    pub own_statuses: OwnStatuses,
    /// Their Deployments.
    pub deployments: Cache<Packed<DeploymentState>>,
    /// Their Services.
    pub services: Cache<Packed<Child>>,
    /// Their budgets.
    pub budgets: Cache<Packed<Child>>,
    /// Their pods.
    pub servers: Servers,
}

/// Digests of the statuses that this process wrote last, to recognise them when a watch delivers them.
#[derive(Clone, Default)]
pub struct OwnStatuses(Arc<Mutex<HashMap<ObjectKey, u64>>>);

impl OwnStatuses {
    /// Records that `status` is about to be written to `key`.
    pub fn note(&self, key: &ObjectKey, status: &MemcachedStatus) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key.clone(), report::digest(status));
    }

    /// Forgets `key`.
    pub fn forget(&self, key: &ObjectKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    fn is_own(&self, key: &ObjectKey, status: &MemcachedStatus) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(key) == Some(&report::digest(status))
    }
}

/// Returns true if a change of a Memcached is worth a reconcile. An own write is not: reconciling it would make an object whose
/// status changes with each failure never rest.
fn is_relevant(own: &OwnStatuses, key: &ObjectKey, change: &Change<Subject>) -> bool {
    let (before, after) = match (change.before.as_deref(), change.after.as_deref()) {
        (Some(Subject::Readable(before)), Some(Subject::Readable(after))) if before == after => return false,
        (Some(Subject::Readable(before)), Some(Subject::Readable(after))) => (before.unpack(), after.unpack()),
        (
            Some(Subject::Unreadable { metadata, error }),
            Some(Subject::Unreadable {
                metadata: now,
                error: why,
            }),
        ) => return !same_metadata(metadata, now) || error != why,
        _ => return true,
    };
    let (Some(before), Some(after)) = (before, after) else {
        return true;
    };
    if !same_but_status(&before, &after) {
        return true;
    }
    if before.status == after.status {
        return false;
    }
    // Another client may have written the status.
    after.status.as_ref().is_none_or(|status| !own.is_own(key, status))
}

/// The pods, by the Memcached that they belong to.
#[derive(Clone, Default)]
pub struct Servers {
    pods: Cache<Server>,
    names: Arc<Mutex<HashMap<ObjectKey, BTreeSet<String>>>>,
}

impl Servers {
    /// The names of the pods of `memcached` that are not being deleted, sorted.
    pub fn of(&self, memcached: &ObjectKey) -> Vec<String> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names
            .get(memcached)
            .map(|names| names.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// Records a changed pod; returns the Memcached whose list of pods changed.
    fn note(&self, pod: &ObjectKey, change: &Change<Server>) -> Option<ObjectKey> {
        let running = |side: &Option<Arc<Server>>| {
            side.as_deref()
                .filter(|server| !server.terminating)
                .map(|server| server.owner.clone())
        };
        let (before, after) = (running(&change.before), running(&change.after));
        if before == after {
            return None;
        }
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(owner) = &before
            && let Some(set) = names.get_mut(owner)
        {
            set.remove(&pod.name);
            if set.is_empty() {
                names.remove(owner);
            }
        }
        if let Some(owner) = &after {
            names.entry(owner.clone()).or_default().insert(pod.name.clone());
        }
        after.or(before)
    }
}

/// Opens all watches.
pub fn start(manager: &mut Manager, caches: &Caches, queue: &Arc<Queue>) {
    let (own, work, unreadable) = (
        caches.own_statuses.clone(),
        Arc::clone(queue),
        manager.metrics().unreadable(&Memcached::plural(&())),
    );
    manager.watch(
        &caches.memcacheds,
        watcher::Config::default().page_size(PAGE),
        |guard: DeserializeGuard<Memcached>| Some(Subject::of(guard)),
        move |key: &ObjectKey, change: Change<Subject>| {
            let is_unreadable =
                |side: &Option<Arc<Subject>>| i64::from(matches!(side.as_deref(), Some(Subject::Unreadable { .. })));
            unreadable.inc_by(is_unreadable(&change.after) - is_unreadable(&change.before));
            if is_relevant(&own, key, &change) {
                add(&work, key, change.listed);
            }
        },
    );
    let ours = watcher::Config::default().page_size(PAGE).labels(MANAGED_BY_SELECTOR);
    manager.watch(
        &caches.deployments,
        ours.clone(),
        |deployment: Deployment| Some(Packed::of(&DeploymentState::of(&deployment))),
        enqueue(queue, differs),
    );
    manager.watch(
        &caches.services,
        ours.clone(),
        |service: Service| Some(Packed::of(&Child::of(&service))),
        enqueue(queue, differs),
    );
    manager.watch(
        &caches.budgets,
        ours.clone(),
        |budget: PodDisruptionBudget| Some(Packed::of(&Child::of(&budget))),
        enqueue(queue, differs),
    );
    let (servers, queue) = (caches.servers.clone(), Arc::clone(queue));
    manager.watch(
        &caches.servers.pods,
        ours,
        |pod: PartialObjectMeta<Pod>| Server::of(&pod),
        move |key: &ObjectKey, change: Change<Server>| {
            if let Some(memcached) = servers.note(key, &change) {
                add(&queue, &memcached, change.listed);
            }
        },
    );
}

/// Returns true if the projection of an object changed. Most events of a Deployment or budget do not change it.
fn differs<T: PartialEq>(change: &Change<T>) -> bool {
    change.before != change.after
}

/// Adds the Memcached of the same name to the queue if `relevant`.
fn enqueue<T>(
    queue: &Arc<Queue>,
    relevant: impl Fn(&Change<T>) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn(&ObjectKey, Change<T>) + Clone + Send + Sync + 'static {
    let queue = Arc::clone(queue);
    move |key, change| {
        if relevant(&change) {
            add(&queue, key, change.listed);
        }
    }
}

fn add(queue: &Queue, key: &ObjectKey, listed: bool) {
    if listed {
        queue.add_listed(key.clone());
    } else {
        queue.add(key.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(owner: &str, terminating: bool) -> Option<Arc<Server>> {
        Some(Arc::new(Server {
            owner: ObjectKey::new("ns", owner),
            terminating,
        }))
    }

    #[test]
    fn servers_are_listed_by_their_memcached_until_they_terminate() {
        let servers = Servers::default();
        let owner = ObjectKey::new("ns", "a");
        let note = |pod: &str, before, after| {
            servers.note(
                &ObjectKey::new("ns", pod),
                &Change {
                    before,
                    after,
                    listed: false,
                },
            )
        };
        assert_eq!(note("a-2", None, server("a", false)), Some(owner.clone()));
        assert_eq!(note("a-1", None, server("a", false)), Some(owner.clone()));
        assert_eq!(servers.of(&owner), ["a-1", "a-2"]);
        assert_eq!(
            note("a-1", server("a", false), server("a", false)),
            None,
            "nothing that matters"
        );
        assert_eq!(note("a-1", server("a", false), server("a", true)), Some(owner.clone()));
        assert_eq!(
            note("a-1", server("a", true), None),
            None,
            "it had left the list already"
        );
        assert_eq!(servers.of(&owner), ["a-2"]);
        assert_eq!(servers.of(&ObjectKey::new("other", "a")), Vec::<String>::new());
    }

    #[test]
    fn own_status_writes_are_no_news_and_those_of_others_are() {
        let own = OwnStatuses::default();
        let key = ObjectKey::new("cache", "sample");
        let with = |ready: i32, size: i32| {
            let mut object = crate::operand::fixtures::memcached(&serde_json::json!({ "size": size }));
            object.status = Some(MemcachedStatus {
                ready_replicas: Some(ready),
                ..MemcachedStatus::default()
            });
            Some(Arc::new(Subject::readable(object)))
        };
        let relevant = |before, after| {
            let change = Change {
                before,
                after,
                listed: false,
            };
            is_relevant(&own, &key, &change)
        };
        own.note(&key, with(2, 1).unwrap().memcached().unwrap().status.as_ref().unwrap());
        assert!(!relevant(with(1, 1), with(2, 1)), "own");
        assert!(relevant(with(2, 1), with(3, 1)), "of another client");
        assert!(relevant(with(1, 1), with(2, 2)), "the spec too");
        assert!(!relevant(with(3, 1), with(3, 1)), "nothing");
        assert!(relevant(None, with(2, 1)) && relevant(with(2, 1), None));
    }
}
