//! Applies objects where they differ from what is desired.
//!
//! [`Applier::apply`] compares the desired object with the live one, and sends a server-side apply if a field differs. It
//! sends no request for an object that is as desired. The comparison is the API server's own: list keys, atomic fields,
//! defaults and quantities come from its OpenAPI documents, owners of fields from `metadata.managedFields`. Where the API
//! server stores another value than was sent, the applier remembers its answer and does not send it again.
//!
//! Controllers use it through [`Context::apply`](crate::reconcile::Context::apply).
mod compare;
mod error;
mod fields;
mod memory;
mod prepare;
mod schema;
mod status;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::{
    Client, Resource,
    api::{ApiResource, DeleteParams, DynamicObject, GetParams, Patch, PatchParams, PostParams, Request},
};
use serde_json::{Value, json};

use compare::{Difference, DifferenceKind, differences};
pub use error::{Error, ErrorKind};
use fields::{Fields, Owner, Path};
use memory::{Memory, hash};
use prepare::Desired;
pub(crate) use prepare::controller;
use schema::{Schema, Schemas};
pub(crate) use status::{StatusChange, StatusFields};

use crate::{
    ObjectKey,
    compressed::{Compressed, Dictionary},
};

/// Applies objects under one field manager; see the [module](self).
pub struct Applier {
    client: Client,
    manager: String,
    schemas: Schemas,
    memories: Mutex<HashMap<(String, ObjectKey), Memory>>,
    dictionaries: Mutex<HashMap<String, Arc<Dictionary>>>,
}

/// An object that was applied, and what that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The object as the API server has it.
    pub object: Value,
    /// The change.
    pub change: Change,
    /// Another client sets a field again and again, so it is left for a while.
    pub conflict: Option<Conflict>,
    /// Number of write requests that succeeded.
    pub writes: u32,
}

/// The change that an apply made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Nothing: no write was sent.
    Unchanged,
    /// The object was created.
    Created,
    /// The desired object had changed.
    Updated(Vec<FieldChange>),
    /// Another client had changed the object. The changes were reverted.
    Reverted(Vec<FieldChange>),
}

/// One field of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldChange {
    /// Where it is, such as `.spec.replicas`.
    pub field: String,
    /// The value before; empty for a Secret and for a field that was absent.
    pub old: String,
    /// The value after; empty for a Secret and for a field that was removed.
    pub new: String,
    /// The client that set the old value, if known.
    pub manager: Option<String>,
}

/// A field that another client sets again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Where it is, such as `.spec.replicas`.
    pub field: String,
    /// The other client's field manager.
    pub manager: String,
    /// The conflict was detected now, and should be reported.
    pub new: bool,
    /// The field is set again after this time.
    pub retry_after: Duration,
}

/// The origin of a difference between the desired and the live object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The desired object has changed.
    Desired,
    /// Other clients have changed the live object.
    Others,
}

/// The manager in a [`Conflict`] with an admission webhook or policy, which the API server does not name.
pub const ADMISSION: &str = "admission";

impl Applier {
    /// Applies under the field manager `manager`.
    pub fn new(client: Client, manager: impl Into<String>) -> Self {
        Self {
            schemas: Schemas::new(client.clone()),
            client,
            manager: manager.into(),
            memories: Mutex::default(),
            dictionaries: Mutex::default(),
        }
    }

    /// The field manager.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// Makes the API server's object as `desired`. `live` is the object as it was seen last; without it the object is read.
    ///
    /// # Errors
    /// When the API server rejects the object, or it belongs to another owner, or a request fails.
    pub async fn apply(&self, resource: &ApiResource, desired: Value, live: Option<Value>) -> Result<Report, Error> {
        self.apply_keeping(resource, desired, live, &[]).await
    }

    /// As [`apply`](Self::apply), but the fields `keep` stay as the API server has them once the object exists. They are paths such as
    /// `.spec.volumeClaimTemplates`.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub async fn apply_keeping(
        &self,
        resource: &ApiResource,
        desired: Value,
        live: Option<Value>,
        keep: &[&str],
    ) -> Result<Report, Error> {
        let key = identity(resource, &desired)?;
        let live = match live {
            Some(live) => Some(live),
            None => self.read(resource, &key).await?,
        };
        let schema = self.schemas.get(resource).await?;
        let mut attempt = Attempt::new(self, resource, &key, &schema, desired.clone(), live, keep)?;
        if attempt.is_settled() {
            return Ok(attempt.unchanged());
        }
        // A write is due: list keys and atomic fields of a custom resource may be others by now.
        let fresh = self.schemas.fresh(resource).await?;
        if !Arc::ptr_eq(&schema, &fresh) {
            attempt = Attempt::new(self, resource, &key, &fresh, desired, attempt.live, keep)?;
            if attempt.is_settled() {
                return Ok(attempt.unchanged());
            }
        }
        attempt.write().await
    }

    /// Returns the origin of the fields that an apply would change and whose paths begin with `field`, or `None` if there are none.
    pub(crate) async fn changes(
        &self,
        resource: &ApiResource,
        desired: Value,
        live: Value,
        field: &str,
    ) -> Result<Option<Origin>, Error> {
        let key = identity(resource, &desired)?;
        let schema = self.schemas.get(resource).await?;
        let attempt = Attempt::new(self, resource, &key, &schema, desired, Some(live), &[])?;
        let certain = |found: &&Difference| matches!(found.kind, DifferenceKind::Value | DifferenceKind::Dropped);
        let found = attempt.open.iter().filter(certain);
        let mut found = found.filter(|found| found.path.to_string().starts_with(field));
        let Some(first) = found.next() else { return Ok(None) };
        let by_others = attempt.changed_by(first).is_some() && found.all(|found| attempt.changed_by(found).is_some());
        Ok(Some(if by_others { Origin::Others } else { Origin::Desired }))
    }

    /// Creates the object if it does not exist, and never changes it afterwards.
    ///
    /// # Errors
    /// When the API server rejects the object, or it belongs to another owner, or a request fails.
    pub async fn create_once(
        &self,
        resource: &ApiResource,
        desired: Value,
        live: Option<Value>,
    ) -> Result<Report, Error> {
        let key = identity(resource, &desired)?;
        let schema = self.schemas.get(resource).await?;
        let desired = Desired::prepare(&schema, resource, desired)?;
        let live = match live {
            Some(live) => Some(live),
            None => self.read(resource, &key).await?,
        };
        if let Some(live) = live {
            return self.created_before(resource, &key, &desired, live);
        }
        let request = Request::new(DynamicObject::url_path(resource, namespace(&key)));
        let params = PostParams {
            field_manager: Some(self.manager.clone()),
            dry_run: false,
        };
        let body = serde_json::to_vec(&desired.body).map_err(|error| Error::bug(error.to_string()))?;
        let request = request
            .create(&params, body)
            .map_err(|error| Error::bug(error.to_string()))?;
        match self.client.request::<Value>(request).await {
            Ok(object) => Ok(Report {
                object,
                change: Change::Created,
                conflict: None,
                writes: 1,
            }),
            // Another replica was faster, or the answer to an earlier attempt was lost.
            Err(kube::Error::Api(status)) if status.code == 409 => match self.read(resource, &key).await? {
                Some(live) => self.created_before(resource, &key, &desired, live),
                None => Err(Error::transient(
                    "Conflict",
                    format!("another client deleted {}", describe(resource, &key)),
                )),
            },
            Err(error) => Err(Error::request(format!("create {}", describe(resource, &key)), error)),
        }
    }

    fn created_before(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
        desired: &Desired,
        live: Value,
    ) -> Result<Report, Error> {
        if live.pointer("/metadata/deletionTimestamp").is_some() {
            return Err(being_deleted(resource, key));
        }
        let created = Owner::all(&live).iter().any(|owner| owner.manager == self.manager);
        desired
            .check_owner(&live, created)
            .map_err(|owner| taken(resource, key, &owner))?;
        Ok(Report {
            object: live,
            change: Change::Unchanged,
            conflict: None,
            writes: 0,
        })
    }

    /// The object was deleted: its memory is freed after a while. If it is created again soon, the fights
    /// over its fields are not forgotten.
    pub fn forget(&self, resource: &ApiResource, key: &ObjectKey) {
        let mut memories = self.memories();
        memories.retain(|_, memory| !memory.is_over());
        if let Some(memory) = memories.get_mut(&(kind_of(resource), key.clone())) {
            memory.gone();
        }
    }

    async fn read(&self, resource: &ApiResource, key: &ObjectKey) -> Result<Option<Value>, Error> {
        let request = Request::new(DynamicObject::url_path(resource, namespace(key)));
        let request = request
            .get(&key.name, &GetParams::default())
            .map_err(|error| Error::bug(error.to_string()))?;
        match self.client.request::<Value>(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(Error::request(format!("get {}", describe(resource, key)), error)),
        }
    }

    /// Deletes an object. Returns true if the API server deleted it, and false if it waits for a finalizer.
    pub(crate) async fn delete(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        name: &str,
        params: &DeleteParams,
    ) -> Result<bool, kube::Error> {
        let request = Request::new(DynamicObject::url_path(resource, namespace));
        let request = request.delete(name, params).map_err(kube::Error::BuildRequest)?;
        let answer: Value = self.client.request(request).await?;
        Ok(answer.get("kind").and_then(Value::as_str) == Some("Status"))
    }

    async fn patch(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
        params: &PatchParams,
        patch: &Patch<Value>,
    ) -> Result<Value, kube::Error> {
        let request = Request::new(DynamicObject::url_path(resource, namespace(key)));
        let request = request
            .patch(&key.name, params, patch)
            .map_err(kube::Error::BuildRequest)?;
        self.client.request(request).await
    }

    /// A poisoned lock is safe to use: each change is one map operation.
    fn memories(&self) -> MutexGuard<'_, HashMap<(String, ObjectKey), Memory>> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compresses a desired object of a kind.
    fn compress(&self, kind: String, desired: &Value) -> Compressed {
        let mut all = self.dictionaries.lock().unwrap_or_else(PoisonError::into_inner);
        let dictionary = Arc::clone(all.entry(kind).or_default());
        drop(all);
        dictionary.compress(&desired.to_string())
    }

    fn remember<T>(&self, resource: &ApiResource, key: &ObjectKey, change: impl FnOnce(&mut Memory) -> T) -> T {
        change(self.memories().entry((kind_of(resource), key.clone())).or_default())
    }
}

/// One apply of one object.
struct Attempt<'a> {
    applier: &'a Applier,
    resource: &'a ApiResource,
    key: &'a ObjectKey,
    schema: Arc<Schema>,
    desired: Desired,
    live: Option<Value>,
    owners: Vec<Owner>,
    /// The memory of the object.
    memory: Memory,
    /// The fields that differ and are not known to be as the API server wants them.
    open: Vec<Difference>,
    /// Fields of the last desired object that are no longer desired and have no owner.
    lost: Vec<Path>,
}

impl<'a> Attempt<'a> {
    fn new(
        applier: &'a Applier,
        resource: &'a ApiResource,
        key: &'a ObjectKey,
        schema: &Arc<Schema>,
        desired: Value,
        live: Option<Value>,
        keep: &[&str],
    ) -> Result<Self, Error> {
        let mut desired = Desired::prepare(schema, resource, desired)?;
        let memory = applier
            .memories()
            .get(&(kind_of(resource), key.clone()))
            .cloned()
            .unwrap_or_default();
        let mut attempt = Self {
            applier,
            resource,
            key,
            schema: Arc::clone(schema),
            owners: live.as_ref().map(Owner::all).unwrap_or_default(),
            desired: Desired::default(),
            live: None,
            memory,
            open: Vec::new(),
            lost: Vec::new(),
        };
        if let Some(live) = live {
            if live.pointer("/metadata/deletionTimestamp").is_some() {
                return Err(being_deleted(resource, key));
            }
            let applied = attempt.own().is_some() || attempt.memory.is_about(&live);
            desired
                .check_owner(&live, applied)
                .map_err(|owner| taken(resource, key, &owner))?;
            desired.keep(schema, &live, keep);
            attempt.compare(&desired, &live);
            attempt.live = Some(live);
        }
        attempt.desired = desired;
        Ok(attempt)
    }

    /// The fields that the field manager owns by applying.
    fn own(&self) -> Option<&Owner> {
        let manager = &self.applier.manager;
        self.owners
            .iter()
            .find(|owner| owner.applies && owner.subresource.is_empty() && owner.manager == *manager)
    }

    fn owned(&self) -> Option<Fields> {
        match self.own() {
            Some(own) => Some(own.fields.clone()),
            // Cleared: what it owned is not known.
            None if self.owners.is_empty() || self.memory.desired_hash.is_some() => None,
            None => Some(Fields::default()),
        }
    }

    fn compare(&mut self, desired: &Desired, live: &Value) {
        let same = self.memory.desired_hash == Some(desired.hash) && self.memory.is_about(live);
        let owned = self.owned();
        let found = differences(&self.schema, &desired.body, live, owned.as_ref());
        let unrecorded = |found: &Difference| {
            // Probably a default: the owners were cleared, and no client is on record for a change.
            let cleared = self.own().is_none() && owned.is_none();
            cleared && found.kind == DifferenceKind::More && !is_owned_by_others(&self.owners, None, &found.path)
        };
        let known = |found: &Difference| same && self.memory.accepts(found) || !same && unrecorded(found);
        self.open = found.into_iter().filter(|found| !known(found)).collect();
        self.open.sort_by_key(|found| match found.kind {
            DifferenceKind::Value => 0,
            DifferenceKind::Dropped => 1,
            DifferenceKind::Empty => 2,
            DifferenceKind::More => 3,
        });
        if same || !self.memory.is_about(live) {
            return;
        }
        // Fields of the last desired object that an apply would leave, because their owner was cleared.
        let Some(last) = self.memory.desired() else { return };
        let fields = prepare::fields(&self.schema, &last);
        let dropped = differences(&self.schema, &desired.body, live, Some(&fields)).into_iter();
        let lost = dropped.filter(|found| {
            let is_owned = self.own().is_some_and(|own| own.fields.contains(&found.path));
            found.kind == DifferenceKind::Dropped
                && !is_owned
                && !is_owned_by_others(&self.owners, self.own(), &found.path)
        });
        let lost: Vec<Difference> = lost.collect();
        self.lost = lost.iter().map(|found| found.path.clone()).collect();
        self.open.extend(lost);
    }

    fn is_settled(&self) -> bool {
        self.live.is_some() && self.open.is_empty()
    }

    fn unchanged(self) -> Report {
        let conflict = self.memory.overridden().map(|(field, retry_after)| Conflict {
            field,
            manager: ADMISSION.to_owned(),
            new: false,
            retry_after,
        });
        Report {
            object: self.live.unwrap_or_default(),
            change: Change::Unchanged,
            conflict,
            writes: 0,
        }
    }

    fn describe(&self) -> String {
        describe(self.resource, self.key)
    }

    async fn write(self) -> Result<Report, Error> {
        let situation = hash(&json!([
            self.desired.hash,
            self.live.is_some(),
            self.open
                .iter()
                .map(|found| json!([found.path.to_string(), found.live]))
                .collect::<Vec<_>>()
        ]));
        if let Some(error) = self.memory.rejection(situation) {
            return Err(error);
        }
        match self.live.clone() {
            None => self.create(situation).await,
            Some(live) => self.update(live, situation).await,
        }
    }

    async fn create(self, situation: u64) -> Result<Report, Error> {
        // Without force: should another client have created it just now, it is not taken over.
        let params = PatchParams::apply(&self.applier.manager);
        let object = self.send(&params, &self.desired.body, situation).await?;
        let conflict = self.learn(&object);
        Ok(Report {
            object,
            change: Change::Created,
            conflict,
            writes: 1,
        })
    }

    async fn update(self, live: Value, situation: u64) -> Result<Report, Error> {
        let first = self.open.first().cloned();
        let by_another = first.as_ref().and_then(|first| self.changed_by(first));
        let field = first.as_ref().map(|first| first.path.to_string()).unwrap_or_default();
        let wait = self.memory.contest_delay(&field);
        if let (Some(wait), Some(first)) = (wait, &first) {
            let manager = by_another.clone().unwrap_or_else(|| self.memory.contestant(&field));
            let conflict = Conflict {
                field: first.path.to_string(),
                manager,
                new: false,
                retry_after: wait,
            };
            return Ok(Report {
                object: live,
                change: Change::Unchanged,
                conflict: Some(conflict),
                writes: 0,
            });
        }
        let mut body = self.desired.body.clone();
        if !self.desired.names_version
            && let (Some(uid), Some(metadata)) = (live.pointer("/metadata/uid"), body.get_mut("metadata"))
        {
            // An object of the same name that was created since then is not this one.
            metadata["uid"] = uid.clone();
        }
        let params = PatchParams::apply(&self.applier.manager).force();
        let mut writes = 1;
        let mut object = if self.has_stale_owner(&live) {
            self.repair(&[], &[]).await?
        } else {
            match self.send_or_collide(&params, &body, situation).await? {
                Sent::Answer(object) => object,
                Sent::Collision(names) => self.repair(&names, &[]).await?,
            }
        };
        let left = self.left_over(&object);
        if !left.is_empty() {
            object = self.repair(&[], &left).await?;
            writes += 1;
        }
        let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
        if version(&object) == version(&live) {
            writes -= 1;
        }
        let overridden = self.learn(&object);
        let fields = self.open.iter();
        let fields = fields.map(|found| self.describe_change(found, self.changed_by(found)));
        let change = match &by_another {
            _ if writes == 0 => Change::Unchanged,
            Some(_) => Change::Reverted(fields.collect()),
            None => Change::Updated(fields.collect()),
        };
        let conflict = match (overridden, by_another) {
            (Some(overridden), _) => Some(overridden),
            (None, Some(manager)) if writes > 0 => {
                let reported = self
                    .applier
                    .remember(self.resource, self.key, |memory| memory.reverted(&field, &manager));
                reported.map(|retry_after| Conflict {
                    field,
                    manager,
                    new: true,
                    retry_after,
                })
            }
            _ => None,
        };
        Ok(Report {
            object,
            change,
            conflict,
            writes,
        })
    }

    /// The client that changed a field after this one applied it, or `None` if what is desired has changed.
    fn changed_by(&self, found: &Difference) -> Option<String> {
        let live = self.live.as_ref()?;
        if found.kind == DifferenceKind::Dropped {
            return None;
        }
        let own = self.own();
        let is_own = |owner: &&Owner| own == Some(*owner);
        let others = self
            .owners
            .iter()
            .filter(|owner| !is_own(owner) && owner.fields.contains(&found.path));
        let last = others.max_by_key(|owner| owner.time.clone());
        let owns = own.is_some_and(|own| own.fields.contains(&found.path));
        if self.memory.desired_hash == Some(self.desired.hash) && self.memory.is_about(live) {
            let unnamed = || {
                // A removed field has no owner. The client that wrote last is the best guess.
                let since = own.map(|own| own.time.as_str()).unwrap_or_default();
                let writers = self
                    .owners
                    .iter()
                    .filter(|owner| !is_own(owner) && owner.time.as_str() >= since);
                writers
                    .filter(|owner| owner.subresource != "status")
                    .max_by_key(|owner| owner.time.clone())
            };
            return Some(match last.or_else(unnamed) {
                Some(owner) => owner.name(),
                None if owns => format!("{} (another process)", self.applier.manager),
                None => "an unknown client".to_owned(),
            });
        }
        // After a restart only the owners tell.
        let own = own.filter(|_| !owns)?;
        last.filter(|owner| owner.time >= own.time).map(Owner::name)
    }

    fn describe_change(&self, found: &Difference, manager: Option<String>) -> FieldChange {
        let is_secret = self.resource.group.is_empty() && self.resource.kind == "Secret";
        let text = |value: &Option<Value>| match value {
            _ if is_secret => String::new(),
            None => String::new(),
            Some(Value::String(text)) => shorten(text.clone()),
            Some(value) => shorten(value.to_string()),
        };
        FieldChange {
            field: found.path.to_string(),
            old: text(&found.live),
            new: text(&found.desired),
            manager,
        }
    }

    /// Remembers what the API server made of the desired object. Returns a conflict if it has another value somewhere.
    fn learn(&self, answer: &Value) -> Option<Conflict> {
        let manager = &self.applier.manager;
        let owners = Owner::all(answer);
        let own = owners
            .iter()
            .find(|owner| owner.applies && owner.subresource.is_empty() && owner.manager == *manager);
        let found = differences(&self.schema, &self.desired.body, answer, own.map(|own| &own.fields));
        let overridden = found.iter().find(|found| found.kind == DifferenceKind::Value);
        let field = overridden.map(|found| found.path.to_string());
        let compressed = self.applier.compress(kind_of(self.resource), &self.desired.body);
        let wait = self.applier.remember(self.resource, self.key, |memory| {
            memory.applied(&self.desired, compressed, answer, &found, field.as_deref())
        });
        let (field, retry_after) = (field?, wait?);
        Some(Conflict {
            field,
            manager: ADMISSION.to_owned(),
            new: !self.memory.was_overridden(),
            retry_after,
        })
    }

    /// The fields that are no longer desired and that the apply has left, although no other client wants them.
    fn left_over(&self, answer: &Value) -> Vec<Path> {
        let owners = Owner::all(answer);
        let dropped = self.open.iter().filter(|found| found.kind == DifferenceKind::Dropped);
        let all = dropped.map(|found| &found.path).chain(&self.lost);
        let left = all.filter(|path| path.is_in(&self.schema, answer) && !is_owned_by_others(&owners, None, path));
        left.cloned().collect()
    }

    /// Owners of the same name that are gone, and that an apply would not remove.
    fn has_stale_owner(&self, live: &Value) -> bool {
        let stale = self.desired.stale_owners(live);
        let own = self.own();
        stale.into_iter().any(|uid| {
            let key = json!({ "uid": uid });
            let path = prepare::owner_path(key.as_object());
            own.is_none_or(|own| !own.fields.contains(&path))
        })
    }

    async fn send(&self, params: &PatchParams, body: &Value, situation: u64) -> Result<Value, Error> {
        match self.send_or_collide(params, body, situation).await? {
            Sent::Answer(object) => Ok(object),
            Sent::Collision(names) => {
                let names = names.join(", ");
                Err(Error::rejected(
                    "Invalid",
                    format!("{}: {names} of an entry is used twice", self.describe()),
                ))
            }
        }
    }

    async fn send_or_collide(&self, params: &PatchParams, body: &Value, situation: u64) -> Result<Sent, Error> {
        let error = match self
            .applier
            .patch(self.resource, self.key, params, &Patch::Apply(body.clone()))
            .await
        {
            Ok(object) => return Ok(Sent::Answer(object)),
            Err(error) => error,
        };
        if let (Some(_), Some(names)) = (&self.live, collisions(&error)) {
            return Ok(Sent::Collision(names));
        }
        let conflict = matches!(&error, kube::Error::Api(status) if status.code == 409);
        let mut error = Error::request(format!("apply {}", self.describe()), error);
        if conflict && self.desired.names_version {
            error = error.into_rejected();
        }
        if error.kind() == ErrorKind::Rejected {
            self.applier.remember(self.resource, self.key, |memory| {
                memory.reject(situation, error.clone())
            });
        }
        Err(error)
    }

    /// Sets the desired fields by a patch that also removes what collides with them: owners that are gone, and entries of
    /// lists whose fields `names` have the value of a desired entry, and the fields `left`. An apply cannot remove what it
    /// does not own.
    async fn repair(&self, names: &[String], left: &[Path]) -> Result<Value, Error> {
        let gone = || Error::transient("Conflict", format!("another client deleted {}", self.describe()));
        let mut live = self.applier.read(self.resource, self.key).await?.ok_or_else(gone)?;
        if let Some(metadata) = live.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let mut target = self.desired.repaired(&self.schema, &live, names);
        left.iter().for_each(|path| path.remove(&self.schema, &mut target));
        let patch = json_patch::diff(&live, &target);
        let mut operations = vec![json!({
            "op": "test", "path": "/metadata/resourceVersion", "value": live.pointer("/metadata/resourceVersion"),
        })];
        operations.extend(
            patch
                .0
                .iter()
                .filter_map(|operation| serde_json::to_value(operation).ok()),
        );
        let patch = serde_json::from_value(Value::Array(operations)).map_err(|error| Error::bug(error.to_string()))?;
        let params = PatchParams {
            field_manager: Some(self.applier.manager.clone()),
            ..PatchParams::default()
        };
        let answer = self
            .applier
            .patch(self.resource, self.key, &params, &Patch::Json(patch))
            .await;
        answer.map_err(|error| Error::request(format!("update {}", self.describe()), error))
    }
}

/// Returns true if a client other than `own` owns the field at `path`.
fn is_owned_by_others(owners: &[Owner], own: Option<&Owner>, path: &Path) -> bool {
    /// The API server's name for the unknown owners of fields at the first apply.
    const UNKNOWN: &str = "before-first-apply";
    let others = owners
        .iter()
        .filter(|owner| Some(*owner) != own && owner.manager != UNKNOWN);
    others.into_iter().any(|owner| owner.fields.contains(path))
}

enum Sent {
    Answer(Value),
    /// Entries of lists have the same value in these fields.
    Collision(Vec<String>),
}

/// The fields of list entries whose values the API server rejects because another entry has them.
fn collisions(error: &kube::Error) -> Option<Vec<String>> {
    let kube::Error::Api(status) = error else { return None };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let doubled = causes.filter(|cause| cause.reason == "FieldValueDuplicate");
    let names: Vec<String> = doubled
        .map(|cause| cause.field.rsplit('.').next().unwrap_or_default().to_owned())
        .filter(|name| !name.is_empty() && !name.contains('['))
        .collect();
    (status.code == 422 && !names.is_empty()).then_some(names)
}

fn being_deleted(resource: &ApiResource, key: &ObjectKey) -> Error {
    let message = format!("{} is being deleted and waits for a finalizer", describe(resource, key));
    Error::waiting("DeletionPending", message)
}

fn taken(resource: &ApiResource, key: &ObjectKey, owner: &str) -> Error {
    Error::taken(format!("{} {owner}; delete or rename it", describe(resource, key)))
}

fn identity(resource: &ApiResource, desired: &Value) -> Result<ObjectKey, Error> {
    let text = |name: &str| {
        desired
            .pointer(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let key = ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"));
    if key.name.is_empty() {
        // A generated name would make one more object whenever the cache is behind.
        let message = format!(
            "a {} without a name cannot be applied; set metadata.name",
            resource.kind
        );
        return Err(Error::rejected("NameMissing", message));
    }
    Ok(key)
}

fn describe(resource: &ApiResource, key: &ObjectKey) -> String {
    format!("{} {key}", resource.kind)
}

fn kind_of(resource: &ApiResource) -> String {
    format!("{}/{}", resource.group, resource.kind)
}

fn namespace(key: &ObjectKey) -> Option<&str> {
    Some(key.namespace.as_str()).filter(|namespace| !namespace.is_empty())
}

/// Values in events and conditions are short.
fn shorten(mut text: String) -> String {
    const MAX: usize = 120;
    if text.len() > MAX {
        let end = (0..=MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

impl std::fmt::Display for FieldChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            field,
            old,
            new,
            manager,
        } = self;
        write!(f, "{field}")?;
        match (old.as_str(), new.as_str()) {
            ("", "") => {}
            ("", new) => write!(f, " set to {new}")?,
            (old, "") => write!(f, " removed, was {old}")?,
            (old, new) => write!(f, " set to {new}, was {old}")?,
        }
        match manager {
            Some(manager) => write!(f, "; changed by {manager}"),
            None => Ok(()),
        }
    }
}

/// Sets a value below a path of an object, and creates the objects on the way. Does nothing if a value on the way is not an object.
pub(crate) fn set(value: &mut serde_json::Value, path: &[&str], to: impl Into<serde_json::Value>) {
    let mut place = value;
    for part in path {
        if place.is_null() {
            *place = serde_json::Value::Object(serde_json::Map::new());
        }
        let Some(fields) = place.as_object_mut() else { return };
        place = fields.entry((*part).to_owned()).or_insert(serde_json::Value::Null);
    }
    *place = to.into();
}
