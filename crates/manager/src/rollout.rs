//! Limits how many objects change their pods at the same time.
//!
//! A new version of an operator changes the pods of all its objects. With a [`RolloutBudget`] the oldest of them begin, and the
//! others follow when those are ready. A change that a user asks for is applied at once, but counts: each object whose pods are
//! changing has a slot. An object whose pods do not become ready gives its slot back after a deadline, so one broken object does not
//! stop the others.
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;

use crate::ObjectKey;

/// The number of objects that may change their pods at the same time.
///
/// ```
/// use std::time::Duration;
/// use kube_manager::rollout::RolloutBudget;
///
/// let budget = RolloutBudget::new(10).per_namespace(2).deadline(Duration::from_secs(300));
/// # let _ = budget;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolloutBudget {
    overall: usize,
    per_namespace: usize,
    deadline: Duration,
}

impl RolloutBudget {
    /// At most `overall` objects, at least one. Each has ten minutes.
    pub fn new(overall: usize) -> Self {
        let overall = overall.max(1);
        Self {
            overall,
            per_namespace: overall,
            deadline: Duration::from_mins(10),
        }
    }

    /// At most `limit` objects of one namespace.
    #[must_use]
    pub fn per_namespace(self, limit: usize) -> Self {
        Self {
            per_namespace: limit.max(1),
            ..self
        }
    }

    /// An object that is not ready after this time returns its slot and continues.
    #[must_use]
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }
}

/// This number of objects at the head of the queue tries to begin when something changes. The first ones may be in a namespace without
/// a free slot.
const WOKEN: usize = 32;

/// The objects with a slot, and the queue of those that wait for one.
pub(crate) struct Slots {
    budget: RolloutBudget,
    state: Mutex<State>,
    /// The length of the queue.
    pub waiting: Gauge,
}

#[derive(Default)]
struct State {
    /// Until every object was reconciled once, the rollouts under way and the oldest object are not known.
    open: bool,
    holders: HashMap<ObjectKey, Holder>,
    queue: BTreeSet<Place>,
    places: HashMap<ObjectKey, Place>,
    /// The number of slots that an object had in vain.
    attempts: HashMap<ObjectKey, u32>,
}

/// Objects with fewer attempts come first, then the oldest.
type Place = (u32, Timestamp, ObjectKey);

#[cfg_attr(not(feature = "olm"), allow(dead_code))]
struct Holder {
    since: Instant,
    /// A user began the rollout, and it has not failed.
    by_user: bool,
    /// The failure of the former rollout may still be visible.
    is_new: bool,
    /// Its deadline has passed, so another object may use its slot.
    expired: bool,
}

/// The answer to a request for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The object may change its pods.
    Granted,
    /// It has to wait.
    Queued {
        /// It is among the first, and should try again even if nothing wakes it.
        first: bool,
        /// It was not in the queue before.
        is_new: bool,
    },
}

impl Slots {
    pub fn new(budget: RolloutBudget) -> Self {
        Self {
            budget,
            state: Mutex::default(),
            waiting: Gauge::default(),
        }
    }

    /// Every object was reconciled once. Returns the first that wait.
    pub fn open(&self) -> Vec<ObjectKey> {
        let mut state = self.lock();
        state.open = true;
        state.first()
    }

    /// Asks for a slot. `created` is the object's age.
    pub fn try_acquire(&self, key: &ObjectKey, created: Timestamp) -> Slot {
        let mut state = self.lock();
        state.expire(self.budget.deadline);
        if state.holders.contains_key(key) {
            return Slot::Granted;
        }
        let is_new = state.enqueue(key, created);
        let granted = state.open && state.has_slot(&self.budget, key);
        if granted {
            state.hold(key, false);
        }
        let first = state.queue.iter().take(WOKEN).any(|(.., queued)| queued == key);
        self.note(&state);
        match granted {
            true => Slot::Granted,
            false => Slot::Queued { first, is_new },
        }
    }

    /// The pods of the object are changing: a user asked for it, or the operator before a restart.
    pub fn hold(&self, key: &ObjectKey) {
        let mut state = self.lock();
        state.attempts.remove(key);
        if !state.holders.contains_key(key) {
            let by_user = state.open;
            state.hold(key, by_user);
        }
        self.note(&state);
    }

    /// A user has changed the object. Its rollout may follow a failed one.
    pub fn hold_for_user(&self, key: &ObjectKey) {
        self.hold(key);
        if let Some(holder) = self.lock().holders.get_mut(key) {
            (holder.by_user, holder.is_new) = (true, true);
        }
    }

    /// Returns true if a user began the object's rollout, and the rollout has not failed. A program that ends again and again runs in
    /// between, so one failure counts until the next change. `failed`: the object is reported as failed.
    #[cfg(feature = "olm")]
    pub fn is_by_user(&self, key: &ObjectKey, failed: bool) -> bool {
        let mut state = self.lock();
        let holder = state.holders.get_mut(key);
        holder.is_some_and(|holder| {
            holder.by_user &= !failed || holder.is_new;
            holder.is_new &= failed;
            holder.by_user && !failed
        })
    }

    /// The pods of the object are as desired, or it was deleted. Returns the objects that may begin.
    pub fn release(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        let mut state = self.lock();
        state.attempts.remove(key);
        self.leave(&mut state, key)
    }

    /// The API server refused the change. Others come before the object next time. Returns those that may begin.
    pub fn give_up(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        let mut state = self.lock();
        let attempts = state.attempts.entry(key.clone()).or_default();
        *attempts = attempts.saturating_add(1);
        self.leave(&mut state, key)
    }

    /// The object does not wait any more, as when a user pauses it. Returns those that may begin.
    pub fn leave_queue(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        let mut state = self.lock();
        let queued = state.dequeue(key);
        self.note(&state);
        if queued { state.first() } else { Vec::new() }
    }

    fn leave(&self, state: &mut State, key: &ObjectKey) -> Vec<ObjectKey> {
        let held = state.holders.remove(key).is_some();
        let queued = state.dequeue(key);
        self.note(state);
        if held || queued { state.first() } else { Vec::new() }
    }

    fn note(&self, state: &State) {
        self.waiting.set(i64::try_from(state.queue.len()).unwrap_or(i64::MAX));
    }

    /// A poisoned lock is safe to use: each change is a few map operations.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The first objects of the queue, if it is open.
    fn first(&self) -> Vec<ObjectKey> {
        let count = if self.open { WOKEN } else { 0 };
        self.queue.iter().take(count).map(|(.., key)| key.clone()).collect()
    }

    /// Returns true if the object was not in the queue.
    fn enqueue(&mut self, key: &ObjectKey, created: Timestamp) -> bool {
        let is_new = !self.dequeue(key);
        let attempts = self.attempts.get(key).copied().unwrap_or(0);
        let place = (attempts, created, key.clone());
        self.queue.insert(place.clone());
        self.places.insert(key.clone(), place);
        is_new
    }

    fn dequeue(&mut self, key: &ObjectKey) -> bool {
        match self.places.remove(key) {
            Some(place) => self.queue.remove(&place),
            None => false,
        }
    }

    fn hold(&mut self, key: &ObjectKey, by_user: bool) {
        self.dequeue(key);
        let holder = Holder {
            since: Instant::now(),
            by_user,
            is_new: false,
            expired: false,
        };
        self.holders.insert(key.clone(), holder);
    }

    /// Returns true if there is a slot for `key`, after those that are before it in the queue.
    fn has_slot(&self, budget: &RolloutBudget, key: &ObjectKey) -> bool {
        let mut used: HashMap<&str, usize> = HashMap::new();
        for (key, _) in self.holders.iter().filter(|(_, holder)| !holder.expired) {
            *used.entry(&key.namespace).or_default() += 1;
        }
        // Objects that users change need no free slot. They must not use up those of other namespaces.
        let mut all: usize = used.values().map(|count| (*count).min(budget.per_namespace)).sum();
        for (.., queued) in &self.queue {
            if all >= budget.overall {
                return false;
            }
            let count = used.entry(&queued.namespace).or_default();
            let is_free = *count < budget.per_namespace;
            if queued == key {
                return is_free;
            }
            if is_free {
                *count += 1;
                all += 1;
            }
        }
        false
    }

    fn expire(&mut self, deadline: Duration) {
        for holder in self.holders.values_mut() {
            holder.expired |= holder.since.elapsed() >= deadline;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::new(namespace, name)
    }

    fn open(budget: RolloutBudget) -> Slots {
        let slots = Slots::new(budget);
        slots.open();
        slots
    }

    /// Asks for the object whose age is the number in its name.
    fn ask(slots: &Slots, key: &ObjectKey) -> bool {
        let age = key.name.parse().unwrap_or(0);
        slots.try_acquire(key, Timestamp::from_second(age).unwrap()) == Slot::Granted
    }

    #[test]
    fn slots_are_limited_overall_and_by_namespace() {
        let slots = open(RolloutBudget::new(2).per_namespace(1));
        assert!(ask(&slots, &key("a", "1")));
        assert!(ask(&slots, &key("a", "1")), "it has one");
        assert!(!ask(&slots, &key("a", "2")), "its namespace is full");
        assert!(ask(&slots, &key("b", "3")), "another namespace is not");
        assert!(!ask(&slots, &key("c", "4")));
        assert_eq!(slots.waiting.get(), 2);
        assert_eq!(slots.release(&key("b", "3")), [key("a", "2"), key("c", "4")]);
        assert!(!ask(&slots, &key("a", "2")));
        assert!(ask(&slots, &key("c", "4")));
        slots.release(&key("a", "1"));
        assert!(ask(&slots, &key("a", "2")));
        assert_eq!(slots.waiting.get(), 0);
    }

    #[test]
    fn the_oldest_object_begins_when_all_are_known() {
        let slots = Slots::new(RolloutBudget::new(1));
        assert!(!ask(&slots, &key("a", "2")));
        assert!(!ask(&slots, &key("a", "1")));
        assert_eq!(slots.open(), [key("a", "1"), key("a", "2")]);
        assert!(!ask(&slots, &key("a", "2")));
        assert!(ask(&slots, &key("a", "1")));
    }

    #[test]
    fn a_refused_object_lets_others_go_first() {
        let slots = open(RolloutBudget::new(1));
        assert!(ask(&slots, &key("a", "1")));
        assert!(!ask(&slots, &key("a", "2")));
        assert_eq!(slots.give_up(&key("a", "1")), [key("a", "2")]);
        assert!(!ask(&slots, &key("a", "1")));
        assert!(ask(&slots, &key("a", "2")));
    }

    #[test]
    fn changes_of_users_do_not_stop_other_namespaces() {
        let slots = open(RolloutBudget::new(2).per_namespace(1));
        for name in ["1", "2", "3"] {
            slots.hold(&key("a", name));
        }
        assert!(!ask(&slots, &key("a", "4")));
        assert!(ask(&slots, &key("b", "5")));
    }

    #[cfg(feature = "olm")]
    #[test]
    fn a_failed_rollout_is_the_users_again_after_a_change() {
        let (slots, object) = (open(RolloutBudget::new(1)), key("a", "1"));
        assert!(!slots.is_by_user(&object, false), "no rollout");
        slots.hold(&object);
        assert!(slots.is_by_user(&object, false));
        assert!(!slots.is_by_user(&object, true));
        slots.hold(&object);
        assert!(!slots.is_by_user(&object, false), "the program runs again");
        slots.hold_for_user(&object);
        assert!(!slots.is_by_user(&object, true), "the former program");
        assert!(slots.is_by_user(&object, false), "the new one");
        assert!(!slots.is_by_user(&object, true));
        assert!(!slots.is_by_user(&object, false));
        slots.release(&object);
        assert!(ask(&slots, &object));
        assert!(!slots.is_by_user(&object, false), "the operator's");
        slots.hold_for_user(&object);
        assert!(slots.is_by_user(&object, false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_object_does_not_stop_the_others() {
        let slots = open(RolloutBudget::new(1).deadline(Duration::from_secs(60)));
        slots.hold(&key("a", "1"));
        assert!(!ask(&slots, &key("a", "2")));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(ask(&slots, &key("a", "2")));
        assert!(ask(&slots, &key("a", "1")), "it goes on");
        assert_eq!(slots.release(&key("a", "2")), Vec::<ObjectKey>::new());
    }
}
