//! Processes items in parallel and returns the results in the order of the items, each as soon as its predecessors are
//! done.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

/// Results that wait for those before them, and where they go.
struct Waiting<R, S> {
    next: usize,
    results: BTreeMap<usize, R>,
    sink: S,
    failure: Option<anyhow::Error>,
}

impl<R, S: FnMut(R) -> anyhow::Result<()>> Waiting<R, S> {
    fn hand_on(&mut self) {
        while self.failure.is_none()
            && let Some(result) = self.results.remove(&self.next)
        {
            self.next += 1;
            self.failure = (self.sink)(result).err();
        }
    }
}

/// Runs `work` on each item on all processors, and passes each result to `sink` in the order of the items. After the
/// first error of either no further work starts. `sink` must not wait for other work of rayon's threads, because it may
/// run on one of them.
///
/// # Errors
/// The first error, in the order of the items.
pub fn each<I: Sync, R: Send>(
    items: &[I],
    work: impl Fn(&I) -> anyhow::Result<R> + Sync,
    mut sink: impl FnMut(R) -> anyhow::Result<()> + Send,
) -> anyhow::Result<()> {
    let stop = AtomicBool::new(false);
    let waiting = Mutex::new(Waiting {
        next: 0,
        results: BTreeMap::new(),
        sink: |result: anyhow::Result<R>| sink(result?),
        failure: None,
    });
    // A bridge returns the items one by one and in order. A parallel iterator would also start in the middle.
    items.iter().enumerate().par_bridge().for_each(|(at, item)| {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let result = work(item);
        // A panic ends the process anyway.
        let mut waiting = waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        waiting.results.insert(at, result);
        waiting.hand_on();
        stop.fetch_or(waiting.failure.is_some(), Ordering::Relaxed);
    });
    let waiting = waiting.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    waiting.failure.map_or(Ok(()), Err)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::each;

    #[test]
    fn results_come_in_order() {
        let items: Vec<u64> = (0..200).collect();
        let mut seen = Vec::new();
        let work = |item: &u64| {
            std::thread::sleep(Duration::from_millis(item % 3));
            Ok(*item)
        };
        each(&items, work, |result| {
            seen.push(result);
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, items);
    }

    /// The second item is not done before the first was handed on.
    #[test]
    fn results_come_while_work_goes_on() {
        let (first, is_first) = channel();
        let is_first = std::sync::Mutex::new(is_first);
        let work = |item: &usize| {
            if *item == 1 {
                is_first.lock().unwrap().recv_timeout(Duration::from_secs(60))?;
            }
            Ok(*item)
        };
        each(&[0, 1, 2], work, |item| {
            if item == 0 {
                first.send(())?;
            }
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn the_first_error_ends_it() {
        let items: Vec<usize> = (0..1000).collect();
        let mut seen = Vec::new();
        let work = |item: &usize| {
            anyhow::ensure!(*item < 100, "{item}");
            Ok(*item)
        };
        let error = each(&items, work, |item| {
            seen.push(item);
            Ok(())
        });
        assert_eq!(error.unwrap_err().to_string(), "100");
        assert_eq!(seen.len(), 100);
        let closed = each(&items, |item| Ok(*item), |_| anyhow::bail!("closed"));
        assert_eq!(closed.unwrap_err().to_string(), "closed");
    }
}
