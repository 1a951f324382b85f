//! Limits how many objects change their pods at the same time.
//!
//! A new version of an operator changes the pods of all its objects. With a [`RolloutBudget`] a few of them begin, and the others
//! follow when those are ready. An object that does not become ready gives its slot back after a deadline, so one broken object
//! does not stop the others.
use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

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

    /// An object that is not ready after this time gives its slot back and goes on.
    #[must_use]
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }
}

/// Who has a slot, and who waits for one.
pub(crate) struct Slots {
    budget: RolloutBudget,
    state: Mutex<State>,
    /// The length of the queue.
    pub waiting: Gauge,
}

#[derive(Default)]
struct State {
    holders: HashMap<ObjectKey, Holder>,
    queue: VecDeque<ObjectKey>,
}

struct Holder {
    since: Instant,
    /// Its deadline has passed, so its slot is another's.
    expired: bool,
}

/// The answer to a request for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The object may change its pods.
    Granted,
    /// It has to wait. So many objects are ahead of it.
    Queued(usize),
}

impl Slots {
    pub fn new(budget: RolloutBudget) -> Self {
        Self {
            budget,
            state: Mutex::default(),
            waiting: Gauge::default(),
        }
    }

    /// Asks for a slot.
    pub fn try_acquire(&self, key: &ObjectKey) -> Slot {
        let mut state = self.lock();
        state.expire(self.budget.deadline);
        if state.holders.contains_key(key) {
            return Slot::Granted;
        }
        if !state.queue.contains(key) {
            state.queue.push_back(key.clone());
        }
        let ahead = state.queue.iter().position(|queued| queued == key).unwrap_or(0);
        // One ahead whose namespace is full does not stop others.
        let mut free = self.budget.overall.saturating_sub(state.active(None));
        for queued in state.queue.iter().take(ahead) {
            if state.active(Some(&queued.namespace)) < self.budget.per_namespace {
                free = free.saturating_sub(1);
            }
        }
        let granted = free > 0 && state.active(Some(&key.namespace)) < self.budget.per_namespace;
        if granted {
            state.hold(key);
        }
        self.note(&state);
        if granted { Slot::Granted } else { Slot::Queued(ahead) }
    }

    /// The pods of the object are changing, with or without a slot: after a restart, for example.
    pub fn hold(&self, key: &ObjectKey) {
        let mut state = self.lock();
        if !state.holders.contains_key(key) {
            state.hold(key);
        }
        self.note(&state);
    }

    /// The object is ready or gone. Returns the objects that wait, in their order.
    pub fn release(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        let mut state = self.lock();
        let held = state.holders.remove(key).is_some();
        state.queue.retain(|queued| queued != key);
        self.note(&state);
        if held {
            state.queue.iter().cloned().collect()
        } else {
            Vec::new()
        }
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
    fn hold(&mut self, key: &ObjectKey) {
        self.queue.retain(|queued| queued != key);
        self.holders.insert(
            key.clone(),
            Holder {
                since: Instant::now(),
                expired: false,
            },
        );
    }

    fn active(&self, namespace: Option<&str>) -> usize {
        let active = self.holders.iter().filter(|(_, holder)| !holder.expired);
        active
            .filter(|(key, _)| namespace.is_none_or(|namespace| key.namespace == namespace))
            .count()
    }

    fn expire(&mut self, deadline: Duration) {
        for (key, holder) in &mut self.holders {
            if !holder.expired && holder.since.elapsed() >= deadline {
                holder.expired = true;
                tracing::warn!(object = %key, "not ready within the deadline of its rollout; the next object begins");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::new(namespace, name)
    }

    #[tokio::test(start_paused = true)]
    async fn slots_are_limited_overall_and_by_namespace() {
        let slots = Slots::new(RolloutBudget::new(2).per_namespace(1));
        assert_eq!(slots.try_acquire(&key("a", "1")), Slot::Granted);
        assert_eq!(slots.try_acquire(&key("a", "1")), Slot::Granted, "it has one");
        assert_eq!(
            slots.try_acquire(&key("a", "2")),
            Slot::Queued(0),
            "its namespace is full"
        );
        assert_eq!(
            slots.try_acquire(&key("b", "1")),
            Slot::Granted,
            "another namespace is not"
        );
        assert_eq!(slots.try_acquire(&key("c", "1")), Slot::Queued(1));
        assert_eq!(slots.waiting.get(), 2);
        assert_eq!(slots.release(&key("b", "1")), [key("a", "2"), key("c", "1")]);
        assert_eq!(slots.try_acquire(&key("a", "2")), Slot::Queued(0));
        assert_eq!(slots.try_acquire(&key("c", "1")), Slot::Granted);
        slots.release(&key("a", "1"));
        assert_eq!(slots.try_acquire(&key("a", "2")), Slot::Granted);
        assert_eq!(slots.waiting.get(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_object_does_not_stop_the_others() {
        let slots = Slots::new(RolloutBudget::new(1).deadline(Duration::from_secs(60)));
        slots.hold(&key("a", "broken"));
        assert_eq!(slots.try_acquire(&key("a", "next")), Slot::Queued(0));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(slots.try_acquire(&key("a", "next")), Slot::Granted);
        assert_eq!(slots.try_acquire(&key("a", "broken")), Slot::Granted, "it goes on");
        assert_eq!(slots.release(&key("a", "next")), Vec::<ObjectKey>::new());
    }
}
