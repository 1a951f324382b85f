//! Work queue of object keys.
//!
//! Watches add keys, workers take them. The queue holds each key at most once. A key that is added while a worker
//! processes it is handed out again when the worker is done, so no change is missed. On a standby replica, where no
//! worker takes keys, the queue is bounded by the number of objects.
use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{backoff::Backoff, metrics::QueueMetrics};

/// A queue of keys: see the [module](self).
pub struct WorkQueue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    backoff: Backoff,
    metrics: Option<QueueMetrics>,
}

struct State<K> {
    /// Keys to process, oldest first. Each is in `waiting` too.
    ready: VecDeque<K>,
    /// Keys to process, with the time they were added. Keys in `running` are not in `ready`.
    waiting: HashMap<K, Instant>,
    /// Keys that workers are processing.
    running: HashSet<K>,
    /// Keys to add at a later time.
    later: HashMap<K, Instant>,
    /// Consecutive failures by key.
    failures: HashMap<K, u32>,
    closed: bool,
}

impl<K: Clone + Eq + Hash> WorkQueue<K> {
    /// An empty queue that delays failed keys by `backoff`.
    pub fn new(backoff: Backoff, metrics: Option<QueueMetrics>) -> Self {
        let state = State {
            ready: VecDeque::new(),
            waiting: HashMap::new(),
            running: HashSet::new(),
            later: HashMap::new(),
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

    /// Adds `key` now and cancels its pending delay.
    pub fn add(&self, key: K) {
        let mut state = self.lock();
        if let Some(metrics) = &self.metrics {
            metrics.adds.inc();
        }
        state.later.remove(&key);
        state.add(key, Instant::now());
        self.note_depth(&state);
        drop(state);
        self.changed.notify_one();
    }

    /// Adds `key` after `delay`, unless it is due earlier.
    pub fn add_after(&self, key: K, delay: Duration) {
        let mut state = self.lock();
        let at = Instant::now() + delay;
        state
            .later
            .entry(key)
            .and_modify(|earlier| *earlier = at.min(*earlier))
            .or_insert(at);
        drop(state);
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
                state.promote_due(now);
                if let Some(key) = state.take(now, self.metrics.as_ref()) {
                    self.note_depth(&state);
                    if !state.ready.is_empty() {
                        self.changed.notify_one();
                    }
                    return Some(key);
                }
                state.later.values().min().copied()
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

    /// Marks `key` as done and resets its back-off.
    pub fn succeeded(&self, key: &K) {
        let mut state = self.lock();
        state.failures.remove(key);
        state.give_back(key);
        drop(state);
        self.changed.notify_one();
    }

    /// Marks `key` as failed. It is handed out again after the returned delay, or as soon as it is added.
    pub fn failed(&self, key: &K) -> Duration {
        let mut state = self.lock();
        let failures = state.failures.entry(key.clone()).or_insert(0);
        *failures = failures.saturating_add(1);
        let delay = self.backoff.delay(*failures);
        state.give_back(key);
        if !state.waiting.contains_key(key) {
            state.later.insert(key.clone(), Instant::now() + delay);
        }
        if let Some(metrics) = &self.metrics {
            metrics.retries.inc();
        }
        drop(state);
        self.changed.notify_one();
        delay
    }

    /// Stops handing out keys. Workers may still mark their keys as done.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// Number of keys that wait for a worker.
    pub fn len(&self) -> usize {
        self.lock().ready.len()
    }

    /// Whether no key waits for a worker.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn note_depth(&self, state: &State<K>) {
        if let Some(metrics) = &self.metrics {
            metrics.depth.set(i64::try_from(state.ready.len()).unwrap_or(i64::MAX));
        }
    }

    /// A poisoned lock is safe to use: each change is a few map operations, so a panic leaves the state consistent.
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn add(&mut self, key: K, now: Instant) {
        if self.waiting.contains_key(&key) {
            return;
        }
        self.waiting.insert(key.clone(), now);
        if !self.running.contains(&key) {
            self.ready.push_back(key);
        }
    }

    fn promote_due(&mut self, now: Instant) {
        let due: Vec<K> = self
            .later
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in due {
            self.later.remove(&key);
            self.add(key, now);
        }
    }

    fn take(&mut self, now: Instant, metrics: Option<&QueueMetrics>) -> Option<K> {
        let key = self.ready.pop_front()?;
        if let (Some(since), Some(metrics)) = (self.waiting.remove(&key), metrics) {
            metrics.waited.observe(now.duration_since(since).as_secs_f64());
        }
        self.running.insert(key.clone());
        Some(key)
    }

    fn give_back(&mut self, key: &K) {
        self.running.remove(key);
        if self.waiting.contains_key(key) {
            self.ready.push_back(key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn queue() -> WorkQueue<&'static str> {
        WorkQueue::new(
            Backoff {
                base: Duration::from_secs(1),
                cap: Duration::from_secs(8),
                jitter: 0.0,
            },
            None,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_waits_once_however_often_it_is_added() {
        let queue = queue();
        queue.add("a");
        queue.add("b");
        queue.add("a");
        assert_eq!(queue.next().await, Some("a"));
        assert_eq!(queue.next().await, Some("b"));
        assert_eq!(queue.next().now_or_never(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_added_during_its_work_comes_again_afterwards() {
        let queue = queue();
        queue.add("a");
        assert_eq!(queue.next().await, Some("a"));
        queue.add("a");
        assert_eq!(queue.next().now_or_never(), None, "never two workers on one key");
        queue.succeeded(&"a");
        assert_eq!(queue.next().await, Some("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_wait_longer_each_time_and_success_forgets_them() {
        let queue = queue();
        let start = Instant::now();
        queue.add("a");
        for expected in [1, 2, 4, 8, 8] {
            let key = queue.next().await.unwrap();
            assert_eq!(queue.failed(&key), Duration::from_secs(expected));
        }
        let key = queue.next().await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 1 + 2 + 4 + 8 + 8);
        queue.succeeded(&key);
        queue.add("a");
        let key = queue.next().await.unwrap();
        assert_eq!(queue.failed(&key), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_overtakes_the_back_off() {
        let queue = queue();
        queue.add("a");
        let key = queue.next().await.unwrap();
        queue.failed(&key);
        queue.add("a");
        assert_eq!(queue.next().now_or_never(), Some(Some("a")));
        queue.succeeded(&"a");
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(
            queue.next().now_or_never(),
            None,
            "the delayed retry is dropped, not run in addition"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_queue_hands_out_nothing() {
        let queue = queue();
        queue.add("a");
        queue.close();
        assert_eq!(queue.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn several_workers_are_woken() {
        let queue = std::sync::Arc::new(queue());
        let workers: Vec<_> = (0..3)
            .map(|_| {
                tokio::spawn({
                    let queue = queue.clone();
                    async move { queue.next().await }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        for key in ["a", "b", "c"] {
            queue.add(key);
        }
        let mut taken: Vec<_> = futures::future::join_all(workers)
            .await
            .into_iter()
            .map(|key| key.unwrap().unwrap())
            .collect();
        taken.sort_unstable();
        assert_eq!(taken, ["a", "b", "c"]);
    }
}
