//! The operations of a reconcile.
use std::{
    any::TypeId,
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{Pod, ResourceRequirements, Secret},
    apimachinery::pkg::api::resource::Quantity,
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    core::Request,
};
use serde::Serialize;
use serde_json::json;

use super::{
    Applied, Conflict, Error, Object, Outcome,
    applied::from_api_server,
    observe::Observed,
    recording::Recording,
    run,
    shared::Shared,
    store::{ChildKind, Store, Wish},
};
use crate::{ObjectKey, apply::is_missing, drift::fingerprint, events::Severity, manager::Scope as _};

/// One reconcile of one object: applies, reads and deletes its children.
pub struct Context<K: Object> {
    pub(super) object: Arc<K>,
    pub(super) backend: Backend<K>,
    state: Mutex<State>,
}

pub(super) enum Backend<K: Object> {
    Cluster(Arc<Shared<K>>),
    Recording(Recording),
}

/// Events and writes of the reconcile.
#[derive(Default)]
pub struct State {
    pub kept: HashSet<(TypeId, ObjectKey)>,
    pub writes: u32,
    pub conflicts: Vec<(String, Conflict)>,
    /// Created children that no event has reported yet.
    pub created: Vec<String>,
    /// The reconcile came to a rollout, whatever the answer was.
    pub asked_for_turn: bool,
    /// The object waits for its turn.
    pub queued: Option<Queued>,
}

/// The object waits for a slot of the rollout budget.
#[derive(Clone, Copy)]
pub struct Queued {
    /// It is among the first.
    pub first: bool,
}

impl<K: Object> Context<K> {
    pub(super) fn new(shared: Arc<Shared<K>>, object: Arc<K>) -> Self {
        Self {
            object,
            backend: Backend::Cluster(shared),
            state: Mutex::default(),
        }
    }

    /// A context for unit tests of a reconciler. It needs no API server and records the applied objects, which
    /// [`applied`](Self::applied) returns.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
    /// use kube_manager::reconcile::Context;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let mut namespace = Namespace::default();
    /// namespace.metadata.name = Some("shop".to_owned());
    /// let context = Context::recording(&namespace);
    /// let mut map = ConfigMap::default();
    /// map.metadata.name = Some("files".to_owned());
    /// map.metadata.namespace = Some("shop".to_owned());
    /// context.apply(map).await.unwrap();
    /// assert_eq!(context.applied::<ConfigMap>().len(), 1);
    /// assert!(context.pruned::<ConfigMap>().is_empty());
    /// # }
    /// ```
    pub fn recording(object: &K) -> Self {
        Self {
            object: Arc::new(object.clone()),
            backend: Backend::Recording(Recording::default()),
            state: Mutex::default(),
        }
    }

    /// An object that exists before the reconcile: a child with its status, or a user's Secret. For
    /// [recording](Self::recording) contexts.
    #[must_use]
    pub fn with<C: Object>(self, existing: &C) -> Self {
        if let Backend::Recording(recording) = &self.backend {
            recording.exists(existing);
        }
        self
    }

    /// A variable of the environment. For [recording](Self::recording) contexts.
    #[must_use]
    pub fn with_env(self, variable: &'static str, value: impl Into<String>) -> Self {
        if let Backend::Recording(recording) = &self.backend {
            recording.set_env(variable, value.into());
        }
        self
    }

    /// The objects of kind `C` that were applied or created, in this order. For [recording](Self::recording) contexts.
    pub fn applied<C: Object>(&self) -> Vec<C> {
        match &self.backend {
            Backend::Recording(recording) => recording.applied(),
            Backend::Cluster(_) => Vec::new(),
        }
    }

    /// The objects of kind `C` that [existed](Self::with) and that the end of the reconcile would delete, because it neither applied nor
    /// kept them. For [recording](Self::recording) contexts.
    pub fn pruned<C: Object>(&self) -> Vec<C> {
        let Backend::Recording(recording) = &self.backend else {
            return Vec::new();
        };
        let applied: HashSet<ObjectKey> = self.applied::<C>().iter().map(ObjectKey::of).collect();
        let state = self.state();
        let mut existing = recording.all::<C>();
        existing.retain(|object| {
            let key = ObjectKey::of(object);
            !applied.contains(&key) && !state.kept.contains(&(TypeId::of::<C>(), key))
        });
        existing
    }

    /// Makes the API server's object as `desired`, and the object of this reconcile its owner. If no field differs, no
    /// request is sent.
    ///
    /// # Errors
    /// When the API server rejects it, or an object of this name belongs to another owner.
    pub async fn apply<C: Object>(&self, desired: C) -> Result<Applied<C>, Error> {
        self.apply_keeping(desired, &[]).await
    }

    /// As [`apply`](Self::apply), but a change of the pod template waits until the object has a slot of the controller's
    /// [rollout budget](super::Controller::rollouts). Other fields are applied at once.
    ///
    /// `asked` is the part of the object's spec from which the template follows. A change of it is a user's and waits for nothing.
    /// It is recorded in an annotation of the child, so it must not contain values that only the operator sets.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub async fn apply_in_turn<C: Object>(
        &self,
        desired: C,
        asked: &(impl Serialize + Sync),
    ) -> Result<Applied<C>, Error> {
        let asked = serde_json::to_value(asked).map_err(|error| Error::bug(error.to_string()))?;
        let turn = self.slots();
        let asked = turn.map(|_| fingerprint(&asked)).unwrap_or_default();
        let wish = Wish::new(&desired, self.uid(), &asked);
        if let Some(child) = self.settled(&desired, wish.keeping(&[]))?
            && let Some(object) = child.read()
        {
            if let Some((shared, slots)) = turn {
                self.keep_turn(shared, slots, &child);
            }
            return Ok(Applied::settled(object));
        }
        let desired = self.desired(desired, wish)?;
        let report = match turn {
            Some((shared, slots)) => self.write_in_turn(shared, slots, desired, asked),
            None => self.write(desired, &[]),
        };
        Applied::new(report.await?)
    }

    /// As [`apply`](Self::apply), if `wanted`. Otherwise the child is deleted at the end of the reconcile.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub async fn apply_if<C: Object>(
        &self,
        wanted: bool,
        desired: impl FnOnce() -> C + Send,
    ) -> Result<Option<Applied<C>>, Error> {
        match wanted {
            true => Ok(Some(self.apply(desired()).await?)),
            false => Ok(None),
        }
    }

    /// As [`apply`](Self::apply), but immutable fields keep their values once the child exists.
    /// They are paths such as `.spec.volumeClaimTemplates`.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub async fn apply_keeping<C: Object>(&self, desired: C, immutable: &[&str]) -> Result<Applied<C>, Error> {
        let wish = Wish::new(&desired, self.uid(), "");
        let settled = self.settled(&desired, wish.keeping(immutable))?;
        if let Some(object) = settled.and_then(|child| child.read()) {
            return Ok(Applied::settled(object));
        }
        Applied::new(self.write(self.desired(desired, wish)?, immutable).await?)
    }

    /// Creates the child `name` if it does not exist, and never changes it: for generated passwords and keys.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub async fn create_once<C: Object>(
        &self,
        name: &str,
        desired: impl FnOnce() -> C + Send,
    ) -> Result<Applied<C>, Error> {
        let mut desired = desired();
        desired.meta_mut().name = Some(name.to_owned());
        let wish = Wish::new(&desired, self.uid(), "");
        Applied::new(self.write_once(self.desired(desired, wish)?).await?)
    }

    /// Keeps the child `name` if it exists, although this reconcile does not apply it.
    pub fn keep<C: Object>(&self, name: &str) {
        self.state().kept.insert((TypeId::of::<C>(), self.key::<C>(name)));
    }

    /// The child `name`, as it was seen last. Own writes are seen at once. Children above 64 KiB of JSON are not cached:
    /// [`read`](Self::read) finds them too.
    pub fn get<C: Object>(&self, name: &str) -> Option<C> {
        let key = self.key::<C>(name);
        match &self.backend {
            Backend::Recording(recording) => recording.get(&key),
            Backend::Cluster(shared) => {
                let store = shared.store::<C>()?;
                self.has_child(store, &key).then(|| store.read(&key))?
            }
        }
    }

    /// The child `name`, from the API server if it is too large for the cache.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn read<C: Object>(&self, name: &str) -> Result<Option<C>, Error> {
        let cached = self.get(name);
        let (Backend::Cluster(shared), None) = (&self.backend, &cached) else {
            return Ok(cached);
        };
        let key = self.key::<C>(name);
        let Some(store) = shared.store::<C>().filter(|store| self.has_child(store, &key)) else {
            return Ok(None);
        };
        let child = shared.applier.target(&store.resource, key).read().await?;
        child.map(|child| from_api_server(&child)).transpose()
    }

    /// The children of kind `C`, as [`get`](Self::get) returns them.
    pub fn list<C: Object>(&self) -> Vec<C> {
        match &self.backend {
            Backend::Recording(recording) => recording.all(),
            Backend::Cluster(shared) => {
                let Some(store) = shared.store::<C>() else {
                    return Vec::new();
                };
                let keys = store.children(self.uid()).into_iter();
                keys.filter_map(|key| store.read(&key)).collect()
            }
        }
    }

    /// The projections that [`Controller::observes`](super::Controller::observes) keeps of the objects that belong to this one,
    /// sorted by name.
    pub fn observed<T: Send + Sync + 'static>(&self) -> Vec<Arc<T>> {
        match &self.backend {
            Backend::Recording(recording) => recording.observed(),
            Backend::Cluster(shared) => {
                let found = shared.observed.get(&TypeId::of::<T>());
                let found = found.and_then(|found| found.downcast_ref::<Observed<T>>());
                found
                    .map(|found| found.of(&ObjectKey::of(self.object.as_ref())))
                    .unwrap_or_default()
            }
        }
    }

    /// A projection that [`observed`](Self::observed) returns. For [recording](Self::recording) contexts.
    #[must_use]
    pub fn with_observed<T: Send + Sync + 'static>(self, projection: T) -> Self {
        if let Backend::Recording(recording) = &self.backend {
            recording.observe(projection);
        }
        self
    }

    /// Writes `outcome` into the status now, and not only at the end of the reconcile. A request that fails or takes longer than
    /// two seconds is logged.
    pub async fn report(&self, outcome: Outcome) {
        if let Backend::Cluster(shared) = &self.backend {
            run::report_now(shared, self, outcome).await;
        }
    }

    /// Deletes the child `name`. Returns whether there was one.
    ///
    /// # Errors
    /// When the request fails.
    pub async fn delete<C: Object>(&self, name: &str) -> Result<bool, Error> {
        let key = self.key::<C>(name);
        match &self.backend {
            Backend::Recording(recording) => Ok(recording.delete::<C>(&key)),
            Backend::Cluster(shared) => {
                let store = self.prepare(shared, &ChildKind::of::<C>(), &key)?;
                if self.has_child(store, &key) {
                    self.remove(shared, store, &key).await
                } else {
                    Ok(false)
                }
            }
        }
    }

    /// A Secret in the object's namespace that the object refers to: one that
    /// [`Controller::secrets`](super::Controller::secrets) finds. A change of it reconciles the object.
    ///
    /// # Errors
    /// When the request fails, or the controller does not declare references to Secrets.
    pub async fn secret(&self, name: &str) -> Result<Option<Arc<Secret>>, Error> {
        let key = self.key::<Secret>(name);
        match &self.backend {
            Backend::Recording(recording) => Ok(recording.get::<Secret>(&key).map(Arc::new)),
            Backend::Cluster(shared) => match &shared.secrets {
                Some(secrets) => secrets.get(&key).await,
                None => Err(Error::bug(
                    "the controller lacks `.secrets(…)`, so it cannot read Secrets",
                )),
            },
        }
    }

    /// A variable of the operator's environment.
    ///
    /// # Errors
    /// When it is not set, with the reason `EnvironmentNotSet`.
    pub fn env(&self, variable: &'static str) -> Result<String, Error> {
        let value = match &self.backend {
            Backend::Recording(recording) => recording.env(variable),
            Backend::Cluster(_) => std::env::var(variable).ok(),
        };
        let missing = || {
            Error::new(
                "EnvironmentNotSet",
                format!("set {variable} in the operator's environment"),
            )
        };
        value.filter(|value| !value.is_empty()).ok_or_else(missing)
    }

    /// Publishes an event about the object. `reason` is in CamelCase.
    pub fn event(&self, severity: Severity, reason: &'static str, note: impl Into<String>) {
        if let Backend::Cluster(shared) = &self.backend {
            shared.event(&self.object, severity, reason, note.into());
        }
    }

    /// Sets the memory of a container in a running pod to that in `resources`, without a restart. The pod is not a child, so
    /// [declare](super::Controller::needs) the permission to patch `pods/resize`. A pod that was deleted is no error. A
    /// [recording](Self::recording) context does nothing.
    ///
    /// # Errors
    /// When the API server rejects it. Versions before 1.33 do not support it.
    pub async fn resize(&self, pod: &str, container: &str, resources: &ResourceRequirements) -> Result<(), Error> {
        let Backend::Cluster(shared) = &self.backend else {
            return Ok(());
        };
        let memory = |map: &Option<BTreeMap<String, Quantity>>| json!({ "memory": map.as_ref().and_then(|map| map.get("memory")) });
        let resources = json!({ "requests": memory(&resources.requests), "limits": memory(&resources.limits) });
        let patch = json!({ "spec": { "containers": [{ "name": container, "resources": resources }] } });
        let request = Request::new(Pod::url_path(&(), self.object.meta().namespace.as_deref()));
        let request = request
            .patch_subresource("resize", pod, &PatchParams::default(), &Patch::Strategic(patch))
            .map_err(|error| Error::bug(error.to_string()))?;
        match shared.client.request_text(request).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 && status.message.contains(pod) => Ok(()),
            Err(error) => {
                let is_missing = matches!(&error, kube::Error::Api(status) if status.code == 404);
                let hint = if is_missing {
                    ", which requires Kubernetes 1.33"
                } else {
                    ""
                };
                Err(Error::request(format!("resize pod {pod}{hint}"), error))
            }
        }
    }

    /// The connection to the API server, for requests that are not about children. A recording context has none.
    ///
    /// # Errors
    /// In a [recording](Self::recording) context.
    pub fn client(&self) -> Result<Client, Error> {
        match &self.backend {
            Backend::Cluster(shared) => Ok(shared.client.clone()),
            Backend::Recording(_) => Err(Error::bug("a recording context has no client")),
        }
    }

    /// The API of a kind in the object's namespace.
    ///
    /// # Errors
    /// In a [recording](Self::recording) context.
    pub fn api<C: Object + Resource<Scope = NamespaceResourceScope>>(&self) -> Result<Api<C>, Error> {
        Ok(Api::namespaced(
            self.client()?,
            self.object.meta().namespace.as_deref().unwrap_or_default(),
        ))
    }

    pub(super) fn object(&self) -> &K {
        &self.object
    }

    /// Returns true if the object `key` is a child of this one.
    fn has_child(&self, store: &Store, key: &ObjectKey) -> bool {
        let child = store.cache.get(key);
        child.is_some_and(|child| child.owner.as_ref().is_some_and(|owner| owner.has(Some(self.uid()))))
    }

    pub(super) fn uid(&self) -> &str {
        self.object.meta().uid.as_deref().unwrap_or_default()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn key<C: Object>(&self, name: &str) -> ObjectKey {
        let namespace = match C::Scope::NAMESPACED {
            true => self.object.meta().namespace.clone().unwrap_or_default(),
            false => String::new(),
        };
        ObjectKey::new(namespace, name)
    }

    /// Fails when the object was deleted since the reconcile began. Children must not be written for it.
    pub(super) fn still_wanted(&self) -> Result<(), Error> {
        let Backend::Cluster(shared) = &self.backend else {
            return Ok(());
        };
        let meta = self.object.meta();
        let now = shared.objects.get(&ObjectKey::of(self.object.as_ref()));
        let same = now.as_ref().is_some_and(|now| now.is(&self.object));
        let deleting = now.is_some_and(|now| now.seen.is_deleting);
        if same && (!deleting || meta.deletion_timestamp.is_some()) {
            return Ok(());
        }
        Err(Error::waiting("Deleted", "the object was deleted"))
    }

    /// Deletes a child. Another object that has its name by now stays: that is a conflict until its event arrives. Returns true if
    /// this call deleted the child.
    pub(super) async fn remove(&self, shared: &Shared<K>, store: &Store, key: &ObjectKey) -> Result<bool, Error> {
        let Some(child) = store.cache.get(key).filter(|child| !child.deleting) else {
            return Ok(false);
        };
        let uid = &child.uid;
        let params = DeleteParams::background().preconditions(Preconditions {
            uid: Some(uid.to_string()),
            resource_version: None,
        });
        let target = shared.applier.target(&store.resource, key.clone());
        match target.delete(&params).await {
            Ok(gone) => {
                if gone {
                    store.cache.deleted(key, uid);
                    target.forget();
                }
                self.state().writes += 1;
                self.event(
                    Severity::Normal,
                    "Deleted",
                    format!("{} {}", store.resource.kind, key.name),
                );
                Ok(true)
            }
            Err(kube::Error::Api(status)) if is_missing(&status, &key.name) => {
                store.cache.deleted(key, uid);
                target.forget();
                Ok(false)
            }
            Err(error) => Err(Error::request(format!("delete {} {key}", store.resource.kind), error)),
        }
    }
}

/// A reconcile that takes too long is dropped. Its children are reported nevertheless.
impl<K: Object> Drop for Context<K> {
    fn drop(&mut self) {
        self.announce_created();
    }
}
