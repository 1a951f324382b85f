//! Applies objects where they differ from what is desired.
//!
//! [`Applier::apply`] compares the desired object with the live one, and sends a server-side apply if a field differs. It
//! sends no request for an object that is as desired. The comparison is the API server's own: list keys, atomic fields,
//! defaults and quantities come from its OpenAPI documents, owners of fields from `metadata.managedFields`. Where the API
//! server stores another value than was sent, the applier remembers its answer and does not send it again. A new process
//! remembers nothing: it sends a dry run before its first apply of an object that it has not seen as desired.
//!
//! Controllers use it through [`Context::apply`](crate::reconcile::Context::apply).
mod attempt;
mod compare;
mod document;
mod error;
mod fields;
mod memory;
mod prepare;
mod report;
mod schema;
mod status;
mod write;

use std::{fmt::Debug, sync::Arc};

use kube::{
    Client, Resource,
    api::{ApiResource, DeleteParams, DynamicObject, GetParams, Patch, PatchParams, PostParams, Request},
};
use serde::Serialize;
use serde_json::Value;

use attempt::Attempt;
use compare::DifferenceKind;
pub(crate) use error::is_missing;
pub use error::{Error, ErrorKind};
use fields::Owner;
use memory::{Memories, Memory};
use prepare::Desired;
pub(crate) use prepare::{controller, hash};
pub use report::{ADMISSION, Change, Conflict, FieldChange, Report};
use schema::Schemas;
pub(crate) use status::{StatusChange, StatusFields};
use write::{DryRun, Open};
pub(crate) use write::{Text, Write};

use crate::ObjectKey;

/// Applies objects under one field manager. See the [module](self).
pub struct Applier {
    client: Client,
    manager: String,
    schemas: Schemas,
    memories: Memories,
}

/// A live object, as it was seen last.
pub(crate) struct Seen {
    pub(crate) object: Value,
    /// This process has compared this state of the object, and it was as desired then. All that differs now is a new wish.
    pub(crate) was_settled: bool,
}

impl Seen {
    fn new(object: Value) -> Self {
        Self {
            object,
            was_settled: false,
        }
    }
}

/// The result of a comparison without an apply.
pub(crate) enum Compared<'a> {
    /// The object is as desired.
    Settled(Report),
    /// No field that matters to the caller differs, but others do.
    Elsewhere(Box<Write<'a>>),
    /// Fields that matter to the caller differ, but an apply is not known to change them.
    Same,
    /// An apply would change fields that matter to the caller.
    Differs(Origin),
}

/// The origin of a difference between the desired and the live object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The desired object has changed.
    Desired,
    /// Other clients have changed the live object.
    Others,
}

impl Applier {
    /// Applies under the field manager `manager`.
    pub fn new(client: Client, manager: impl Into<String>) -> Self {
        Self {
            schemas: Schemas::new(client.clone()),
            client,
            manager: manager.into(),
            memories: Memories::default(),
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
        self.apply_to(resource, desired, live.map(Seen::new), keep).await
    }

    /// As [`apply_keeping`](Self::apply_keeping), for an object that the caller may have compared.
    pub(crate) async fn apply_to(
        &self,
        resource: &ApiResource,
        desired: Value,
        live: Option<Seen>,
        keep: &[&str],
    ) -> Result<Report, Error> {
        let key = identity(resource, &desired)?;
        let live = match live {
            Some(live) => Some(live),
            None => self.read(resource, &key).await?.map(Seen::new),
        };
        let attempt = self.attempt(resource, &key, desired, live, keep).await?;
        match attempt.is_settled() {
            true => Ok(attempt.unchanged()),
            false => attempt.ready().run().await,
        }
    }

    /// Loads the structures of kinds that are not known.
    pub(crate) async fn load(&self, resources: &[&ApiResource]) -> Result<(), Error> {
        self.schemas.load_all(resources).await
    }

    /// Returns true if the object of a report is as desired. It then needs no comparison until it or the wish changes.
    pub(crate) fn has_settled(&self, resource: &ApiResource, key: &ObjectKey, report: &Report) -> bool {
        report.conflict.is_none() && self.memories.is_calm(&kind_of(resource), key)
    }

    /// Compares the objects.
    async fn attempt<'a>(
        &'a self,
        resource: &'a ApiResource,
        key: &ObjectKey,
        desired: Value,
        live: Option<Seen>,
        keep: &[&str],
    ) -> Result<Attempt<'a>, Error> {
        let schema = self.schemas.get(resource).await?;
        let again = (!self.schemas.is_fresh(resource)).then(|| desired.clone());
        let attempt = Attempt::new(self, resource, key, &schema, desired, live, keep)?;
        if attempt.is_settled() {
            return Ok(attempt);
        }
        // A write is due: list keys and atomic fields of a custom resource may be others by now.
        let fresh = self.schemas.fresh(resource).await?;
        match again.filter(|_| !Arc::ptr_eq(&schema, &fresh)) {
            Some(desired) => Attempt::new(self, resource, key, &fresh, desired, attempt.live, keep),
            None => Ok(attempt),
        }
    }

    /// Compares the objects. The fields that matter to the caller are those whose paths begin with `field`.
    pub(crate) async fn compare<'a>(
        &'a self,
        resource: &'a ApiResource,
        desired: Value,
        live: Seen,
        field: &str,
    ) -> Result<Compared<'a>, Error> {
        let key = identity(resource, &desired)?;
        let attempt = self.attempt(resource, &key, desired, Some(live), &[]).await?;
        if attempt.is_settled() {
            return Ok(Compared::Settled(attempt.unchanged()));
        }
        let mut write = attempt.ready();
        let certain = |open: &Open| matches!(open.found.kind, DifferenceKind::Value | DifferenceKind::Dropped);
        let matters = |open: &&Open| open.found.path.to_string().starts_with(field);
        if !write.open.iter().any(|open| matters(&open)) {
            return Ok(Compared::Elsewhere(Box::new(write)));
        }
        if write.open.iter().any(|open| matters(&open) && certain(open)) {
            write.open.retain(certain);
        } else {
            match write.dry_run().await? {
                DryRun::Same => return Ok(Compared::Settled(write.accept())),
                DryRun::Different => {}
                DryRun::Unknown => write.open.retain(certain),
            }
        }
        let mut found = write.open.iter().filter(matters).peekable();
        if found.peek().is_none() {
            return Ok(Compared::Same);
        }
        let by_others = found.all(|open| open.by.is_some());
        Ok(Compared::Differs(match by_others {
            true => Origin::Others,
            false => Origin::Desired,
        }))
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
        Ok(Report::settled(live))
    }

    /// The object was deleted.
    pub fn forget(&self, resource: &ApiResource, key: &ObjectKey) {
        self.memories.gone(&kind_of(resource), key);
    }

    /// The object as the API server has it now.
    pub(crate) async fn read(&self, resource: &ApiResource, key: &ObjectKey) -> Result<Option<Value>, Error> {
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

    async fn patch<P: Serialize + Debug>(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<Value, kube::Error> {
        let request = Request::new(DynamicObject::url_path(resource, namespace(key)));
        let request = request
            .patch(&key.name, params, patch)
            .map_err(kube::Error::BuildRequest)?;
        self.client.request(request).await
    }

    fn remember<T>(&self, resource: &ApiResource, key: &ObjectKey, change: impl FnOnce(&mut Memory) -> T) -> T {
        self.memories.change(&kind_of(resource), key, change)
    }
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
    Some(&*key.namespace).filter(|namespace| !namespace.is_empty())
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
