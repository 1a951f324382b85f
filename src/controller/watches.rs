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
    Client, Resource,
    core::{DeserializeGuard, PartialObjectMeta},
    runtime::watcher,
};
use olmkit_manager::{
    ObjectKey,
    cache::{Cache, Change, Follow, Source},
    namespaces::Namespaces,
    queue::WorkQueue,
};
use tokio::task::JoinSet;

use super::{
    Instruments,
    observed::{self, Child, DeploymentState, Server},
};
use crate::{api::v1alpha1::Memcached, operand::MANAGED_BY_SELECTOR};

/// The Memcacheds to reconcile.
pub type Queue = WorkQueue<ObjectKey>;

/// The watched objects. A managed object has the key of its Memcached.
#[derive(Clone, Default)]
pub struct Caches {
    /// The Memcacheds.
    pub memcacheds: Cache<Memcached>,
    /// Their Deployments.
    pub deployments: Cache<DeploymentState>,
    /// Their Services.
    pub services: Cache<Child>,
    /// Their budgets.
    pub budgets: Cache<Child>,
    /// Their pods.
    pub servers: Servers,
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

/// Opens all watches in `namespaces`. They run until the set is dropped.
pub fn start(
    client: &Client,
    namespaces: &Namespaces,
    caches: &Caches,
    queue: &Arc<Queue>,
    instruments: &Instruments,
) -> JoinSet<()> {
    let mut watches = JoinSet::new();
    let starter = Starter {
        client,
        namespaces,
        instruments,
    };
    starter.follow(
        &mut watches,
        &caches.memcacheds,
        watcher::Config::default(),
        |guard: DeserializeGuard<Memcached>| observed::readable(guard).map(observed::memcached),
        // Every change, including those of the status: another client may have written it.
        enqueue(queue, |_| true),
    );
    let ours = watcher::Config::default().labels(MANAGED_BY_SELECTOR);
    starter.follow(
        &mut watches,
        &caches.deployments,
        ours.clone(),
        |deployment: Deployment| Some(DeploymentState::of(&deployment)),
        enqueue(queue, differs),
    );
    starter.follow(
        &mut watches,
        &caches.services,
        ours.clone(),
        |service: Service| Some(Child::of(&service)),
        enqueue(queue, differs),
    );
    starter.follow(
        &mut watches,
        &caches.budgets,
        ours.clone(),
        |budget: PodDisruptionBudget| Some(Child::of(&budget)),
        enqueue(queue, differs),
    );
    let (servers, queue) = (caches.servers.clone(), Arc::clone(queue));
    starter.follow(
        &mut watches,
        &caches.servers.pods,
        ours,
        |pod: PartialObjectMeta<Pod>| Server::of(&pod),
        move |key: &ObjectKey, change: Change<Server>| {
            if let Some(memcached) = servers.note(key, &change) {
                queue.add(memcached);
            }
        },
    );
    watches
}

/// Whether the projection of an object changed. Most events of a Deployment or budget do not change it.
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
            queue.add(key.clone());
        }
    }
}

struct Starter<'a> {
    client: &'a Client,
    namespaces: &'a Namespaces,
    instruments: &'a Instruments,
}

impl Starter<'_> {
    fn follow<K, T, P, C>(
        &self,
        watches: &mut JoinSet<()>,
        cache: &Cache<T>,
        config: watcher::Config,
        project: P,
        changed: C,
    ) where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
        K: serde::de::DeserializeOwned + Clone + std::fmt::Debug + Send + 'static,
        T: Send + Sync + 'static,
        P: Fn(K) -> Option<T> + Clone + Send + Sync + 'static,
        C: Fn(&ObjectKey, Change<T>) + Clone + Send + Sync + 'static,
    {
        for (scope, api) in self.namespaces.apis::<K>(self.client) {
            let resource = K::plural(&());
            let name = match &scope {
                None => format!("watch-{resource}"),
                Some(namespace) => format!("watch-{resource}-in-{namespace}"),
            };
            let source = Source {
                cache: cache.clone(),
                scope,
                project: project.clone(),
                changed: changed.clone(),
                errors: self.instruments.metrics.watch_errors(&resource),
            };
            let follow = Follow {
                gate: self.instruments.readiness.gate(name),
                source,
            };
            watches.spawn(follow.run(api, config.clone()));
        }
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
        let note = |pod: &str, before, after| servers.note(&ObjectKey::new("ns", pod), &Change { before, after });
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
}
