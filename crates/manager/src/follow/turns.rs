//! Lists and watches do not all begin at once.
use std::{future::Future, sync::Arc, time::Duration};

use tokio::{sync::Semaphore, time::timeout};

/// How many lists run at once. A list uses the connection of the one before. Together, each would open its own, and handshakes are
/// most of the time that an operator needs for its start.
const LISTS: u32 = 5;

/// How long a request keeps the others waiting. A kind whose conversion webhook hangs must not delay the other kinds.
const TURN: Duration = Duration::from_millis(100);

/// The order in which lists and watches begin. A watch keeps its connection and needs a handshake, so it waits for the lists
/// that were there first, and watches begin one by one. Clones share the order.
#[derive(Clone)]
pub struct Turns(Arc<Semaphore>);

impl Default for Turns {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LISTS as usize)))
    }
}

impl Turns {
    /// Waits for a turn, then runs `list`. The turn ends with it, or when its time is over.
    pub async fn list<T>(&self, list: impl Future<Output = T> + Unpin) -> T {
        self.run(1, list).await
    }

    /// As [`list`](Self::list), for the request that opens a watch.
    pub async fn watch<T>(&self, watch: impl Future<Output = T> + Unpin) -> T {
        self.run(LISTS, watch).await
    }

    async fn run<T>(&self, share: u32, mut work: impl Future<Output = T> + Unpin) -> T {
        let turn = self.0.acquire_many(share).await;
        if let Ok(done) = timeout(TURN, &mut work).await {
            return done;
        }
        drop(turn);
        work.await
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        sync::Mutex,
    };

    use futures::future::join_all;
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn watches_follow_the_lists_one_by_one() {
        let turns = Turns::default();
        let start = Instant::now();
        let began = Mutex::new(Vec::new());
        let begin = async |what| {
            began.lock().unwrap().push((what, start.elapsed().as_millis()));
            sleep(Duration::from_millis(10)).await;
        };
        let kinds = (0..6).map(async |_| {
            turns.list(Box::pin(begin("list"))).await;
            turns.watch(Box::pin(begin("watch"))).await;
        });
        join_all(kinds).await;
        let lists = [0, 0, 0, 0, 0, 10].map(|at| ("list", at));
        let watches = [20, 30, 40, 50, 60, 70].map(|at| ("watch", at));
        assert_eq!(*began.lock().unwrap(), [lists, watches].concat());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_hangs_delays_the_others_for_its_turn_only() {
        let turns = Turns::default();
        let start = Instant::now();
        let hang = join_all((0..LISTS).map(|_| turns.list(pending::<()>())));
        let next = async {
            turns.watch(ready(())).await;
            start.elapsed()
        };
        let waited = tokio::select! {
            biased;
            _ = hang => panic!("it hangs"),
            waited = next => waited,
        };
        assert_eq!(waited, TURN);
    }
}
