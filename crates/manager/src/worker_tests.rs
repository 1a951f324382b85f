//! The workers, under paused time.
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::*;
use crate::{ObjectKey, backoff::Backoff, metrics::Metrics};

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
    owed: Duration::from_secs(1),
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
async fn the_share_of_a_tenant_follows_from_the_limit() {
    for (concurrency, share) in [(1, 1), (2, 1), (4, 3), (100, 75)] {
        let stop = CancellationToken::new();
        let queue = Arc::new(WorkQueue::new(Backoff::default(), None).fair(None));
        for name in 0..200 {
            queue.add(ObjectKey::new("hangs", name.to_string()));
        }
        let limits = Limits { concurrency, ..LIMITS };
        let metrics = Metrics::new().workers("test");
        let work = |_| std::future::pending::<Result<Done, String>>();
        let workers = tokio::spawn(run(queue.clone(), limits, metrics.clone(), stop.clone(), work));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(metrics.active.get(), share, "of {concurrency}");
        stop.cancel();
        workers.await.unwrap();
    }
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
async fn a_stop_lets_work_that_was_put_off_finish() {
    let (queue, stop) = (queue(), CancellationToken::new());
    let metrics = Metrics::new().workers("test");
    for index in 0..5 {
        queue.add(format!("ns/{index}"));
    }
    let begun = Arc::new(AtomicUsize::new(0));
    let work = {
        let (queue, begun) = (queue.clone(), begun.clone());
        move |key: String| {
            if begun.fetch_add(1, SeqCst) < LIMITS.concurrency {
                queue.add_last(key);
            }
            async {
                tokio::time::sleep(Duration::from_secs(10)).await;
                Ok::<_, String>(done())
            }
        }
    };
    let workers = tokio::spawn(run(queue.clone(), LIMITS, metrics.clone(), stop.clone(), work));
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.cancel();
    workers.await.unwrap();
    // The two that were running, and what they had put off.
    assert_eq!((metrics.success.get(), queue.len()), (4, 3));
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

#[tokio::test(start_paused = true)]
async fn a_panic_before_the_first_await_is_one_too() {
    let (queue, stop) = (queue(), CancellationToken::new());
    let metrics = Metrics::new().workers("test");
    queue.add("ns/panics".to_owned());
    let tries = AtomicUsize::new(0);
    let work = move |_| {
        assert!(tries.fetch_add(1, SeqCst) > 0, "the first time");
        async { Ok::<_, String>(done()) }
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

/// An error that cannot say what it is, or for how long to wait.
struct Unspeakable {
    waits: bool,
}

impl Display for Unspeakable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("no words");
    }
}

impl Failure for Unspeakable {
    fn retry_after(&self) -> Option<Duration> {
        assert!(!self.waits, "no time");
        None
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_error_is_one_too() {
    for waits in [false, true] {
        let (queue, stop) = (queue(), CancellationToken::new());
        let metrics = Metrics::new().workers("test");
        queue.add("ns/fails".to_owned());
        let work = move |_| async move { Err::<Done, _>(Unspeakable { waits }) };
        let workers = tokio::spawn(run(queue.clone(), LIMITS, metrics.clone(), stop.clone(), work));
        // At once, after a second and after two more.
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!((metrics.panics.get(), metrics.errors.get()), (3, 3));
        assert_eq!((metrics.active.get(), queue.unfinished()), (0, (0.0, 0.0)));
        stop.cancel();
        workers.await.unwrap();
    }
}
