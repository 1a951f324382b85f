//! One apply of one object: the comparison. [`Write`] has the requests.
use std::{
    cell::LazyCell,
    sync::{Arc, OnceLock},
};

use serde_json::{Value, json};

use super::{
    Seen,
    compare::{Difference, DifferenceKind, differences},
    error::Error,
    fields::{Fields, Owner, Path},
    memory::Memory,
    prepare::{self, Desired, hash},
    report::Report,
    schema::Schema,
    set,
    target::Target,
    write::{Live, Open, Text, Write, is_owned_by_others, version},
};

/// One apply of one object.
pub(super) struct Attempt<'a> {
    target: Target<'a>,
    schema: Arc<Schema>,
    desired: Desired,
    pub(super) live: Option<Seen>,
    /// The fields that the field manager owns by applying.
    own: Option<Owner>,
    /// All owners of fields, once they are asked for.
    owners: OnceLock<Vec<Owner>>,
    /// The memory of the object.
    memory: Memory,
    /// The fields that differ and are not known to be as the API server wants them.
    open: Vec<Difference>,
    /// Fields of the last desired object that are no longer desired and have no owner.
    lost: Vec<Path>,
    /// A hash of the desired object and of all that differs: a rejected apply is not repeated in the same situation.
    situation: u64,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
        target: Target<'a>,
        schema: &Arc<Schema>,
        desired: Value,
        live: Option<Seen>,
        keep: &[&str],
    ) -> Result<Self, Error> {
        let mut desired = Desired::prepare(schema, target.resource, desired)?;
        let manager = &target.applier.manager;
        let mut attempt = Self {
            schema: Arc::clone(schema),
            own: live.as_ref().and_then(|live| Owner::applied(&live.object, manager)),
            owners: OnceLock::new(),
            desired: Desired::default(),
            live: None,
            memory: target.memory(),
            target,
            open: Vec::new(),
            lost: Vec::new(),
            situation: 0,
        };
        if let Some(live) = live {
            let object = &live.object;
            let applied = attempt.own.is_some() || attempt.memory.is_about(object);
            attempt.target.check(&desired, object, applied)?;
            desired.keep(schema, object, keep);
            attempt.compare(&desired, object);
            attempt.live = Some(live);
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
                && !is_owned_by_others(self.owners(live), own, &self.target.applier.manager, &found.path)
        });
        let lost: Vec<Difference> = lost.collect();
        self.lost = lost.iter().map(|found| found.path.clone()).collect();
        self.open.extend(lost);
    }

    /// Returns true if this field manager owns what it owned after its last apply.
    fn owns_as_left(&self) -> bool {
        self.memory.left.is_some() && self.memory.left == self.own.as_ref().map(Owner::digest)
    }

    fn live(&self) -> Option<&Value> {
        self.live.as_ref().map(|live| &live.object)
    }

    pub(super) fn is_settled(&self) -> bool {
        self.live.is_some() && self.open.is_empty()
    }

    pub(super) fn unchanged(self) -> Report {
        Report {
            conflict: self.memory.conflict(),
            ..Report::settled(self.live.map(|live| live.object).unwrap_or_default())
        }
    }

    /// Gathers all that the requests need, without the objects as trees.
    pub(super) fn ready(mut self) -> Write<'a> {
        let uid = self.live().and_then(|live| live.pointer("/metadata/uid")).cloned();
        if let Some(uid) = uid
            && !self.desired.names_version
        {
            // An object of the same name that was created since then is not this one.
            set(&mut self.desired.body, &["metadata", "uid"], uid);
        }
        let live = self.live.as_ref().map(|Seen { object, was_settled }| {
            let is_known = *was_settled || self.memory.is_about(object);
            Live {
                text: (!is_known || self.memory.is_contested()).then(|| Text::new(object)),
                version: version(object).cloned(),
                content: prepare::content(&self.schema, object),
                is_known,
                has_stale_owner: self.has_stale_owner(object),
            }
        });
        let is_live = |path: &&Path| {
            self.live()
                .is_some_and(|live| path.value_in(&self.schema, live).is_some())
        };
        let open = self.open.iter().map(|found| Open {
            by: self.changed_by(found),
            found: found.clone(),
        });
        Write {
            live,
            open: open.collect(),
            nulls: self.desired.nulls.iter().filter(is_live).cloned().collect(),
            target: self.target,
            desired: Text::new(&self.desired.body),
            hash: self.desired.hash,
            names_version: self.desired.names_version,
            lost: self.lost,
            situation: self.situation,
            schema: self.schema,
            memory: self.memory,
        }
    }

    /// The client that changed a field after this one applied it, or `None` if what is desired has changed.
    fn changed_by(&self, found: &Difference) -> Option<String> {
        let live = self.live()?;
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
                None if owns => format!("{} (another process)", self.target.applier.manager),
                None => "an unknown client".to_owned(),
            });
        }
        // After a restart only the owners tell.
        let own = own.filter(|_| !owns)?;
        last().filter(|owner| owner.time >= own.time).map(Owner::name)
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
}
