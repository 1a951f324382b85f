//! Work queue of object keys.
//!
//! Watches add keys, workers take them. The queue contains each key at most once. A key that is added while a worker
//! processes it is handed out again when the worker is done, so no change is missed. On a standby replica, where no
//! worker takes keys, the queue is bounded by the number of objects, and its metrics say that it is empty: keys count as
//! waiting from when the first is asked for.
//!
//! The queue is fair: [tenants](QueueKey::tenant) (for objects their namespaces) take turns, and
//! [`with_share`](WorkQueue::with_share) or [`fair`](WorkQueue::fair) keeps one tenant from occupying all workers. Keys of
//! changes go before keys of the [first list](WorkQueue::add_listed), and those before keys that were added
//! [last](WorkQueue::add_last). Each eighth key is one of those that have to wait. Keys that were added last occupy at most an
//! eighth of the workers, so that the API server is not busy with them when a change comes.
//!
//! The back-off of a key ends with [`succeeded`](WorkQueue::succeeded) and with nothing else. As in client-go, a change
//! of the object ([`add`](WorkQueue::add)) is worth an attempt at once, and if that fails too, the next delay is longer.
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{
    backoff::Backoff,
    cause::{ADDED, LISTED, PUT_OFF, REQUEUE, retry},
    lanes::Lanes,
    metrics::QueueMetrics,
};
pub use crate::{cause::Cause, lanes::QueueKey};

/// A queue of keys: see the [module](self).
pub struct WorkQueue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    backoff: Backoff,
    metrics: Option<QueueMetrics>,
}

struct State<K> {
    /// Keys of changes, of the first list, and those that were added last: by rank.
    lanes: [Lanes<K>; 3],
    /// Number of keys that were taken.
    taken: u64,
    /// Keys to process. Keys in `running` are in no lane.
    waiting: HashMap<K, Waiting>,
    /// Keys that workers are processing.
    running: HashMap<K, Running>,
    /// Number of running keys by tenant.
    busy: HashMap<String, usize>,
    /// Maximum number of running keys of one tenant.
    share: usize,
    /// Maximum number of running keys that were added last.
    last: usize,
    /// Since when keys are taken.
    begun: Option<Instant>,
    /// True if `share` follows from the number of workers.
    fair: bool,
    /// The only tenant that there can be, which needs no share.
    sole: Option<String>,
    /// Keys to add at a later time, by time.
    later: BTreeMap<(Instant, u64), (K, Cause)>,
    /// Where a key is in `later`.
    due: HashMap<K, (Instant, u64)>,
    /// Distinguishes keys that are due at the same time.
    sequence: u64,
    /// Consecutive failures by key.
    failures: HashMap<K, u32>,
    closed: bool,
}

/// The cause for a waiting key. Earlier variants have priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Its object has changed.
    Changed,
    /// It was only listed.
    Listed,
    /// The work can wait.
    Last,
}

/// One key in this number is taken in the reverse order of ranks, so that endless changes do not block the others.
const REVERSED: u64 = 8;

/// How a key waits.
struct Waiting {
    since: Instant,
    rank: Rank,
    cause: Cause,
    /// True if it was added last, whatever has raised its rank since: work that was begun is not finished.
    owed: bool,
}

/// How a key is processed.
struct Running {
    since: Instant,
    rank: Rank,
    cause: Cause,
}

/// In place of a delay that the clock cannot represent.
const CENTURY: Duration = Duration::from_hours(24 * 365 * 100);

/// The time after `delay`.
fn after(delay: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(delay).unwrap_or(now + CENTURY)
}

impl<K: QueueKey> WorkQueue<K> {
    /// An empty queue that delays failed keys by `backoff`.
    pub fn new(backoff: Backoff, metrics: Option<QueueMetrics>) -> Self {
        let state = State {
            lanes: [Lanes::default(), Lanes::default(), Lanes::default()],
            taken: 0,
            waiting: HashMap::new(),
            running: HashMap::new(),
            busy: HashMap::new(),
            share: usize::MAX,
            last: usize::MAX,
            begun: None,
            fair: false,
            sole: None,
            later: BTreeMap::new(),
            due: HashMap::new(),
            sequence: 0,
            failures: HashMap::new(),
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
            backoff,
            metrics,
        }
    }

    /// Lets one tenant occupy at most `share` workers. Keys without a tenant may occupy all.
    #[must_use]
    pub fn with_share(self, share: usize) -> Self {
        let mut state = self.lock();
        state.share = share.max(1);
        state.fair = false;
        drop(state);
        self
    }

    /// Lets one tenant occupy at most three quarters of the workers that [`run`](crate::worker::run) has, and with two or
    /// more not all of them. Keys without a tenant, and those of `sole`, the only tenant that there can be, may occupy all.
    #[must_use]
    pub fn fair(self, sole: Option<String>) -> Self {
        let mut state = self.lock();
        state.fair = true;
        state.sole = sole;
        drop(state);
        self
    }

    /// Before the first key is taken: there are `workers`.
    pub(crate) fn begin(&self, workers: usize) {
        let mut state = self.lock();
        state.last = workers.div_ceil(8);
        if state.fair {
            state.share = (workers - workers.div_ceil(4)).max(1);
        }
    }

    /// Adds `key`, whose object has changed, now and cancels its pending delay. Its back-off stays.
    pub fn add(&self, key: K) {
        self.add_because(key, ADDED);
    }

    /// As [`add`](Self::add), with a cause for the log.
    pub fn add_because(&self, key: K, cause: impl Into<Cause>) {
        self.insert(key, Rank::Changed, cause.into());
    }

    /// Adds `key`, whose object was listed, behind all changes.
    pub fn add_listed(&self, key: K) {
        self.insert(key, Rank::Listed, LISTED);
    }

    /// Adds `key` behind all others and cancels its pending delay. Use it for work that can wait, such as a status update
    /// while other objects wait for their managed objects.
    pub fn add_last(&self, key: K) {
        self.insert(key, Rank::Last, PUT_OFF);
    }

    fn insert(&self, key: K, rank: Rank, cause: Cause) {
        let mut state = self.lock();
        state.cancel(&key);
        if state.add(key, Instant::now(), rank, cause)
            && let Some(metrics) = &self.metrics
        {
            metrics.adds.inc();
        }
        self.note_depth(&state);
        drop(state);
        self.changed.notify_one();
    }

    /// Adds `key` after `delay`, unless it is due earlier.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_after_because(key, delay, REQUEUE);
    }

    /// As [`add_after`](Self::add_after), with a cause for the log.
    pub fn add_after_because(&self, key: K, delay: Duration, cause: impl Into<Cause>) {
        self.lock().schedule(key, after(delay), cause.into());
        // As client-go, which counts every key that is added with a delay.
        if let Some(metrics) = &self.metrics {
            metrics.retries.inc();
        }
        self.changed.notify_one();
    }

    /// Waits for the next key. `None` once the queue is closed. Pass each key to [`succeeded`](Self::succeeded) or
    /// [`failed`](Self::failed) when done.
    pub async fn next(&self) -> Option<K> {
        loop {
            let wake_at = {
                let mut state = self.lock();
                if state.closed {
                    return None;
                }
                let now = Instant::now();
                if state.begun.is_none() {
                    state.begun = Some(now);
                    self.note_depth(&state);
                }
                let added = state.promote_due(now);
                if let Some(metrics) = &self.metrics {
                    metrics.adds.inc_by(added);
                }
                if let Some(key) = state.take(now, self.metrics.as_ref()) {
                    self.note_depth(&state);
                    if state.len() > 0 {
                        self.changed.notify_one();
                    }
                    return Some(key);
                }
                state.later.keys().next().map(|(at, _)| *at)
            };
            match wake_at {
                Some(at) => tokio::select! {
                    () = self.changed.notified() => {}
                    () = sleep_until(at) => {}
                },
                None => self.changed.notified().await,
            }
        }
    }

    /// A key that was [added last](Self::add_last), if one waits: before a program ends, it finishes what it has begun.
    pub(crate) fn next_owed(&self) -> Option<K> {
        let mut state = self.lock();
        let mut owed = state
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.owed)
            .map(|(key, _)| key);
        let key = owed.find(|key| !state.running.contains_key(key))?.clone();
        let rank = state.waiting.get(&key)?.rank;
        lane(&mut state.lanes, rank).remove(&key);
        state.hand_out(&key, rank, Instant::now(), self.metrics.as_ref());
        self.note_depth(&state);
        Some(key)
    }

    /// Marks `key` as done and resets its back-off.
    pub fn succeeded(&self, key: &K) {
        let mut state = self.lock();
        state.failures.remove(key);
        self.give_back(&mut state, key);
        drop(state);
        self.changed.notify_one();
    }

    /// Marks `key` as failed. It is handed out again after the returned delay, or when it is added again.
    pub fn failed(&self, key: &K) -> Duration {
        self.failed_for(key, Duration::ZERO)
    }

    /// As [`failed`](Self::failed), with a delay of at least `at_least`: what the API server asked for.
    pub fn failed_for(&self, key: &K, at_least: Duration) -> Duration {
        self.fail(key, 1, |failures| self.backoff.delay(failures).max(at_least))
    }

    /// As [`failed`](Self::failed), after `delay`. Nothing was attempted, so it does not count as a further failure.
    pub(crate) fn failed_again(&self, key: &K, delay: Duration) -> Duration {
        self.fail(key, 0, |_| delay)
    }

    fn fail(&self, key: &K, count: u32, delay: impl FnOnce(u32) -> Duration) -> Duration {
        let mut state = self.lock();
        let failures = state.failures.entry(key.clone()).or_insert(0);
        *failures = failures.saturating_add(count);
        let failures = *failures;
        let delay = delay(failures);
        self.give_back(&mut state, key);
        if !state.waiting.contains_key(key) {
            state.schedule(key.clone(), after(delay), retry(failures));
        }
        if let Some(metrics) = &self.metrics {
            metrics.retries.inc();
        }
        drop(state);
        self.changed.notify_one();
        delay
    }

    /// Consecutive failures of `key`.
    pub fn failures(&self, key: &K) -> u32 {
        self.lock().failures.get(key).copied().unwrap_or(0)
    }

    /// Why `key`, which is being processed, was in the queue.
    pub fn cause(&self, key: &K) -> Option<Cause> {
        self.lock().running.get(key).map(|running| running.cause.clone())
    }

    /// Stops handing out keys. Workers may still mark their keys as done.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// Number of keys that wait for a worker.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns true if no key waits for a worker.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if every key of the first list has been processed once.
    pub fn caught_up(&self) -> bool {
        let state = self.lock();
        let [_, listed, _] = &state.lanes;
        listed.len == 0 && !state.running.values().any(|running| running.rank == Rank::Listed)
    }

    /// Returns true if keys other than `key` wait or are being processed.
    pub fn has_others(&self, key: &K) -> bool {
        let state = self.lock();
        state.len() > 0 || state.running.keys().any(|running| running != key)
    }

    /// Seconds for which keys have been processed and are not done: the sum, and the longest.
    pub fn unfinished(&self) -> (f64, f64) {
        let now = Instant::now();
        let state = self.lock();
        let ages = state
            .running
            .values()
            .map(|running| now.duration_since(running.since).as_secs_f64());
        ages.fold((0.0, 0.0), |(sum, longest), age| (sum + age, f64::max(longest, age)))
    }

    fn give_back(&self, state: &mut State<K>, key: &K) {
        let began = state.give_back(key);
        if let (Some(began), Some(metrics)) = (began, &self.metrics) {
            metrics.worked.observe(began.elapsed().as_secs_f64());
        }
        self.note_depth(state);
    }

    fn note_depth(&self, state: &State<K>) {
        if let Some(metrics) = &self.metrics
            && state.begun.is_some()
        {
            metrics.depth.set(i64::try_from(state.len()).unwrap_or(i64::MAX));
        }
    }

    /// A poisoned lock is safe to use: each change is a few map operations, so a panic leaves the state consistent.
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the keys of a rank wait.
fn lane<K>([changed, listed, last]: &mut [Lanes<K>; 3], rank: Rank) -> &mut Lanes<K> {
    match rank {
        Rank::Changed => changed,
        Rank::Listed => listed,
        Rank::Last => last,
    }
}

impl<K: QueueKey> State<K> {
    fn len(&self) -> usize {
        self.lanes.iter().map(|lanes| lanes.len).sum()
    }

    /// Returns whether the key was not waiting yet.
    fn add(&mut self, key: K, now: Instant, rank: Rank, cause: Cause) -> bool {
        if let Some(known) = self.waiting.get_mut(&key) {
            known.owed |= rank == Rank::Last;
            if known.rank > rank {
                let before = std::mem::replace(&mut known.rank, rank);
                known.cause = cause;
                if !self.running.contains_key(&key) {
                    lane(&mut self.lanes, before).remove(&key);
                    lane(&mut self.lanes, rank).push(key);
                }
            }
            return false;
        }
        let owed = rank == Rank::Last;
        let waiting = Waiting {
            since: now,
            rank,
            cause,
            owed,
        };
        self.waiting.insert(key.clone(), waiting);
        if !self.running.contains_key(&key) {
            lane(&mut self.lanes, rank).push(key);
        }
        true
    }

    /// Adds `key` at `at`, unless it is due earlier.
    fn schedule(&mut self, key: K, at: Instant, cause: Cause) {
        if self.due.get(&key).is_some_and(|(earlier, _)| *earlier <= at) {
            return;
        }
        self.cancel(&key);
        self.sequence += 1;
        self.due.insert(key.clone(), (at, self.sequence));
        self.later.insert((at, self.sequence), (key, cause));
    }

    fn cancel(&mut self, key: &K) {
        if let Some(place) = self.due.remove(key) {
            self.later.remove(&place);
        }
    }

    /// Returns the number of keys that were added.
    fn promote_due(&mut self, now: Instant) -> u64 {
        let mut added = 0;
        while let Some(entry) = self.later.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let (key, cause) = entry.remove();
            self.due.remove(&key);
            added += u64::from(self.add(key, now, Rank::Changed, cause));
        }
        added
    }

    fn take(&mut self, now: Instant, metrics: Option<&QueueMetrics>) -> Option<K> {
        let (busy, share, sole) = (&self.busy, self.share, self.sole.as_deref());
        let free = |tenant: &str| {
            // Without another tenant, no key would use a free worker.
            tenant.is_empty() || sole == Some(tenant) || busy.get(tenant).is_none_or(|running| *running < share)
        };
        let mut ranks = [Rank::Changed, Rank::Listed, Rank::Last];
        if (self.taken + 1).is_multiple_of(REVERSED) {
            ranks.reverse();
        }
        let of_last = self.running.values().filter(|running| running.rank == Rank::Last);
        let last_may_run = of_last.count() < self.last;
        let lanes = &mut self.lanes;
        let mut ranks = ranks.into_iter().filter(|rank| *rank != Rank::Last || last_may_run);
        let (rank, key) = ranks.find_map(|rank| Some((rank, lane(lanes, rank).pop(free)?)))?;
        self.hand_out(&key, rank, now, metrics);
        Some(key)
    }

    /// Notes that `key`, which is in no lane any more, is processed from now on.
    fn hand_out(&mut self, key: &K, rank: Rank, now: Instant, metrics: Option<&QueueMetrics>) {
        self.taken += 1;
        let waiting = self.waiting.remove(key);
        if let Some(metrics) = metrics {
            let since = waiting.as_ref().map_or(now, |waiting| waiting.since);
            let since = self.begun.map_or(since, |begun| begun.max(since));
            metrics.waited.observe(now.duration_since(since).as_secs_f64());
        }
        *self.busy.entry(key.tenant().to_owned()).or_insert(0) += 1;
        let running = Running {
            since: now,
            rank,
            cause: waiting.map_or(ADDED, |waiting| waiting.cause),
        };
        self.running.insert(key.clone(), running);
    }

    /// Returns when the work on `key` began.
    fn give_back(&mut self, key: &K) -> Option<Instant> {
        let began = self.running.remove(key)?.since;
        if let Some(running) = self.busy.get_mut(key.tenant()) {
            *running -= 1;
            if *running == 0 {
                self.busy.remove(key.tenant());
            }
        }
        if let Some(waiting) = self.waiting.get(key) {
            let rank = waiting.rank;
            lane(&mut self.lanes, rank).push(key.clone());
        }
        Some(began)
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
