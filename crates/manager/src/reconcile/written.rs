//! Writes of this process, whose events bring no news.
use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    slice,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{ObjectKey, cache::digest};

/// Maximum number of pending events.
const MOST: usize = 4096;

/// Maximum number of events that wait for one answer. It is the answer to one of them at most, so all others are news.
const MOST_EARLY: usize = 16;

/// The writes of this process to objects of one kind. The event of a write and the answer to it can come in either order.
#[derive(Default)]
pub struct OwnWrites(Mutex<State>);

#[derive(Default)]
struct State {
    /// Digests of the versions that were answered, until their events arrive.
    answered: HashSet<u64>,
    /// Writes that have no answer yet, by the object that they change.
    open: HashMap<ObjectKey, Open>,
}

struct Open {
    writer: ObjectKey,
    /// Digests of the versions that have arrived since the write began.
    early: Vec<u64>,
    /// The reaction, unless they are own ones.
    react: Option<Box<dyn FnOnce() + Send>>,
}

impl OwnWrites {
    /// Begins a write to `object` by the reconcile of `writer`.
    pub fn begin(&self, object: &ObjectKey, writer: ObjectKey) -> OpenWrite<'_> {
        let open = Open {
            writer,
            early: Vec::new(),
            react: None,
        };
        let first = match self.lock().open.entry(object.clone()) {
            Entry::Vacant(place) => {
                place.insert(open);
                Some(object.clone())
            }
            Entry::Occupied(_) => None,
        };
        OpenWrite {
            writes: self,
            object: first,
        }
    }

    /// The API server answered this version.
    pub fn note(&self, version: Option<&str>) {
        self.lock().note(version.map(|version| digest(Some(version))));
    }

    /// Returns true once for the digest of each version.
    pub fn is_own(&self, version: u64) -> bool {
        self.lock().answered.remove(&version)
    }

    /// Calls `react`, which reconciles `owners`, unless the version of `object` that has arrived is an own one. While a reconcile of
    /// the only owner waits for the answer to a write, this is not known yet, and `react` waits too.
    pub fn arrived(
        &self,
        object: &ObjectKey,
        version: u64,
        owners: &[ObjectKey],
        react: impl FnOnce() + Send + 'static,
    ) {
        let mut state = self.lock();
        if state.answered.remove(&version) {
            return;
        }
        match state.open.get_mut(object) {
            Some(open) if owners == slice::from_ref(&open.writer) => {
                if open.early.len() < MOST_EARLY {
                    open.early.push(version);
                }
                open.react.get_or_insert_with(|| Box::new(react));
            }
            _ => {
                drop(state);
                react();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note(&mut self, version: Option<u64>) {
        if self.answered.len() >= MOST {
            self.answered.clear();
        }
        self.answered.extend(version);
    }
}

/// A write that has no answer yet. When it is dropped, the events that wait for the answer count as those of other clients.
pub struct OpenWrite<'a> {
    writes: &'a OwnWrites,
    /// Absent if another write to the object had begun before: the events are kept there.
    object: Option<ObjectKey>,
}

impl OpenWrite<'_> {
    /// The API server answered this version.
    pub fn answered(self, version: Option<&str>) {
        let version = version.map(|version| digest(Some(version)));
        let mut state = self.writes.lock();
        let open = self.object.as_ref().and_then(|object| state.open.get_mut(object));
        let has_come = open.is_some_and(|open| {
            let before = open.early.len();
            open.early.retain(|early| Some(*early) != version);
            open.early.len() < before
        });
        if !has_come {
            state.note(version);
        }
    }
}

impl Drop for OpenWrite<'_> {
    fn drop(&mut self) {
        let Some(object) = &self.object else { return };
        let open = self.writes.lock().open.remove(object);
        if let Some(react) = open.filter(|open| !open.early.is_empty()).and_then(|open| open.react) {
            react();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    };

    use super::*;

    fn version(text: &str) -> u64 {
        digest(Some(text))
    }

    /// The keys of a child and its owner, and events of the child that count the reactions to them.
    struct Child {
        writes: OwnWrites,
        key: ObjectKey,
        owner: ObjectKey,
        reactions: Arc<AtomicUsize>,
    }

    impl Child {
        fn new() -> Self {
            Self {
                writes: OwnWrites::default(),
                key: ObjectKey::new("a", "child"),
                owner: ObjectKey::new("a", "owner"),
                reactions: Arc::default(),
            }
        }

        fn begin(&self) -> OpenWrite<'_> {
            self.writes.begin(&self.key, self.owner.clone())
        }

        fn event(&self, owner: &ObjectKey, text: &str) {
            let reactions = Arc::clone(&self.reactions);
            let react = move || {
                reactions.fetch_add(1, SeqCst);
            };
            self.writes
                .arrived(&self.key, version(text), slice::from_ref(owner), react);
        }

        fn reactions(&self) -> usize {
            self.reactions.load(SeqCst)
        }
    }

    #[test]
    fn own_writes_bring_no_news_before_and_after_their_answers() {
        let child = Child::new();
        let open = child.begin();
        child.event(&child.owner, "1");
        open.answered(Some("1"));
        assert_eq!(child.reactions(), 0, "before the answer");
        child.begin().answered(Some("2"));
        child.event(&child.owner, "2");
        assert_eq!(child.reactions(), 0, "after it");
        child.event(&child.owner, "2");
        assert_eq!(child.reactions(), 1, "once");
        assert!(child.writes.lock().answered.is_empty() && child.writes.lock().open.is_empty());
    }

    #[test]
    fn changes_of_others_during_a_write_are_news_after_it() {
        let child = Child::new();
        let open = child.begin();
        child.event(&child.owner, "1");
        child.event(&child.owner, "2");
        child.event(&child.owner, "3");
        assert_eq!(child.reactions(), 0, "the reconcile still runs");
        open.answered(Some("2"));
        assert_eq!(child.reactions(), 1, "one reconcile sees them all");
        let open = child.begin();
        child.event(&child.owner, "4");
        drop(open);
        assert_eq!(child.reactions(), 2, "the write failed");
        let open = child.begin();
        (5..100).for_each(|version| child.event(&child.owner, &version.to_string()));
        open.answered(Some("99"));
        assert_eq!(child.reactions(), 3);
    }

    #[test]
    fn other_owners_do_not_wait() {
        let child = Child::new();
        let open = child.begin();
        child.event(&ObjectKey::new("a", "former"), "1");
        assert_eq!(child.reactions(), 1);
        drop(open);
    }

    /// Two objects want a child of one name.
    #[test]
    fn a_second_write_loses_no_events_of_the_first() {
        let child = Child::new();
        let open = child.begin();
        child.event(&child.owner, "1");
        child
            .writes
            .begin(&child.key, ObjectKey::new("a", "other"))
            .answered(Some("2"));
        child.event(&child.owner, "2");
        assert_eq!(child.reactions(), 0);
        drop(open);
        assert_eq!(child.reactions(), 1);
    }
}
