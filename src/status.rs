//! The status of a Memcached: a pure function of its Deployment, its pods and the result of the reconcile.
use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::Condition,
    jiff::{SignedDuration, Timestamp},
};
use kube::ResourceExt as _;
use kube_manager::{
    ObjectKey,
    conditions::{self, AVAILABLE, DEGRADED, READY},
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
        (None, Err(error)) => outcome.condition(AVAILABLE, false, error.reason().to_owned(), error.to_string()),
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
        .condition(DEGRADED, state, "Finalizing", message)
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
    match conditions::get(known, READY) {
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::operand::fixtures::memcached;

    const NOW: &str = "2026-01-01T12:00:00Z";

    /// A Memcached of three servers with the status that was reported `seconds` ago.
    fn sample(phase: Option<&str>, ready: &str, seconds: i64) -> Memcached {
        let mut sample = memcached(&json!({ "size": 3 }));
        let since = now() - SignedDuration::from_secs(seconds);
        let status = json!({ "phase": phase, "observedGeneration": 1, "conditions": [{ "type": "Ready", "status": ready,
            "reason": "A", "message": "", "lastTransitionTime": since.to_string() }] });
        sample.status = phase.map(|_| serde_json::from_value(status).unwrap());
        sample
    }

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    /// A Deployment that wants three pods, with these numbers of all, updated and ready ones.
    fn seen(all: i32, updated: i32, ready: i32, condition: Value) -> Seen {
        let deployment = json!({ "metadata": { "name": "sample", "generation": 1 },
            "spec": { "replicas": 3, "selector": {}, "template": { "spec": { "containers": [{ "name": "memcached", "image": "m:1" }] } } },
            "status": { "observedGeneration": 1, "replicas": all, "updatedReplicas": updated, "readyReplicas": ready,
                "conditions": [condition] } });
        Seen {
            deployment: Some(serde_json::from_value(deployment).unwrap()),
            now: now(),
            ..Seen::default()
        }
    }

    fn rolled_out() -> Value {
        json!({ "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" })
    }

    /// Readiness, message and phase.
    fn told(memcached: &Memcached, seen: &Seen) -> (&'static str, String, String) {
        let outcome = report(memcached, seen, &Ok(Outcome::ready()));
        let state = match () {
            () if outcome.is_ready() => "ready",
            () if outcome.is_failed() => "failed",
            () => "waiting",
        };
        let phase = outcome.fields().unwrap()["phase"].as_str().unwrap().to_owned();
        (state, outcome.message().unwrap_or_default().to_owned(), phase)
    }

    fn expect(state: &'static str, message: &str, phase: &str) -> (&'static str, String, String) {
        (state, message.to_owned(), phase.to_owned())
    }

    #[test]
    fn a_new_object_is_pending_until_all_servers_are_ready() {
        let sample = sample(None, "False", 0);
        assert_eq!(
            told(&sample, &Seen::default()),
            expect("waiting", "0 of 3 servers are ready", "Pending")
        );
        assert_eq!(
            told(
                &sample,
                &seen(3, 3, 1, json!({ "type": "Available", "status": "False" }))
            ),
            expect("waiting", "1 of 3 servers are ready", "Pending")
        );
        assert_eq!(
            told(&sample, &seen(3, 3, 3, rolled_out())),
            expect("ready", "", "Running")
        );
    }

    #[test]
    fn a_rollout_is_resizing() {
        let sample = sample(Some("Running"), "True", 100);
        let underway = seen(
            3,
            1,
            2,
            json!({ "type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated" }),
        );
        assert_eq!(
            told(&sample, &underway),
            expect("waiting", "2 of 3 servers are ready", "Resizing")
        );
    }

    #[test]
    fn lost_servers_get_a_minute() {
        let lost = seen(3, 3, 2, rolled_out());
        let waiting = expect("waiting", "2 of 3 servers are ready", "Running");
        assert_eq!(told(&sample(Some("Running"), "True", 1000), &lost), waiting);
        assert_eq!(told(&sample(Some("Running"), "False", 59), &lost), waiting);
        assert_eq!(
            told(&sample(Some("Running"), "False", 60), &lost),
            expect(
                "failed",
                "2 of 3 servers are ready; the others do not become ready",
                "Degraded"
            )
        );
        // The clock of the replica that wrote the status was ahead.
        assert_eq!(told(&sample(Some("Running"), "False", -1000), &lost), waiting);
    }

    #[test]
    fn causes_are_reported_at_once() {
        let sample = sample(Some("Running"), "False", 1);
        let mut lost = seen(3, 3, 2, rolled_out());
        let server = |name: &str, failure: Option<PodFailure>| {
            Arc::new(Server {
                name: name.to_owned(),
                failure,
            })
        };
        let failure = PodFailure {
            reason: "ImagePullBackOff".to_owned(),
            message: "pod b: ImagePullBackOff".to_owned(),
        };
        lost.servers = vec![server("a", None), server("b", Some(failure))];
        assert_eq!(
            told(&sample, &lost),
            expect(
                "failed",
                "2 of 3 servers are ready; pod b: ImagePullBackOff",
                "Degraded"
            )
        );
        let refused = json!({ "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota" });
        assert_eq!(
            told(&sample, &seen(2, 2, 2, refused)),
            expect("failed", "2 of 3 servers are ready; exceeded quota", "Degraded")
        );
    }

    #[test]
    fn after_an_error_the_numbers_are_true() {
        let error = Err(Error::new("NameTaken", "Service cache/sample belongs to another"));
        let outcome = report(
            &sample(Some("Running"), "True", 9),
            &seen(3, 3, 3, rolled_out()),
            &error,
        );
        let fields = outcome.fields().unwrap();
        assert_eq!(
            (&fields["phase"], &fields["readyReplicas"]),
            (&json!("Degraded"), &json!(3))
        );
    }

    #[test]
    fn a_server_is_controlled_by_a_replica_set_of_the_deployment() {
        let of = |kind: &str, name: &str| {
            let owner =
                json!([{ "apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1", "controller": true }]);
            let pod = json!({ "metadata": { "name": "p", "namespace": "cache", "ownerReferences": owner,
                "labels": { "memcached_cr": "sample", "pod-template-hash": "abc" } } });
            Server::of(&serde_json::from_value(pod).unwrap()).map(|(owner, server)| (owner, server.name))
        };
        let sample = ObjectKey::new("cache", "sample");
        assert_eq!(of("ReplicaSet", "sample-abc"), Some((sample, "p".to_owned())));
        assert_eq!(of("ReplicaSet", "other-abc"), None);
        assert_eq!(of("StatefulSet", "sample-abc"), None);
    }
}
