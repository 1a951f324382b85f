//! The status of a Memcached: a pure function of its workload, its pods and the result of the reconcile.
use std::time::Duration;

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::Condition,
    jiff::{SignedDuration, Timestamp},
};
use kube::ResourceExt as _;
use kube_manager::{
    conditions::{self, AVAILABLE, DEGRADED, READY},
    events::Severity,
    health::PodFailure,
    reconcile::{Error, ErrorKind, Outcome, State},
};

use crate::{
    api::v1alpha1::{Binding, Memcached, MemcachedStatus, Phase, Workload},
    observed::{Counts, Observation},
    operand,
};

/// Servers that are lost (evicted, restarted, on a node that failed) usually come back within this time. Only then the object is
/// Degraded. The Deployment has a deadline for servers that it makes.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// The status lists the addresses of at most this number of servers, because every client of the object reads it.
const LISTED: usize = 200;

/// The annotation with which users pause the reconciles of a Memcached. Its value is `true`.
pub const PAUSED: &str = "cache.example.com/paused";

/// The reason while servers that ran are not ready.
const NOT_READY: &str = "ServersNotReady";

/// The reason while servers of both kinds run.
const MIGRATING: &str = "Migrating";

/// Progress of the servers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// All servers run as the spec says.
    Done,
    /// Servers are added, removed or replaced.
    Underway,
    /// All servers are of the newest template, but there were never as many.
    Growing,
    /// All servers ran as the spec says. Some do not answer any more.
    Lost,
    /// Servers of the other kind run until all of the new kind are ready.
    Migrating,
}

/// The status after a reconcile with this result.
pub fn report(memcached: &Memcached, seen: &Observation, result: &Result<Outcome, Error>) -> Outcome {
    let counts = seen.counts();
    let progress = progress(memcached, seen, counts);
    let size = memcached.spec.size;
    let outcome = match (readiness(memcached, seen, counts, progress), result) {
        (_, Ok(outcome)) if is_paused(memcached) => outcome.clone(),
        // Running servers change their memory.
        (own, Ok(outcome)) => own.and(outcome.clone()),
        (own, Err(_)) => own,
    };
    let is_wrong = match result {
        Err(error) => error.kind() != ErrorKind::Waiting,
        Ok(_) => outcome.is_failed(),
    };
    let status = MemcachedStatus {
        nodes: seen.servers.iter().map(|server| server.name.clone()).collect(),
        ready_replicas: Some(counts.ready),
        replicas: Some(counts.all),
        selector: Some(operand::selector_text(memcached)),
        phase: Some(match progress {
            _ if is_wrong => Phase::Degraded,
            Progress::Done if !outcome.is_ready() && !is_paused(memcached) => Phase::Resizing,
            Progress::Done | Progress::Lost => Phase::Running,
            _ if is_new(memcached, counts) => Phase::Pending,
            _ => Phase::Resizing,
        }),
        settled_replicas: match progress {
            Progress::Done => Some(size),
            _ => settled(memcached),
        },
        image: counts.replicas.and_then(|replicas| replicas.image.clone()),
        servers: match seen.addresses.len() {
            ..=LISTED => seen.addresses.clone(),
            _ => Vec::new(),
        },
        binding: seen.is_bound.then(|| Binding {
            name: operand::binding_name(memcached),
        }),
        ..MemcachedStatus::default()
    };
    let outcome = outcome.status(status);
    // While servers are added, those that ran before count.
    let before = settled(memcached).filter(|settled| *settled > 0).unwrap_or(size);
    let least = (before.min(size) - 1).max(1);
    match (counts.replicas, result) {
        (Some(_), _) if size == 0 => outcome.available(true, "spec.size is 0"),
        // One server may be missing, as during rollouts and node maintenance.
        (Some(_), _) => outcome.available(counts.ready >= least, ready_of(memcached, counts)),
        (None, Err(error)) => outcome.condition(AVAILABLE, false, error.reason().to_owned(), error.to_string()),
        (None, Ok(_)) => outcome,
    }
}

/// The event about servers that are lost, are back, or move to another kind of workload. A cause is in the event that the layer publishes
/// about the condition Degraded.
pub fn event(memcached: &Memcached, seen: &Observation, outcome: &Outcome) -> Option<(Severity, &'static str, String)> {
    let counts = seen.counts();
    let before = conditions::get(known(memcached), READY)?;
    let was_ready = before.status == "True" && before.observed_generation == memcached.metadata.generation;
    let note = ready_of(memcached, counts);
    if let Some(former) = &seen.former {
        let note = format!("from {:?} to {:?}", former.workload, memcached.spec.workload);
        return (before.reason != MIGRATING && !outcome.is_failed()).then_some((Severity::Normal, MIGRATING, note));
    }
    if before.reason == MIGRATING && outcome.is_ready() {
        return Some((Severity::Normal, "Migrated", note));
    }
    if was_ready && !outcome.is_failed() && progress(memcached, seen, counts) == Progress::Lost {
        return Some((Severity::Warning, "ServersLost", note));
    }
    let is_back = before.reason == NOT_READY && problem(memcached).is_none() && outcome.is_ready();
    is_back.then_some((Severity::Normal, "Recovered", note))
}

/// The reason of the condition Degraded while it is True.
pub fn problem(memcached: &Memcached) -> Option<String> {
    let degraded = conditions::get(known(memcached), DEGRADED)?;
    (degraded.status == "True").then(|| degraded.reason.clone())
}

/// The status while the finalizer runs: the condition of the tutorials.
pub fn deleting(memcached: &Memcached, state: State, message: String) -> Outcome {
    let status = MemcachedStatus {
        phase: Some(Phase::Deleting),
        ..memcached.status.clone().unwrap_or_default()
    };
    Outcome::waiting("Finalizing", "the object is being deleted")
        .status(status)
        .condition(DEGRADED, state, "Finalizing", message)
}

/// Returns true if the user has paused the reconciles of the Memcached.
pub fn is_paused(memcached: &Memcached) -> bool {
    let paused = memcached.annotations().get(PAUSED);
    paused.is_some_and(|paused| paused == "true")
}

fn readiness(memcached: &Memcached, seen: &Observation, counts: Counts<'_>, progress: Progress) -> Outcome {
    let ready = ready_of(memcached, counts);
    if progress == Progress::Done {
        return Outcome::ready();
    }
    let failures = seen.servers.iter().filter_map(|server| server.failure.as_ref());
    if let Some(failed) = failed(&ready, failures) {
        return failed;
    }
    if let Some((reason, message)) = counts.replicas.and_then(|replicas| replicas.failure.clone()) {
        return Outcome::failed(reason, format!("{ready}; {message}"));
    }
    let (reason, ready) = match progress {
        Progress::Migrating => (MIGRATING, migration(memcached, counts)),
        Progress::Lost => (NOT_READY, ready),
        _ if is_new(memcached, counts) => ("Creating", ready),
        _ => ("Updating", ready),
    };
    let patience = match progress {
        Progress::Lost | Progress::Growing => PATIENCE,
        // The Deployment has a deadline. A StatefulSet has none, so each of its servers gets that time.
        _ if memcached.spec.workload == Workload::Deployment => return Outcome::waiting(reason, ready),
        _ => {
            let servers = i64::from(memcached.spec.size.max(1));
            SignedDuration::from_secs(i64::from(operand::deadline_seconds(&memcached.spec)) * servers)
        }
    };
    let hidden = match counts.hidden {
        0 => String::new(),
        hidden => format!("; {hidden} more are ready, but not among the endpoints of the Service"),
    };
    let left = patience - unready_for(memcached, seen.now);
    if left.is_positive() {
        let recheck = left.unsigned_abs() + Duration::from_secs(1);
        return Outcome::waiting(reason, format!("{ready}{hidden}")).requeue_after(recheck);
    }
    let cause = if hidden.is_empty() {
        "; the others do not become ready"
    } else {
        &hidden
    };
    Outcome::failed(NOT_READY, format!("{ready}{cause}"))
}

/// The outcome if there are failures.
pub fn failed<'f>(ready: &str, failures: impl Iterator<Item = &'f PodFailure>) -> Option<Outcome> {
    let failures: Vec<&PodFailure> = failures.collect();
    let messages: Vec<&str> = failures.iter().map(|failure| failure.message.as_str()).collect();
    let reason = failures.first()?.reason.clone();
    Some(Outcome::failed(reason, format!("{ready}; {}", messages.join("; "))))
}

/// The servers of the new kind.
fn migration(memcached: &Memcached, counts: Counts<'_>) -> String {
    let (size, kind) = (memcached.spec.size, memcached.spec.workload);
    let ready = counts.replicas.map_or(0, |replicas| replicas.ready.min(size));
    let former = kind.other();
    format!("{ready} of {size} servers of the {kind:?} are ready; those of the {former:?} stop when all are ready")
}

fn progress(memcached: &Memcached, seen: &Observation, counts: Counts<'_>) -> Progress {
    let size = memcached.spec.size;
    let Some(replicas) = counts.replicas else {
        return Progress::Underway;
    };
    if seen.former.is_some() {
        return Progress::Migrating;
    }
    let is_of_one_template = replicas.is_current && replicas.wanted == size && replicas.all == replicas.updated;
    if !is_of_one_template || replicas.all > size {
        return Progress::Underway;
    }
    // Not the available servers: these had time for warming up too.
    if replicas.updated >= size && counts.ready >= size {
        return Progress::Done;
    }
    // There may be fewer than `size` for a moment: the ReplicaSet counts a deleted pod before its replacement. After a rollout, the
    // Deployment has no deadline for servers that a new size adds.
    match settled(memcached) == Some(size) {
        true if replicas.rolled_out => Progress::Lost,
        false if replicas.rolled_out && replicas.all == size => Progress::Growing,
        _ => Progress::Underway,
    }
}

/// The number of servers when all were ready last.
fn settled(memcached: &Memcached) -> Option<i32> {
    memcached.status.as_ref().and_then(|status| status.settled_replicas)
}

/// Returns true if, by the last status, the servers were never all ready.
fn is_new(memcached: &Memcached, counts: Counts<'_>) -> bool {
    match memcached.status.as_ref().and_then(|status| status.phase) {
        None | Some(Phase::Pending) => true,
        Some(Phase::Degraded) => counts.ready == 0,
        _ => false,
    }
}

/// The time since the condition Ready became False. A time in the future is that of a replica whose clock was ahead.
fn unready_for(memcached: &Memcached, now: Timestamp) -> SignedDuration {
    match conditions::get(known(memcached), READY) {
        Some(ready) if ready.status == "False" => now.duration_since(ready.last_transition_time.0.min(now)),
        // About to be reported.
        _ => SignedDuration::ZERO,
    }
}

/// The conditions of the last status.
fn known(memcached: &Memcached) -> &[Condition] {
    let status = memcached.status.as_ref();
    status.map(|status| status.conditions.as_slice()).unwrap_or_default()
}

fn ready_of(memcached: &Memcached, counts: Counts<'_>) -> String {
    let size = memcached.spec.size;
    let ready = counts.ready.min(size);
    format!(
        "{ready} of {size} {} ready",
        if size == 1 { "server is" } else { "servers are" }
    )
}

#[cfg(test)]
mod tests;
