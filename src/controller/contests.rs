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

/// So many times within [`WINDOW`] a change of one field by another client is reverted.
const ROUNDS: usize = 5;

/// See [`ROUNDS`]. Autoscalers decide every 15 seconds: the sixth change comes after 75.
const WINDOW: Duration = Duration::from_secs(90);

/// The contested fields: see the [module](self).
#[derive(Default)]
pub struct Contests(Mutex<HashMap<(ObjectKey, &'static str), Contest>>);

/// A field that others set too. What they set it to does not matter: it may be another value each time.
struct Contest {
    path: String,
    fingerprint: String,
    /// When it was reverted lately.
    rounds: Vec<Instant>,
    left: Option<Left>,
}

struct Left {
    since: Instant,
    /// Hash of what a webhook made of the object: it is asked again when something changes.
    content: Option<u64>,
}

impl Contests {
    /// Returns true if the object, whose first field that differs is the one at `path`, is left as it is.
    pub fn left(&self, key: &ObjectKey, kind: &'static str, fingerprint: &str, path: &str, content: &str) -> bool {
        let contests = self.lock();
        let contest = contests.get(&(key.clone(), kind));
        let left = contest
            .filter(|contest| contest.is(fingerprint, path))
            .and_then(|contest| contest.left.as_ref());
        left.is_some_and(|left| left.since.elapsed() < TRUCE && left.content.is_none_or(|known| known == hash(content)))
    }

    /// The API server answered an apply with another value at `path`, in `content`: the field is left.
    pub fn overridden(&self, key: &ObjectKey, kind: &'static str, fingerprint: &str, path: &str, content: &str) {
        let mut contest = Contest::new(fingerprint, path);
        contest.left = Some(Left {
            since: Instant::now(),
            content: Some(hash(content)),
        });
        self.lock().insert((key.clone(), kind), contest);
    }

    /// Another client's change of `path` is about to be reverted. Returns whether to leave it instead.
    pub fn changed(&self, key: &ObjectKey, kind: &'static str, fingerprint: &str, path: &str) -> bool {
        let mut contests = self.lock();
        let contest = contests
            .entry((key.clone(), kind))
            .or_insert_with(|| Contest::new(fingerprint, path));
        if !contest.is(fingerprint, path) || contest.left.is_some() {
            *contest = Contest::new(fingerprint, path);
        }
        contest.rounds.retain(|round| round.elapsed() < WINDOW);
        let insists = contest.rounds.len() >= ROUNDS;
        if insists {
            contest.rounds = Vec::new();
            contest.left = Some(Left {
                since: Instant::now(),
                content: None,
            });
        }
        insists
    }

    /// Another client's change of the field that [`changed`](Self::changed) was asked about has been reverted. An attempt that the API server
    /// refused is no round: nobody has set the field again.
    pub fn reverted(&self, key: &ObjectKey, kind: &'static str) {
        if let Some(contest) = self.lock().get_mut(&(key.clone(), kind)) {
            contest.rounds.push(Instant::now());
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

impl Contest {
    fn new(fingerprint: &str, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            fingerprint: fingerprint.to_owned(),
            rounds: Vec::new(),
            left: None,
        }
    }

    /// Returns true if it is about this field of this configuration.
    fn is(&self, fingerprint: &str, path: &str) -> bool {
        self.fingerprint == fingerprint && self.path == path
    }
}

fn hash(content: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "Deployment";
    const PATH: &str = ".spec.replicas";

    #[tokio::test(start_paused = true)]
    async fn what_a_webhook_overrides_is_left_until_something_changes() {
        let contests = Contests::default();
        let key = ObjectKey::new("cache", "sample");
        contests.overridden(&key, KIND, "wanted", PATH, "theirs");
        let left = |wanted: &str, path: &str, content: &str| contests.left(&key, KIND, wanted, path, content);
        assert!(left("wanted", PATH, "theirs"));
        assert!(!left("another", PATH, "theirs"));
        assert!(!left("wanted", ".spec.template", "theirs"));
        assert!(!left("wanted", PATH, "another"));
        tokio::time::advance(TRUCE).await;
        assert!(!left("wanted", PATH, "theirs"), "tried again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_repeats_its_change_wins_after_some_rounds() {
        let contests = Contests::default();
        let key = ObjectKey::new("cache", "sample");
        let changed = || {
            let is_left = contests.changed(&key, KIND, "wanted", PATH);
            if !is_left {
                contests.reverted(&key, KIND);
            }
            is_left
        };
        // As often as an autoscaler decides.
        for round in 0..5 {
            assert!(!changed(), "{round}");
            tokio::time::advance(Duration::from_secs(15)).await;
        }
        assert!(changed());
        assert!(contests.left(&key, KIND, "wanted", PATH, "whatever it sets"));
        tokio::time::advance(TRUCE).await;
        assert!(!changed(), "tried again");
        contests.forget(&key);
        for round in 0..20 {
            tokio::time::advance(Duration::from_secs(20)).await;
            assert!(!changed(), "{round}: slow changes are reverted for ever");
        }
    }

    #[test]
    fn an_attempt_that_is_refused_is_no_round() {
        let contests = Contests::default();
        let key = ObjectKey::new("cache", "sample");
        for attempt in 0..20 {
            assert!(!contests.changed(&key, KIND, "wanted", PATH), "{attempt}");
        }
    }
}
