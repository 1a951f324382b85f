//! How many Memcacheds the operator rolls out at the same time.
//!
//! A new default image, or a new version of the operator, changes the pods of every Memcached. Rolling all of them at once
//! would empty all caches together. So each needs a slot, and the oldest object goes first. What users change in an
//! object's spec needs none. An object keeps its slot until its servers run and have had time to warm up; one whose servers
//! do not start keeps it too, and so protects the others from an image that does not work.
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube_manager::ObjectKey;

use crate::api::v1alpha1::Memcached;

/// The slots: see the [module](self).
pub struct Slots {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Not before every object has been seen once it is known which is the oldest.
    open: bool,
    holders: BTreeSet<ObjectKey>,
    waiting: BTreeSet<Place>,
    places: BTreeMap<ObjectKey, Place>,
}

/// Oldest first.
type Place = (Timestamp, ObjectKey);

impl Slots {
    /// `most` slots.
    pub fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            state: Mutex::default(),
        }
    }

    /// Lets rollouts begin. Returns the objects that may.
    pub fn open(&self) -> Vec<ObjectKey> {
        let mut state = self.lock();
        state.open = true;
        self.next(&state)
    }

    /// `key` continues a rollout that an earlier leader began.
    pub fn resume(&self, key: &ObjectKey) {
        self.lock().holders.insert(key.clone());
    }

    /// Whether `memcached` may be rolled out; if not, it waits in line.
    pub fn take(&self, key: &ObjectKey, memcached: &Memcached) -> bool {
        let mut state = self.lock();
        if state.holders.contains(key) {
            return true;
        }
        let created = memcached.metadata.creation_timestamp.clone();
        let place = (created.map_or(Timestamp::MAX, |Time(created)| created), key.clone());
        state.waiting.insert(place.clone());
        state.places.insert(key.clone(), place);
        if !self.next(&state).contains(key) {
            return false;
        }
        state.leave_line(key);
        state.holders.insert(key.clone());
        true
    }

    /// Whether `key` has a slot.
    pub fn holds(&self, key: &ObjectKey) -> bool {
        self.lock().holders.contains(key)
    }

    /// The objects with a slot.
    pub fn holders(&self) -> Vec<ObjectKey> {
        self.lock().holders.iter().cloned().collect()
    }

    /// `key` needs no slot, or no longer. Returns the objects that may begin.
    #[must_use]
    pub fn leave(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        let mut state = self.lock();
        let left = state.leave_line(key) | state.holders.remove(key);
        if left { self.next(&state) } else { Vec::new() }
    }

    /// The objects that may begin.
    fn next(&self, state: &State) -> Vec<ObjectKey> {
        if !state.open {
            return Vec::new();
        }
        let free = self.most.saturating_sub(state.holders.len());
        state.waiting.iter().take(free).map(|(_, key)| key.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn leave_line(&mut self, key: &ObjectKey) -> bool {
        self.places.remove(key).is_some_and(|place| self.waiting.remove(&place))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operand::fixtures::memcached;

    fn object(minute: u8) -> (ObjectKey, Memcached) {
        let mut object = memcached(&json!({}));
        let created = format!("2026-01-01T00:{minute:02}:00Z");
        object.metadata.creation_timestamp = Some(Time(created.parse().unwrap()));
        (ObjectKey::new("cache", format!("m{minute}")), object)
    }

    #[test]
    fn the_oldest_go_first_and_no_more_than_the_slots() {
        let slots = Slots::new(2);
        let objects: Vec<_> = [3, 1, 4, 2].map(object).into();
        for (key, object) in &objects {
            assert!(!slots.take(key, object), "not before all are known");
        }
        let names = |keys: Vec<ObjectKey>| keys.iter().map(|key| key.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(slots.open()), ["m1", "m2"]);
        let taken: Vec<_> = objects.iter().filter(|(key, object)| slots.take(key, object)).collect();
        assert_eq!(taken.len(), 2);
        assert_eq!(names(slots.holders()), ["m1", "m2"]);
        assert!(slots.take(&objects[1].0, &objects[1].1), "who has one keeps it");
        assert_eq!(names(slots.leave(&objects[1].0)), ["m3"]);
        assert!(!slots.take(&objects[2].0, &objects[2].1) && slots.take(&objects[0].0, &objects[0].1));
    }

    #[test]
    fn who_leaves_the_line_blocks_nobody() {
        let slots = Slots::new(1);
        slots.open();
        let (first, second, third) = (object(1), object(2), object(3));
        slots.resume(&third.0);
        assert!(!slots.take(&first.0, &first.1) && !slots.take(&second.0, &second.1));
        assert!(slots.leave(&first.0).is_empty(), "deleted: the slot is still taken");
        assert_eq!(slots.leave(&third.0), std::slice::from_ref(&second.0));
        assert!(slots.leave(&first.0).is_empty(), "once");
    }
}
