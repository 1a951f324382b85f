//! The children of one kind, as the watch delivered them.
use std::{
    any::TypeId,
    borrow::Cow,
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, Resource, api::ApiResource};
use serde::{Deserialize as _, de::DeserializeOwned};
use serde_json::Value;

use super::{
    Error, Object,
    written::{OpenWrite, OwnWrites},
};
use crate::{
    ObjectKey,
    apply::{Seen, hash, set},
    cache::{Cache, Change, Index, Revision, digest},
    compressed::{Compressed, Dictionary},
    health::{Rollout, Workload, rollout},
    manager::{Scope as _, add_owner},
    queue::WorkQueue,
};

/// The label of everything that an operator applies.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The annotation that replaces an owner reference if Kubernetes allows none: on a cluster-scoped child with a
/// namespaced owner.
pub const OWNER: &str = "kube-manager/owner";

/// Longer names and UIDs of owners are not real ones. The API server accepts any text.
const MAX_OWNER: usize = 253;

/// A larger child is read when it is needed. Any user can create objects with the operator's label, and make them large.
const MAX_CHILD: usize = 64 << 10;

/// A kind of children.
#[derive(Clone)]
pub struct ChildKind {
    pub id: TypeId,
    pub name: Cow<'static, str>,
    pub namespaced: bool,
}

impl ChildKind {
    pub fn of<C: Object>() -> Self {
        Self {
            id: TypeId::of::<C>(),
            name: C::kind(&()),
            namespaced: C::Scope::NAMESPACED,
        }
    }
}

/// A child, as it was seen last.
pub struct Child {
    pub owner: Option<Owner>,
    pub uid: Box<str>,
    /// A digest of its resource version.
    version: u64,
    pub deleting: bool,
    /// The rollout of its pods. A child without pods has none.
    pub rollout: Rollout,
    /// The wish that this version of the child fulfills. Zero if it was not compared.
    settled: AtomicU64,
    /// The wish was compared with the whole object, and it was as desired.
    was_settled: AtomicBool,
    /// The object, and the owners of its fields as a second value: most readers need no owners. Absent for an object that is too
    /// large, or that no object of the controller owns.
    content: Option<Compressed>,
}

impl Child {
    /// Its content without `managedFields`, if it is cached. `None` also if the type cannot hold it.
    pub fn read<C: DeserializeOwned>(&self) -> Option<C> {
        self.content.as_ref()?.read()
    }

    /// Its content with `managedFields`, if it is cached.
    pub fn seen(&self) -> Option<Seen> {
        let (mut object, owners): (Value, Value) = self.content.as_ref()?.read_both()?;
        if !owners.is_null() {
            set(&mut object, &["metadata", "managedFields"], owners);
        }
        Some(Seen {
            object,
            was_settled: self.was_settled.load(Relaxed),
        })
    }
}

/// A digest of what a reconcile wants of a child. It is made from the typed child: a pass that changes nothing needs no JSON.
#[derive(Clone, Copy)]
pub struct Wish(u64);

impl Wish {
    /// `owner` is the UID of the object that is reconciled, and `asked` the fingerprint of what the user asked for. That is empty for a
    /// child that waits for no turn.
    pub fn new(child: &impl Object, owner: &str, asked: &str) -> Self {
        Self(hash(&(child, owner, asked)))
    }

    /// The wish if the fields `immutable` keep their values.
    pub fn keeping(self, immutable: &[&str]) -> u64 {
        hash(&(self.0, immutable))
    }
}

/// The object that a child belongs to.
pub struct Owner {
    /// A digest of its UID.
    uid: u64,
    key: ObjectKey,
}

impl Owner {
    fn new(uid: &str, key: ObjectKey) -> Self {
        let uid = digest(Some(uid));
        Self { uid, key }
    }

    /// Returns true if it has this UID.
    pub fn has(&self, uid: Option<&str>) -> bool {
        uid.is_some() && self.uid == digest(uid)
    }
}

/// The children of one kind.
pub struct Store {
    pub resource: ApiResource,
    pub namespaced: bool,
    pub cache: Cache<Child>,
    by_owner: Index<u64>,
    manager: String,
    dictionary: Dictionary,
    written: OwnWrites,
}

impl Store {
    pub fn new<C: Object>(manager: &str) -> Self {
        let cache: Cache<Child> = Cache::default();
        let by_owner = cache.index(|child: &Child| child.owner.iter().map(|owner| owner.uid).collect());
        Self {
            resource: ApiResource::erase::<C>(&()),
            namespaced: C::Scope::NAMESPACED,
            cache,
            by_owner,
            manager: manager.to_owned(),
            dictionary: Dictionary::default(),
            written: OwnWrites::default(),
        }
    }

    /// The cached form of a child of objects of kind `K`. Takes `managedFields` out of `object`.
    pub fn project<K: Object>(&self, object: &mut Value) -> Child {
        let owner = owner::<K>(object);
        self.name_kind(object);
        let owners = self.take_owners(object);
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let uid = text("/metadata/uid").unwrap_or_default().into();
        let version = digest(text("/metadata/resourceVersion"));
        let deleting = object.pointer("/metadata/deletionTimestamp").is_some();
        let workload = owner.as_ref().and_then(|_| Workload::deserialize(&*object).ok());
        let text = owner.is_some().then(|| {
            let mut text = serde_json::to_vec(object).unwrap_or_default();
            // Writing a value into memory does not fail.
            let _ = serde_json::to_writer(&mut text, &owners);
            text
        });
        let content = text
            .filter(|text| text.len() <= MAX_CHILD)
            .map(|text| self.dictionary.compress(&text));
        Child {
            owner,
            uid,
            version,
            deleting,
            rollout: workload.map_or(Rollout::Done, |workload| rollout(&workload)),
            settled: AtomicU64::new(0),
            was_settled: AtomicBool::new(false),
            content,
        }
    }

    /// The objects of a list do not name their kind.
    fn name_kind(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        for (field, value) in [
            ("apiVersion", &self.resource.api_version),
            ("kind", &self.resource.kind),
        ] {
            object.entry(field).or_insert_with(|| Value::String(value.clone()));
        }
    }

    /// Takes the owners of fields out of `object`, without those of status fields: they say nothing about what is applied. The
    /// fields become text: as JSON they would take most of the memory of an object that is compared.
    fn take_owners(&self, object: &mut Value) -> Value {
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        let mut owners = metadata
            .and_then(|metadata| metadata.remove("managedFields"))
            .unwrap_or_default();
        if let Some(entries) = owners.as_array_mut() {
            let is_own = |entry: &Value| entry.get("manager").and_then(Value::as_str) == Some(self.manager.as_str());
            let of_status = |entry: &Value| entry.get("subresource").and_then(Value::as_str) == Some("status");
            entries.retain(|entry| is_own(entry) || !of_status(entry));
            for fields in entries.iter_mut().filter_map(|entry| entry.get_mut("fieldsV1")) {
                *fields = Value::String(fields.to_string());
            }
        }
        owners
    }

    /// The content of the child as it was seen last, if it is cached. `None` also if the type cannot hold it.
    pub fn read<C: DeserializeOwned>(&self, key: &ObjectKey) -> Option<C> {
        self.cache.get(key)?.read()
    }

    /// The child, if its cached version was compared with the same wish, and is as desired.
    pub fn settled(&self, key: &ObjectKey, wish: u64) -> Option<Arc<Child>> {
        let is_settled = |child: &Arc<Child>| child.settled.load(Relaxed) == wish && !child.deleting;
        self.cache.get(key).filter(is_settled)
    }

    /// `object` was compared with this wish, except the fields `immutable`, and is as desired.
    pub fn settle(&self, key: &ObjectKey, wish: Wish, immutable: &[&str], object: &Value) {
        let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let child = self.cache.get(key).filter(|child| child.version == digest(version));
        if let Some(child) = child {
            child.settled.store(wish.keeping(immutable), Relaxed);
            child.was_settled.store(immutable.is_empty(), Relaxed);
        }
    }

    /// The children of the object `uid`.
    pub fn children(&self, uid: &str) -> Vec<ObjectKey> {
        self.by_owner.keys(&digest(Some(uid)))
    }

    /// Begins a write to the child `key` by the reconcile of `writer`.
    pub fn begin(&self, key: &ObjectKey, writer: ObjectKey) -> OpenWrite<'_> {
        self.written.begin(key, writer)
    }

    /// The API server answered `object` to a write.
    pub fn wrote<K: Object>(&self, write: OpenWrite<'_>, object: &mut Value) {
        let Some(revision) = Revision::of(object) else { return };
        write.answered(object.pointer("/metadata/resourceVersion").and_then(Value::as_str));
        // Its event is often faster.
        if self.cache.in_state(&revision).is_none() {
            let child = self.project::<K>(object);
            self.cache.written_at(revision, child);
        }
    }

    /// Reconciles the owners of a changed child, unless this process has changed it.
    pub fn changed(
        &self,
        key: &ObjectKey,
        change: &Change<Child>,
        queue: &Arc<WorkQueue<ObjectKey>>,
        forget: &(dyn Fn(&ApiResource, &ObjectKey) + Send + Sync),
    ) {
        let version = |side: &Option<Arc<Child>>| side.as_ref().map(|child| child.version);
        if let (Some(before), Some(after)) = (&change.before, &change.after)
            && before.version == after.version
        {
            after.settled.store(before.settled.load(Relaxed), Relaxed);
            after.was_settled.store(before.was_settled.load(Relaxed), Relaxed);
        }
        let sides = [&change.before, &change.after].into_iter().flatten();
        let mut owners: Vec<ObjectKey> = sides
            .filter_map(|child| Some(child.owner.as_ref()?.key.clone()))
            .collect();
        owners.dedup();
        let (queue, listed) = (Arc::clone(queue), change.listed);
        let cause = change.cause_for_others(&self.resource.kind, key);
        let queued = owners.clone();
        let react = move || {
            for owner in queued {
                add_owner(&queue, owner, listed, cause.clone());
            }
        };
        match version(&change.after) {
            None => {
                forget(&self.resource, key);
                react();
            }
            // The answer to an own write came first, or a new list brought what was known.
            Some(after) if version(&change.before) == Some(after) => drop(self.written.is_own(after)),
            Some(after) => self.written.arrived(key, after, &owners, react),
        }
    }
}

/// The object of kind `K` that a child belongs to.
fn owner<K: Object>(child: &Value) -> Option<Owner> {
    let is_real = |name: &str, uid: &str| name.len().max(uid.len()) <= MAX_OWNER;
    if let Some(known) = crate::apply::controller(child) {
        let text = |name: &str| known.get(name)?.as_str();
        let group = text("apiVersion")?.rsplit_once('/').map_or("", |(group, _)| group);
        if text("kind")? != K::kind(&()) || group != K::group(&()) {
            return None;
        }
        let namespace = match K::Scope::NAMESPACED {
            true => child.pointer("/metadata/namespace")?.as_str()?,
            false => "",
        };
        let (name, uid) = (text("name")?, text("uid")?);
        return is_real(name, uid).then(|| Owner::new(uid, ObjectKey::new(namespace, name)));
    }
    let annotation = child.pointer("/metadata/annotations")?.get(OWNER)?.as_str()?;
    match annotation.split(' ').collect::<Vec<_>>().as_slice() {
        [kind, namespace, name, uid] if *kind == qualified_kind::<K>() && is_real(name, uid) => {
            Some(Owner::new(uid, ObjectKey::new(*namespace, *name)))
        }
        _ => None,
    }
}

/// The value of [`OWNER`] for children of `object`.
pub fn owner_annotation<K: Object>(object: &K) -> String {
    let meta = object.meta();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    format!(
        "{} {} {} {}",
        qualified_kind::<K>(),
        text(&meta.namespace),
        text(&meta.name),
        text(&meta.uid)
    )
}

fn qualified_kind<K: Object>() -> String {
    format!("{}.{}", K::kind(&()), K::group(&()))
}

/// The Secrets that objects refer to. Only their versions are cached. The content is read when it is needed, and again when
/// it has changed.
pub struct Secrets {
    pub versions: Cache<String>,
    client: Client,
    read: Mutex<HashMap<ObjectKey, Arc<Secret>>>,
}

impl Secrets {
    pub fn new(client: Client) -> Self {
        Self {
            versions: Cache::default(),
            client,
            read: Mutex::default(),
        }
    }

    pub async fn get(&self, key: &ObjectKey) -> Result<Option<Arc<Secret>>, Error> {
        let version = self.versions.get(key);
        let known = self.lock().get(key).cloned();
        if let (Some(version), Some(known)) = (&version, known)
            && known.meta().resource_version.as_ref() == Some(version.as_ref())
        {
            return Ok(Some(known));
        }
        if version.is_none() {
            self.lock().remove(key);
            return Ok(None);
        }
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &key.namespace);
        let secret = secrets
            .get_opt(&key.name)
            .await
            .map_err(|error| Error::request(format!("get Secret {key}"), error))?;
        let secret = secret.map(Arc::new);
        if let Some(secret) = &secret {
            self.lock().insert(key.clone(), Arc::clone(secret));
        }
        Ok(secret)
    }

    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectKey, Arc<Secret>>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    use serde_json::json;

    use super::*;

    #[test]
    fn large_objects_and_those_of_others_are_not_kept() {
        let store = Store::new::<ReplicaSet>("test");
        let owned_by = |kind: &str, owner: &str, size: usize| {
            let owner = json!({ "apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "1", "controller": true });
            store.project::<Deployment>(
                &mut json!({ "metadata": { "name": "a", "namespace": "b", "uid": "2", "resourceVersion": "3",
                "ownerReferences": [owner], "annotations": { "note": "x".repeat(size) } } }),
            )
        };
        let child = |kind: &str, size: usize| owned_by(kind, "web", size);
        let small = child("Deployment", 100);
        assert!(small.content.is_some() && small.owner.is_some());
        let large = child("Deployment", MAX_CHILD);
        assert!(large.content.is_none(), "read when it is needed");
        assert_eq!((&*large.uid, large.version), ("2", digest(Some("3"))));
        let others = child("Rollout", 100);
        assert!(others.content.is_none() && others.owner.is_none());
        let forged = owned_by("Deployment", &"x".repeat(1 << 20), 100);
        assert!(forged.content.is_none() && forged.owner.is_none(), "no such owner");
    }

    #[test]
    fn a_settled_child_is_not_compared_until_it_or_the_wish_changes() {
        let store = Store::new::<ReplicaSet>("test");
        let (key, wish) = (ObjectKey::new("b", "a"), Wish(7));
        let (whole, other) = (wish.keeping(&[]), Wish(8).keeping(&[]));
        let at = |version: &str| {
            let metadata = json!({ "name": "a", "namespace": "b", "uid": "2", "resourceVersion": version });
            json!({ "metadata": metadata })
        };
        let begin = || store.begin(&key, ObjectKey::new("b", "owner"));
        store.settle(&key, wish, &[], &at("3"));
        assert!(store.settled(&key, whole).is_none(), "not cached");
        store.wrote::<Deployment>(begin(), &mut at("3"));
        assert!(store.settled(&key, whole).is_none());
        store.settle(&key, wish, &[], &at("3"));
        assert!(store.settled(&key, whole).is_some() && store.settled(&key, other).is_none());
        store.wrote::<Deployment>(begin(), &mut at("4"));
        store.settle(&key, wish, &[], &at("3"));
        assert!(store.settled(&key, whole).is_none(), "another version was compared");
    }
}
