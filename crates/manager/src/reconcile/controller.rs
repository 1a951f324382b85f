//! The declaration of a controller.
use std::{
    any::{Any, TypeId},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::{core::v1::Secret, events::v1::Event};
use kube::runtime::watcher;
use kube_grants::{Grant, Scope};

use super::{
    Object, Reconciler,
    cached::{References, Sampler},
    observe::{Entry, Observed},
    store::{MANAGED_BY, Store},
};
use crate::{
    Manager, ObjectKey,
    cache::Change,
    follow::guarded,
    manager::{Scope as _, add_owner, paged},
    queue::WorkQueue,
    rollout::RolloutBudget,
    samples::ObjectSample,
    worker::Limits,
};

/// Declares what a [`Reconciler`] needs: the kinds that it applies and watches, and with them its permissions. It is a value
/// and needs no running manager. [`Manager::add`] starts it.
///
/// ```
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace};
/// use kube_manager::reconcile::{Context, Controller, Error, Outcome, Reconciler};
///
/// struct Tenants;
///
/// impl Reconciler for Tenants {
///     type Object = Namespace;
///
///     async fn reconcile(&self, _: &Namespace, _: &Context<Namespace>) -> Result<Outcome, Error> {
///         Ok(Outcome::ready())
///     }
/// }
///
/// let controller = Controller::new("tenant", Tenants).owns::<Deployment>("runs the tenant's gateway");
/// let grants = controller.grants();
/// assert!(grants.iter().any(|grant| grant.resource == "deployments" && grant.verbs.contains(&"patch".into())));
/// ```
#[must_use = "nothing is reconciled before `Manager::add`"]
pub struct Controller<R: Reconciler> {
    name: String,
    reconciler: R,
    owned: Vec<Owned>,
    watched: Vec<Watched>,
    observed: Vec<Observing>,
    secrets: Option<References<R::Object>>,
    finalizer: Option<&'static str>,
    adds_finalizer: bool,
    writes_status: bool,
    rollouts: Option<RolloutBudget>,
    grants: Vec<Grant>,
    field_manager: Option<String>,
    selecting: watcher::Config,
    object_limit: Option<usize>,
    relevant: Option<Relevant<R::Object>>,
    gauges: Vec<Gauge<R::Object>>,
    concurrency: Option<usize>,
    time: Option<Duration>,
}

/// Starts the watch of an owned kind.
type Owned = Box<dyn FnOnce(&Manager, &Starting) -> (TypeId, Arc<Store>) + Send>;
type Watched = Box<dyn FnOnce(&Manager, &Arc<WorkQueue<ObjectKey>>) + Send>;
type Observing = Box<dyn FnOnce(&Manager, &Arc<WorkQueue<ObjectKey>>) -> (TypeId, Arc<dyn Any + Send + Sync>) + Send>;
type Relevant<K> = Arc<dyn Fn(&Change<K>) -> bool + Send + Sync>;

/// Name and description of a metric, and its sample for an object.
pub type Gauge<K> = (&'static str, &'static str, Sampler<K>);

type Forget = Arc<dyn Fn(&kube::api::ApiResource, &ObjectKey) + Send + Sync>;

/// State that the watches of a controller share when they start.
pub struct Starting {
    pub queue: Arc<WorkQueue<ObjectKey>>,
    pub manager: String,
    pub forget: Forget,
}

/// The parts of a controller that is added to a manager.
pub struct Parts<R: Reconciler> {
    pub name: String,
    pub reconciler: R,
    pub owned: Vec<Owned>,
    pub watched: Vec<Watched>,
    pub observed: Vec<Observing>,
    pub secrets: Option<References<R::Object>>,
    pub finalizer: Option<&'static str>,
    pub adds_finalizer: bool,
    pub writes_status: bool,
    pub rollouts: Option<RolloutBudget>,
    pub grants: Vec<Grant>,
    pub field_manager: Option<String>,
    pub selecting: watcher::Config,
    pub object_limit: Option<usize>,
    pub relevant: Option<Relevant<R::Object>>,
    pub gauges: Vec<Gauge<R::Object>>,
    pub concurrency: Option<usize>,
    pub time: Option<Duration>,
}

/// Where the permissions on a kind are needed.
fn scope<C: Object>() -> Scope {
    if C::Scope::NAMESPACED {
        Scope::Watched
    } else {
        Scope::Cluster
    }
}

impl<R: Reconciler> Controller<R> {
    /// A controller with this name in metrics and in the log.
    pub fn new(name: impl Into<String>, reconciler: R) -> Self {
        Self {
            name: name.into(),
            reconciler,
            owned: Vec::new(),
            watched: Vec::new(),
            observed: Vec::new(),
            secrets: None,
            finalizer: None,
            adds_finalizer: true,
            writes_status: true,
            rollouts: None,
            grants: Vec::new(),
            field_manager: None,
            selecting: watcher::Config::default(),
            object_limit: None,
            relevant: None,
            gauges: Vec::new(),
            concurrency: None,
            time: None,
        }
    }

    /// Objects own objects of kind `C`: these are watched and cached, can be applied, and are deleted when a reconcile no
    /// longer applies them. The API server sends only objects that carry the operator's label. `why` is the reason for the
    /// permissions.
    pub fn owns<C: Object>(mut self, why: &'static str) -> Self {
        let verbs = ["create", "delete", "get", "list", "patch", "watch"];
        self.grants.push(Grant::of::<C>(scope::<C>(), verbs, why));
        self.owned.push(Box::new(|manager, starting| {
            let store = Arc::new(Store::new::<C>(&starting.manager));
            let label = format!("{MANAGED_BY}={}", crate::names::label(&starting.manager));
            let projecting = Arc::clone(&store);
            let project = move |text: &[u8]| {
                let mut object = serde_json::from_slice(text)?;
                Ok(Some(projecting.project::<R::Object>(&mut object)))
            };
            let (queue, forget) = (Arc::clone(&starting.queue), Arc::clone(&starting.forget));
            let changed = Arc::clone(&store);
            manager.watch_text::<C, _, _, _>(
                &store.cache,
                paged(watcher::Config::default().labels(&label)),
                project,
                move |key: &ObjectKey, change| changed.changed(key, &change, &queue, forget.as_ref()),
            );
            (TypeId::of::<C>(), store)
        }));
        self
    }

    /// Reconciles the objects whose keys `map` returns when an object of kind `C` changes, and those that it returned before
    /// the change.
    pub fn watches<C: Object>(
        self,
        why: &'static str,
        map: impl Fn(&C) -> Vec<ObjectKey> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.watches_selecting(watcher::Config::default(), why, map)
    }

    /// As [`watches`](Self::watches), but only objects that `config` selects by labels or fields. The API server evaluates it.
    pub fn watches_selecting<C: Object>(
        mut self,
        config: watcher::Config,
        why: &'static str,
        map: impl Fn(&C) -> Vec<ObjectKey> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.grants.push(Grant::of::<C>(scope::<C>(), ["list", "watch"], why));
        self.watched.push(Box::new(move |manager, queue| {
            manager.watch_related(config, queue, map)
        }));
        self
    }

    /// Keeps what `project` makes of each object of kind `C` that `config` selects: the key of the object that it belongs to, and a
    /// projection, which [`Context::observed`](super::Context::observed) returns. A change of the projection reconciles the object.
    /// The API server evaluates `config`.
    ///
    /// It is for objects that are not children but tell about them, such as the pods of a Deployment.
    ///
    /// ```
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
    /// # use kube::ResourceExt as _;
    /// # use kube_manager::{ObjectKey, reconcile::{Context, Controller, Error, Outcome, Reconciler}};
    /// struct PodName(String);
    /// # impl PartialEq for PodName { fn eq(&self, other: &Self) -> bool { self.0 == other.0 } }
    /// # struct Web;
    /// # impl Reconciler for Web {
    /// #     type Object = Deployment;
    /// #     async fn reconcile(&self, _: &Deployment, context: &Context<Deployment>) -> Result<Outcome, Error> {
    /// let names: Vec<String> = context.observed::<PodName>().iter().map(|pod| pod.0.clone()).collect();
    /// #         Ok(Outcome::ready().status(serde_json::json!({ "pods": names })))
    /// #     }
    /// # }
    ///
    /// let controller = Controller::new("web", Web).observes(Default::default(), "lists the pods", |pod: &Pod| {
    ///     let web = ObjectKey::new(pod.namespace()?, pod.labels().get("web")?.clone());
    ///     Some((web, PodName(pod.name_any())))
    /// });
    /// ```
    pub fn observes<C: Object, T: PartialEq + Send + Sync + 'static>(
        mut self,
        config: watcher::Config,
        why: &'static str,
        project: impl Fn(&C) -> Option<(ObjectKey, T)> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.grants.push(Grant::of::<C>(scope::<C>(), ["list", "watch"], why));
        self.observed.push(Box::new(move |manager, queue| {
            let observed = Arc::new(Observed::<T>::new());
            let queue = Arc::clone(queue);
            let reader = observed.cache.clone();
            reader.count_unreadable(manager.metrics().unreadable(&C::plural(&())));
            let project = move |text: &[u8]| {
                let object: Option<C> = reader.readable(guarded(text)?);
                let projection = object.and_then(|object| project(&object));
                Ok(projection.map(|(key, projection)| (key, Arc::new(projection))))
            };
            let changed = move |changed: &ObjectKey, change: Change<Entry<T>>| {
                if change.before == change.after {
                    return;
                }
                let sides = [&change.before, &change.after].into_iter().flatten();
                let mut objects: Vec<ObjectKey> = sides.map(|entry| entry.0.clone()).collect();
                objects.dedup();
                for object in objects {
                    let cause = change.cause_for_others(&C::kind(&()), changed);
                    add_owner(&queue, object, change.listed, cause);
                }
            };
            manager.watch_text::<C, _, _, _>(&observed.cache, paged(config), project, changed);
            (TypeId::of::<T>(), observed)
        }));
        self
    }

    /// Objects refer to Secrets in their namespace by the names that `references` finds: [`Context::secret`](super::Context::secret)
    /// reads them, and a change of one reconciles the objects that refer to it.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube_manager::reconcile::{Context, Controller, Error, Outcome, Reconciler};
    /// struct PullSecrets;
    ///
    /// impl Reconciler for PullSecrets {
    ///     type Object = Pod;
    ///
    ///     async fn reconcile(&self, pod: &Pod, context: &Context<Pod>) -> Result<Outcome, Error> {
    ///         for name in references(pod) {
    ///             if context.secret(&name).await?.is_none() {
    ///                 return Ok(Outcome::waiting("SecretMissing", format!("create Secret {name}")));
    ///             }
    ///         }
    ///         Ok(Outcome::ready())
    ///     }
    /// }
    ///
    /// fn references(pod: &Pod) -> Vec<String> {
    ///     let secrets = pod.spec.iter().flat_map(|spec| spec.image_pull_secrets.iter().flatten());
    ///     secrets.map(|secret| secret.name.clone()).collect()
    /// }
    ///
    /// let controller = Controller::new("pull-secrets", PullSecrets).secrets("checks the pull secrets of pods", references);
    /// ```
    pub fn secrets(
        mut self,
        why: &'static str,
        references: impl Fn(&R::Object) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.grants
            .push(Grant::of::<Secret>(Scope::Watched, ["get", "list", "watch"], why));
        self.secrets = Some(Arc::new(references));
        self
    }

    /// Runs [`cleanup`](Reconciler::cleanup) before an object is deleted. `name` is a qualified name, such as
    /// `cache.example.com/finalizer`.
    pub fn finalizer(mut self, name: &'static str) -> Self {
        self.finalizer = Some(name);
        self
    }

    /// Sets if objects get the [finalizer](Self::finalizer). With `false`, cleanup runs only for objects that already have it.
    pub fn adds_finalizer(mut self, yes: bool) -> Self {
        self.adds_finalizer = yes;
        self
    }

    /// The status of the objects belongs to another operator, as that of Kubernetes' own kinds does: it is not written.
    pub fn without_status(mut self) -> Self {
        self.writes_status = false;
        self
    }

    /// Limits how many objects change their pods at the same time: those that [`Context::apply_in_turn`](super::Context::apply_in_turn)
    /// applies. Objects that wait have the reason `RolloutQueued`, and the metric `rollout_queue_length` counts them.
    pub fn rollouts(mut self, budget: RolloutBudget) -> Self {
        self.rollouts = Some(budget);
        self
    }

    /// A permission that the reconciler needs beyond those that follow from the declaration.
    pub fn needs(mut self, grant: Grant) -> Self {
        self.grants.push(grant);
        self
    }

    /// Only the objects that `config` selects by labels or fields. The API server evaluates it.
    pub fn selecting(mut self, config: watcher::Config) -> Self {
        self.selecting = config;
        self
    }

    /// An object whose JSON has more than `bytes` bytes is left alone like one that cannot be read: an event reports it. All objects are
    /// cached, and the users who create them choose their size.
    pub fn object_limit(mut self, bytes: usize) -> Self {
        self.object_limit = Some(bytes);
        self
    }

    /// Reconciles only if `relevant` returns true for a change. The default is every change outside the status. With a
    /// finalizer, `relevant` must accept a new deletion time.
    pub fn when(mut self, relevant: impl Fn(&Change<R::Object>) -> bool + Send + Sync + 'static) -> Self {
        self.relevant = Some(Arc::new(relevant));
        self
    }

    /// Publishes a metric with a value for each object, under the labels `namespace` and `name`. An object for which `value` returns
    /// `None` has none. `name` must be unique in the process.
    ///
    /// The values are computed from the cache when the metrics are scraped, so `value` should be cheap. A ServiceMonitor needs
    /// `honorLabels: true`. Otherwise Prometheus renames the label `namespace`.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kube_manager::reconcile::{Context, Controller, Error, Outcome, Reconciler};
    /// # struct Web;
    /// # impl Reconciler for Web {
    /// #     type Object = Deployment;
    /// #     async fn reconcile(&self, _: &Deployment, _: &Context<Deployment>) -> Result<Outcome, Error> { Ok(Outcome::ready()) }
    /// # }
    /// let controller = Controller::new("web", Web)
    ///     .gauge("web_replicas_wanted", "Replicas of the spec", |web| {
    ///         Some(f64::from(web.spec.as_ref()?.replicas?))
    ///     });
    /// ```
    pub fn gauge(
        mut self,
        name: &'static str,
        help: &'static str,
        value: impl Fn(&R::Object) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        let sample = move |object: &R::Object| {
            Some(ObjectSample {
                value: value(object)?,
                label: None,
            })
        };
        self.gauges.push((name, help, Box::new(sample)));
        self
    }

    /// As [`gauge`](Self::gauge), for a state with a text, such as the reason of a condition. The value is 1, and the text is in
    /// the label `label`. Objects for which `text` returns `None` are not in the state.
    pub fn state_gauge(
        mut self,
        name: &'static str,
        help: &'static str,
        label: &'static str,
        text: impl Fn(&R::Object) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let sample = move |object: &R::Object| {
            Some(ObjectSample {
                value: 1.0,
                label: Some((label, text(object)?)),
            })
        };
        self.gauges.push((name, help, Box::new(sample)));
        self
    }

    /// At most `limit` objects at the same time.
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.concurrency = Some(limit);
        self
    }

    /// A reconcile that takes longer is cancelled and counts as failed.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time = Some(limit);
        self
    }

    /// The field manager of applies and the value of the label `app.kubernetes.io/managed-by`, instead of the manager's
    /// name.
    ///
    /// Two controllers of one kind need different ones: each deletes the children with its label that it does not apply.
    pub fn field_manager(mut self, name: impl Into<String>) -> Self {
        self.field_manager = Some(name.into());
        self
    }

    /// All permissions that the controller needs: one source for RBAC rules, the startup check and documentation.
    pub fn grants(&self) -> Vec<Grant> {
        let scope = scope::<R::Object>();
        let mut grants = vec![
            Grant::of::<R::Object>(scope, ["list", "watch"], "the objects that are reconciled"),
            // Events about objects without a namespace are in the namespace default.
            Grant::of::<Event>(scope, ["create", "patch"], "events about the objects"),
        ];
        if self.writes_status {
            grants.push(Grant::of::<R::Object>(scope, ["patch"], "conditions and other status fields").on("status"));
        }
        if self.finalizer.is_some() {
            grants.push(Grant::of::<R::Object>(
                scope,
                ["patch"],
                "adds and removes the finalizer",
            ));
        }
        if !self.owned.is_empty() {
            let why = "owner references that block deletion, where the cluster enforces permissions for them";
            grants.push(Grant::of::<R::Object>(scope, ["update"], why).on("finalizers"));
        }
        grants.extend(self.grants.iter().cloned());
        grants
    }

    pub(crate) fn into_parts(self) -> Parts<R> {
        let grants = self.grants();
        Parts {
            name: self.name,
            reconciler: self.reconciler,
            owned: self.owned,
            watched: self.watched,
            observed: self.observed,
            secrets: self.secrets,
            finalizer: self.finalizer,
            adds_finalizer: self.adds_finalizer,
            writes_status: self.writes_status,
            rollouts: self.rollouts,
            grants,
            field_manager: self.field_manager,
            selecting: self.selecting,
            object_limit: self.object_limit,
            relevant: self.relevant,
            gauges: self.gauges,
            concurrency: self.concurrency,
            time: self.time,
        }
    }
}

/// Takes controllers: a [`Manager`], which runs them, or a list, which collects their permissions.
///
/// ```
/// use kube_manager::{Manager, reconcile::{AddController, Grant}};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube_manager::reconcile::{Context, Controller, Error, Outcome, Reconciler};
/// # struct Files;
/// # impl Reconciler for Files {
/// #     type Object = ConfigMap;
/// #     async fn reconcile(&self, _: &ConfigMap, _: &Context<ConfigMap>) -> Result<Outcome, Error> { Ok(Outcome::ready()) }
/// # }
/// # fn files() -> Controller<Files> { Controller::new("files", Files).without_status() }
///
/// fn add_all(to: &mut impl AddController) {
///     to.add(files());
/// }
///
/// let mut grants: Vec<Grant> = Manager::grants();
/// add_all(&mut grants);
/// assert!(grants.iter().any(|grant| grant.resource == "leases"));
/// assert!(grants.iter().any(|grant| grant.resource == "configmaps"));
/// ```
pub trait AddController {
    /// Adds a controller.
    fn add<R: Reconciler>(&mut self, controller: Controller<R>);
}

impl AddController for Manager {
    fn add<R: Reconciler>(&mut self, controller: Controller<R>) {
        Self::add(self, controller);
    }
}

impl AddController for Vec<Grant> {
    fn add<R: Reconciler>(&mut self, controller: Controller<R>) {
        self.extend(controller.grants());
    }
}

impl<R: Reconciler> Parts<R> {
    /// The limits, where the declaration sets some.
    pub fn limits(&self, default: Limits) -> Limits {
        Limits {
            concurrency: self.concurrency.unwrap_or(default.concurrency),
            time: self.time.unwrap_or(default.time),
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Namespace, Pod};

    use super::*;
    use crate::reconcile::{Context, Error, Outcome};

    struct Nothing<K>(std::marker::PhantomData<fn() -> K>);

    impl<K: Object> Reconciler for Nothing<K> {
        type Object = K;

        async fn reconcile(&self, _: &K, _: &Context<K>) -> Result<Outcome, Error> {
            Ok(Outcome::ready())
        }
    }

    fn grants<K: Object>(change: impl FnOnce(Controller<Nothing<K>>) -> Controller<Nothing<K>>) -> Vec<Grant> {
        change(Controller::new("test", Nothing(std::marker::PhantomData))).grants()
    }

    #[test]
    fn events_about_objects_without_namespace_need_the_cluster() {
        let scope = |grants: Vec<Grant>| {
            grants
                .iter()
                .find(|grant| grant.resource == "events")
                .map(|grant| grant.scope)
        };
        assert_eq!(scope(grants::<Pod>(|it| it)), Some(Scope::Watched));
        assert_eq!(scope(grants::<Namespace>(|it| it)), Some(Scope::Cluster));
    }

    #[test]
    fn the_status_of_others_needs_no_permission() {
        let status = |grants: Vec<Grant>| grants.iter().any(|grant| grant.resource == "pods/status");
        assert!(status(grants::<Pod>(|it| it)));
        assert!(!status(grants::<Pod>(Controller::without_status)));
    }
}
