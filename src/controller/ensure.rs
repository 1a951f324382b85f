//! Creates or updates one managed object if it differs from the desired state.
//!
//! Writes use server-side apply with the operator's field manager: fields of other managers are kept, and changes of
//! applied fields are reverted.
use k8s_openapi::{
    NamespaceResourceScope,
    api::{apps::v1::Deployment, core::v1::Service, policy::v1::PodDisruptionBudget},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use olmkit_manager::{ObjectKey, drift};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Error, FIELD_MANAGER,
    observed::{Child, FINGERPRINT, controller_of},
};
use crate::operand;

/// A kind of which the operator manages one object per Memcached, with the Memcached's name.
pub trait ManagedResource:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Serialize + DeserializeOwned + Clone + std::fmt::Debug
{
    /// A strategic merge patch that empties the lists whose merge key is an applied field.
    ///
    /// Ports are merged by number. If another client changes the number, applying again adds a second port with the same
    /// name, which the API server rejects. Emptying the list first avoids this.
    fn without_keyed_entries() -> Option<Value> {
        None
    }
}

impl ManagedResource for Deployment {
    fn without_keyed_entries() -> Option<Value> {
        let container = json!({ "name": operand::MEMCACHED, "ports": null });
        Some(json!({ "spec": { "template": { "spec": { "containers": [container] } } } }))
    }
}

impl ManagedResource for Service {
    fn without_keyed_entries() -> Option<Value> {
        Some(json!({ "spec": { "ports": null } }))
    }
}

impl ManagedResource for PodDisruptionBudget {}

/// The result of [`ensure`].
#[derive(Debug)]
pub enum Ensured<K> {
    /// The object was up to date.
    Settled,
    /// The object was created.
    Created(K),
    /// The desired state had changed; the object was updated.
    Updated(K),
    /// Another client had changed the object, first at this path; the change was reverted.
    Restored(K, String),
}

impl<K> Ensured<K> {
    /// Number of write requests.
    pub fn writes(&self) -> u32 {
        u32::from(!matches!(self, Self::Settled))
    }
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
    if child.controller.as_ref().is_none_or(|owner| owner.uid != owner_uid) {
        return Step::Look;
    }
    if child.deleting {
        return Step::AwaitDeletion;
    }
    match child.differs(desired) {
        None => Step::Keep,
        Some(path) => Step::Apply {
            uid: child.uid.clone(),
            changed_by_others: child.fingerprint().as_deref() == Some(fingerprint),
            path,
        },
    }
}

/// Brings the object, owned by `owner_uid`, to the `desired` state; `observed` is its cached projection.
///
/// # Errors
/// [`Error::Foreign`] if the object has another owner, [`Error::Request`] if the API server rejects the change.
pub async fn ensure<K: ManagedResource>(
    client: &Client,
    desired: &K,
    observed: Option<&Child>,
    owner_uid: &str,
) -> Result<Ensured<K>, Error> {
    let target = Target::<K>::new(client, desired);
    let (configuration, fingerprint) = target.configuration(desired)?;
    match decide(&configuration, &fingerprint, observed, owner_uid) {
        Step::Keep => Ok(Ensured::Settled),
        Step::AwaitDeletion => Err(target.still_deleting()),
        Step::Apply {
            uid,
            path,
            changed_by_others,
        } => {
            let object = match target.apply(configuration.clone(), Some(&uid)).await {
                Err(error) if error.is_invalid() && target.empty_lists(&uid).await? => {
                    target.apply(configuration, Some(&uid)).await?
                }
                result => result?,
            };
            Ok(if changed_by_others {
                Ensured::Restored(object, path)
            } else {
                Ensured::Updated(object)
            })
        }
        Step::Look => match target.look(owner_uid).await? {
            None => target.apply(configuration, None).await.map(Ensured::Created),
            Some(uid) => target.apply(configuration, Some(&uid)).await.map(Ensured::Updated),
        },
    }
}

/// Deletes the observed object, unless it has another owner or is being deleted. Returns the number of writes.
///
/// # Errors
/// [`Error::Request`] if the API server rejects the deletion; 404 counts as success.
pub async fn remove<K: ManagedResource>(
    client: &Client,
    key: &ObjectKey,
    observed: Option<&Child>,
    owner_uid: &str,
) -> Result<u32, Error> {
    let Some(child) = observed.filter(|child| !child.deleting) else {
        return Ok(0);
    };
    if child.controller.as_ref().is_none_or(|owner| owner.uid != owner_uid) {
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
        Ok(_) => Ok(1),
        Err(error) if error.is_not_found() => Ok(0),
        Err(error) => Err(error),
    }
}

/// One object in the API server.
struct Target<K> {
    api: Api<K>,
    key: ObjectKey,
}

impl<K: ManagedResource> Target<K> {
    fn new(client: &Client, desired: &K) -> Self {
        Self::named(client, ObjectKey::of(desired))
    }

    fn named(client: &Client, key: ObjectKey) -> Self {
        Self {
            api: Api::namespaced(client.clone(), &key.namespace),
            key,
        }
    }

    /// The configuration to apply for `desired`, and its fingerprint, which it contains as an annotation.
    fn configuration(&self, desired: &K) -> Result<(Value, String), Error> {
        let mut configuration = serde_json::to_value(desired).map_err(|source| Error::Serialize {
            kind: K::kind(&()).into_owned(),
            name: self.key.name.clone(),
            source,
        })?;
        let fingerprint = drift::fingerprint(&configuration);
        if let Some(metadata) = configuration.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("annotations".to_owned(), json!({ FINGERPRINT: fingerprint }));
        }
        Ok((configuration, fingerprint))
    }

    /// The UID of the object if it exists and may be updated, `None` if it does not exist.
    async fn look(&self, owner_uid: &str) -> Result<Option<String>, Error> {
        let found = self
            .api
            .get_metadata_opt(&self.key.name)
            .await
            .map_err(|error| self.error("read", error))?;
        let Some(found) = found else { return Ok(None) };
        let meta = found.metadata;
        match ownership(&meta, owner_uid) {
            Ownership::Ours if meta.deletion_timestamp.is_some() => Err(self.still_deleting()),
            Ownership::Ours => Ok(Some(meta.uid.unwrap_or_default())),
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
            if let Some(metadata) = configuration.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.insert("uid".to_owned(), Value::from(uid));
            }
        }
        let patch = Patch::Apply(&configuration);
        self.api
            .patch(&self.key.name, &parameters, &patch)
            .await
            .map_err(|error| self.error("apply", error))
    }

    /// Empties the lists that can make an apply invalid; returns whether the kind has any.
    async fn empty_lists(&self, uid: &str) -> Result<bool, Error> {
        let Some(mut patch) = K::without_keyed_entries() else {
            return Ok(false);
        };
        if let Some(patch) = patch.as_object_mut() {
            patch.insert("metadata".to_owned(), json!({ "uid": uid }));
        }
        let parameters = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let emptied = self
            .api
            .patch(&self.key.name, &parameters, &Patch::Strategic(patch))
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

/// The owner of an object.
#[derive(Debug, PartialEq, Eq)]
enum Ownership {
    /// This Memcached, or none although the operator created it (the Memcached was deleted with `--cascade=orphan`).
    Ours,
    /// A deleted Memcached of the same name: the garbage collector will delete the object.
    EarlierMemcached,
    /// Another owner, with a description.
    Foreign(String),
}

fn ownership(meta: &ObjectMeta, owner_uid: &str) -> Ownership {
    match controller_of(meta) {
        Some(owner) if owner.uid == owner_uid => Ownership::Ours,
        Some(owner)
            if owner.kind == "Memcached"
                && owner.api_version.starts_with("cache.example.com/")
                && Some(&owner.name) == meta.name.as_ref() =>
        {
            Ownership::EarlierMemcached
        }
        Some(owner) => Ownership::Foreign(format!("is controlled by {} {}", owner.kind, owner.name)),
        None if applied_by_us(meta) => Ownership::Ours,
        None => Ownership::Foreign("was not created by this operator".to_owned()),
    }
}

/// Only the operator applies under its field manager's name.
fn applied_by_us(meta: &ObjectMeta) -> bool {
    meta.managed_fields
        .iter()
        .flatten()
        .any(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER) && entry.operation.as_deref() == Some("Apply"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operand::fixtures::memcached;

    const OWNER: &str = "11111111-2222";

    fn service() -> (Value, String, Child) {
        let service = operand::service(&memcached(&json!({})));
        let mut configuration = serde_json::to_value(&service).unwrap();
        let fingerprint = drift::fingerprint(&configuration);
        configuration["metadata"]["annotations"] = json!({ FINGERPRINT: fingerprint });
        let mut live: k8s_openapi::api::core::v1::Service = serde_json::from_value(configuration.clone()).unwrap();
        live.metadata.uid = Some("child".to_owned());
        (configuration, fingerprint, Child::of(&live))
    }

    #[test]
    fn an_unchanged_object_is_kept() {
        let (configuration, fingerprint, child) = service();
        assert_eq!(decide(&configuration, &fingerprint, Some(&child), OWNER), Step::Keep);
    }

    #[test]
    fn drift_and_a_changed_configuration_are_distinguished() {
        let (mut configuration, fingerprint, child) = service();
        configuration["spec"]["ports"][0]["port"] = json!(1);
        let step = |fingerprint| decide(&configuration, fingerprint, Some(&child), OWNER);
        let expected = |changed_by_others| Step::Apply {
            uid: "child".to_owned(),
            path: ".spec.ports[memcached].port".to_owned(),
            changed_by_others,
        };
        assert_eq!(step(&fingerprint), expected(true));
        assert_eq!(step("another"), expected(false));
    }

    #[test]
    fn nothing_is_written_to_an_object_of_another_owner() {
        let (configuration, fingerprint, child) = service();
        assert_eq!(
            decide(&configuration, &fingerprint, Some(&child), "another"),
            Step::Look
        );
        assert_eq!(decide(&configuration, &fingerprint, None, OWNER), Step::Look);
    }

    #[test]
    fn owners_are_recognised() {
        let meta = |value: Value| serde_json::from_value::<ObjectMeta>(value).unwrap();
        let owned = |kind: &str, version: &str, uid: &str| {
            meta(json!({ "name": "sample", "ownerReferences": [
                { "apiVersion": version, "kind": kind, "name": "sample", "uid": uid, "controller": true },
            ] }))
        };
        assert_eq!(
            ownership(&owned("Memcached", "cache.example.com/v1alpha1", OWNER), OWNER),
            Ownership::Ours
        );
        assert_eq!(
            ownership(&owned("Memcached", "cache.example.com/v1alpha1", "old"), OWNER),
            Ownership::EarlierMemcached
        );
        assert_eq!(
            ownership(&owned("Redis", "cache.example.com/v1", "x"), OWNER),
            Ownership::Foreign("is controlled by Redis sample".to_owned())
        );
        let by = |manager: &str, operation: &str| {
            meta(json!({ "name": "sample", "managedFields": [{ "manager": manager, "operation": operation }] }))
        };
        assert_eq!(ownership(&by(FIELD_MANAGER, "Apply"), OWNER), Ownership::Ours);
        for stranger in [
            by("kubectl", "Apply"),
            by(FIELD_MANAGER, "Update"),
            meta(json!({ "name": "sample" })),
        ] {
            assert!(matches!(ownership(&stranger, OWNER), Ownership::Foreign(_)));
        }
    }
}
