//! How a reconcile writes its children. One copy of this code serves all kinds, so it handles JSON, and its futures are boxed: a
//! future with a Deployment in it takes 18 KiB for each object that is reconciled at the same time.
use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
    jiff::Timestamp,
};
use serde_json::{Value, json};

use super::{
    Change, Context, Error, ErrorKind, FieldChange, Object, adopt,
    context::{Backend, Queued},
    shared::Shared,
    store::{Child, ChildKind, MANAGED_BY, OWNER, Store, Wish, owner_annotation},
    written::OpenWrite,
};
use crate::{
    ObjectKey,
    apply::{Compared, Origin, Report, Text, set},
    events::Severity,
    health::Rollout,
    manager::Scope as _,
    names,
    rollout::{Slot, Slots},
};

/// The annotation of a child with the fingerprint of what the user asked for when its pod template was applied last.
const ASKED: &str = "kube-manager/asked";

const TEMPLATE: &str = ".spec.template";

/// A desired child with namespace, label and owner.
#[derive(Clone)]
pub struct Desired {
    kind: ChildKind,
    key: ObjectKey,
    value: Value,
    wish: Wish,
}

impl<K: Object> Context<K> {
    /// Takes the typed child, so that it uses no memory while the requests wait.
    pub(super) fn desired<C: Object>(&self, child: C, wish: Wish) -> Result<Desired, Error> {
        let kind = ChildKind::of::<C>();
        let value = serde_json::to_value(&child)
            .map_err(|error| Error::bug(format!("a desired {} cannot be serialized: {error}", kind.name)))?;
        let key = self.child_key(&kind, child.meta())?;
        self.owned(Desired { kind, key, value, wish })
    }

    /// The key of a child. Without a namespace it is in that of the object.
    fn child_key(&self, kind: &ChildKind, child: &ObjectMeta) -> Result<ObjectKey, Error> {
        let name = child.name.as_deref().unwrap_or_default();
        let own = self.object.meta().namespace.as_deref().unwrap_or_default();
        let namespace = match child.namespace.as_deref() {
            _ if !kind.namespaced => "",
            Some(namespace) if K::Scope::NAMESPACED && namespace != own => {
                let message = format!(
                    "{} {namespace}/{name} is in another namespace than its owner",
                    kind.name
                );
                return Err(Error::bug(message));
            }
            namespace => namespace.unwrap_or(own),
        };
        Ok(ObjectKey::new(namespace, name))
    }

    /// `child` with namespace, label and owner.
    fn owned(&self, mut child: Desired) -> Result<Desired, Error> {
        let Desired { kind, key, value, .. } = &mut child;
        if kind.namespaced {
            set(value, &["metadata", "namespace"], key.namespace.to_string());
        }
        let manager = match &self.backend {
            Backend::Cluster(shared) => names::label(shared.applier.manager()),
            Backend::Recording(_) => "test".to_owned(),
        };
        set(value, &["metadata", "labels", MANAGED_BY], manager);
        if K::Scope::NAMESPACED && !kind.namespaced {
            // The garbage collector would treat the owner as deleted.
            let annotation = owner_annotation(self.object.as_ref());
            set(value, &["metadata", "annotations", OWNER], annotation);
            return Ok(child);
        }
        let owner = OwnerReference {
            block_owner_deletion: Some(true),
            ..self.object.controller_owner_ref(&()).unwrap_or_default()
        };
        let owner = serde_json::to_value(owner).map_err(|error| Error::bug(error.to_string()))?;
        match value
            .pointer_mut("/metadata/ownerReferences")
            .and_then(Value::as_array_mut)
        {
            Some(owners) => owners.push(owner),
            None => set(value, &["metadata", "ownerReferences"], json!([owner])),
        }
        Ok(child)
    }

    /// The child, if it is known to be as wished.
    pub(super) fn settled<C: Object>(&self, child: &C, wish: u64) -> Result<Option<Arc<Child>>, Error> {
        self.settled_kind(&ChildKind::of::<C>(), child.meta(), wish)
    }

    fn settled_kind(&self, kind: &ChildKind, child: &ObjectMeta, wish: u64) -> Result<Option<Arc<Child>>, Error> {
        let Backend::Cluster(shared) = &self.backend else {
            return Ok(None);
        };
        let key = self.child_key(kind, child)?;
        Ok(self.prepare(shared, kind, &key)?.settled(&key, wish))
    }

    /// The slots of the rollout budget, if the controller has one.
    pub(super) fn slots(&self) -> Option<(&Shared<K>, &Slots)> {
        match &self.backend {
            Backend::Cluster(shared) => Some((shared, shared.slots.as_deref()?)),
            Backend::Recording(_) => None,
        }
    }

    /// The pod template of `child` is as desired: the object keeps its slot until the pods are there.
    pub(super) fn keep_turn(&self, shared: &Shared<K>, slots: &Slots, child: &Child) {
        self.state().asked_for_turn = true;
        let owner = ObjectKey::of(self.object.as_ref());
        match child.rollout {
            Rollout::Starting | Rollout::Underway => slots.hold(&owner),
            // A slot stays with its object, and lost pods need none.
            Rollout::Missing => shared.wake(slots.leave_queue(&owner)),
            Rollout::Done => shared.release(&owner),
        }
    }

    /// Checks that the object still exists and is not being deleted, unless this is its cleanup.
    pub(super) fn prepare<'s>(
        &self,
        shared: &'s Shared<K>,
        kind: &ChildKind,
        key: &ObjectKey,
    ) -> Result<&'s Store, Error> {
        let name = &kind.name;
        let store = shared.stores.get(&kind.id).ok_or_else(|| {
            Error::bug(format!(
                "{name} {key} cannot be applied: the controller lacks `.owns::<{name}>(…)`"
            ))
        })?;
        let has_finalizer = shared.finalizer.is_some() && shared.adds_finalizer;
        if K::Scope::NAMESPACED && !kind.namespaced && !has_finalizer {
            let message =
                format!("{name} {key} has no namespace, so deleting it needs `.finalizer(…)` on the controller");
            return Err(Error::bug(message));
        }
        self.still_wanted()?;
        self.state().kept.insert((kind.id, key.clone()));
        Ok(store)
    }

    /// Applies `child`, except the fields `immutable` of one that exists.
    pub(super) fn write<'a>(
        &'a self,
        mut child: Desired,
        immutable: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Report, Error>> {
        Box::pin(async move {
            let value = std::mem::take(&mut child.value);
            let shared = match &self.backend {
                Backend::Recording(recording) => return recording.apply(&child.key, value),
                Backend::Cluster(shared) => shared,
            };
            let store = self.prepare(shared, &child.kind, &child.key)?;
            let found = store.cache.get(&child.key);
            let live = found.as_ref().and_then(|found| found.seen());
            adopt::check(shared, self.object.as_ref(), found.as_deref()).await?;
            let write = self.begin(store, &child.key);
            let report = shared.applier.apply_to(&store.resource, value, live, immutable).await;
            self.finish(shared, store, &child, immutable, write, report)
        })
    }

    /// Notes the result of an apply. An object of another owner is watched, so that the name can be used when it is free.
    fn finish(
        &self,
        shared: &Shared<K>,
        store: &Store,
        Desired { key, wish, .. }: &Desired,
        immutable: &[&str],
        write: OpenWrite<'_>,
        report: Result<Report, Error>,
    ) -> Result<Report, Error> {
        if report.as_ref().is_err_and(|error| error.kind() == ErrorKind::Taken) {
            let owner = ObjectKey::of(self.object.as_ref());
            let (client, queue) = (&shared.client, &shared.queue);
            shared.taken.watch(client, queue, &store.resource, key, owner);
        }
        let report = self.wrote(store, key, write, report?);
        if shared.applier.has_settled(&store.resource, key, &report) {
            store.settle(key, *wish, immutable, &report.object);
        }
        Ok(report)
    }

    /// As [`write`](Self::write), but a change of the pod template waits for its turn unless a user asked for it. `asked` is the
    /// fingerprint of what the user asked for.
    pub(super) fn write_in_turn<'a>(
        &'a self,
        shared: &'a Shared<K>,
        slots: &'a Slots,
        mut child: Desired,
        asked: String,
    ) -> BoxFuture<'a, Result<Report, Error>> {
        Box::pin(async move {
            self.state().asked_for_turn = true;
            let store = self.prepare(shared, &child.kind, &child.key)?;
            let found = store.cache.get(&child.key);
            let live = found.as_deref().and_then(|found| Some((found, found.seen()?)));
            let recorded = live.as_ref().and_then(|(_, live)| {
                let annotations = live.object.pointer("/metadata/annotations")?;
                annotations.get(ASKED)?.as_str()
            });
            let by_user = recorded.is_some_and(|recorded| recorded != asked);
            set(&mut child.value, &["metadata", "annotations", ASKED], asked);
            let Some((found, live)) = live else {
                return self.write(child, &[]).await;
            };
            let owner = ObjectKey::of(self.object.as_ref());
            let text = Text::new(&child.value);
            let desired = std::mem::take(&mut child.value);
            let compared = shared.applier.compare(&store.resource, desired, live, TEMPLATE);
            let compared = compared.await?;
            let Compared::Differs(origin) = compared else {
                self.keep_turn(shared, slots, found);
                let begin = || self.begin(store, &child.key);
                return match compared {
                    Compared::Settled(report) => self.finish(shared, store, &child, &[], begin(), Ok(report)),
                    Compared::Elsewhere(requests) => {
                        adopt::check(shared, self.object.as_ref(), store.cache.get(&child.key).as_deref()).await?;
                        let write = begin();
                        self.finish(shared, store, &child, &[], write, requests.run().await)
                    }
                    _ => {
                        child.value = text.value();
                        self.write(child, &[]).await
                    }
                };
            };
            child.value = text.value();
            let rollout = found.rollout;
            // A template that another client has changed would replace one pod after the other.
            let is_spreading = origin == Origin::Others && rollout == Rollout::Underway;
            // Nothing is lost where nothing runs.
            if by_user || is_spreading || rollout == Rollout::Starting {
                let report = self.write(child, &[]).await?;
                match by_user {
                    true => slots.hold_for_user(&owner),
                    false => slots.hold(&owner),
                }
                return Ok(report);
            }
            let created = self.object.meta().creation_timestamp.as_ref();
            match slots.try_acquire(&owner, created.map_or(Timestamp::MAX, |created| created.0)) {
                Slot::Granted => {
                    let report = self.write(child, &[]).await;
                    // After a request without an answer it is not known whether the rollout has begun: the object keeps its slot.
                    if report.as_ref().is_err_and(|error| error.kind() != ErrorKind::Transient) {
                        shared.wake(slots.give_up(&owner));
                    }
                    report
                }
                Slot::Queued { first, is_new } => {
                    if is_new {
                        tracing::info!("the rollout waits for its turn");
                    }
                    self.state().queued = Some(Queued { first });
                    self.write(child, &[TEMPLATE]).await
                }
            }
        })
    }

    /// Creates `child` if it does not exist.
    pub(super) fn write_once(&self, child: Desired) -> BoxFuture<'_, Result<Report, Error>> {
        Box::pin(async move {
            let Desired { kind, key, value, .. } = child;
            let shared = match &self.backend {
                Backend::Recording(recording) => return recording.create_once(&key, value),
                Backend::Cluster(shared) => shared,
            };
            let store = self.prepare(shared, &kind, &key)?;
            let live = store.cache.get(&key).and_then(|child| child.seen());
            let live = live.map(|seen| seen.object);
            let write = self.begin(store, &key);
            let report = shared.applier.create_once(&store.resource, value, live).await?;
            Ok(self.wrote(store, &key, write, report))
        })
    }

    /// Begins a write to a child.
    fn begin<'s>(&self, store: &'s Store, key: &ObjectKey) -> OpenWrite<'s> {
        store.begin(key, ObjectKey::of(self.object.as_ref()))
    }

    /// Notes what was written, and publishes events about it.
    fn wrote(&self, store: &Store, key: &ObjectKey, write: OpenWrite<'_>, mut report: Report) -> Report {
        if report.writes > 0 || store.cache.get(key).is_none() {
            store.wrote::<K>(write, &mut report.object);
        }
        self.state().writes += report.writes;
        let child = format!("{} {}", store.resource.kind, key.name);
        match &report.change {
            Change::Created => self.state().created.push(child.clone()),
            Change::Updated(fields) => self.changed("Updated", &child, fields),
            Change::Reverted(fields) => self.changed("Reverted", &child, fields),
            Change::Unchanged => {}
        }
        if let Some(conflict) = &report.conflict {
            let note = format!("{child}: {} is also set by {}", conflict.field, conflict.manager);
            if conflict.new {
                self.event(Severity::Warning, "Conflict", note.clone());
                tracing::warn!(%child, field = %conflict.field, manager = %conflict.manager, "conflict");
            }
            self.state().conflicts.push((note, conflict.clone()));
        }
        report
    }

    /// Publishes one event about all children that were created since the last one.
    pub(super) fn announce_created(&self) {
        let created = std::mem::take(&mut self.state().created);
        if !created.is_empty() {
            self.event(Severity::Normal, "Created", created.join(", "));
        }
    }

    /// Publishes one event with all fields of a change, except bookkeeping of this library.
    fn changed(&self, reason: &'static str, child: &str, fields: &[FieldChange]) {
        let fields = fields.iter().filter(|change| !change.field.contains(ASKED));
        let fields: Vec<String> = fields.map(ToString::to_string).collect();
        if !fields.is_empty() {
            self.event(Severity::Normal, reason, format!("{child}: {}", fields.join("; ")));
        }
    }
}
