//! Removes objects that OLM writes after their owner was deleted.
//!
//! Its controllers act on cached state: an object that is deleted during a sync is written once more, and nothing
//! deletes it then. Clients cannot see when a controller has caught up, so the commands watch until nothing has been
//! written for a while, and delete the objects that appear.

use std::time::{Duration, Instant};

use super::client::Cluster;
use crate::base::error::Error;
use crate::base::object_ref::ObjectRef;

/// Quiet time to wait for if the API server answers quickly.
const QUIET: Duration = Duration::from_secs(2);

/// Longest quiet time to wait for.
const LONGEST_QUIET: Duration = Duration::from_secs(10);

/// A slow API server means slow controllers: nothing must appear for this many times its slowest answer.
const ANSWERS: u32 = 40;

/// Minimum of the time limit: OLM's controllers may act on cached state for that long.
const LIMIT: Duration = Duration::from_secs(30);

/// The pause between two looks.
const INTERVAL: Duration = Duration::from_millis(200);

/// Longest pause while an object appears again and again: OLM needs a moment to write the reason into the status of its
/// Operator object.
const LONGEST_INTERVAL: Duration = Duration::from_secs(2);

/// Removes the objects that `find` returns until it has returned none for a while, and returns the removed ones. Ends at
/// `deadline`, but at the earliest after 30 seconds.
///
/// # Errors
/// [`Error::Request`], and what `find` returns.
pub async fn remove(
    cluster: &Cluster,
    deadline: Instant,
    mut find: impl AsyncFnMut() -> Result<Vec<ObjectRef>, Error>,
) -> Result<Vec<ObjectRef>, Error> {
    let mut removed: Vec<ObjectRef> = Vec::new();
    let mut quiet = Quiet::begin(Instant::now(), deadline);
    let mut pause = INTERVAL;
    loop {
        let asked = Instant::now();
        let found = find().await?;
        let answered = Instant::now();
        for object in &found {
            tracing::debug!(%object, "OLM wrote it late");
            if cluster.delete(object).await? && !removed.contains(object) {
                removed.push(object.clone());
            }
        }
        if quiet.is_over(asked, answered, found.is_empty()) {
            return Ok(removed);
        }
        pause = if found.is_empty() {
            INTERVAL
        } else {
            (pause * 2).min(LONGEST_INTERVAL)
        };
        tokio::time::sleep(pause).await;
    }
}

/// When it has been quiet for long enough.
struct Quiet {
    end: Instant,
    since: Instant,
    slowest: Duration,
}

impl Quiet {
    fn begin(now: Instant, deadline: Instant) -> Self {
        Quiet {
            end: deadline.max(now + LIMIT),
            since: now,
            slowest: Duration::ZERO,
        }
    }

    /// Takes in one look, which began and ended then and saw nothing or something.
    fn is_over(&mut self, asked: Instant, answered: Instant, nothing: bool) -> bool {
        if !nothing {
            self.since = answered;
        }
        self.slowest = self.slowest.max(answered - asked);
        let least = (self.slowest * ANSWERS).clamp(QUIET, LONGEST_QUIET);
        answered - self.since >= least || answered >= self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds until the watch ends, when each answer takes so long and something appears at these looks.
    fn watched(answer: Duration, appears: &[usize], limit: Duration) -> Duration {
        let start = Instant::now();
        let (mut quiet, mut now) = (Quiet::begin(start, start + limit), start);
        for look in 0.. {
            let asked = now;
            now += answer;
            if quiet.is_over(asked, now, !appears.contains(&look)) {
                break;
            }
            now += INTERVAL;
        }
        now - start
    }

    #[test]
    fn a_late_write_and_a_slow_server_prolong_the_watch() {
        let fast = Duration::from_millis(5);
        let alone = watched(fast, &[], Duration::ZERO);
        assert!(alone >= QUIET && alone < QUIET + INTERVAL * 2, "{alone:?}");
        let later = watched(fast, &[5], Duration::ZERO);
        assert!(later >= QUIET + INTERVAL * 5, "{later:?}");
        let slow = watched(Duration::from_millis(200), &[], Duration::ZERO);
        assert!(
            slow >= Duration::from_secs(8) && slow < Duration::from_secs(9),
            "{slow:?}"
        );
        let endless: Vec<usize> = (0..1000).collect();
        for (deadline, limit) in [(Duration::ZERO, LIMIT), (LIMIT * 2, LIMIT * 2)] {
            let limited = watched(fast, &endless, deadline);
            assert!(limited >= limit && limited < limit + INTERVAL * 2, "{limited:?}");
        }
    }
}
