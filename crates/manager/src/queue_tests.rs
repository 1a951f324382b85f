//! The rules of the queue, under paused time.
use futures::FutureExt;

use super::*;
use crate::ObjectKey;

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
async fn a_key_has_the_first_cause_of_the_highest_rank() {
    let queue = queue();
    let next = async || {
        let key = queue.next().await.unwrap();
        let cause = queue.cause(&key).unwrap();
        queue.succeeded(&key);
        cause
    };
    queue.add_listed("a");
    queue.add_because("a", "the first");
    queue.add_because("a", "the second");
    queue.add_last("a");
    assert_eq!(next().await, "the first");
    queue.add_last("a");
    assert_eq!(next().await, "put off");
    queue.add_after("a", Duration::from_secs(1));
    assert_eq!(next().await, "requeue");
    queue.add("a");
    for expected in ["added", "retry 1", "retry 2"] {
        let key = queue.next().await.unwrap();
        assert_eq!(queue.cause(&key).unwrap(), expected);
        queue.failed(&key);
    }
    assert_eq!(queue.cause(&"a"), None, "it waits");
}

#[tokio::test(start_paused = true)]
async fn a_key_may_be_added_after_any_time() {
    let queue = queue();
    queue.add_after("a", Duration::MAX);
    assert_eq!(queue.next().now_or_never(), None);
    queue.add("a");
    assert_eq!(queue.next().await, Some("a"));
    assert_eq!(queue.failed_for(&"a", Duration::MAX), Duration::MAX);
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

/// As client-go: an event is worth an attempt, but only success forgets the failures.
#[tokio::test(start_paused = true)]
async fn a_change_does_not_reset_the_back_off() {
    let queue = queue();
    queue.add("a");
    for expected in [1, 2, 4, 8] {
        let key = queue.next().await.unwrap();
        assert_eq!(queue.failed(&key), Duration::from_secs(expected));
        queue.add("a");
    }
}

#[tokio::test(start_paused = true)]
async fn the_api_servers_delay_is_kept() {
    let queue = queue();
    queue.add("a");
    let start = Instant::now();
    let key = queue.next().await.unwrap();
    assert_eq!(queue.failed_for(&key, Duration::from_secs(7)), Duration::from_secs(7));
    assert_eq!(queue.next().await, Some("a"));
    assert_eq!(start.elapsed(), Duration::from_secs(7));
}

fn object(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(namespace, name)
}

#[tokio::test(start_paused = true)]
async fn tenants_take_turns() {
    let queue = WorkQueue::new(Backoff::default(), None);
    for name in ["1", "2", "3"] {
        queue.add(object("big", name));
    }
    queue.add(object("small", "1"));
    let mut order = Vec::new();
    while let Some(Some(key)) = queue.next().now_or_never() {
        order.push(key.to_string());
    }
    assert_eq!(order, ["big/1", "small/1", "big/2", "big/3"]);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_hangs_leaves_workers_to_others() {
    let queue = WorkQueue::new(Backoff::default(), None).with_share(2);
    for name in ["1", "2", "3", "4"] {
        queue.add(object("hangs", name));
    }
    let first = queue.next().await.unwrap();
    queue.next().await.unwrap();
    assert_eq!(queue.next().now_or_never(), None, "the third has to wait");
    queue.add(object("other", "1"));
    assert_eq!(queue.next().now_or_never(), Some(Some(object("other", "1"))));
    queue.failed(&first);
    assert_eq!(queue.next().now_or_never(), Some(Some(object("hangs", "3"))));
}

/// Number of keys that `workers` take from each namespace in `namespaces`. Each has ten.
fn taken(queue: &WorkQueue<ObjectKey>, workers: usize, namespaces: &[&str]) -> Vec<usize> {
    queue.begin(workers);
    for namespace in namespaces {
        for name in 0..10 {
            queue.add(object(namespace, &name.to_string()));
        }
    }
    let keys: Vec<ObjectKey> = (0..workers)
        .map_while(|_| queue.next().now_or_never().flatten())
        .collect();
    let of = |namespace: &&str| keys.iter().filter(|key| *key.namespace == **namespace).count();
    namespaces.iter().map(of).collect()
}

#[tokio::test(start_paused = true)]
async fn a_fair_queue_keeps_workers_for_others() {
    let fair = || WorkQueue::new(Backoff::default(), None).fair(None);
    for (workers, share) in [(0, 1), (1, 1), (2, 1), (3, 2), (4, 3), (5, 3), (8, 6)] {
        assert_eq!(taken(&fair(), workers.max(1), &["one"]), [share], "{workers} workers");
    }
    assert_eq!(taken(&fair(), 8, &["one", "two"]), [4, 4]);
    let given = WorkQueue::new(Backoff::default(), None).with_share(2);
    assert_eq!(
        taken(&given, 8, &["one"]),
        [2],
        "a share that is given does not follow from the workers"
    );
}

#[tokio::test(start_paused = true)]
async fn a_single_tenant_has_all_workers() {
    let fair = |sole: Option<&str>| WorkQueue::new(Backoff::default(), None).fair(sole.map(str::to_owned));
    assert_eq!(taken(&fair(None), 8, &[""]), [8], "a kind without namespaces");
    assert_eq!(taken(&fair(Some("one")), 8, &["one"]), [8], "the only namespace");
    assert_eq!(taken(&fair(Some("one")), 8, &["two"]), [6]);
}

#[tokio::test(start_paused = true)]
async fn changes_go_before_the_first_list() {
    let queue = queue();
    for key in ["a", "b", "c"] {
        queue.add_listed(key);
    }
    queue.add("c");
    assert!(!queue.caught_up());
    let mut order = Vec::new();
    while let Some(Some(key)) = queue.next().now_or_never() {
        order.push(key);
        queue.succeeded(&key);
    }
    assert_eq!(order, ["c", "a", "b"]);
    assert!(queue.caught_up());
    queue.add("hangs");
    queue.next().await;
    assert!(queue.caught_up(), "a change that hangs is none of the first list");
}

#[tokio::test(start_paused = true)]
async fn low_priority_objects_come_last_and_are_not_forgotten() {
    let queue = queue();
    queue.add("a");
    queue.next().await;
    queue.add_last("a");
    queue.add_last("b");
    queue.add_last("c");
    queue.add("c");
    queue.add_listed("d");
    queue.succeeded(&"a");
    let mut order = Vec::new();
    while let Some(Some(key)) = queue.next().now_or_never() {
        assert_eq!(queue.has_others(&key), key != "a", "{key}");
        order.push(key);
        queue.succeeded(&key);
    }
    assert_eq!(order, ["c", "d", "b", "a"]);
    // Changes that never end.
    queue.add_last("last");
    let mut taken = 0;
    for change in ["x", "y"].into_iter().cycle() {
        queue.add(change);
        let key = queue.next().await.unwrap();
        queue.succeeded(&key);
        taken += 1;
        if key == "last" {
            break;
        }
    }
    assert!(taken <= 8, "{taken}");
}

#[tokio::test(start_paused = true)]
async fn only_new_keys_count_as_added() {
    let metrics = crate::metrics::Metrics::new().queue("test");
    let queue = WorkQueue::new(Backoff::default(), Some(metrics.clone()));
    for _ in 0..5 {
        queue.add("a");
    }
    assert_eq!(metrics.adds.get(), 1);
    queue.next().await;
    queue.add("a");
    assert_eq!(metrics.adds.get(), 2);
    tokio::time::advance(Duration::from_secs(3)).await;
    assert_eq!(queue.unfinished(), (3.0, 3.0));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_addition_counts_as_a_retry() {
    let metrics = crate::metrics::Metrics::new().queue("test");
    let queue = WorkQueue::new(Backoff::default(), Some(metrics.clone()));
    queue.add("a");
    queue.next().await;
    queue.failed(&"a");
    assert_eq!(metrics.retries.get(), 1);
    queue.add_after("b", Duration::from_secs(60));
    assert_eq!(
        (metrics.retries.get(), metrics.adds.get()),
        (2, 1),
        "it is added when it is due"
    );
}

#[tokio::test(start_paused = true)]
async fn on_a_standby_nothing_counts_as_waiting() {
    let all = crate::metrics::Metrics::new();
    let metrics = all.queue("test");
    let queue = WorkQueue::new(Backoff::default(), Some(metrics.clone()));
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    assert_eq!((queue.len(), metrics.depth.get()), (3, 0));
    tokio::time::advance(Duration::from_secs(3600)).await;
    queue.next().await;
    assert_eq!((queue.len(), metrics.depth.get()), (2, 2));
    tokio::time::advance(Duration::from_secs(20)).await;
    queue.next().await;
    let text = all.render();
    let sum = "workqueue_queue_duration_seconds_sum{name=\"test\",controller=\"test\"} 20.0";
    assert!(text.lines().any(|line| line == sum), "{text}");
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

#[tokio::test]
async fn low_priority_objects_leave_most_workers_free() {
    let queue = queue();
    queue.begin(16);
    for key in ["a", "b", "c"] {
        queue.add_last(key);
    }
    let first = queue.next().await.unwrap();
    queue.next().await.unwrap();
    assert_eq!(queue.next().now_or_never(), None, "the third has to wait");
    queue.add("change");
    assert_eq!(queue.next().now_or_never(), Some(Some("change")));
    queue.succeeded(&first);
    assert_eq!(queue.next().now_or_never(), Some(Some("c")));
}

#[tokio::test]
async fn a_postponed_object_is_never_forgotten() {
    let queue = queue();
    for key in ["running", "changed", "last"] {
        queue.add(key);
        queue.next().await;
        queue.add_last(key);
    }
    for key in ["changed", "last"] {
        queue.succeeded(&key);
    }
    queue.add("changed");
    queue.add("new");
    let mut owed = vec![queue.next_owed().unwrap(), queue.next_owed().unwrap()];
    owed.sort_unstable();
    assert_eq!(owed, ["changed", "last"]);
    assert_eq!(queue.next_owed(), None, "one is being processed, one was never begun");
    queue.succeeded(&"running");
    assert_eq!(queue.next_owed(), Some("running"));
    assert_eq!(queue.next().now_or_never(), Some(Some("new")));
}

#[tokio::test(start_paused = true)]
async fn a_failure_without_an_attempt_does_not_count() {
    let queue = WorkQueue::new(Backoff::default(), None);
    for _ in 0..12 {
        queue.add("a".to_owned());
        let key = queue.next().await.unwrap();
        queue.failed_for(&key, Duration::from_secs(60));
    }
    for _ in 0..12 {
        queue.add("a".to_owned());
        let key = queue.next().await.unwrap();
        assert_eq!(
            queue.failed_again(&key, Duration::from_secs(40)),
            Duration::from_secs(40)
        );
        assert_eq!(queue.failures(&key), 12);
    }
    let begin = Instant::now();
    queue.next().await.unwrap();
    assert_eq!(begin.elapsed().as_secs(), 40);
}
