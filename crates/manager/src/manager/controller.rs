//! The common case: objects of one kind are reconciled when they or what they own changes.
use std::{fmt::Debug, future::Future, sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, core::PartialObjectMeta, runtime::watcher};
use serde::{Serialize, de::DeserializeOwned};

use super::{Manager, Scope};
use crate::{
    ObjectKey,
    backoff::Backoff,
    cache::{Cache, Change},
    cause::{Cause, Seen},
    follow::{guarded, metadata},
    queue::WorkQueue,
    worker::{Done, Failure, Limits},
};

/// An object in a namespace whose caches are not filled is looked at again after this time.
pub(super) const UNSYNCED: Duration = Duration::from_secs(10);

/// Objects on a page of a list, a fifth of what kube-runtime asks for: pages are in memory as a whole, with managed fields.
const PAGE: u32 = 100;

/// `config` with pages of our size, unless the operator has chosen another: kube-runtime's default counts as no choice.
pub(crate) fn paged(config: watcher::Config) -> watcher::Config {
    if config.page_size == watcher::Config::default().page_size {
        config.page_size(PAGE)
    } else {
        config
    }
}

/// Reconciles the objects of kind `K`. Made by [`Manager::controller`], complete with [`run`](Self::run).
///
/// An object is reconciled when the operator begins to lead, when the object changes except in its status, when an object
/// that it [owns](Self::owns) or [depends on](Self::watches) changes, and after a failure, with a delay that doubles. So an operator
/// that writes a status does not wake itself up, if objects of this kind have a generation. See [`when`](Self::when). One
/// object is never reconciled twice at the same time.
#[must_use = "nothing is reconciled without `run`"]
pub struct Controller<'a, K> {
    manager: &'a Manager,
    name: String,
    config: watcher::Config,
    cache: Cache<K>,
    relevant: Relevant<K>,
    queue: Arc<WorkQueue<ObjectKey>>,
    limits: Limits,
}

/// True if a change is worth a reconcile.
type Relevant<K> = Arc<dyn Fn(&Change<K>) -> bool + Send + Sync>;

impl Manager {
    /// A controller for the objects of kind `K`. `name` is its name in metrics and in the log.
    pub fn controller<K>(&self, name: &str) -> Controller<'_, K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
        K::Scope: Scope,
    {
        Controller {
            name: name.to_owned(),
            config: paged(watcher::Config::default()),
            cache: Cache::default(),
            relevant: Arc::new(is_relevant),
            queue: self.queue(name),
            limits: self.limits,
            manager: self,
        }
    }
}

impl<K> Controller<'_, K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
    K::Scope: Scope,
{
    /// Only the objects that `config` selects, by labels or fields. A page of a list has 100 objects here and with
    /// [`owns`](Self::owns) and [`watches`](Self::watches), unless `config` has a size other than kube-runtime's 500.
    pub fn selecting(mut self, config: watcher::Config) -> Self {
        self.config = paged(config);
        self
    }

    /// Only changes of an object for which `relevant` is true, instead of all except status changes. With a finalizer, the
    /// time of deletion must be one of them.
    ///
    /// The API server gives some built-in kinds no generation that would tell one from the other: with Nodes, Namespaces
    /// and Services each change counts, of the status too. This watches what matters in a Node:
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Node;
    /// # use kube_manager::{Manager, worker::Done};
    /// # fn set_up(manager: &Manager) {
    /// manager
    ///     .controller::<Node>("node")
    ///     .when(|change| match (&change.before, &change.after) {
    ///         (Some(before), Some(after)) => {
    ///             before.spec != after.spec || before.metadata.labels != after.metadata.labels
    ///         }
    ///         _ => true,
    ///     })
    ///     .run(|_| async { Ok::<_, kube::Error>(Done::nothing("seen")) });
    /// # }
    /// ```
    pub fn when(mut self, relevant: impl Fn(&Change<K>) -> bool + Send + Sync + 'static) -> Self {
        self.relevant = Arc::new(relevant);
        self
    }

    /// At most `limit` objects at the same time, instead of `--max-concurrent-reconciles`.
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.limits.concurrency = limit;
        self
    }

    /// A reconcile that takes longer is cancelled and counts as failed.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.limits.time = limit;
        self
    }

    /// The objects, as the watch delivers them, for [indices](Cache::index) too. Pass what the API server answers to a write to [`Cache::written`], and the
    /// next reconcile reads it, however late the watch is.
    pub fn cache(&self) -> Cache<K> {
        self.cache.clone()
    }

    /// The keys to reconcile, to add some for other reasons.
    pub fn queue(&self) -> Arc<WorkQueue<ObjectKey>> {
        Arc::clone(&self.queue)
    }

    /// Reconciles the owner when an object of kind `C` changes whose controller it is. Only the metadata is watched and
    /// only the owner is kept, so this costs little memory, whatever the objects hold.
    ///
    /// When the last pass over the owner failed, the change may be its own doing: then the owner is reconciled within half a
    /// minute, rather than at once.
    pub fn owns<C>(self, config: watcher::Config) -> Self
    where
        C: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
        C::Scope: Scope,
    {
        let project = |text: &[u8]| {
            let metadata = metadata(text)?;
            let keys = owner::<K>(&metadata).into_iter().collect();
            Ok(Some(Related::new(keys, metadata)))
        };
        self.related::<PartialObjectMeta<C>>(&Cache::default(), config, project, add_owner)
    }

    /// Reconciles the objects whose keys `map` returns when an object of kind `C` changes, and those that it returned
    /// before the change; at once, after a failure too, so objects that the reconcile itself writes belong to
    /// [`owns`](Self::owns). `map` may look into [`cache`](Self::cache) or an [index](Cache::index) of it. An object that `C`
    /// cannot hold is logged, counted in the metric `unreadable_objects`, and treated as absent.
    pub fn watches<C>(
        self,
        config: watcher::Config,
        map: impl Fn(&C) -> Vec<ObjectKey> + Clone + Send + Sync + 'static,
    ) -> Self
    where
        C: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
        C::Scope: Scope,
    {
        let cache = Cache::default();
        cache.count_unreadable(self.manager.metrics().unreadable(&C::plural(&())));
        let reader = cache.clone();
        let project = move |text: &[u8]| {
            let object: Option<C> = reader.readable(guarded(text)?);
            Ok(object.map(|object| Related::new(map(&object), object.meta().clone())))
        };
        self.related::<C>(&cache, config, project, add)
    }

    fn related<C>(
        self,
        cache: &Cache<Related>,
        config: watcher::Config,
        project: impl Fn(&[u8]) -> serde_json::Result<Option<Related>> + Clone + Send + Sync + 'static,
        add: fn(&WorkQueue<ObjectKey>, ObjectKey, bool, Cause),
    ) -> Self
    where
        C: Resource<DynamicType = ()> + 'static,
        C::Scope: Scope,
    {
        let queue = Arc::clone(&self.queue);
        let changed = move |changed: &ObjectKey, change: Change<Related>| {
            for key in affected(&change) {
                let cause = change.cause_for_others(&C::kind(&()), changed);
                add(&queue, key, change.listed, cause);
            }
        };
        // Objects that concern no other object need no memory. The cache keeps the previously concerned objects.
        let project = move |text: &[u8]| Ok(project(text)?.filter(|related| !related.keys.is_empty()));
        self.manager
            .watch_text::<C, _, _, _>(cache, paged(config), project, changed);
        self
    }

    /// Reconciles the objects while this replica leads. A reconcile changes the cluster to match the object's spec, whatever
    /// has changed. A deleted object is not reconciled, so work before the deletion needs a finalizer.
    ///
    /// An error is logged and the object tried again. A panic counts as an error and ends nothing else.
    pub fn run<R, F, E>(self, reconcile: R)
    where
        R: Fn(Arc<K>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Done, E>> + Send + 'static,
        E: Failure + Send + 'static,
    {
        let Self {
            manager,
            name,
            config,
            cache,
            relevant,
            queue,
            limits,
        } = self;
        let keys = Arc::clone(&queue);
        let changed = move |key: &ObjectKey, change: Change<K>| {
            if relevant(&change) {
                let cause = change.cause(|object| Seen::of(object.meta()));
                add(&keys, key.clone(), change.listed, cause);
            }
        };
        // One object that this version cannot read does not stop the others.
        cache.count_unreadable(manager.metrics().unreadable(&K::plural(&())));
        let reader = cache.clone();
        let project = move |text: &[u8]| Ok(reader.readable(guarded::<K>(text)?));
        manager.watch_text::<K, _, _, _>(&cache, config, project, changed);
        let readiness = manager.readiness().clone();
        let reconcile = move |key: ObjectKey| {
            let is_synced = !K::Scope::NAMESPACED || readiness.is_synced_in(&key.namespace);
            let work = cache.get(&key).filter(|_| is_synced).map(&reconcile);
            let cache = cache.clone();
            async move {
                match work {
                    Some(work) => match work.await {
                        // It was deleted in between.
                        Err(_) if cache.get(&key).is_none() => Ok(Done::nothing("gone")),
                        result => result,
                    },
                    None if is_synced => Ok(Done::nothing("gone")),
                    None => Ok(Done::nothing("namespace not synced").requeue_after(UNSYNCED)),
                }
            }
        };
        manager.work_within(&name, queue, limits, reconcile);
    }
}

pub(super) fn add(queue: &WorkQueue<ObjectKey>, key: ObjectKey, listed: bool, cause: Cause) {
    if listed {
        queue.add_listed(key);
    } else {
        queue.add_because(key, cause);
    }
}

/// The delay of an owner after failures, if a managed object changes. Without it, a reconcile that writes a managed object
/// and then fails would start itself again without end. The queue's delays are the same at first and become longer.
const OWNED: Backoff = Backoff {
    base: Duration::from_millis(100),
    cap: Duration::from_secs(30),
    jitter: 0.5,
};

pub(crate) fn add_owner(queue: &WorkQueue<ObjectKey>, key: ObjectKey, listed: bool, cause: Cause) {
    match queue.failures(&key) {
        0 => add(queue, key, listed, cause),
        failures => queue.add_after_because(key, OWNED.delay(failures), cause),
    }
}

/// An object on account of which others are reconciled.
pub(super) struct Related {
    pub(super) keys: Vec<ObjectKey>,
    version: Option<String>,
}

impl Related {
    pub(super) fn new(keys: Vec<ObjectKey>, metadata: ObjectMeta) -> Self {
        Self {
            keys,
            version: metadata.resource_version,
        }
    }
}

/// The keys before and after a change.
pub(super) fn affected(change: &Change<Related>) -> Vec<ObjectKey> {
    let version = |side: &Option<Arc<Related>>| side.as_ref().and_then(|side| side.version.clone());
    if change.before.is_some() && version(&change.before) == version(&change.after) {
        // A new list brought what was known.
        return Vec::new();
    }
    let sides = [&change.before, &change.after];
    let mut keys: Vec<ObjectKey> = sides
        .into_iter()
        .flatten()
        .flat_map(|side| side.keys.iter().cloned())
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

/// The object of kind `K` that is the controller of one with this metadata.
fn owner<K>(metadata: &ObjectMeta) -> Option<ObjectKey>
where
    K: Resource<DynamicType = ()>,
    K::Scope: Scope,
{
    let is_controller = |owner: &&OwnerReference| {
        let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        owner.controller == Some(true) && owner.kind == K::kind(&()) && group == K::group(&())
    };
    let owner = metadata.owner_references.iter().flatten().find(is_controller)?;
    let namespace = match K::Scope::NAMESPACED {
        true => metadata.namespace.clone()?,
        false => String::new(),
    };
    Some(ObjectKey::new(namespace, owner.name.clone()))
}

/// Returns true if more than the status of an object has changed.
pub(super) fn is_relevant<K: Resource>(change: &Change<K>) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else {
        return true;
    };
    significant(before.meta()) != significant(after.meta())
}

/// The metadata that differs after each change of more than the status.
pub(crate) fn significant(meta: &ObjectMeta) -> impl PartialEq + Serialize {
    // Some kinds have a status and no generation, such as Node: a change of it looks like any other.
    let generation = match meta.generation {
        Some(generation) => Ok(generation),
        None => Err(&meta.resource_version),
    };
    (
        generation,
        &meta.uid,
        &meta.labels,
        &meta.annotations,
        &meta.finalizers,
        &meta.owner_references,
        &meta.deletion_timestamp,
    )
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
