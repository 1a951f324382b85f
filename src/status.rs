//! The status of a Memcached: a pure function of its Deployment, its pods and the result of the reconcile.
use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::Condition,
    jiff::{SignedDuration, Timestamp},
};
use kube::ResourceExt as _;
use kube_manager::{
    ObjectKey, conditions,
    health::{PodFailure, pod_failure},
    reconcile::{Error, ErrorKind, Outcome, State},
};

use crate::{
    api::v1alpha1::{Memcached, MemcachedStatus, Phase},
    operand,
};

/// Servers that are lost (evicted, restarted, on a node that failed) usually come back within this time. Only then the object is
/// Degraded. The Deployment has a deadline for servers that it makes.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// Projection of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    name: String,
    failure: Option<PodFailure>,
}

impl Server {
    /// The Memcached that `pod` belongs to, and the projection. `None` for a pod that is no server, or is being deleted.
    ///
    /// Any user can set labels. So the pod must be controlled by a ReplicaSet of the Deployment. The Deployment controller makes its
    /// name from the Deployment's name and a label of the pod.
    pub fn of(pod: &Pod) -> Option<(ObjectKey, Self)> {
        let name = pod.labels().get(operand::OWNER)?;
        let replica_set = format!("{name}-{}", pod.labels().get("pod-template-hash")?);
        let mut owners = pod.owner_references().iter();
        let owner = owners.find(|owner| owner.controller == Some(true))?;
        let is_server = owner.kind == "ReplicaSet" && owner.name == replica_set;
        if !is_server || pod.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let server = Self {
            name: pod.name_any(),
            failure: pod_failure(pod),
        };
        Some((ObjectKey::new(pod.namespace().unwrap_or_default(), name), server))
    }
}

/// The cluster as the operator sees it.
#[derive(Default)]
pub struct Seen {
    /// The Deployment of the Memcached.
    pub deployment: Option<Deployment>,
    /// Its servers, sorted by name.
    pub servers: Vec<Arc<Server>>,
    /// The time.
    pub now: Timestamp,
}

/// Progress of the servers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// All servers run as the spec says.
    Done,
    /// Servers are added, removed or replaced.
    Underway,
    /// All servers ran as the spec says. Some do not answer any more.
    Lost,
}

/// The numbers of a Deployment.
struct Counts {
    wanted: i32,
    all: i32,
    updated: i32,
    ready: i32,
    /// The Deployment controller has seen the spec.
    is_current: bool,
    /// The last rollout has finished. That stays so when servers are lost.
    rolled_out: bool,
}

impl Counts {
    fn of(deployment: &Deployment) -> Self {
        let status = deployment.status.clone().unwrap_or_default();
        let progressing = condition(deployment, "Progressing");
        Self {
            wanted: deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1),
            all: status.replicas.unwrap_or(0),
            updated: status.updated_replicas.unwrap_or(0),
            ready: status.ready_replicas.unwrap_or(0),
            is_current: status.observed_generation >= deployment.metadata.generation,
            rolled_out: progressing.is_some_and(|(_, reason, _)| reason == "NewReplicaSetAvailable"),
        }
    }
}

/// Status, reason and message of a condition.
fn condition(deployment: &Deployment, kind: &str) -> Option<(String, String, String)> {
    let mut conditions = deployment
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let found = conditions.find(|condition| condition.type_ == kind)?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Some((found.status.clone(), text(&found.reason), text(&found.message)))
}

/// Why the Deployment cannot make or replace pods: reason and message.
fn deployment_failure(deployment: &Deployment) -> Option<(String, String)> {
    let refused = condition(deployment, "ReplicaFailure").filter(|(status, ..)| status == "True");
    let late = || condition(deployment, "Progressing").filter(|(_, reason, _)| reason == "ProgressDeadlineExceeded");
    refused.or_else(late).map(|(_, reason, message)| (reason, message))
}

/// The status after a reconcile with this result.
pub fn report(memcached: &Memcached, seen: &Seen, result: &Result<Outcome, Error>) -> Outcome {
    let counts = seen.deployment.as_ref().map(Counts::of);
    let progress = progress(memcached, counts.as_ref());
    let outcome = match result {
        // A paused object.
        Ok(outcome) if !outcome.is_ready() => outcome.clone(),
        _ => readiness(memcached, seen, counts.as_ref(), progress),
    };
    let is_wrong = match result {
        Err(error) => error.kind() != ErrorKind::Waiting,
        Ok(_) => outcome.is_failed(),
    };
    let status = MemcachedStatus {
        nodes: seen.servers.iter().map(|server| server.name.clone()).collect(),
        ready_replicas: Some(counts.as_ref().map_or(0, |counts| counts.ready)),
        replicas: Some(counts.as_ref().map_or(0, |counts| counts.all)),
        selector: Some(operand::selector_text(memcached)),
        phase: Some(match progress {
            _ if is_wrong => Phase::Degraded,
            Progress::Done | Progress::Lost => Phase::Running,
            Progress::Underway if is_new(memcached, counts.as_ref()) => Phase::Pending,
            Progress::Underway => Phase::Resizing,
        }),
        image: seen.deployment.as_ref().and_then(running_image),
        ..MemcachedStatus::default()
    };
    let outcome = outcome.status(status);
    let size = memcached.spec.size;
    match (&counts, result) {
        (Some(_), _) if size == 0 => outcome.available(true, "spec.size is 0"),
        // One server may be missing, as during rollouts and node maintenance.
        (Some(counts), _) => outcome.available(counts.ready >= (size - 1).max(1), ready_of(memcached, Some(counts))),
        (None, Err(error)) => outcome.condition("Available", false, error.reason().to_owned(), error.to_string()),
        (None, Ok(_)) => outcome,
    }
}

/// The status while the finalizer runs: the condition of the tutorials.
pub fn deleting(memcached: &Memcached, state: State, message: String) -> Outcome {
    let status = MemcachedStatus {
        phase: Some(Phase::Deleting),
        ..memcached.status.clone().unwrap_or_default()
    };
    Outcome::waiting("Finalizing", "the object is being deleted")
        .status(status)
        .condition("Degraded", state, "Finalizing", message)
}

fn readiness(memcached: &Memcached, seen: &Seen, counts: Option<&Counts>, progress: Progress) -> Outcome {
    let ready = ready_of(memcached, counts);
    if progress == Progress::Done {
        return Outcome::ready();
    }
    if let Some(failure) = seen.servers.iter().find_map(|server| server.failure.as_ref()) {
        return Outcome::failed(&failure.reason, format!("{ready}; {}", failure.message));
    }
    if let Some((reason, message)) = seen.deployment.as_ref().and_then(deployment_failure) {
        return Outcome::failed(reason, format!("{ready}; {message}"));
    }
    match progress {
        Progress::Lost => {
            let left = PATIENCE - unready_for(memcached, seen.now);
            if left.is_positive() {
                let recheck = left.unsigned_abs() + Duration::from_secs(1);
                return Outcome::waiting("ServersNotReady", ready).requeue_after(recheck);
            }
            Outcome::failed("ServersNotReady", format!("{ready}; the others do not become ready"))
        }
        _ if is_new(memcached, counts) => Outcome::waiting("Creating", ready),
        _ => Outcome::waiting("Updating", ready),
    }
}

fn progress(memcached: &Memcached, counts: Option<&Counts>) -> Progress {
    let size = memcached.spec.size;
    let Some(counts) = counts else {
        return Progress::Underway;
    };
    if !counts.is_current || counts.wanted != size || counts.all != counts.updated || counts.all > size {
        return Progress::Underway;
    }
    // Not the available servers: these had time for warming up too.
    if counts.updated >= size && counts.ready >= size {
        return Progress::Done;
    }
    // There may be fewer than `size` for a moment: the ReplicaSet counts a deleted pod before its replacement. After a rollout,
    // servers that a new size adds have no deadline of the Deployment's, so they count as lost.
    let was_running = memcached.status.as_ref().and_then(|status| status.phase) == Some(Phase::Running);
    let is_observed =
        memcached.status.as_ref().and_then(|status| status.observed_generation) == memcached.metadata.generation;
    if counts.rolled_out && (counts.all == size || was_running && is_observed) {
        Progress::Lost
    } else {
        Progress::Underway
    }
}

/// Returns true if, by the last status, the servers were never all ready.
fn is_new(memcached: &Memcached, counts: Option<&Counts>) -> bool {
    match memcached.status.as_ref().and_then(|status| status.phase) {
        None | Some(Phase::Pending) => true,
        Some(Phase::Degraded) => counts.is_none_or(|counts| counts.ready == 0),
        _ => false,
    }
}

/// The time since the condition Ready became False. A time in the future is that of a replica whose clock was ahead.
fn unready_for(memcached: &Memcached, now: Timestamp) -> SignedDuration {
    let known: &[Condition] = memcached
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    match conditions::get(known, "Ready") {
        Some(ready) if ready.status == "False" => now.duration_since(ready.last_transition_time.0.min(now)),
        // About to be reported.
        _ => SignedDuration::ZERO,
    }
}

fn ready_of(memcached: &Memcached, counts: Option<&Counts>) -> String {
    let (size, ready) = (memcached.spec.size, counts.map_or(0, |counts| counts.ready));
    format!(
        "{ready} of {size} {} ready",
        if size == 1 { "server is" } else { "servers are" }
    )
}

fn running_image(deployment: &Deployment) -> Option<String> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    let container = pod
        .containers
        .iter()
        .find(|container| container.name == operand::MEMCACHED)?;
    container.image.clone()
}
