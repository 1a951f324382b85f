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
mod target;
mod write;

use std::sync::Arc;

use kube::{Client, api::ApiResource};
use serde_json::Value;

use attempt::Attempt;
use compare::DifferenceKind;
pub(crate) use error::is_missing;
pub use error::{Error, ErrorKind};
use fields::Owner;
use memory::Memories;
use prepare::Desired;
pub(crate) use prepare::{controller, hash};
pub use report::{ADMISSION, Change, Conflict, FieldChange, Report};
use schema::Schemas;
pub(crate) use status::{StatusChange, StatusFields};
use target::Target;
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
        let target = Target::of(self, resource, &desired)?;
        let live = match live {
            Some(live) => Some(live),
            None => target.read().await?.map(Seen::new),
        };
        let attempt = attempt(target, desired, live, keep).await?;
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

    /// Compares the objects. The fields that matter to the caller are those whose paths begin with `field`.
    pub(crate) async fn compare<'a>(
        &'a self,
        resource: &'a ApiResource,
        desired: Value,
        live: Seen,
        field: &str,
    ) -> Result<Compared<'a>, Error> {
        let attempt = attempt(Target::of(self, resource, &desired)?, desired, Some(live), &[]).await?;
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
        let target = Target::of(self, resource, &desired)?;
        let schema = self.schemas.get(resource).await?;
        let desired = Desired::prepare(&schema, resource, desired)?;
        let live = match live {
            Some(live) => Some(live),
            None => target.read().await?,
        };
        if let Some(live) = live {
            return created_before(&target, &desired, live);
        }
        match target.create(&desired.body).await? {
            Some(object) => Ok(Report {
                object,
                change: Change::Created,
                conflict: None,
                writes: 1,
            }),
            // Another replica was faster, or the answer to an earlier attempt was lost.
            None => {
                let live = target.read().await?.ok_or_else(|| target.was_deleted())?;
                created_before(&target, &desired, live)
            }
        }
    }

    /// The object was deleted.
    pub fn forget(&self, resource: &ApiResource, key: &ObjectKey) {
        self.target(resource, key.clone()).forget();
    }

    /// The object `key`.
    pub(crate) fn target<'a>(&'a self, resource: &'a ApiResource, key: ObjectKey) -> Target<'a> {
        Target {
            applier: self,
            resource,
            key,
        }
    }
}

/// Compares the objects.
async fn attempt<'a>(
    target: Target<'a>,
    desired: Value,
    live: Option<Seen>,
    keep: &[&str],
) -> Result<Attempt<'a>, Error> {
    let (schemas, resource) = (&target.applier.schemas, target.resource);
    let schema = schemas.get(resource).await?;
    let again = (!schemas.is_fresh(resource)).then(|| (target.clone(), desired.clone()));
    let attempt = Attempt::new(target, &schema, desired, live, keep)?;
    if attempt.is_settled() {
        return Ok(attempt);
    }
    // A write is due: list keys and atomic fields of a custom resource may be others by now.
    let fresh = schemas.fresh(resource).await?;
    match again.filter(|_| !Arc::ptr_eq(&schema, &fresh)) {
        Some((target, desired)) => Attempt::new(target, &fresh, desired, attempt.live, keep),
        None => Ok(attempt),
    }
}

fn created_before(target: &Target<'_>, desired: &Desired, live: Value) -> Result<Report, Error> {
    let created = Owner::all(&live)
        .iter()
        .any(|owner| owner.manager == target.applier.manager);
    target.check(desired, &live, created)?;
    Ok(Report::settled(live))
}

fn kind_of(resource: &ApiResource) -> String {
    format!("{}/{}", resource.group, resource.kind)
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
