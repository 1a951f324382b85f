//! From filled caches through leadership to the end.
use std::{
    future::{Future, poll_fn},
    task::Poll,
    time::Duration,
};

use futures::future::{join_all, pending};
use kube::Client;

use super::{Error, Work};
use crate::{
    lease::{ApiStore, Config, Election},
    metrics::Metrics,
    probes::Readiness,
    shutdown::CancellationToken,
    tenure::Tenure,
};

/// Time for releasing the lease.
const RELEASE: Duration = Duration::from_secs(1);

/// The candidate checks its conditions again in this interval: a watch that was rejected may work again.
const LOOK: Duration = Duration::from_secs(1);

/// The number of checks before the missing caches are logged.
const REMIND: u32 = 30;

/// A replica that takes part in the election when its caches are filled.
pub(super) struct Candidate {
    pub(super) client: Client,
    pub(super) tenure: Tenure,
    pub(super) lease: Option<Config>,
    pub(super) readiness: Readiness,
    pub(super) metrics: Metrics,
    pub(super) stop: CancellationToken,
    /// Time for running reconciles to finish.
    pub(super) drain: Duration,
}

/// Runs all `workers`. `beside` starts before them and is stopped after them. Without workers, it runs until `stop` is
/// cancelled.
pub(super) async fn together(beside: Vec<Work>, workers: Vec<Work>, stop: CancellationToken) {
    let beside = async {
        join_all(beside).await;
        pending().await
    };
    let idle = workers.is_empty();
    let workers = async {
        join_all(workers).await;
        if idle {
            stop.cancelled().await;
        }
    };
    tokio::select! {
        biased;
        () = beside => {}
        () = workers => {}
    }
}

impl Candidate {
    /// Runs `work` while leading, or at once without election. Returns when the operator is to stop and the work is done, or
    /// when leadership is lost.
    pub(super) async fn run(self, work: impl Future<Output = ()>) -> Result<(), Error> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => return Ok(()),
            () = await_synced(&self.readiness) => {}
        }
        let Some(config) = &self.lease else {
            self.drain(work).await;
            return Ok(());
        };
        let leading = self.metrics.leading(&config.name);
        let store = ApiStore::new(self.client.clone(), config);
        let mut election = Election::new(config.clone(), store).within(self.tenure.clone());
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {
                release(&mut election).await;
                return Ok(());
            }
            () = election.acquire() => {}
        }
        leading.set(1);
        let result = tokio::select! {
            biased;
            // Timers of a process that was stopped are late.
            () = over(&self.tenure) => {
                tracing::error!(lease = %config.name, "lost the lease: not renewed in time");
                Err(Error::LeadershipLost)
            }
            // Hold the lease while the last reconciles finish.
            () = self.drain(work) => Ok(()),
            () = election.hold() => Err(Error::LeadershipLost),
        };
        leading.set(0);
        if result.is_ok() {
            release(&mut election).await;
        }
        result
    }

    /// Runs `work`, which ends after the stop. Work that takes too long then is abandoned.
    async fn drain(&self, work: impl Future<Output = ()>) {
        let too_late = async {
            self.stop.cancelled().await;
            tokio::time::sleep(self.drain).await;
        };
        tokio::select! {
            () = work => {}
            () = too_late => tracing::warn!("some reconciles did not finish in time"),
        }
    }
}

/// Ends when it is polled after the end of `tenure`. Nothing wakes it.
async fn over(tenure: &Tenure) {
    poll_fn(|_| match tenure.is_over() {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

async fn release(election: &mut Election<ApiStore>) {
    if let Err(error) = election.release(RELEASE).await {
        tracing::warn!(%error, "cannot release the lease; the next leader waits until it expires");
    }
}

/// Waits until all caches are filled: decisions based on some of the objects would be wrong.
async fn await_synced(readiness: &Readiness) {
    let mut looks = 0u32;
    while !readiness.is_synced() {
        tokio::select! {
            () = readiness.changed() => {}
            () = tokio::time::sleep(LOOK) => looks += 1,
        }
        if looks >= REMIND {
            looks = 0;
            tracing::warn!(waiting_for = ?readiness.waiting_for(), "waiting for caches to sync");
        }
    }
    match readiness.waiting_for() {
        refused if refused.is_empty() => tracing::info!("all caches synced"),
        refused => tracing::error!(?refused, "caches synced, except in namespaces without permissions"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn side_tasks_start_before_the_workers_and_end_with_them() {
        let log: Arc<Mutex<Vec<&str>>> = Arc::default();
        let note = |text: &'static str| log.lock().unwrap().push(text);
        let (first, second) = (Arc::clone(&log), Arc::clone(&log));
        let beside: Vec<Work> = vec![
            Box::pin(async move {
                first.lock().unwrap().push("resumed");
                pending().await
            }),
            Box::pin(async {}),
        ];
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let workers: Vec<Work> = vec![Box::pin(async move {
            second.lock().unwrap().push("reconciled");
            stopped.cancelled().await;
            second.lock().unwrap().push("finished");
        })];
        let work = together(beside, workers, stop.clone());
        let stopping = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            note("stop");
            stop.cancel();
        };
        tokio::join!(work, stopping);
        assert_eq!(*log.lock().unwrap(), ["resumed", "reconciled", "stop", "finished"]);
    }

    #[tokio::test(start_paused = true)]
    async fn without_workers_it_runs_until_the_stop() {
        let stop = CancellationToken::new();
        let work = tokio::spawn(together(Vec::new(), Vec::new(), stop.clone()));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!work.is_finished());
        stop.cancel();
        work.await.unwrap();
    }
}
