//! Reconciles the keys of a queue.
use std::{
    fmt::Display,
    future::Future,
    hash::Hash,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::{JoinError, JoinSet};

use crate::{metrics::WorkerMetrics, queue::WorkQueue, shutdown::CancellationToken};

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

/// Limits on reconciles.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of concurrent reconciles.
    pub concurrency: usize,
    /// A reconcile that takes longer is cancelled and counts as failed.
    pub time: Duration,
}

/// Reconciles the keys of `queue` until `stop` is cancelled, then waits for running reconciles.
///
/// A key is never reconciled twice at the same time. Reconciles that wrote something or failed are logged at info or warn
/// level, all others at debug level.
pub async fn run<K, R, F, E>(
    queue: Arc<WorkQueue<K>>,
    limits: Limits,
    metrics: WorkerMetrics,
    stop: CancellationToken,
    reconcile: R,
) where
    K: Clone + Eq + Hash + Display + Send + Sync + 'static,
    R: Fn(K) -> F,
    F: Future<Output = Result<Done, E>> + Send + 'static,
    E: Display + Send + 'static,
{
    let limit = limits.concurrency.max(1);
    metrics.limit.set(i64::try_from(limit).unwrap_or(i64::MAX));
    let mut running = JoinSet::new();
    loop {
        if running.len() >= limit {
            report(running.join_next().await);
            continue;
        }
        let key = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            finished = running.join_next(), if !running.is_empty() => {
                report(finished);
                continue;
            }
            key = queue.next() => key,
        };
        let Some(key) = key else { break };
        let work = reconcile(key.clone());
        running.spawn(one(Arc::clone(&queue), key, limits.time, metrics.clone(), work));
    }
    while let Some(finished) = running.join_next().await {
        report(Some(finished));
    }
}

/// A panic ends only its own reconcile; the key is not reconciled again until the process restarts.
fn report(finished: Option<Result<(), JoinError>>) {
    if let Some(Err(error)) = finished {
        tracing::error!(%error, "a reconcile panicked");
    }
}

async fn one<K, F, E>(queue: Arc<WorkQueue<K>>, key: K, limit: Duration, metrics: WorkerMetrics, work: F)
where
    K: Clone + Eq + Hash + Display,
    F: Future<Output = Result<Done, E>>,
    E: Display,
{
    let started = Instant::now();
    metrics.active.inc();
    let result = tokio::time::timeout(limit, work).await;
    metrics.active.dec();
    let took = started.elapsed();
    metrics.seconds.observe(took.as_secs_f64());
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let error = match result {
        Ok(Ok(done)) => {
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
        Ok(Err(error)) => error.to_string(),
        Err(_) => {
            metrics.timeouts.inc();
            format!("timed out after {limit:?}")
        }
    };
    metrics.error.inc();
    metrics.errors.inc();
    let retry = queue.failed(&key);
    let retry_ms = u64::try_from(retry.as_millis()).unwrap_or(u64::MAX);
    tracing::warn!(object = %key, %error, duration_ms, retry_ms, "reconcile failed");
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
}
