//! Reconciles the keys of a queue.
use std::{
    any::Any,
    fmt::Display,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use futures::FutureExt;
use tokio::task::JoinSet;
use tracing::Instrument as _;

pub use crate::failure::{Failed, Failure};
use crate::{
    metrics::WorkerMetrics,
    queue::{Cause, QueueKey, WorkQueue},
    shutdown::CancellationToken,
};

/// The result of a successful reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Number of write requests.
    pub writes: u32,
    /// Short description for the log.
    pub outcome: String,
    /// Reconcile again after this time. `None` to rely on watches.
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
    /// How long after a stop work that was [put off](WorkQueue::add_last) is begun.
    pub owed: Duration,
}

/// A server that asks for more is not waited for longer.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// Reconciles the keys of `queue` until `stop` is cancelled. Keys that were [put off](WorkQueue::add_last) are reconciled for
/// [`Limits::owed`] after that. Waits for running reconciles.
///
/// A key is never reconciled twice at the same time. Log lines of a reconcile are in a span that names controller, object, the
/// number of the pass and the [cause](WorkQueue::cause). Reconciles that wrote something or failed are logged at info or warn
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
    queue.begin(limit);
    let mut running = JoinSet::new();
    let mut passes = 0_u64;
    let mut begin = |running: &mut JoinSet<()>, key: K| {
        passes += 1;
        let cause = queue.cause(&key).unwrap_or_default();
        // Of the highest level, so that no level of the log leaves it out.
        let span = tracing::error_span!("reconcile", controller = %metrics.controller, object = %key, pass = passes, cause = &*cause);
        // A panic before the first await becomes one of the pass. Here it would end the operator. The future is boxed: it is
        // large, and each function around it would have room for two copies.
        let begun = catch_unwind(AssertUnwindSafe(|| span.in_scope(|| Box::pin(reconcile(key.clone())))));
        let work = async { begun.unwrap_or_else(|panic| resume_unwind(panic)).await };
        let pass = attempt(limits.time, work).instrument(span);
        running.spawn(one(Arc::clone(&queue), key, cause, metrics.clone(), pass));
    };
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
        begin(&mut running, key);
    }
    let end = Instant::now() + limits.owed;
    loop {
        while running.len() < limit
            && Instant::now() < end
            && let Some(key) = queue.next_owed()
        {
            begin(&mut running, key);
        }
        if running.join_next().await.is_none() {
            break;
        }
    }
}

/// Why a pass failed.
enum Ended {
    /// With an error.
    Failed {
        text: String,
        retry_after: Option<Duration>,
        is_repeated: bool,
    },
    /// It was cancelled after this time.
    TimedOut(Duration),
}

/// Runs `work` for at most `limit`. Errors are put into words here, where a panic is one of the pass.
async fn attempt<F, E>(limit: Duration, work: F) -> Result<Done, Ended>
where
    F: Future<Output = Result<Done, E>>,
    E: Failure,
{
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(Ended::Failed {
            text: error.text(),
            retry_after: error.retry_after(),
            is_repeated: error.is_repeated(),
        }),
        Err(_) => Err(Ended::TimedOut(limit)),
    }
}

async fn one<K, F>(queue: Arc<WorkQueue<K>>, key: K, cause: Cause, metrics: WorkerMetrics, pass: F)
where
    K: QueueKey + Display,
    F: Future<Output = Result<Done, Ended>>,
{
    let started = Instant::now();
    metrics.active.inc();
    // A panic ends only its own pass, which counts as failed.
    let result = AssertUnwindSafe(pass).catch_unwind().await;
    metrics.active.dec();
    let took = started.elapsed();
    metrics.seconds.observe(took.as_secs_f64());
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let (mut wait, mut repeats) = (Duration::ZERO, false);
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
                tracing::info!(object = %key, %cause, %outcome, writes, duration_ms, "reconciled");
            } else {
                tracing::debug!(object = %key, %cause, %outcome, writes, duration_ms, "reconciled");
            }
            return;
        }
        Ok(Err(Ended::Failed {
            text,
            retry_after,
            is_repeated,
        })) => {
            wait = retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
            repeats = is_repeated;
            text
        }
        Ok(Err(Ended::TimedOut(limit))) => {
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
    let retry = match repeats {
        true => queue.failed_again(&key, wait),
        false => queue.failed_for(&key, wait),
    };
    let retry_ms = u64::try_from(retry.as_millis()).unwrap_or(u64::MAX);
    tracing::warn!(object = %key, %cause, %error, duration_ms, retry_ms, "reconcile failed");
}

/// The text of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
#[path = "worker_tests.rs"]
mod tests;
