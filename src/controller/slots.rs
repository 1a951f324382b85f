//! How many Memcacheds the operator rolls out at the same time.
//!
//! A new default image, or a new version of the operator, changes the pods of every Memcached. Rolling all of them at once
//! would empty all caches together. So each needs a slot, and the oldest object goes first. What users change in an
//! object's spec needs none. An object keeps its slot until its servers run and have had time to warm up; one whose servers
//! do not start keeps it too, and so protects the others from an image that does not work.
//!
//! Nothing rolls where the API server refuses the change, so such an object gives its slot back. Where it does not answer,
//! nobody knows: the slot is *in doubt* until the Deployment has been read again, or for [`DOUBT`]. Either way the object
//! has had its attempt, and those with fewer go before it next time.
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube_manager::ObjectKey;
use tokio::time::Instant;

use crate::api::v1alpha1::Memcached;

/// A slot that is in doubt is given back after this time. A watch shows a rollout that has begun much earlier.
pub const DOUBT: Duration = Duration::from_secs(20);

/// The slots: see the [module](self).
pub struct Slots {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Not before every object has been seen once it is known which is the oldest.
    open: bool,
    /// The objects with a slot, and since when it is in doubt.
    holders: BTreeMap<ObjectKey, Option<Instant>>,
    waiting: BTreeSet<Place>,
    places: BTreeMap<ObjectKey, Place>,
    /// How often an object had a slot in vain.
    attempts: BTreeMap<ObjectKey, u32>,
}

/// Those with fewer attempts first, then the oldest.
type Place = (u32, Timestamp, ObjectKey);

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

    /// The rollout of `key` has begun, now or under an earlier leader: it has a slot until it is complete.
    pub fn hold(&self, key: &ObjectKey) {
        let mut state = self.lock();
        state.leave_line(key);
        state.attempts.remove(key);
        state.holders.insert(key.clone(), None);
    }

    /// Returns true if `memcached` may be rolled out; if not, it waits in line.
    pub fn take(&self, key: &ObjectKey, memcached: &Memcached) -> bool {
        let mut state = self.lock();
        if state.holders.contains_key(key) {
            return true;
        }
        state.leave_line(key);
        let attempts = state.attempts.get(key).copied().unwrap_or(0);
        let created = memcached.metadata.creation_timestamp.clone();
        let place = (
            attempts,
            created.map_or(Timestamp::MAX, |Time(created)| created),
            key.clone(),
        );
        state.waiting.insert(place.clone());
        state.places.insert(key.clone(), place);
        if !self.next(&state).contains(key) {
            return false;
        }
        state.leave_line(key);
        state.holders.insert(key.clone(), None);
        true
    }

    /// Returns true if `key` has a slot.
    pub fn holds(&self, key: &ObjectKey) -> bool {
        self.lock().holders.contains_key(key)
    }

    /// The objects with a slot.
    #[cfg(test)]
    fn holders(&self) -> Vec<ObjectKey> {
        self.lock().holders.keys().cloned().collect()
    }

    /// `key` needs no slot, or no longer. Returns the objects that may begin.
    #[must_use]
    pub fn leave(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        let mut state = self.lock();
        state.attempts.remove(key);
        self.release(&mut state, key)
    }

    /// `key` had a slot in vain. Returns the objects that may begin.
    #[must_use]
    pub fn fail(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        let mut state = self.lock();
        state.fail(key);
        self.release(&mut state, key)
    }

    /// It is not known whether the rollout of `key` has begun.
    pub fn doubt(&self, key: &ObjectKey) {
        if let Some(doubt) = self.lock().holders.get_mut(key) {
            *doubt = Some(Instant::now());
        }
    }

    /// Returns true if a rollout of `key` may have begun that is not known here: under an earlier leader, or in a slot that was given
    /// back in doubt.
    pub fn may_have_begun(&self, key: &ObjectKey) -> bool {
        let state = self.lock();
        !state.open || state.attempts.contains_key(key)
    }

    /// Returns true if the slot of `key` is in doubt.
    pub fn is_in_doubt(&self, key: &ObjectKey) -> bool {
        self.lock().holders.get(key).is_some_and(Option::is_some)
    }

    /// Gives back what has been in doubt for too long. Returns the objects that may begin.
    #[must_use]
    pub fn end_doubts(&self) -> Vec<ObjectKey> {
        let mut state = self.lock();
        let over = |since: &Option<Instant>| since.is_some_and(|since| since.elapsed() >= DOUBT);
        let doubtful = state.holders.iter().filter(|(_, since)| over(since));
        let ended: Vec<ObjectKey> = doubtful.map(|(key, _)| key.clone()).collect();
        for key in &ended {
            state.holders.remove(key);
            state.fail(key);
        }
        if ended.is_empty() {
            Vec::new()
        } else {
            self.next(&state)
        }
    }

    /// Takes `key` out of the line, and its slot from it.
    fn release(&self, state: &mut State, key: &ObjectKey) -> Vec<ObjectKey> {
        let left = state.leave_line(key) | state.holders.remove(key).is_some();
        if left { self.next(state) } else { Vec::new() }
    }

    /// The objects that may begin.
    fn next(&self, state: &State) -> Vec<ObjectKey> {
        if !state.open {
            return Vec::new();
        }
        let free = self.most.saturating_sub(state.holders.len());
        let first = state.waiting.iter().take(free);
        first.map(|(_, _, key)| key.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn leave_line(&mut self, key: &ObjectKey) -> bool {
        self.places.remove(key).is_some_and(|place| self.waiting.remove(&place))
    }

    fn fail(&mut self, key: &ObjectKey) {
        let attempts = self.attempts.entry(key.clone()).or_insert(0);
        *attempts = attempts.saturating_add(1);
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
        slots.hold(&third.0);
        assert!(!slots.take(&first.0, &first.1) && !slots.take(&second.0, &second.1));
        assert!(slots.leave(&first.0).is_empty(), "deleted: the slot is still taken");
        assert_eq!(slots.leave(&third.0), std::slice::from_ref(&second.0));
        assert!(slots.leave(&first.0).is_empty(), "once");
    }

    #[test]
    fn who_had_its_attempt_lets_the_others_go_first() {
        let slots = Slots::new(1);
        slots.open();
        let (first, second) = (object(1), object(2));
        assert!(slots.take(&first.0, &first.1) && !slots.take(&second.0, &second.1));
        assert_eq!(slots.fail(&first.0), std::slice::from_ref(&second.0));
        assert!(!slots.take(&first.0, &first.1), "older, but the other has not tried");
        assert!(slots.take(&second.0, &second.1));
        assert_eq!(slots.leave(&second.0), std::slice::from_ref(&first.0));
    }

    #[tokio::test(start_paused = true)]
    async fn doubt_ends() {
        let slots = Slots::new(1);
        slots.open();
        let (first, second) = (object(1), object(2));
        assert!(slots.take(&first.0, &first.1) && !slots.take(&second.0, &second.1));
        slots.doubt(&first.0);
        assert!(slots.is_in_doubt(&first.0) && slots.end_doubts().is_empty());
        tokio::time::advance(DOUBT).await;
        assert_eq!(slots.end_doubts(), std::slice::from_ref(&second.0));
        assert!(!slots.holds(&first.0));
        slots.hold(&second.0);
        tokio::time::advance(DOUBT).await;
        assert!(slots.end_doubts().is_empty() && slots.holds(&second.0), "no doubt");
    }
}
