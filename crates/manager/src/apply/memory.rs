//! The memory of an applied object.
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use super::{
    compare::Difference,
    error::{Error, ErrorKind},
    fields::Path,
    prepare::hash,
    report::{ADMISSION, Conflict},
};
use crate::{
    ObjectKey,
    compressed::{Compressed, Dictionary},
    worker::Failure as _,
};

/// A field that admission overrides is set again after this time.
const OVERRIDDEN: Duration = Duration::from_mins(10);

/// A field that another client sets again is reverted at once this often. Then it is a conflict.
const REVERTS: u32 = 2;

/// The first pause in a conflict. It doubles up to [`OVERRIDDEN`]. Autoscalers decide every 15 seconds.
const PAUSE: Duration = Duration::from_secs(15);

/// A change by another client this long after the last one is no repetition.
const CALM: Duration = Duration::from_mins(3);

/// The memories of all objects, by kind.
#[derive(Default)]
pub struct Memories(Mutex<HashMap<String, OfKind>>);

#[derive(Default)]
struct OfKind {
    objects: BTreeMap<ObjectKey, Memory>,
    dictionary: Arc<Dictionary>,
}

impl Memories {
    /// The memory of an object.
    pub fn get(&self, kind: &str, key: &ObjectKey) -> Memory {
        let all = self.lock();
        let memory = all.get(kind).and_then(|of_kind| of_kind.objects.get(key));
        memory.cloned().unwrap_or_default()
    }

    /// Changes the memory of an object.
    pub fn change<T>(&self, kind: &str, key: &ObjectKey, change: impl FnOnce(&mut Memory) -> T) -> T {
        let mut all = self.lock();
        let of_kind = all.entry(kind.to_owned()).or_default();
        change(of_kind.objects.entry(key.clone()).or_default())
    }

    /// Returns true if the API server stores the object as desired, and no other client fights over it.
    pub fn is_calm(&self, kind: &str, key: &ObjectKey) -> bool {
        let all = self.lock();
        let memory = all.get(kind).and_then(|of_kind| of_kind.objects.get(key));
        memory.is_none_or(|memory| memory.troubles.is_none())
    }

    /// Compresses the JSON of a desired object of a kind.
    pub fn compress(&self, kind: &str, desired: &str) -> Compressed {
        let dictionary = {
            let mut all = self.lock();
            Arc::clone(&all.entry(kind.to_owned()).or_default().dictionary)
        };
        dictionary.compress(desired.as_bytes())
    }

    /// The object was deleted: its memory is freed after a while. If it is created again soon, the fights over its fields are not
    /// forgotten.
    pub fn gone(&self, kind: &str, key: &ObjectKey) {
        let mut all = self.lock();
        let Some(of_kind) = all.get_mut(kind) else { return };
        of_kind.objects.retain(|_, memory| !memory.is_over());
        if let Some(memory) = of_kind.objects.get_mut(key) {
            memory.gone();
        }
    }

    /// Forgets an object at once.
    pub fn remove(&self, kind: &str, key: &ObjectKey) {
        if let Some(of_kind) = self.lock().get_mut(kind) {
            of_kind.objects.remove(key);
        }
    }

    /// A poisoned lock is safe to use: each change is one map operation.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, OfKind>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The memory of one object since this process first applied it.
#[derive(Clone, Default)]
pub struct Memory {
    pub desired_hash: Option<u64>,
    /// A digest of what the last apply left: the fields that the field manager owns, or the status. Absent if the last write was none.
    pub left: Option<u64>,
    /// The last desired object.
    desired: Option<Compressed>,
    uid: u64,
    /// Absent for most objects.
    troubles: Option<Box<Troubles>>,
}

/// Values of other clients and of admission, and rejected attempts.
#[derive(Clone, Default)]
struct Troubles {
    /// Fields whose values the API server answered instead of the desired ones, with a hash of its value.
    accepted: Vec<(Path, u64)>,
    overridden: Option<(String, Instant)>,
    rejected: Option<(u64, Instant, Error)>,
    contests: HashMap<String, Contest>,
    gone: Option<Instant>,
}

#[derive(Clone)]
struct Contest {
    manager: String,
    reverts: u32,
    last: Instant,
}

impl Contest {
    fn pause(&self) -> Duration {
        match self.reverts.checked_sub(REVERTS) {
            None => Duration::ZERO,
            Some(doublings) => PAUSE.saturating_mul(1 << doublings.min(16)).min(OVERRIDDEN),
        }
    }

    fn is_over(&self) -> bool {
        self.last.elapsed() > CALM.max(self.pause() * 2)
    }
}

fn uid(object: &Value) -> u64 {
    object.pointer("/metadata/uid").map_or(0, hash)
}

fn live_hash(found: &Difference) -> u64 {
    found.live.as_ref().map_or(0, hash)
}

impl Memory {
    /// Returns true if `live` is the object that was applied.
    pub fn is_about(&self, live: &Value) -> bool {
        self.desired_hash.is_some() && self.uid == uid(live)
    }

    fn gone(&mut self) {
        self.troubles().gone = Some(Instant::now());
    }

    fn troubles(&mut self) -> &mut Troubles {
        self.troubles.get_or_insert_default()
    }

    /// It has been gone for long.
    fn is_over(&self) -> bool {
        let gone = self.troubles.as_ref().and_then(|troubles| troubles.gone);
        gone.is_some_and(|gone| gone.elapsed() > OVERRIDDEN * 2)
    }

    /// The last desired object.
    pub fn desired(&self) -> Option<Value> {
        self.desired.as_ref()?.read()
    }

    /// Returns true if the API server gave this value as answer to the same desired object.
    pub fn accepts(&self, found: &Difference) -> bool {
        let Some(troubles) = &self.troubles else {
            return false;
        };
        let overridden_again = match &troubles.overridden {
            Some((field, at)) => at.elapsed() >= OVERRIDDEN && found.path.to_string() == *field,
            None => false,
        };
        let live = live_hash(found);
        !overridden_again
            && troubles
                .accepted
                .iter()
                .any(|(path, known)| *path == found.path && *known == live)
    }

    /// The API server answered `answer` to the desired object with the hash `desired` and this compressed form. The fields `found`
    /// have other values in the answer. `overridden` is one of them that has a value that no client asked for: then the time until
    /// it is set again is returned.
    pub fn applied(
        &mut self,
        desired: u64,
        compressed: Compressed,
        answer: &Value,
        found: &[Difference],
        overridden: Option<&str>,
    ) -> Option<Duration> {
        self.desired_hash = Some(desired);
        self.desired = Some(compressed);
        self.uid = uid(answer);
        let mut contests = self.troubles.take().unwrap_or_default().contests;
        contests.retain(|_, contest| !contest.is_over());
        if !contests.is_empty() || !found.is_empty() || overridden.is_some() {
            self.troubles = Some(Box::new(Troubles {
                accepted: found
                    .iter()
                    .map(|found| (found.path.clone(), live_hash(found)))
                    .collect(),
                overridden: overridden.map(|field| (field.to_owned(), Instant::now())),
                contests,
                ..Troubles::default()
            }));
        }
        let field = overridden?;
        // Admission may answer another value each time.
        self.contest(field, ADMISSION);
        Some(OVERRIDDEN)
    }

    /// The conflict over a field that admission overrides, until it is set again.
    pub fn conflict(&self) -> Option<Conflict> {
        let (field, at) = self.troubles.as_ref()?.overridden.as_ref()?;
        Some(Conflict {
            field: field.clone(),
            manager: ADMISSION.to_owned(),
            new: false,
            retry_after: OVERRIDDEN.saturating_sub(at.elapsed()),
        })
    }

    pub fn was_overridden(&self) -> bool {
        self.troubles
            .as_ref()
            .is_some_and(|troubles| troubles.overridden.is_some())
    }

    /// A change of `field` by `manager` was reverted. Returns how long the next one is left, if this is a conflict.
    pub fn reverted(&mut self, field: &str, manager: &str) -> Option<Duration> {
        let contest = self.contest(field, manager);
        (contest.reverts == REVERTS).then(|| contest.pause())
    }

    fn contest(&mut self, field: &str, manager: &str) -> &Contest {
        let fresh = Contest {
            manager: String::new(),
            reverts: 0,
            last: Instant::now(),
        };
        let contest = self.troubles().contests.entry(field.to_owned()).or_insert(fresh);
        contest.manager = manager.to_owned();
        contest.reverts = contest.reverts.saturating_add(1);
        contest.last = Instant::now();
        contest
    }

    /// The time until a change of `field` is reverted.
    pub fn contest_delay(&self, field: &str) -> Option<Duration> {
        let contests = &self.troubles.as_ref()?.contests;
        let contest = contests.get(field).filter(|contest| !contest.is_over())?;
        let left = contest.pause().saturating_sub(contest.last.elapsed());
        (!left.is_zero()).then_some(left)
    }

    /// Returns true if another client, or admission, has changed fields.
    pub fn is_contested(&self) -> bool {
        let troubles = self.troubles.as_ref();
        troubles.is_some_and(|troubles| !troubles.contests.is_empty())
    }

    /// The other client of a conflict.
    pub fn contestant(&self, field: &str) -> String {
        let contest = self.troubles.as_ref().and_then(|troubles| troubles.contests.get(field));
        contest.map(|contest| contest.manager.clone()).unwrap_or_default()
    }

    /// The API server rejected an attempt in this situation.
    pub fn reject(&mut self, situation: u64, error: Error) {
        self.troubles().rejected = Some((situation, Instant::now(), error));
    }

    /// The error of the last attempt, if nothing has changed since and it is too early for another.
    pub fn rejection(&self, situation: u64) -> Option<Error> {
        let (known, at, error) = self.troubles.as_ref()?.rejected.as_ref()?;
        let wait = error.retry_after().unwrap_or_default();
        // The next reconcile comes after this time, so it must not find it a moment too early.
        let is_early = at.elapsed() + Duration::from_secs(5) < wait;
        let left = wait.saturating_sub(at.elapsed());
        (*known == situation && is_early && error.kind() == ErrorKind::Rejected).then(|| error.clone().repeated(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn repeated_changes_of_a_field_are_reverted_ever_later() {
        let mut memory = Memory::default();
        assert_eq!(memory.contest_delay(".spec.replicas"), None);
        assert_eq!(memory.reverted(".spec.replicas", "hpa"), None, "once is no conflict");
        assert_eq!(memory.contest_delay(".spec.replicas"), None);
        assert_eq!(memory.reverted(".spec.replicas", "hpa"), Some(PAUSE), "reported");
        assert_eq!(memory.contest_delay(".spec.replicas"), Some(PAUSE));
        assert_eq!(memory.contest_delay(".spec.paused"), None);
        tokio::time::advance(PAUSE).await;
        assert_eq!(memory.contest_delay(".spec.replicas"), None);
        assert_eq!(memory.reverted(".spec.replicas", "hpa"), None, "reported once");
        assert_eq!(memory.contest_delay(".spec.replicas"), Some(PAUSE * 2));
        for _ in 0..20 {
            memory.reverted(".spec.replicas", "hpa");
        }
        assert_eq!(memory.contest_delay(".spec.replicas"), Some(OVERRIDDEN), "at most");
        tokio::time::advance(OVERRIDDEN * 3).await;
        assert_eq!(memory.reverted(".spec.replicas", "hpa"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_attempt_is_not_repeated_before_something_changes() {
        let mut memory = Memory::default();
        memory.reject(1, Error::rejected("Invalid", "no"));
        assert!(memory.rejection(1).is_some());
        assert!(memory.rejection(2).is_none());
        tokio::time::advance(Duration::from_secs(20)).await;
        let again = memory.rejection(1).unwrap();
        assert!(again.is_repeated());
        assert_eq!(
            again.retry_after(),
            Some(Duration::from_secs(40)),
            "the time that is left"
        );
        tokio::time::advance(Duration::from_secs(36)).await;
        assert!(memory.rejection(1).is_none(), "tried again");
    }
}
