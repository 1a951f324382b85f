//! Creates or updates one managed object if it differs from the desired state.
//!
//! Writes use server-side apply with the operator's field manager: fields of other managers are kept, and changes of
//! applied fields are reverted.
use k8s_openapi::{
    NamespaceResourceScope,
    api::{apps::v1::Deployment, core::v1::Service, policy::v1::PodDisruptionBudget},
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use kube_manager::{
    ObjectKey,
    cache::Cache,
    drift,
    packed::{Packed, Sample},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Context, Error, FIELD_MANAGER,
    observed::{Child, DeploymentState, FINGERPRINT},
    ownership::{Ownership, ownership},
};
use crate::operand;

/// A kind of which the operator manages one object per Memcached, with the Memcached's name.
pub trait ManagedResource:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize + DeserializeOwned + Clone + std::fmt::Debug
{
    /// Its kind.
    const KIND: &'static str;

    /// Its projection in the cache.
    type Seen: Sample + Into<Child>;

    /// The projection of this object.
    fn seen(&self) -> Self::Seen;

    /// A strategic merge patch that empties the lists whose merge key is an applied field.
    ///
    /// Ports are merged by number. If another client changes the number, applying again adds a second port with the same
    /// name, which the API server rejects. Emptying the list first avoids this.
    fn without_keyed_entries() -> Option<Value> {
        None
    }

    /// A merge patch that makes the `observed` object as `configuration` says, where little differs. It costs the API server two
    /// thirds of what applying all of it does.
    fn small_change(_configuration: &Value, _observed: &Child) -> Option<Value> {
        None
    }
}

impl ManagedResource for Deployment {
    const KIND: &'static str = "Deployment";
    type Seen = DeploymentState;

    fn seen(&self) -> DeploymentState {
        DeploymentState::of(self)
    }

    fn without_keyed_entries() -> Option<Value> {
        let container = json!({ "name": operand::MEMCACHED, "ports": null });
        Some(json!({ "spec": { "template": { "spec": { "containers": [container] } } } }))
    }

    fn small_change(configuration: &Value, observed: &Child) -> Option<Value> {
        let replicas = configuration.pointer("/spec/replicas")?;
        let fingerprint = configuration.get("metadata")?.get("annotations")?.get(FINGERPRINT)?;
        let mut with_as_many = configuration.clone();
        *with_as_many.pointer_mut("/spec/replicas")? = observed.field("/spec/replicas")?.clone();
        // With another fingerprint than this one's, a field that is not applied any more would stay.
        mark(&mut with_as_many);
        let is_all = observed.differs(&with_as_many).is_none();
        is_all.then(
            || json!({ "metadata": { "annotations": { FINGERPRINT: fingerprint } }, "spec": { "replicas": replicas } }),
        )
    }
}

impl ManagedResource for Service {
    const KIND: &'static str = "Service";
    type Seen = Child;

    fn seen(&self) -> Child {
        Child::of(self)
    }

    fn without_keyed_entries() -> Option<Value> {
        Some(json!({ "spec": { "ports": null } }))
    }
}

impl ManagedResource for PodDisruptionBudget {
    const KIND: &'static str = "PodDisruptionBudget";
    type Seen = Child;

    fn seen(&self) -> Child {
        Child::of(self)
    }
}

/// What [`ensure`] did.
#[derive(Debug, PartialEq, Eq)]
pub enum Ensured {
    /// The object was up to date.
    Settled,
    /// The object was created.
    Created,
    /// The desired state had changed; the object was updated.
    Updated,
    /// Another client had changed the object, first at this path; the change was reverted.
    Restored(String),
    /// Somebody else insists on another value at this path.
    Contested(String),
}

/// What to do with an object.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Nothing.
    Keep,
    /// Apply; the path is the first that differs.
    Apply {
        uid: String,
        path: String,
        changed_by_others: bool,
    },
    /// The object is not in the cache, or its owner is unclear: read it before writing.
    Look,
    /// The object is being deleted; it is created again afterwards.
    AwaitDeletion,
}

/// Compares `desired` with the observed object.
fn decide(desired: &Value, fingerprint: &str, observed: Option<&Child>, owner_uid: &str) -> Step {
    let Some(child) = observed else { return Step::Look };
    if child.controller.as_deref() != Some(owner_uid) {
        return Step::Look;
    }
    if child.deleting {
        return Step::AwaitDeletion;
    }
    match child.differs(desired) {
        None => Step::Keep,
        Some(path) => Step::Apply {
            uid: child.uid.clone(),
            // A version of the operator that annotates more is not another client.
            changed_by_others: child.fingerprint() == Some(fingerprint) && !path.starts_with(".metadata.annotations"),
            path,
        },
    }
}

/// Brings the object `key`, owned by `owner_uid`, to the state that `configuration`, the JSON of a `K`, asks for; it is marked with its
/// fingerprint. `cache` holds what is known of the object, and afterwards what the API server answered. Each write is counted in
/// `writes`.
///
/// # Errors
/// [`Error::Foreign`] if the object has another owner, [`Error::Request`] if the API server rejects the change.
pub async fn ensure<K: ManagedResource>(
    context: &Context,
    cache: &Cache<Packed<K::Seen>>,
    key: &ObjectKey,
    configuration: &mut Value,
    owner_uid: &str,
    writes: &mut u32,
) -> Result<Ensured, Error> {
    let target = Target::<K>::named(&context.client, key.clone());
    let fingerprint = mark(configuration);
    let configuration = &*configuration;
    let mut child: Option<Child> = cache.unpack(&target.key).map(Into::into);
    let mut step = decide(configuration, &fingerprint, child.as_ref(), owner_uid);
    let mut adopted = None;
    if step == Step::Look
        && let Some(live) = target.look(owner_uid).await?
    {
        let seen = live.seen();
        cache.written(&live, Packed::of(&seen));
        let known = child.insert(seen.into());
        adopted = Some(known.uid.clone());
        step = decide(configuration, &fingerprint, child.as_ref(), owner_uid);
    }
    let kind = target.kind;
    let (uid, done) = match step {
        Step::Keep => return Ok(Ensured::Settled),
        Step::AwaitDeletion => return Err(target.still_deleting()),
        // Not there, or without an owner.
        Step::Look => match adopted {
            Some(uid) => (Some(uid), Ensured::Updated),
            None => (None, Ensured::Created),
        },
        Step::Apply {
            uid,
            path,
            changed_by_others,
        } => {
            let content = child.as_ref().map(Child::content).unwrap_or_default();
            if context.contests.left(&target.key, kind, &fingerprint, &path, &content) {
                return Ok(Ensured::Contested(path));
            }
            if !changed_by_others {
                (Some(uid), Ensured::Updated)
            } else if context.contests.changed(&target.key, kind, &fingerprint, &path) {
                return Ok(Ensured::Contested(path));
            } else {
                (Some(uid), Ensured::Restored(path))
            }
        }
    };
    let updated = child.filter(|_| done == Ensured::Updated);
    let mut small = updated.and_then(|child| K::small_change(configuration, &child));
    // A webhook that overrides an applied field does so in the answer already: it is asked twice, not at each pass.
    let mut overridden = None;
    for _ in 0..2 {
        let object = match (small.take(), uid.as_deref()) {
            (Some(patch), Some(uid)) => target.merge(patch, uid).await?,
            (_, uid) => target.apply_or_empty(configuration, uid).await?,
        };
        *writes += 1;
        let seen = object.seen();
        cache.written(&object, Packed::of(&seen));
        let child: Child = seen.into();
        overridden = child.differs(configuration).map(|path| (path, child.content()));
        if overridden.is_none() || uid.is_none() {
            break;
        }
    }
    match overridden {
        Some((path, content)) if uid.is_some() => {
            context
                .contests
                .overridden(&target.key, kind, &fingerprint, &path, &content);
            Ok(Ensured::Contested(path))
        }
        _ => {
            if matches!(done, Ensured::Restored(_)) {
                context.contests.reverted(&target.key, kind);
            }
            Ok(done)
        }
    }
}

/// Reads the object and keeps it in `cache`: what was written is unknown.
///
/// # Errors
/// [`Error::Request`] if the API server refuses that; an object that is gone stays in the cache until a watch says so.
pub async fn refresh<K: ManagedResource>(
    client: &Client,
    cache: &Cache<Packed<K::Seen>>,
    key: &ObjectKey,
) -> Result<(), Error> {
    let target = Target::<K>::named(client, key.clone());
    let found = target.api.get_opt(&key.name).await;
    if let Some(live) = found.map_err(|error| target.error("read", error))? {
        cache.written(&live, Packed::of(&live.seen()));
    }
    Ok(())
}

/// Changes the number of replicas of the Deployment `key` with this UID, and nothing else.
///
/// # Errors
/// [`Error::Request`] if the API server rejects the change.
pub async fn resize(
    client: &Client,
    cache: &Cache<Packed<DeploymentState>>,
    key: &ObjectKey,
    uid: &str,
    size: i32,
) -> Result<(), Error> {
    let target = Target::<Deployment>::named(client, key.clone());
    let resized = target.merge(json!({ "spec": { "replicas": size } }), uid).await?;
    cache.written(&resized, Packed::of(&resized.seen()));
    Ok(())
}

/// Deletes the observed object, unless it has another owner or is being deleted. Returns the number of writes.
///
/// # Errors
/// [`Error::Request`] if the API server rejects the deletion; 404 counts as success.
pub async fn remove<K: ManagedResource>(
    client: &Client,
    cache: &Cache<Packed<K::Seen>>,
    key: &ObjectKey,
    owner_uid: &str,
) -> Result<u32, Error> {
    let Some(child): Option<Child> = cache.unpack(key).map(Into::into) else {
        return Ok(0);
    };
    if child.deleting || child.controller.as_deref() != Some(owner_uid) {
        return Ok(0);
    }
    let target = Target::<K>::named(client, key.clone());
    let only_this = Preconditions {
        uid: Some(child.uid.clone()),
        resource_version: None,
    };
    let parameters = DeleteParams {
        preconditions: Some(only_this),
        ..DeleteParams::default()
    };
    match target
        .api
        .delete(&key.name, &parameters)
        .await
        .map_err(|error| target.error("delete", error))
    {
        Ok(_) => {
            cache.deleted(key, &child.uid);
            Ok(1)
        }
        Err(error) if error.is_not_found() => Ok(0),
        Err(error) => Err(error),
    }
}

/// Marks a configuration with its fingerprint, the one of all but its annotations, and returns that.
fn mark(configuration: &mut Value) -> String {
    let metadata = configuration.get_mut("metadata").and_then(Value::as_object_mut);
    let annotations = metadata.and_then(|metadata| metadata.remove("annotations"));
    let fingerprint = drift::fingerprint(configuration);
    if let Some(metadata) = configuration.get_mut("metadata").and_then(Value::as_object_mut) {
        let mut annotations = annotations.unwrap_or_else(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(FINGERPRINT.to_owned(), Value::from(fingerprint.clone()));
        }
        metadata.insert("annotations".to_owned(), annotations);
    }
    fingerprint
}

/// Makes `patch` fail if the object has been replaced.
fn with_uid(patch: &mut Value, uid: &str) {
    if let Some(patch) = patch.as_object_mut() {
        let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("uid".to_owned(), Value::from(uid));
        }
    }
}

/// A patch that is not an apply, under the same field manager.
fn in_our_name() -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// One object in the API server.
struct Target<K> {
    api: Api<K>,
    key: ObjectKey,
    kind: &'static str,
}

impl<K: ManagedResource> Target<K> {
    fn named(client: &Client, key: ObjectKey) -> Self {
        Self {
            api: Api::namespaced(client.clone(), &key.namespace),
            key,
            kind: K::KIND,
        }
    }

    /// The object if it exists and may be updated, `None` if it does not exist.
    async fn look(&self, owner_uid: &str) -> Result<Option<K>, Error> {
        let found = self
            .api
            .get_opt(&self.key.name)
            .await
            .map_err(|error| self.error("read", error))?;
        let Some(found) = found else { return Ok(None) };
        let meta = found.meta();
        match ownership(meta, owner_uid) {
            Ownership::Ours if meta.deletion_timestamp.is_some() => Err(self.still_deleting()),
            Ownership::Ours => Ok(Some(found)),
            Ownership::EarlierMemcached => Err(self.still_deleting()),
            Ownership::Foreign(owner) => Err(self.foreign(owner)),
        }
    }

    /// Applies `configuration`. With the UID of an existing object, the apply is forced, and fails if the object has been
    /// replaced. Without a UID the object is to be created; if one was created meanwhile, its fields conflict and it is
    /// not taken over.
    async fn apply(&self, mut configuration: Value, uid: Option<&str>) -> Result<K, Error> {
        let mut parameters = PatchParams::apply(FIELD_MANAGER);
        if let Some(uid) = uid {
            parameters = parameters.force();
            with_uid(&mut configuration, uid);
        }
        let patch = Patch::Apply(&configuration);
        self.api
            .patch(&self.key.name, &parameters, &patch)
            .await
            .map_err(|error| self.error("apply", error))
    }

    /// Changes what `patch` says of the object with this UID.
    async fn merge(&self, mut patch: Value, uid: &str) -> Result<K, Error> {
        with_uid(&mut patch, uid);
        let merged = self
            .api
            .patch(&self.key.name, &in_our_name(), &Patch::Merge(patch))
            .await;
        merged.map_err(|error| self.error("change", error))
    }

    /// As [`apply`](Self::apply), after emptying the lists that can make it invalid if it is.
    async fn apply_or_empty(&self, configuration: &Value, uid: Option<&str>) -> Result<K, Error> {
        match (self.apply(configuration.clone(), uid).await, uid) {
            (Err(error), Some(known)) if error.is_invalid() && self.empty_lists(known).await? => {
                self.apply(configuration.clone(), uid).await
            }
            (result, _) => result,
        }
    }

    /// Empties the lists that can make an apply invalid; returns whether the kind has any.
    async fn empty_lists(&self, uid: &str) -> Result<bool, Error> {
        let Some(mut patch) = K::without_keyed_entries() else {
            return Ok(false);
        };
        with_uid(&mut patch, uid);
        let emptied = self
            .api
            .patch(&self.key.name, &in_our_name(), &Patch::Strategic(patch))
            .await;
        emptied
            .map(|_| true)
            .map_err(|error| self.error("empty the lists of", error))
    }

    fn error(&self, action: &'static str, source: kube::Error) -> Error {
        Error::Request {
            action,
            kind: K::kind(&()).into_owned(),
            name: self.key.name.clone(),
            source: Box::new(source),
        }
    }

    fn foreign(&self, owner: String) -> Error {
        Error::Foreign {
            kind: K::kind(&()).into_owned(),
            name: self.key.name.clone(),
            owner,
        }
    }

    fn still_deleting(&self) -> Error {
        Error::StillDeleting {
            kind: K::kind(&()).into_owned(),
            name: self.key.name.clone(),
        }
    }
}

#[cfg(test)]
#[path = "ensure_tests.rs"]
mod tests;
