//! Fields that do not stay as they were applied.
//!
//! An admission webhook, or another controller, may set a field that the operator applies. Writing it again and again
//! helps nobody. After a few rounds the operator reports the field and leaves it, and tries again later.
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube_manager::ObjectKey;
use tokio::time::Instant;

/// A field that is left is tried again after this time.
pub const TRUCE: Duration = Duration::from_mins(10);

/// So many times within [`ROUND_TIME`] a change of one field by another client is reverted.
const ROUNDS: u32 = 5;

/// See [`ROUNDS`].
const ROUND_TIME: Duration = Duration::from_mins(1);

/// The contested fields: see the [module](self).
#[derive(Default)]
pub struct Contests(Mutex<HashMap<(ObjectKey, &'static str), Contest>>);

struct Contest {
    path: String,
    /// Hash of what was desired and what is there.
    state: u64,
    since: Instant,
    rounds: u32,
    left: bool,
}

impl Contests {
    /// The field of the object that is left as it is, if nothing has changed since.
    pub fn left(&self, key: &ObjectKey, kind: &'static str, fingerprint: &str, content: &str) -> Option<String> {
        let state = state(fingerprint, content);
        self.lock()
            .get(&(key.clone(), kind))
            .filter(|contest| contest.left && contest.state == state && contest.since.elapsed() < TRUCE)
            .map(|contest| contest.path.clone())
    }

    /// The API server answered an apply with another value at `path`: the field is left.
    pub fn overridden(&self, key: &ObjectKey, kind: &'static str, fingerprint: &str, content: &str, path: &str) {
        let contest = Contest {
            path: path.to_owned(),
            state: state(fingerprint, content),
            since: Instant::now(),
            rounds: 0,
            left: true,
        };
        self.lock().insert((key.clone(), kind), contest);
    }

    /// Another client's change of `path`, to `content`, is about to be reverted. Returns whether to leave it instead.
    pub fn changed(&self, key: &ObjectKey, kind: &'static str, fingerprint: &str, content: &str, path: &str) -> bool {
        let mut contests = self.lock();
        let place = (key.clone(), kind);
        let state = state(fingerprint, content);
        match contests.get_mut(&place) {
            Some(contest) if !contest.left && contest.state == state && contest.since.elapsed() < ROUND_TIME => {
                contest.rounds += 1;
                contest.left = contest.rounds > ROUNDS;
                if contest.left {
                    contest.since = Instant::now();
                }
                contest.left
            }
            _ => {
                let contest = Contest {
                    path: path.to_owned(),
                    state,
                    since: Instant::now(),
                    rounds: 1,
                    left: false,
                };
                contests.insert(place, contest);
                false
            }
        }
    }

    /// The object `key` is gone.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().retain(|(known, _), _| known != key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(ObjectKey, &'static str), Contest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn state(fingerprint: &str, content: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (fingerprint, content).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "Deployment";

    #[tokio::test(start_paused = true)]
    async fn what_a_webhook_overrides_is_left_until_something_changes() {
        let contests = Contests::default();
        let key = ObjectKey::new("cache", "sample");
        contests.overridden(&key, KIND, "wanted", "theirs", ".spec.replicas");
        let left = |wanted: &str, content: &str| contests.left(&key, KIND, wanted, content);
        assert_eq!(left("wanted", "theirs").as_deref(), Some(".spec.replicas"));
        assert_eq!(left("another", "theirs"), None);
        assert_eq!(left("wanted", "another"), None);
        tokio::time::advance(TRUCE).await;
        assert_eq!(left("wanted", "theirs"), None, "tried again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_repeats_its_change_wins_after_some_rounds() {
        let contests = Contests::default();
        let key = ObjectKey::new("cache", "sample");
        let changed = |content: &str| contests.changed(&key, KIND, "wanted", content, ".spec.replicas");
        for round in 0..5 {
            assert!(!changed("five"), "{round}");
        }
        assert!(changed("five"));
        assert!(contests.left(&key, KIND, "wanted", "five").is_some());
        contests.forget(&key);
        for round in 0..20 {
            tokio::time::advance(Duration::from_secs(20)).await;
            assert!(!changed("five"), "{round}: slow changes are reverted for ever");
        }
    }
}
