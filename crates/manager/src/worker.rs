//! Reconciles the keys of a queue.
use std::{
    any::Any,
    fmt::Display,
    future::Future,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::FutureExt;
use tokio::task::JoinSet;
use tracing::Instrument as _;

pub use crate::failure::{Failed, Failure};
use crate::{
    metrics::WorkerMetrics,
    queue::{QueueKey, WorkQueue},
    shutdown::CancellationToken,
};

/// The result of a successful reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Number of write requests.
    pub writes: u32,
    /// Short description for the log.
    pub outcome: String,
    /// Reconcile again after this time; `None` to rely on watches.
    pub requeue_after: Option<Duration>,
}

impl Done {
    /// Nothing was written.
    pub fn nothing(outcome: impl Into<String>) -> Self {
        Self::wrote(0, outcome)
    }

    /// `writes` requests were sent that may have changed something.
    pub fn wrote(writes: u32, outcome: impl Into<String>) -> Self {
        Self {
            writes,
            outcome: outcome.into(),
            requeue_after: None,
        }
    }

    /// The object is reconciled again after `delay` at the latest.
    #[must_use]
    pub fn requeue_after(self, delay: Duration) -> Self {
        Self {
            requeue_after: Some(delay),
            ..self
        }
    }
}

/// Limits on reconciles.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of concurrent reconciles.
    pub concurrency: usize,
    /// A reconcile that takes longer is cancelled and counts as failed.
    pub time: Duration,
}

/// A server that asks for more is not waited for longer.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// Reconciles the keys of `queue` until `stop` is cancelled, then waits for running reconciles.
///
/// A key is never reconciled twice at the same time. What a reconcile logs is in a span that names controller, object and
/// the number of the pass. Reconciles that wrote something or failed are logged at info or warn
/// level, all others at debug level.
pub async fn run<K, R, F, E>(
    queue: Arc<WorkQueue<K>>,
    limits: Limits,
    metrics: WorkerMetrics,
    stop: CancellationToken,
    reconcile: R,
) where
    K: QueueKey + Display + Send + Sync + 'static,
    R: Fn(K) -> F,
    F: Future<Output = Result<Done, E>> + Send + 'static,
    E: Failure + Send + 'static,
{
    let limit = limits.concurrency.max(1);
    metrics.limit.set(i64::try_from(limit).unwrap_or(i64::MAX));
    let mut running = JoinSet::new();
    let mut passes = 0_u64;
    loop {
        if running.len() >= limit {
            running.join_next().await;
            continue;
        }
        let key = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            _ = running.join_next(), if !running.is_empty() => continue,
            key = queue.next() => key,
        };
        let Some(key) = key else { break };
        passes += 1;
        let span = tracing::info_span!("reconcile", controller = %metrics.controller, object = %key, pass = passes);
        let work = span.in_scope(|| reconcile(key.clone())).instrument(span);
        running.spawn(one(Arc::clone(&queue), key, limits.time, metrics.clone(), work));
    }
    while running.join_next().await.is_some() {}
}

async fn one<K, F, E>(queue: Arc<WorkQueue<K>>, key: K, limit: Duration, metrics: WorkerMetrics, work: F)
where
    K: QueueKey + Display,
    F: Future<Output = Result<Done, E>>,
    E: Failure,
{
    let started = Instant::now();
    metrics.active.inc();
    // A panic ends only its own pass, which counts as failed.
    let result = AssertUnwindSafe(tokio::time::timeout(limit, work)).catch_unwind().await;
    metrics.active.dec();
    let took = started.elapsed();
    metrics.seconds.observe(took.as_secs_f64());
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let mut wait = Duration::ZERO;
    let error = match result {
        Ok(Ok(Ok(done))) => {
            queue.succeeded(&key);
            match done.requeue_after {
                Some(delay) => {
                    metrics.requeue_after.inc();
                    queue.add_after(key.clone(), delay);
                }
                None => {
                    metrics.success.inc();
                }
            }
            let Done { writes, outcome, .. } = done;
            if writes > 0 {
                tracing::info!(object = %key, %outcome, writes, duration_ms, "reconciled");
            } else {
                tracing::debug!(object = %key, %outcome, writes, duration_ms, "reconciled");
            }
            return;
        }
        Ok(Ok(Err(error))) => {
            wait = error.retry_after().unwrap_or_default().min(MAX_RETRY_AFTER);
            error.text()
        }
        Ok(Err(_)) => {
            metrics.timeouts.inc();
            format!("timed out after {limit:?}")
        }
        Err(panic) => {
            metrics.panics.inc();
            format!("panicked: {}", message(panic.as_ref()))
        }
    };
    metrics.error.inc();
    metrics.errors.inc();
    let retry = queue.failed_for(&key, wait);
    let retry_ms = u64::try_from(retry.as_millis()).unwrap_or(u64::MAX);
    tracing::warn!(object = %key, %error, duration_ms, retry_ms, "reconcile failed");
}

/// The text of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;
    use crate::{backoff::Backoff, metrics::Metrics};

    fn done() -> Done {
        Done {
            writes: 0,
            outcome: "settled".to_owned(),
            requeue_after: None,
        }
    }

    fn queue() -> Arc<WorkQueue<String>> {
        let backoff = Backoff {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(60),
            jitter: 0.0,
        };
        Arc::new(WorkQueue::new(backoff, None))
    }

    const LIMITS: Limits = Limits {
        concurrency: 2,
        time: Duration::from_secs(30),
    };

    #[tokio::test(start_paused = true)]
    async fn no_more_than_the_limit_run_at_a_time() {
        let (queue, stop) = (queue(), CancellationToken::new());
        for index in 0..6 {
            queue.add(format!("ns/{index}"));
        }
        let now = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let work = {
            let (now, most) = (now.clone(), most.clone());
            move |_| {
                let (now, most) = (now.clone(), most.clone());
                async move {
                    most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    now.fetch_sub(1, SeqCst);
                    Ok::<_, String>(done())
                }
            }
        };
        let metrics = Metrics::new().workers("test");
        let workers = tokio::spawn(run(queue.clone(), LIMITS, metrics.clone(), stop.clone(), work));
        tokio::time::sleep(Duration::from_millis(3500)).await;
        stop.cancel();
        workers.await.unwrap();
        assert_eq!((most.load(SeqCst), metrics.success.get()), (2, 6));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_lets_running_work_finish_and_starts_nothing() {
        let (queue, stop) = (queue(), CancellationToken::new());
        let metrics = Metrics::new().workers("test");
        for index in 0..5 {
            queue.add(format!("ns/{index}"));
        }
        let work = |_| async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok::<_, String>(done())
        };
        let workers = tokio::spawn(run(queue.clone(), LIMITS, metrics.clone(), stop.clone(), work));
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
        workers.await.unwrap();
        assert_eq!((metrics.success.get(), queue.len()), (2, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_hangs_is_cut_off_and_tried_again() {
        let (queue, stop) = (queue(), CancellationToken::new());
        let metrics = Metrics::new().workers("test");
        queue.add("ns/hangs".to_owned());
        let work = |_| std::future::pending::<Result<Done, String>>();
        let workers = tokio::spawn(run(queue.clone(), LIMITS, metrics.clone(), stop.clone(), work));
        // 30 s, 1 s pause, 30 s, 2 s pause, and in the third try.
        tokio::time::sleep(Duration::from_secs(65)).await;
        assert_eq!((metrics.timeouts.get(), metrics.active.get()), (2, 1));
        stop.cancel();
        workers.await.unwrap();
        assert_eq!(metrics.timeouts.get(), 3);
    }
    #[tokio::test(start_paused = true)]
    async fn a_panic_is_a_failure_that_is_tried_again() {
        let (queue, stop) = (queue(), CancellationToken::new());
        let metrics = Metrics::new().workers("test");
        queue.add("ns/panics".to_owned());
        let tries = Arc::new(AtomicUsize::new(0));
        let work = {
            let tries = tries.clone();
            move |_| {
                let tries = tries.clone();
                async move {
                    assert!(tries.fetch_add(1, SeqCst) > 0, "the first time");
                    Ok::<_, String>(done())
                }
            }
        };
        let workers = tokio::spawn(run(queue.clone(), LIMITS, metrics.clone(), stop.clone(), work));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(
            (metrics.panics.get(), metrics.errors.get(), metrics.success.get()),
            (1, 1, 1)
        );
        assert_eq!(metrics.active.get(), 0);
        stop.cancel();
        workers.await.unwrap();
    }

    struct Busy;

    impl Display for Busy {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("busy")
        }
    }

    impl Failure for Busy {
        fn retry_after(&self) -> Option<Duration> {
            Some(Duration::from_secs(20))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_asks_for_time_gets_it() {
        let (queue, stop) = (queue(), CancellationToken::new());
        let metrics = Metrics::new().workers("test");
        queue.add("ns/busy".to_owned());
        let work = |_| async { Err::<Done, _>(Busy) };
        let workers = tokio::spawn(run(queue.clone(), LIMITS, metrics.clone(), stop.clone(), work));
        tokio::time::sleep(Duration::from_secs(19)).await;
        assert_eq!(metrics.errors.get(), 1);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(metrics.errors.get(), 2);
        stop.cancel();
        workers.await.unwrap();
    }
}
