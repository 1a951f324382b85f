//! One object at the API server.
use std::fmt::Debug;

use kube::{
    Resource as _,
    api::{ApiResource, DeleteParams, DynamicObject, GetParams, Patch, PatchParams, PostParams, Request},
};
use serde::Serialize;
use serde_json::Value;

use super::{Applier, error::Error, kind_of, memory::Memory, prepare::Desired};
use crate::ObjectKey;

/// An object that an [`Applier`] reads and writes. It may not exist.
#[derive(Clone)]
pub(crate) struct Target<'a> {
    pub(super) applier: &'a Applier,
    pub(super) resource: &'a ApiResource,
    pub(super) key: ObjectKey,
}

impl<'a> Target<'a> {
    /// The object of the desired object's name.
    pub(super) fn of(applier: &'a Applier, resource: &'a ApiResource, desired: &Value) -> Result<Self, Error> {
        let text = |name: &str| {
            let text = desired.pointer(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let key = ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"));
        if key.name.is_empty() {
            // A generated name would make one more object whenever the cache is behind.
            let kind = &resource.kind;
            let message = format!("a {kind} without a name cannot be applied; set metadata.name");
            return Err(Error::rejected("NameMissing", message));
        }
        Ok(applier.target(resource, key))
    }

    /// The object as the API server has it now.
    pub(crate) async fn read(&self) -> Result<Option<Value>, Error> {
        let request = self.request().get(&self.key.name, &GetParams::default());
        let request = request.map_err(|error| Error::bug(error.to_string()))?;
        match self.applier.client.request::<Value>(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(Error::request(format!("get {}", self.describe()), error)),
        }
    }

    /// Creates the object. `None` if it exists.
    pub(super) async fn create(&self, desired: &Value) -> Result<Option<Value>, Error> {
        let params = PostParams {
            field_manager: Some(self.applier.manager.clone()),
            dry_run: false,
        };
        let body = serde_json::to_vec(desired).map_err(|error| Error::bug(error.to_string()))?;
        let request = self.request().create(&params, body);
        let request = request.map_err(|error| Error::bug(error.to_string()))?;
        match self.applier.client.request::<Value>(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
            Err(error) => Err(Error::request(format!("create {}", self.describe()), error)),
        }
    }

    /// The parameters of an apply without force. The API server rejects unknown fields in every apply. Without validation it does not
    /// parse the body a second time to find duplicate fields, which takes a seventh of an apply's processor time.
    pub(super) fn apply_params(&self) -> PatchParams {
        PatchParams::apply(&self.applier.manager).validation_ignore()
    }

    pub(super) async fn patch<P>(&self, params: &PatchParams, patch: &Patch<P>) -> Result<Value, kube::Error>
    where
        P: Serialize + Debug,
    {
        let request = self.request().patch(&self.key.name, params, patch);
        let request = request.map_err(kube::Error::BuildRequest)?;
        self.applier.client.request(request).await
    }

    /// Deletes the object. Returns true if the API server deleted it, and false if it waits for a finalizer.
    pub(crate) async fn delete(&self, params: &DeleteParams) -> Result<bool, kube::Error> {
        let request = self.request().delete(&self.key.name, params);
        let request = request.map_err(kube::Error::BuildRequest)?;
        let answer: Value = self.applier.client.request(request).await?;
        Ok(answer.get("kind").and_then(Value::as_str) == Some("Status"))
    }

    pub(super) fn request(&self) -> Request {
        Request::new(DynamicObject::url_path(self.resource, self.key.in_namespace()))
    }

    /// The applier's memory of the object.
    pub(super) fn memory(&self) -> Memory {
        self.applier.memories.get(&kind_of(self.resource), &self.key)
    }

    pub(super) fn remember<T>(&self, change: impl FnOnce(&mut Memory) -> T) -> T {
        self.applier.memories.change(&kind_of(self.resource), &self.key, change)
    }

    /// The object was deleted.
    pub(crate) fn forget(&self) {
        self.applier.memories.gone(&kind_of(self.resource), &self.key);
    }

    /// The object in messages.
    pub(super) fn describe(&self) -> String {
        format!("{} {}", self.resource.kind, self.key)
    }

    /// # Errors
    /// If the `live` object is being deleted or belongs to another owner. For `applied`, see [`Desired::check_owner`].
    pub(super) fn check(&self, desired: &Desired, live: &Value, applied: bool) -> Result<(), Error> {
        if live.pointer("/metadata/deletionTimestamp").is_some() {
            let message = format!("{} is being deleted and waits for a finalizer", self.describe());
            return Err(Error::waiting("DeletionPending", message));
        }
        let taken = |owner| Error::taken(format!("{} {owner}; delete or rename it", self.describe()));
        desired.check_owner(live, applied).map_err(taken)
    }

    /// Another client deleted the object since it was seen.
    pub(super) fn was_deleted(&self) -> Error {
        Error::transient("Conflict", format!("another client deleted {}", self.describe()))
    }
}
