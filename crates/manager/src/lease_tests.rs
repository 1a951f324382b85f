//! The rules of the election, under paused time and with a Lease in memory that enforces resource versions.
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
};

use super::*;

/// A Lease as the API server keeps it: created once, replaced only at the current resource version.
#[derive(Clone, Default)]
struct Memory {
    lease: Arc<Mutex<Option<Lease>>>,
    reads: Arc<AtomicUsize>,
    /// The server does not answer.
    hangs: Arc<AtomicBool>,
    /// The server stores what it receives and does not answer.
    mute: Arc<AtomicBool>,
    /// The server stores what it receives and answers this many seconds later.
    late: Arc<AtomicU64>,
}

impl Memory {
    fn current(&self) -> LeaseSpec {
        self.lease.lock().unwrap().as_ref().unwrap().spec.clone().unwrap()
    }

    fn holder(&self) -> String {
        self.current().holder_identity.unwrap()
    }

    async fn answer(&self) {
        // A yield between request and answer lets other candidates in.
        tokio::task::yield_now().await;
        if self.hangs.load(SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    async fn answer_write(&self) {
        tokio::time::sleep(Duration::from_secs(self.late.load(SeqCst))).await;
        if self.mute.load(SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    fn store(slot: &mut Option<Lease>, lease: &Lease, version: usize) -> Lease {
        let mut lease = lease.clone();
        lease.metadata.resource_version = Some(version.to_string());
        *slot = Some(lease.clone());
        lease
    }
}

impl Store for Memory {
    async fn get(&self) -> Result<Option<Lease>, Error> {
        self.answer().await;
        self.reads.fetch_add(1, SeqCst);
        Ok(self.lease.lock().unwrap().clone())
    }

    async fn create(&self, lease: &Lease) -> Result<Lease, Error> {
        self.answer().await;
        let created = {
            let mut slot = self.lease.lock().unwrap();
            match *slot {
                Some(_) => Err(Error::Conflict),
                None => Ok(Self::store(&mut slot, lease, 1)),
            }
        };
        self.answer_write().await;
        created
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, Error> {
        self.answer().await;
        let replaced = {
            let mut slot = self.lease.lock().unwrap();
            let version = slot.as_ref().and_then(|lease| lease.metadata.resource_version.clone());
            if version == lease.metadata.resource_version {
                let next = version.unwrap().parse::<usize>().unwrap() + 1;
                Ok(Self::store(&mut slot, lease, next))
            } else {
                Err(Error::Conflict)
            }
        };
        self.answer_write().await;
        replaced
    }
}

fn candidate(memory: &Memory, identity: &str) -> Election<Memory> {
    Election::new(Config::new("system", "operator", identity), memory.clone())
}

#[tokio::test(start_paused = true)]
async fn of_two_candidates_that_race_one_wins() {
    let memory = Memory::default();
    let (mut a, mut b) = (candidate(&memory, "a"), candidate(&memory, "b"));
    let (first, second) = tokio::join!(a.try_acquire_or_renew(), b.try_acquire_or_renew());
    assert_eq!(
        [first.is_ok_and(|leads| leads), second.is_ok_and(|leads| leads)]
            .iter()
            .filter(|won| **won)
            .count(),
        1
    );
    assert_eq!(memory.current().lease_transitions, Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_lost_race_for_an_abandoned_lease_is_a_conflict() {
    let memory = Memory::default();
    candidate(&memory, "gone").acquire().await;
    let (mut a, mut b) = (candidate(&memory, "a"), candidate(&memory, "b"));
    assert!(!a.try_acquire_or_renew().await.unwrap());
    assert!(!b.try_acquire_or_renew().await.unwrap());
    tokio::time::advance(Duration::from_secs(16)).await;
    let results = tokio::join!(a.try_acquire_or_renew(), b.try_acquire_or_renew());
    match results {
        (Ok(true), Err(Error::Conflict)) => assert_eq!(memory.holder(), "a"),
        (Err(Error::Conflict), Ok(true)) => assert_eq!(memory.holder(), "b"),
        other => panic!("{other:?}"),
    }
    assert_eq!(memory.current().lease_transitions, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_silent_leader_is_followed_after_the_lease_duration_and_not_before() {
    let memory = Memory::default();
    candidate(&memory, "gone").acquire().await;
    let mut next = candidate(&memory, "next");
    let start = Instant::now();
    next.acquire().await;
    let waited = start.elapsed();
    assert!(waited >= Duration::from_secs(15), "{waited:?}");
    assert!(
        waited <= Duration::from_millis(15_000 + 4_400),
        "{waited:?}: one more try at most"
    );
    assert_eq!(memory.current().lease_transitions, Some(1));
}

/// The holder's clock may be an hour ahead or behind: only that the Lease changes counts.
#[tokio::test(start_paused = true)]
async fn clocks_that_differ_are_harmless() {
    for skew in [-3600, 3600] {
        let memory = Memory::default();
        candidate(&memory, "leader").acquire().await;
        let mut next = candidate(&memory, "next");
        for _ in 0..30 {
            // The leader renews with its own idea of the time.
            let mut lease = memory.lease.lock().unwrap().clone().unwrap();
            let stamp = Timestamp::now()
                .checked_add(jiff::SignedDuration::from_secs(skew))
                .unwrap();
            lease.spec.as_mut().unwrap().renew_time = Some(MicroTime(stamp));
            memory.replace(&lease).await.unwrap();
            assert!(!next.try_acquire_or_renew().await.unwrap(), "skew {skew}");
            tokio::time::advance(Duration::from_secs(2)).await;
        }
        tokio::time::advance(Duration::from_secs(14)).await;
        assert!(
            next.try_acquire_or_renew().await.unwrap(),
            "skew {skew}: 16 s without a change"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_leader_renews_without_reading() {
    let memory = Memory::default();
    let mut leader = candidate(&memory, "leader");
    leader.acquire().await;
    let (reads, acquired) = (memory.reads.load(SeqCst), memory.current().acquire_time);
    let before = memory.lease.lock().unwrap().clone().unwrap().metadata.resource_version;
    assert!(
        timeout(Duration::from_secs(60), leader.hold()).await.is_err(),
        "it leads as long as it renews"
    );
    assert_eq!(memory.reads.load(SeqCst), reads);
    assert_ne!(
        memory.lease.lock().unwrap().clone().unwrap().metadata.resource_version,
        before
    );
    let now = memory.current();
    assert_eq!((now.acquire_time, now.lease_transitions), (acquired, Some(0)));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_anyone_may_follow() {
    let memory = Memory::default();
    let mut leader = candidate(&memory, "leader");
    leader.acquire().await;
    let last_renewal = Instant::now();
    memory.hangs.store(true, SeqCst);
    leader.hold().await;
    let held = last_renewal.elapsed();
    assert!(held <= Duration::from_secs(10), "{held:?} is beyond the renew deadline");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_taken_stops() {
    let memory = Memory::default();
    let mut leader = candidate(&memory, "leader");
    leader.acquire().await;
    let mut lease = memory.lease.lock().unwrap().clone().unwrap();
    lease.spec.as_mut().unwrap().holder_identity = Some("thief".to_owned());
    memory.replace(&lease).await.unwrap();
    let start = Instant::now();
    leader.hold().await;
    assert_eq!(start.elapsed(), Duration::from_secs(2), "noticed at the next renewal");
    assert_eq!(leader.holder(), "thief");
}

/// A write that keeps the holder (kubectl annotate) is a conflict. The leader must not stop.
#[tokio::test(start_paused = true)]
async fn a_conflict_with_an_unrelated_write_is_survived() {
    let memory = Memory::default();
    let mut leader = candidate(&memory, "leader");
    leader.acquire().await;
    let lease = memory.lease.lock().unwrap().clone().unwrap();
    memory.replace(&lease).await.unwrap();
    assert!(timeout(Duration::from_secs(30), leader.hold()).await.is_err());
    assert_eq!(memory.holder(), "leader");
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_once() {
    let memory = Memory::default();
    let mut leader = candidate(&memory, "leader");
    leader.acquire().await;
    let mut next = candidate(&memory, "next");
    assert!(!next.try_acquire_or_renew().await.unwrap());
    leader.release(Duration::from_secs(1)).await.unwrap();
    assert_eq!(memory.holder(), "");
    assert_eq!(
        memory.current().lease_transitions,
        Some(0),
        "no leader: no transition yet"
    );
    assert!(next.try_acquire_or_renew().await.unwrap());
    assert_eq!(memory.current().lease_transitions, Some(1));
    leader.release(Duration::from_secs(1)).await.unwrap();
    assert_eq!(memory.holder(), "next", "who does not lead has nothing to release");
}

#[tokio::test(start_paused = true)]
async fn a_release_that_hangs_gives_up() {
    let memory = Memory::default();
    let mut leader = candidate(&memory, "leader");
    leader.acquire().await;
    memory.hangs.store(true, SeqCst);
    assert!(matches!(
        leader.release(Duration::from_secs(1)).await,
        Err(Error::Timeout(_))
    ));
}

/// Another candidate may take over 15 s after the API server stored the last renewal, however late its answer came.
#[tokio::test(start_paused = true)]
async fn the_time_that_an_answer_takes_counts() {
    let memory = Memory::default();
    let mut leader = candidate(&memory, "leader");
    leader.acquire().await;
    memory.late.store(4, SeqCst);
    let sent = Instant::now() + Duration::from_secs(2);
    let _ = timeout(Duration::from_secs(6), leader.hold()).await;
    assert_eq!(
        sent.elapsed(),
        Duration::from_secs(4),
        "the renewal has just been answered"
    );
    memory.hangs.store(true, SeqCst);
    leader.hold().await;
    assert_eq!(sent.elapsed(), Duration::from_secs(10), "ten seconds after it was sent");
}

#[tokio::test(start_paused = true)]
async fn the_time_that_the_acquisition_took_counts() {
    let memory = Memory::default();
    let mut leader = candidate(&memory, "leader");
    memory.late.store(4, SeqCst);
    let sent = Instant::now();
    leader.acquire().await;
    memory.hangs.store(true, SeqCst);
    leader.hold().await;
    assert!(sent.elapsed() <= Duration::from_secs(10), "{:?}", sent.elapsed());
}

#[tokio::test(start_paused = true)]
async fn late_answers_cost_no_leadership() {
    let memory = Memory::default();
    let mut leader = candidate(&memory, "leader");
    leader.acquire().await;
    memory.late.store(4, SeqCst);
    assert!(timeout(Duration::from_secs(120), leader.hold()).await.is_err());
}

/// A connection that is half open, or an API server that does not answer for some seconds.
#[tokio::test(start_paused = true)]
async fn an_unanswered_renewal_leaves_time_for_another() {
    let memory = Memory::default();
    let mut leader = candidate(&memory, "leader");
    leader.acquire().await;
    memory.hangs.store(true, SeqCst);
    let recovery = async {
        tokio::time::sleep(Duration::from_secs(6)).await;
        memory.hangs.store(false, SeqCst);
    };
    let (held, ()) = tokio::join!(timeout(Duration::from_secs(60), leader.hold()), recovery);
    assert!(held.is_err(), "still leads");
}

/// At shutdown the renewal in flight is dropped. The API server may have stored it.
#[tokio::test(start_paused = true)]
async fn a_lease_whose_renewal_was_cut_off_is_released() {
    let memory = Memory::default();
    let mut leader = candidate(&memory, "leader");
    leader.acquire().await;
    memory.mute.store(true, SeqCst);
    assert!(timeout(Duration::from_secs(3), leader.hold()).await.is_err());
    memory.mute.store(false, SeqCst);
    leader.release(Duration::from_secs(1)).await.unwrap();
    assert_eq!(memory.holder(), "");
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_acquisition_was_cut_off_is_released() {
    let memory = Memory::default();
    memory.mute.store(true, SeqCst);
    let mut candidate = candidate(&memory, "candidate");
    assert!(timeout(Duration::from_secs(1), candidate.acquire()).await.is_err());
    assert_eq!(memory.holder(), "candidate");
    memory.mute.store(false, SeqCst);
    candidate.release(Duration::from_secs(1)).await.unwrap();
    assert_eq!(memory.holder(), "");
}
