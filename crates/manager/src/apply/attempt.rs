//! One apply of one object: the comparison and the requests.
use std::{
    cell::LazyCell,
    sync::{Arc, OnceLock},
};

use kube::api::{ApiResource, Patch, PatchParams};
use serde_json::{Value, json};

use super::{
    Applier, being_deleted,
    compare::{Difference, DifferenceKind, differences},
    describe,
    error::{Error, ErrorKind},
    fields::{Fields, Owner, Path},
    kind_of,
    memory::Memory,
    prepare::{self, Desired, hash},
    report::{ADMISSION, Change, Conflict, FieldChange, Report},
    schema::Schema,
    taken,
};
use crate::ObjectKey;

/// One apply of one object.
pub(crate) struct Attempt<'a> {
    applier: &'a Applier,
    resource: &'a ApiResource,
    key: ObjectKey,
    schema: Arc<Schema>,
    desired: Desired,
    pub(super) live: Option<Arc<Value>>,
    /// The fields that the field manager owns by applying.
    own: Option<Owner>,
    /// All owners of fields, once they are asked for.
    owners: OnceLock<Vec<Owner>>,
    /// The memory of the object.
    memory: Memory,
    /// The fields that differ and are not known to be as the API server wants them.
    pub(super) open: Vec<Difference>,
    /// Fields of the last desired object that are no longer desired and have no owner.
    lost: Vec<Path>,
    /// A hash of the desired object and of all that differs: a rejected apply is not repeated in the same situation.
    situation: u64,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
        applier: &'a Applier,
        resource: &'a ApiResource,
        key: &ObjectKey,
        schema: &Arc<Schema>,
        desired: Value,
        live: Option<Value>,
        keep: &[&str],
    ) -> Result<Self, Error> {
        let mut desired = Desired::prepare(schema, resource, desired)?;
        let memory = applier.memories.get(&kind_of(resource), key);
        let mut attempt = Self {
            applier,
            resource,
            key: key.clone(),
            schema: Arc::clone(schema),
            own: live.as_ref().and_then(|live| Owner::applied(live, &applier.manager)),
            owners: OnceLock::new(),
            desired: Desired::default(),
            live: None,
            memory,
            open: Vec::new(),
            lost: Vec::new(),
            situation: 0,
        };
        if let Some(live) = live {
            if live.pointer("/metadata/deletionTimestamp").is_some() {
                return Err(being_deleted(resource, key));
            }
            let applied = attempt.own.is_some() || attempt.memory.is_about(&live);
            desired
                .check_owner(&live, applied)
                .map_err(|owner| taken(resource, key, &owner))?;
            desired.keep(schema, &live, keep);
            attempt.compare(&desired, &live);
            attempt.live = Some(Arc::new(live));
        }
        attempt.desired = desired;
        let open = attempt.open.iter();
        let open: Vec<Value> = open.map(|found| json!([found.path.to_string(), found.live])).collect();
        attempt.situation = hash(&json!([attempt.desired.hash, attempt.live.is_some(), open]));
        Ok(attempt)
    }

    fn owners(&self, live: &Value) -> &[Owner] {
        self.owners.get_or_init(|| Owner::all(live))
    }

    fn owned(&self, live: &Value) -> Option<&Fields> {
        static NONE: Fields = Fields::none();
        match &self.own {
            Some(own) => Some(&own.fields),
            // Cleared: what it owned is not known.
            None if Owner::are_unknown(live) || self.memory.desired_hash.is_some() => None,
            None => Some(&NONE),
        }
    }

    fn compare(&mut self, desired: &Desired, live: &Value) {
        let is_about = self.memory.is_about(live);
        let same = self.memory.desired_hash == Some(desired.hash) && is_about;
        let last = LazyCell::new(|| (is_about && !same).then(|| self.memory.desired()).flatten());
        let found = differences(&self.schema, &desired.body, live, self.owned(live));
        let is_still_desired = |found: &Difference| {
            let value = |object| found.path.value_in(&self.schema, object);
            same || last.as_ref().is_some_and(|last| value(last) == value(&desired.body))
        };
        let known = |found: &Difference| is_about && self.memory.accepts(found) && is_still_desired(found);
        self.open = found.into_iter().filter(|found| !known(found)).collect();
        self.open.sort_by_key(|found| match found.kind {
            DifferenceKind::Value => 0,
            DifferenceKind::Dropped => 1,
            DifferenceKind::Empty => 2,
            DifferenceKind::More => 3,
        });
        // Fields of the last desired object that an apply would leave, because their owner was cleared.
        if self.owns_as_left() {
            return;
        }
        let Some(last) = LazyCell::force(&last) else { return };
        let fields = prepare::fields(&self.schema, last);
        let dropped = differences(&self.schema, &desired.body, live, Some(&fields)).into_iter();
        let lost = dropped.filter(|found| {
            let own = self.own.as_ref();
            found.kind == DifferenceKind::Dropped
                && !own.is_some_and(|own| own.fields.contains(&found.path))
                && !is_owned_by_others(self.owners(live), own, &self.applier.manager, &found.path)
        });
        let lost: Vec<Difference> = lost.collect();
        self.lost = lost.iter().map(|found| found.path.clone()).collect();
        self.open.extend(lost);
    }

    /// Returns true if this field manager owns what it owned after its last apply.
    fn owns_as_left(&self) -> bool {
        self.memory.left.is_some() && self.memory.left == self.own.as_ref().map(Owner::digest)
    }

    pub(super) fn is_settled(&self) -> bool {
        self.live.is_some() && self.open.is_empty()
    }

    /// An apply would change nothing, although the objects differ.
    pub(super) fn accept(self) -> Report {
        let overridden = self.live.as_ref().and_then(|live| self.learn(live, false));
        let report = self.unchanged();
        Report {
            conflict: overridden.or(report.conflict),
            ..report
        }
    }

    pub(super) fn unchanged(self) -> Report {
        let conflict = self.memory.overridden().map(|(field, retry_after)| Conflict {
            field,
            manager: ADMISSION.to_owned(),
            new: false,
            retry_after,
        });
        Report {
            object: self.live.map(Arc::unwrap_or_clone).unwrap_or_default(),
            change: Change::Unchanged,
            conflict,
            writes: 0,
        }
    }

    fn describe(&self) -> String {
        describe(self.resource, &self.key)
    }

    pub(crate) async fn write(self) -> Result<Report, Error> {
        if let Some(error) = self.memory.rejection(self.situation) {
            return Err(error);
        }
        match self.live.clone() {
            None => self.create().await,
            Some(live) => self.update(&live).await,
        }
    }

    async fn create(self) -> Result<Report, Error> {
        // Without force: should another client have created it just now, it is not taken over.
        let params = PatchParams::apply(&self.applier.manager);
        let object = self.send(&params, &self.desired.body).await?;
        let conflict = self.learn(&object, true);
        Ok(Report {
            object,
            change: Change::Created,
            conflict,
            writes: 1,
        })
    }

    /// Before the first apply of this process: sends a dry run, and keeps only the differences that it would change. The others are
    /// defaults that the schema does not contain. Some applies make a new revision although they change nothing.
    ///
    /// # Errors
    /// When the API server rejects the object.
    pub(super) async fn dry_run(&mut self) -> Result<DryRun, Error> {
        let Some(live) = &self.live else {
            return Ok(DryRun::Unknown);
        };
        if self.memory.is_about(live) {
            // Its answers are remembered, so all that is left is different.
            return Ok(DryRun::Different);
        }
        if self.has_stale_owner(live) {
            return Ok(DryRun::Unknown);
        }
        let params = PatchParams::apply(&self.applier.manager).force().dry_run();
        let patch = Patch::Apply(&self.desired.body);
        let answer = match self.applier.patch(self.resource, &self.key, &params, &patch).await {
            Ok(answer) => answer,
            Err(error) if is_invalid(&error) && collisions(&error).is_none() && self.in_the_way().is_empty() => {
                return Err(self.failed(error));
            }
            // The apply that follows reports other errors. Some webhooks reject every dry run.
            Err(_) => return Ok(DryRun::Unknown),
        };
        let schema = Arc::clone(&self.schema);
        let is_changed =
            |found: &Difference| found.path.value_in(&schema, live) != found.path.value_in(&schema, &answer);
        if self.open.iter().any(is_changed) {
            self.open.retain(is_changed);
            return Ok(DryRun::Different);
        }
        // If another client was faster, its change is in the answer too.
        let is_same = version(live) != version(&answer) || prepare::is_same_content(&schema, live, &answer);
        Ok(match is_same && self.left_over(&answer).is_empty() {
            true => DryRun::Same,
            false => DryRun::Different,
        })
    }

    async fn update(mut self, live: &Value) -> Result<Report, Error> {
        if self.dry_run().await? == DryRun::Same {
            return Ok(self.accept());
        }
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
                object: live.clone(),
                change: Change::Unchanged,
                conflict: Some(conflict),
                writes: 0,
            });
        }
        let metadata = self.desired.body.get_mut("metadata");
        if !self.desired.names_version
            && let (Some(uid), Some(metadata)) = (live.pointer("/metadata/uid"), metadata)
        {
            // An object of the same name that was created since then is not this one.
            metadata["uid"] = uid.clone();
        }
        let params = PatchParams::apply(&self.applier.manager).force();
        let (mut writes, mut applied) = (1, true);
        let mut object = if self.has_stale_owner(live) {
            applied = false;
            self.repair(&[], &[]).await?
        } else {
            match self.send_or_collide(&params, &self.desired.body).await {
                Ok(Sent::Answer(object)) => object,
                Ok(Sent::Collision(names)) => {
                    applied = false;
                    self.repair(&names, &self.lost).await?
                }
                Err(error) if error.kind() == ErrorKind::Rejected => {
                    let left = self.in_the_way();
                    if left.is_empty() {
                        return Err(error);
                    }
                    self.repair(&[], &left).await.map_err(|_| error)?;
                    writes += 1;
                    self.send(&params, &self.desired.body).await?
                }
                Err(error) => return Err(error),
            }
        };
        let left = self.left_over(&object);
        if !left.is_empty() {
            object = self.repair(&[], &left).await?;
            writes += 1;
        }
        if version(&object) == version(live) {
            writes -= 1;
        }
        let overridden = self.learn(&object, applied);
        let fields = self.open.iter();
        let fields = fields.map(|found| self.describe_change(found, self.changed_by(found)));
        let change = match &by_another {
            // Perhaps only the owners of fields have changed.
            _ if prepare::is_same_content(&self.schema, live, &object) => Change::Unchanged,
            Some(_) => Change::Reverted(fields.collect()),
            None => Change::Updated(fields.collect()),
        };
        let conflict = match (overridden, by_another) {
            (Some(overridden), _) => Some(overridden),
            (None, Some(manager)) if writes > 0 => {
                let reported = self
                    .applier
                    .remember(self.resource, &self.key, |memory| memory.reverted(&field, &manager));
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
    pub(super) fn changed_by(&self, found: &Difference) -> Option<String> {
        let live = self.live.as_ref()?;
        if found.kind == DifferenceKind::Dropped {
            return None;
        }
        let own = self.own.as_ref();
        let is_own = |owner: &&Owner| own == Some(*owner);
        let last = || {
            let others = self.owners(live).iter();
            Owner::latest(others.filter(|owner| !is_own(owner) && owner.fields.contains(&found.path)))
        };
        let owns = own.is_some_and(|own| own.fields.contains(&found.path));
        if self.memory.desired_hash == Some(self.desired.hash) && self.memory.is_about(live) {
            let unnamed = || {
                // A removed field has no owner. The client that wrote last is the best guess.
                let since = own.map(|own| own.time.as_str()).unwrap_or_default();
                let writers = self
                    .owners(live)
                    .iter()
                    .filter(|owner| !is_own(owner) && owner.time.as_str() >= since);
                Owner::latest(writers.filter(|owner| owner.subresource != "status"))
            };
            return Some(match last().or_else(unnamed) {
                Some(owner) => owner.name(),
                None if owns => format!("{} (another process)", self.applier.manager),
                None => "an unknown client".to_owned(),
            });
        }
        // After a restart only the owners tell.
        let own = own.filter(|_| !owns)?;
        last().filter(|owner| owner.time >= own.time).map(Owner::name)
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

    /// Remembers what the API server made of the desired object. Returns a conflict if it has another value somewhere. `applied` is
    /// true for the answer to an apply, after which this field manager owns all that is desired.
    fn learn(&self, answer: &Value, applied: bool) -> Option<Conflict> {
        let own = Owner::applied(answer, &self.applier.manager);
        let digest = own.as_ref().filter(|_| applied).map(Owner::digest);
        let own = own.as_ref().map(|own| &own.fields);
        let found = differences(&self.schema, &self.desired.body, answer, own);
        let overridden = found.iter().find(|found| found.kind == DifferenceKind::Value);
        let field = overridden.map(|found| found.path.to_string());
        let compressed = self
            .applier
            .memories
            .compress(&kind_of(self.resource), &self.desired.body);
        let wait = self.applier.remember(self.resource, &self.key, |memory| {
            memory.left = digest;
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

    /// The fields without an owner that are no longer desired and that the apply has left, although no other client wants
    /// them. A field that the apply did remove can exist again with its default.
    fn left_over(&self, answer: &Value) -> Vec<Path> {
        if !self.open.iter().any(|found| found.kind == DifferenceKind::Dropped) {
            return Vec::new();
        }
        let owners = Owner::all(answer);
        let manager = &self.applier.manager;
        let is_updated = |path: &Path| {
            let mut own = owners.iter().filter(|owner| owner.has_updated(manager));
            own.any(|owner| owner.fields.contains(path))
        };
        let dropped = self.open.iter().filter(|found| found.kind == DifferenceKind::Dropped);
        let left = dropped.map(|found| &found.path).filter(|path: &&Path| {
            // The API server restores a field from its older name.
            let is_kept = self.lost.contains(path) || path.alias().is_some() || is_updated(path);
            let is_left = path.value_in(&self.schema, answer).is_some();
            is_kept && is_left && !is_owned_by_others(&owners, None, manager, path)
        });
        left.cloned().collect()
    }

    /// Fields that are no longer desired, or desired as null, and that can make an apply invalid: one handler of a probe excludes
    /// another, and an apply leaves the parts of a field that other clients own.
    fn in_the_way(&self) -> Vec<Path> {
        let dropped = self.open.iter().filter(|found| found.kind == DifferenceKind::Dropped);
        let is_live = |path: &&Path| {
            let live = self.live.as_ref();
            live.is_some_and(|live| path.value_in(&self.schema, live).is_some())
        };
        let nulls = self.desired.nulls.iter().filter(is_live);
        dropped.map(|found| &found.path).chain(nulls).cloned().collect()
    }

    /// Owners of the same name that are gone, and that an apply would not remove.
    fn has_stale_owner(&self, live: &Value) -> bool {
        let stale = self.desired.stale_owners(live);
        let own = self.own.as_ref();
        stale.into_iter().any(|uid| {
            let key = json!({ "uid": uid });
            let path = prepare::owner_path(key.as_object());
            own.is_none_or(|own| !own.fields.contains(&path))
        })
    }

    async fn send(&self, params: &PatchParams, body: &Value) -> Result<Value, Error> {
        match self.send_or_collide(params, body).await? {
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

    async fn send_or_collide(&self, params: &PatchParams, body: &Value) -> Result<Sent, Error> {
        let error = match self
            .applier
            .patch(self.resource, &self.key, params, &Patch::Apply(body))
            .await
        {
            Ok(object) => return Ok(Sent::Answer(object)),
            Err(error) => error,
        };
        if let (Some(_), Some(names)) = (&self.live, collisions(&error)) {
            return Ok(Sent::Collision(names));
        }
        Err(self.failed(error))
    }

    /// An apply failed. It is not repeated while nothing changes if the API server rejects it.
    fn failed(&self, error: kube::Error) -> Error {
        let conflict = matches!(&error, kube::Error::Api(status) if status.code == 409);
        let mut error = Error::request(format!("apply {}", self.describe()), error);
        if conflict && self.desired.names_version {
            error = error.into_rejected();
        }
        if error.kind() == ErrorKind::Rejected {
            self.applier.remember(self.resource, &self.key, |memory| {
                memory.reject(self.situation, error.clone())
            });
        }
        error
    }

    /// Sets the desired fields by a patch that also removes what collides with them: owners that are gone, and entries of
    /// lists whose fields `names` have the value of a desired entry, and the fields `left`. An apply cannot remove what it
    /// does not own.
    async fn repair(&self, names: &[String], left: &[Path]) -> Result<Value, Error> {
        let gone = || Error::transient("Conflict", format!("another client deleted {}", self.describe()));
        let mut live = self.applier.read(self.resource, &self.key).await?.ok_or_else(gone)?;
        if let Some(metadata) = live.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let mut target = self.desired.repaired(&self.schema, &live, names);
        for path in left {
            path.remove(&self.schema, &mut target);
            path.alias()
                .into_iter()
                .for_each(|path| path.remove(&self.schema, &mut target));
        }
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
            .patch(self.resource, &self.key, &params, &Patch::<Value>::Json(patch))
            .await;
        answer.map_err(|error| Error::request(format!("update {}", self.describe()), error))
    }
}

fn version(object: &Value) -> Option<&Value> {
    object.pointer("/metadata/resourceVersion")
}

/// Returns true if a client other than `own` owns the field at `path`.
fn is_owned_by_others(owners: &[Owner], own: Option<&Owner>, manager: &str, path: &Path) -> bool {
    /// The API server's name for the unknown owners of fields at the first apply.
    const UNKNOWN: &str = "before-first-apply";
    let others = owners
        .iter()
        .filter(|owner| Some(*owner) != own && owner.manager != UNKNOWN && !owner.has_updated(manager));
    others.into_iter().any(|owner| owner.fields.contains(path))
}

/// The answer to a dry run.
#[derive(PartialEq, Eq)]
pub(super) enum DryRun {
    /// An apply would change nothing.
    Same,
    /// An apply would change the differences that are left.
    Different,
    /// No dry run was sent, or the API server did not answer it.
    Unknown,
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
    (is_invalid(error) && !names.is_empty()).then_some(names)
}

fn is_invalid(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 422)
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
