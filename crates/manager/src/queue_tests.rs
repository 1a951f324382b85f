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
