//! The requests of one apply.
use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::{
    compare::{Difference, DifferenceKind, differences},
    error::{Error, ErrorKind},
    fields::{Owner, Path},
    kind_of,
    memory::Memory,
    prepare::{self, Desired},
    report::{ADMISSION, Change, Conflict, FieldChange, Report},
    schema::Schema,
    target::Target,
};

/// An object as text, which is kept while a request waits. A tree takes several times as much memory, and many requests wait at the
/// same time.
pub(crate) struct Text(Box<RawValue>);

impl Text {
    pub(crate) fn new(object: &Value) -> Self {
        Self(to_raw_value(object).unwrap_or_default())
    }

    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}

/// The requests for an object that is not as desired, and all that they need.
pub(crate) struct Write<'a> {
    pub(super) target: Target<'a>,
    pub(super) schema: Arc<Schema>,
    /// The desired object, with the UID of the live one.
    pub(super) desired: Text,
    /// See [`Desired::hash`].
    pub(super) hash: u64,
    /// See [`Desired::names_version`].
    pub(super) names_version: bool,
    /// Absent if the object does not exist.
    pub(super) live: Option<Live>,
    /// The memory of the object.
    pub(super) memory: Memory,
    /// The fields that differ and are not known to be as the API server wants them.
    pub(super) open: Vec<Open>,
    /// Fields of the last desired object that are no longer desired and have no owner.
    pub(super) lost: Vec<Path>,
    /// Fields that the live object has, and that are desired as null.
    pub(super) nulls: Vec<Path>,
    /// A hash of the desired object and of all that differs: a rejected apply is not repeated in the same situation.
    pub(super) situation: u64,
}

/// The live object.
pub(super) struct Live {
    /// Absent if neither a request nor a report can need it: the object is known, and its fields are not contested.
    pub text: Option<Text>,
    /// Its resource version.
    pub version: Option<Value>,
    /// A digest of its [content](prepare::content).
    pub content: u64,
    /// This process has applied the object, or has seen this state of it as desired.
    pub is_known: bool,
    /// It has owners of the same name that are gone, and that an apply would not remove.
    pub has_stale_owner: bool,
}

impl Live {
    fn object(&self) -> Value {
        self.text.as_ref().map(Text::value).unwrap_or_default()
    }
}

/// A field that is not as desired.
pub(super) struct Open {
    pub found: Difference,
    /// The client that changed it after it was applied. `None` if what is desired has changed.
    pub by: Option<String>,
}

impl Write<'_> {
    /// Sends the requests.
    pub(crate) async fn run(mut self) -> Result<Report, Error> {
        if let Some(error) = self.memory.rejection(self.situation) {
            return Err(error);
        }
        if self.dry_run().await? == DryRun::Same {
            return Ok(self.accept());
        }
        match &self.live {
            None => self.create().await,
            Some(live) => self.update(live).await,
        }
    }

    async fn create(&self) -> Result<Report, Error> {
        // Without force: should another client have created it just now, it is not taken over.
        let params = self.target.apply_params();
        let object = self.send(&params).await?;
        let conflict = self.learn(&object, true);
        Ok(Report {
            object,
            change: Change::Created,
            conflict,
            writes: 1,
        })
    }

    /// Sends a dry run before the first apply of an object that this process does not know, and keeps only the differences that
    /// it would change. The others are defaults that the schema does not contain. Some applies make a new revision although they
    /// change nothing.
    ///
    /// # Errors
    /// When the API server rejects the object.
    pub(super) async fn dry_run(&mut self) -> Result<DryRun, Error> {
        let Some(live) = &self.live else {
            return Ok(DryRun::Unknown);
        };
        if live.is_known {
            // The API server's answers are remembered, or were not needed: all that is left is different.
            return Ok(DryRun::Different);
        }
        if live.has_stale_owner {
            return Ok(DryRun::Unknown);
        }
        let params = self.target.apply_params().force().dry_run();
        let patch = Patch::Apply(&self.desired.0);
        let answer = match self.target.patch(&params, &patch).await {
            Ok(answer) => answer,
            Err(error) if is_invalid(&error) && collisions(&error).is_none() && self.in_the_way().is_empty() => {
                return Err(self.failed(error));
            }
            // The apply that follows reports other errors. Some webhooks reject every dry run.
            Err(_) => return Ok(DryRun::Unknown),
        };
        let schema = Arc::clone(&self.schema);
        let before = live.object();
        let is_changed = |open: &Open| {
            let value = |object| open.found.path.value_in(&schema, object);
            value(&before) != value(&answer)
        };
        if self.open.iter().any(is_changed) {
            self.open.retain(is_changed);
            return Ok(DryRun::Different);
        }
        // If another client was faster, its change is in the answer too.
        let is_same = live.version.as_ref() != version(&answer) || prepare::content(&schema, &answer) == live.content;
        Ok(match is_same && self.left_over(&answer).is_empty() {
            true => DryRun::Same,
            false => DryRun::Different,
        })
    }

    async fn update(&self, live: &Live) -> Result<Report, Error> {
        let first = self.open.first();
        let by_another = first.and_then(|first| first.by.clone());
        let field = first.map(|first| first.found.path.to_string()).unwrap_or_default();
        if let Some(retry_after) = first.and_then(|_| self.memory.contest_delay(&field)) {
            let conflict = Conflict {
                manager: by_another.unwrap_or_else(|| self.memory.contestant(&field)),
                field,
                new: false,
                retry_after,
            };
            return Ok(Report {
                conflict: Some(conflict),
                ..Report::settled(live.object())
            });
        }
        let params = self.target.apply_params().force();
        let (mut writes, mut applied) = (1, true);
        let mut object = if live.has_stale_owner {
            applied = false;
            self.repair(&[], &[]).await?
        } else {
            match self.send_or_collide(&params).await {
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
                    self.send(&params).await?
                }
                Err(error) => return Err(error),
            }
        };
        let left = self.left_over(&object);
        if !left.is_empty() {
            object = self.repair(&[], &left).await?;
            writes += 1;
        }
        if version(&object) == live.version.as_ref() {
            writes -= 1;
        }
        let overridden = self.learn(&object, applied);
        let fields = self.open.iter().map(|open| self.describe_change(open));
        let change = match &by_another {
            // Perhaps only the owners of fields have changed.
            _ if prepare::content(&self.schema, &object) == live.content => Change::Unchanged,
            Some(_) => Change::Reverted(fields.collect()),
            None => Change::Updated(fields.collect()),
        };
        let conflict = match (overridden, by_another) {
            (Some(overridden), _) => Some(overridden),
            (None, Some(manager)) if writes > 0 => {
                let reported = self.target.remember(|memory| memory.reverted(&field, &manager));
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

    /// An apply would change nothing, although the objects differ.
    pub(super) fn accept(&self) -> Report {
        let object = self.live.as_ref().map(Live::object).unwrap_or_default();
        let overridden = self.learn(&object, false);
        let conflict = overridden.or_else(|| self.memory.conflict());
        Report {
            conflict,
            ..Report::settled(object)
        }
    }

    fn describe_change(&self, Open { found, by }: &Open) -> FieldChange {
        let is_secret = self.target.resource.group.is_empty() && self.target.resource.kind == "Secret";
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
            manager: by.clone(),
        }
    }

    /// Remembers what the API server made of the desired object. Returns a conflict if it has another value somewhere. `applied` is
    /// true for the answer to an apply, after which this field manager owns all that is desired.
    fn learn(&self, answer: &Value, applied: bool) -> Option<Conflict> {
        let own = Owner::applied(answer, &self.target.applier.manager);
        let digest = own.as_ref().filter(|_| applied).map(Owner::digest);
        let own = own.as_ref().map(|own| &own.fields);
        let found = differences(&self.schema, &self.desired.value(), answer, own);
        let overridden = found.iter().find(|found| found.kind == DifferenceKind::Value);
        let field = overridden.map(|found| found.path.to_string());
        let kind = kind_of(self.target.resource);
        let compressed = self.target.applier.memories.compress(&kind, self.desired.0.get());
        let wait = self.target.remember(|memory| {
            memory.left = digest;
            memory.applied(self.hash, compressed, answer, &found, field.as_deref())
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
        if self.dropped().next().is_none() {
            return Vec::new();
        }
        let owners = Owner::all(answer);
        let manager = &self.target.applier.manager;
        let is_updated = |path: &Path| {
            let mut own = owners.iter().filter(|owner| owner.has_updated(manager));
            own.any(|owner| owner.fields.contains(path))
        };
        let left = self.dropped().filter(|path| {
            // The API server restores a field from its older name.
            let is_kept = self.lost.contains(path) || path.alias().is_some() || is_updated(path);
            let is_left = path.value_in(&self.schema, answer).is_some();
            is_kept && is_left && !is_owned_by_others(&owners, None, manager, path)
        });
        left.cloned().collect()
    }

    /// Fields that are no longer desired.
    fn dropped(&self) -> impl Iterator<Item = &Path> {
        let open = self.open.iter().map(|open| &open.found);
        let dropped = open.filter(|found| found.kind == DifferenceKind::Dropped);
        dropped.map(|found| &found.path)
    }

    /// Fields that are no longer desired, or desired as null, and that can make an apply invalid: one handler of a probe excludes
    /// another, and an apply leaves the parts of a field that other clients own.
    fn in_the_way(&self) -> Vec<Path> {
        self.dropped().chain(&self.nulls).cloned().collect()
    }

    async fn send(&self, params: &PatchParams) -> Result<Value, Error> {
        match self.send_or_collide(params).await? {
            Sent::Answer(object) => Ok(object),
            Sent::Collision(names) => {
                let names = names.join(", ");
                Err(Error::rejected(
                    "Invalid",
                    format!("{}: {names} of an entry is used twice", self.target.describe()),
                ))
            }
        }
    }

    async fn send_or_collide(&self, params: &PatchParams) -> Result<Sent, Error> {
        let error = match self.target.patch(params, &Patch::Apply(&self.desired.0)).await {
            Ok(object) => return Ok(Sent::Answer(object)),
            Err(error) => error,
        };
        match collisions(&error) {
            Some(names) if self.live.is_some() => Ok(Sent::Collision(names)),
            _ => Err(self.failed(error)),
        }
    }

    /// An apply failed. It is not repeated while nothing changes if the API server rejects it.
    fn failed(&self, error: kube::Error) -> Error {
        let conflict = matches!(&error, kube::Error::Api(status) if status.code == 409);
        let mut error = Error::request(format!("apply {}", self.target.describe()), error);
        if conflict && self.names_version {
            error = error.into_rejected();
        }
        if error.kind() == ErrorKind::Rejected {
            self.target
                .remember(|memory| memory.reject(self.situation, error.clone()));
        }
        error
    }

    /// Sets the desired fields by a patch that also removes what collides with them: owners that are gone, and entries of
    /// lists whose fields `names` have the value of a desired entry, and the fields `left`. An apply cannot remove what it
    /// does not own.
    async fn repair(&self, names: &[String], left: &[Path]) -> Result<Value, Error> {
        let live = self.target.read().await?;
        let mut live = live.ok_or_else(|| self.target.was_deleted())?;
        if let Some(metadata) = live.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let desired = Desired {
            body: self.desired.value(),
            ..Desired::default()
        };
        let mut target = desired.repaired(&self.schema, &live, names);
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
            field_manager: Some(self.target.applier.manager.clone()),
            ..PatchParams::default()
        };
        let answer = self.target.patch(&params, &Patch::<Value>::Json(patch)).await;
        answer.map_err(|error| Error::request(format!("update {}", self.target.describe()), error))
    }
}
pub(super) fn version(object: &Value) -> Option<&Value> {
    object.pointer("/metadata/resourceVersion")
}

/// Returns true if a client other than `own` owns the field at `path`.
pub(super) fn is_owned_by_others(owners: &[Owner], own: Option<&Owner>, manager: &str, path: &Path) -> bool {
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
