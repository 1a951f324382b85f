//! The status of a Memcached: a pure function of its workload, its pods and the result of the reconcile.
use std::{collections::BTreeSet, sync::Arc, time::Duration};

use k8s_openapi::{
    api::{core::v1::Pod, discovery::v1::EndpointSlice},
    apimachinery::pkg::apis::meta::v1::Condition,
    jiff::{SignedDuration, Timestamp},
};
use kube::ResourceExt as _;
use kube_manager::{
    ObjectKey,
    conditions::{self, AVAILABLE, DEGRADED, READY},
    events::Severity,
    health::{ContainerMemory, PodFailure, container_memory, pod_failure},
    reconcile::{Error, ErrorKind, Outcome, State},
};

use crate::{
    api::v1alpha1::{Binding, Memcached, MemcachedStatus, Phase, Workload},
    operand,
    replicas::Replicas,
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

/// Projection of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Name of the pod.
    pub name: String,
    workload: Workload,
    failure: Option<PodFailure>,
    /// The memory of the container, if it changes in place.
    pub memory: Option<ContainerMemory>,
}

impl Server {
    /// The Memcached that `pod` belongs to, and the projection. `None` for a pod that is no server, or is being deleted.
    ///
    /// Any user can set labels. So the pod must be controlled by the StatefulSet, or by a ReplicaSet of the Deployment. The Deployment
    /// controller makes its name from the Deployment's name and a label of the pod.
    pub fn of(pod: &Pod) -> Option<(ObjectKey, Self)> {
        let name = pod.labels().get(operand::OWNER)?;
        let mut owners = pod.owner_references().iter();
        let owner = owners.find(|owner| owner.controller == Some(true))?;
        let hash = || pod.labels().get("pod-template-hash");
        let workload = match owner.kind.as_str() {
            "StatefulSet" if owner.name == *name => Workload::StatefulSet,
            "ReplicaSet" if owner.name == format!("{name}-{}", hash()?) => Workload::Deployment,
            _ => return None,
        };
        if pod.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let is_resizable = pod.annotations().contains_key(operand::IN_PLACE);
        let server = Self {
            name: pod.name_any(),
            workload,
            failure: pod_failure(pod),
            memory: container_memory(pod, operand::MEMCACHED).filter(|_| is_resizable),
        };
        Some((ObjectKey::new(pod.namespace().unwrap_or_default(), name), server))
    }
}

/// Projection of an EndpointSlice: the names of the ready pods that clients find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints(Vec<String>);

impl Endpoints {
    /// The Memcached that `slice` belongs to, and the projection. `None` for a slice that no Service controls: any user can set labels.
    pub fn of(slice: &EndpointSlice) -> Option<(ObjectKey, Self)> {
        let mut owners = slice.owner_references().iter();
        let service = owners.find(|owner| owner.controller == Some(true) && owner.kind == "Service")?;
        let ready = slice.endpoints.iter().filter(|endpoint| {
            let conditions = endpoint.conditions.as_ref();
            conditions.and_then(|conditions| conditions.ready) != Some(false)
        });
        let pods = ready.filter_map(|endpoint| endpoint.target_ref.as_ref()?.name.clone());
        let key = ObjectKey::new(slice.namespace().unwrap_or_default(), service.name.clone());
        Some((key, Self(pods.collect())))
    }
}

/// The cluster as the operator sees it.
#[derive(Default)]
pub struct Seen {
    /// The workload of the Memcached.
    pub replicas: Option<Replicas>,
    /// The workload of the other kind, if there is one.
    pub former: Option<Replicas>,
    /// Its servers, sorted by name.
    pub servers: Vec<Arc<Server>>,
    /// The endpoints of its Service.
    pub endpoints: Vec<Arc<Endpoints>>,
    /// The published list of stable addresses.
    pub addresses: Vec<String>,
    /// The binding Secret exists.
    pub is_bound: bool,
    /// The time.
    pub now: Timestamp,
}

impl Seen {
    /// Returns true if servers of both kinds must run, because those of the new kind do not serve yet.
    pub fn is_migrating(&self, memcached: &Memcached) -> bool {
        let size = memcached.spec.size;
        let found = self.found();
        let of_kind =
            |server: &&Arc<Server>| server.workload == memcached.spec.workload && found.contains(&server.name);
        let serving = self.servers.iter().filter(of_kind).count();
        let serves = |replicas: &Replicas| replicas.are_complete(size) && replicas.available >= size;
        let can_take_over = self.replicas.as_ref().is_some_and(serves) && number(serving) >= size;
        self.former.is_some() && !can_take_over
    }

    /// The number of servers that have been ready for less than the warm-up time.
    pub fn warming(&self) -> i32 {
        let workloads = [&self.replicas, &self.former].into_iter().flatten();
        workloads
            .map(|replicas| (replicas.ready - replicas.available).max(0))
            .sum()
    }

    /// Names of the pods that clients find.
    fn found(&self) -> BTreeSet<&String> {
        self.endpoints.iter().flat_map(|slice| &slice.0).collect()
    }

    fn counts(&self) -> Option<Counts<'_>> {
        let replicas = self.replicas.as_ref()?;
        let sum = |of: fn(&Replicas) -> i32| of(replicas) + self.former.as_ref().map_or(0, of);
        let (ready, found) = (sum(|replicas| replicas.ready), number(self.found().len()));
        Some(Counts {
            replicas,
            all: sum(|replicas| replicas.all),
            ready: ready.min(found),
            hidden: (ready - found).max(0),
        })
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

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

/// The numbers of all servers.
struct Counts<'s> {
    /// Those of the kind that the spec names.
    replicas: &'s Replicas,
    all: i32,
    /// Servers that are ready and that clients find.
    ready: i32,
    /// Ready servers that clients do not find, because the Service does not select them.
    hidden: i32,
}

/// The status after a reconcile with this result.
pub fn report(memcached: &Memcached, seen: &Seen, result: &Result<Outcome, Error>) -> Outcome {
    let counts = seen.counts();
    let progress = progress(memcached, seen, counts.as_ref());
    let size = memcached.spec.size;
    let outcome = match (readiness(memcached, seen, counts.as_ref(), progress), result) {
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
        ready_replicas: Some(counts.as_ref().map_or(0, |counts| counts.ready)),
        replicas: Some(counts.as_ref().map_or(0, |counts| counts.all)),
        selector: Some(operand::selector_text(memcached)),
        phase: Some(match progress {
            _ if is_wrong => Phase::Degraded,
            Progress::Done if !outcome.is_ready() && !is_paused(memcached) => Phase::Resizing,
            Progress::Done | Progress::Lost => Phase::Running,
            _ if is_new(memcached, counts.as_ref()) => Phase::Pending,
            _ => Phase::Resizing,
        }),
        settled_replicas: match progress {
            Progress::Done => Some(size),
            _ => settled(memcached),
        },
        image: seen.replicas.as_ref().and_then(|replicas| replicas.image.clone()),
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
    match (&counts, result) {
        (Some(_), _) if size == 0 => outcome.available(true, "spec.size is 0"),
        // One server may be missing, as during rollouts and node maintenance.
        (Some(counts), _) => outcome.available(counts.ready >= least, ready_of(memcached, Some(counts))),
        (None, Err(error)) => outcome.condition(AVAILABLE, false, error.reason().to_owned(), error.to_string()),
        (None, Ok(_)) => outcome,
    }
}

/// The event about servers that are lost, are back, or move to another kind of workload. A cause is in the event that the layer publishes
/// about the condition Degraded.
pub fn event(memcached: &Memcached, seen: &Seen, outcome: &Outcome) -> Option<(Severity, &'static str, String)> {
    let counts = seen.counts();
    let known = known(memcached);
    let before = conditions::get(known, READY)?;
    let was_ready = before.status == "True" && before.observed_generation == memcached.metadata.generation;
    let was_degraded = problem(memcached).is_some();
    let note = ready_of(memcached, counts.as_ref());
    if let Some(former) = &seen.former {
        let note = format!("from {:?} to {:?}", former.workload, memcached.spec.workload);
        return (before.reason != MIGRATING && !outcome.is_failed()).then_some((Severity::Normal, MIGRATING, note));
    }
    if before.reason == MIGRATING && outcome.is_ready() {
        return Some((Severity::Normal, "Migrated", note));
    }
    if was_ready && !outcome.is_failed() && progress(memcached, seen, counts.as_ref()) == Progress::Lost {
        return Some((Severity::Warning, "ServersLost", note));
    }
    let is_back = before.reason == NOT_READY && !was_degraded && outcome.is_ready();
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
    memcached
        .annotations()
        .get(PAUSED)
        .is_some_and(|paused| paused == "true")
}

fn readiness(memcached: &Memcached, seen: &Seen, counts: Option<&Counts<'_>>, progress: Progress) -> Outcome {
    let ready = ready_of(memcached, counts);
    if progress == Progress::Done {
        return Outcome::ready();
    }
    let failures = seen.servers.iter().filter_map(|server| server.failure.as_ref());
    if let Some(failed) = failed(&ready, failures) {
        return failed;
    }
    if let Some((reason, message)) = counts.and_then(|counts| counts.replicas.failure.clone()) {
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
    let hidden = match counts.map_or(0, |counts| counts.hidden) {
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
fn migration(memcached: &Memcached, counts: Option<&Counts<'_>>) -> String {
    let (size, kind) = (memcached.spec.size, memcached.spec.workload);
    let ready = counts.map_or(0, |counts| counts.replicas.ready.min(size));
    let former = kind.other();
    format!("{ready} of {size} servers of the {kind:?} are ready; those of the {former:?} stop when all are ready")
}

fn progress(memcached: &Memcached, seen: &Seen, counts: Option<&Counts<'_>>) -> Progress {
    let size = memcached.spec.size;
    let Some(counts) = counts else {
        return Progress::Underway;
    };
    let replicas = counts.replicas;
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
fn is_new(memcached: &Memcached, counts: Option<&Counts<'_>>) -> bool {
    match memcached.status.as_ref().and_then(|status| status.phase) {
        None | Some(Phase::Pending) => true,
        Some(Phase::Degraded) => counts.is_none_or(|counts| counts.ready == 0),
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

fn ready_of(memcached: &Memcached, counts: Option<&Counts<'_>>) -> String {
    let size = memcached.spec.size;
    let ready = counts.map_or(0, |counts| counts.ready.min(size));
    format!(
        "{ready} of {size} {} ready",
        if size == 1 { "server is" } else { "servers are" }
    )
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::{Value, json};

    use super::*;
    use crate::operand::fixtures::memcached;

    const NOW: &str = "2026-01-01T12:00:00Z";

    /// A Memcached of three servers with the status that was reported `seconds` ago.
    fn sample(phase: Option<&str>, ready: &str, seconds: i64) -> Memcached {
        let mut sample = memcached(&json!({ "size": 3 }));
        let since = now() - SignedDuration::from_secs(seconds);
        let reason = if ready == "True" { "Ready" } else { NOT_READY };
        let status = json!({ "phase": phase, "observedGeneration": 1, "settledReplicas": 3,
            "conditions": [{ "type": "Ready", "status": ready, "reason": reason, "message": "", "observedGeneration": 1,
                "lastTransitionTime": since.to_string() }] });
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
            replicas: Some(serde_json::from_value::<Deployment>(deployment).unwrap().into()),
            endpoints: vec![Arc::new(Endpoints(
                (0..ready).map(|index| format!("p{index}")).collect(),
            ))],
            now: now(),
            ..Seen::default()
        }
    }

    fn rolled_out() -> Value {
        json!({ "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" })
    }

    /// Readiness, message and phase.
    fn verdict(memcached: &Memcached, seen: &Seen) -> (&'static str, String, String) {
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
            verdict(&sample, &Seen::default()),
            expect("waiting", "0 of 3 servers are ready", "Pending")
        );
        assert_eq!(
            verdict(
                &sample,
                &seen(3, 3, 1, json!({ "type": "Available", "status": "False" }))
            ),
            expect("waiting", "1 of 3 servers are ready", "Pending")
        );
        assert_eq!(
            verdict(&sample, &seen(3, 3, 3, rolled_out())),
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
            verdict(&sample, &underway),
            expect("waiting", "2 of 3 servers are ready", "Resizing")
        );
    }

    #[test]
    fn lost_servers_get_a_minute() {
        let lost = seen(3, 3, 2, rolled_out());
        let waiting = expect("waiting", "2 of 3 servers are ready", "Running");
        assert_eq!(verdict(&sample(Some("Running"), "True", 1000), &lost), waiting);
        assert_eq!(verdict(&sample(Some("Running"), "False", 59), &lost), waiting);
        assert_eq!(
            verdict(&sample(Some("Running"), "False", 60), &lost),
            expect(
                "failed",
                "2 of 3 servers are ready; the others do not become ready",
                "Degraded"
            )
        );
        // The clock of the replica that wrote the status was ahead.
        assert_eq!(verdict(&sample(Some("Running"), "False", -1000), &lost), waiting);
    }

    #[test]
    fn servers_that_clients_do_not_find_are_not_ready() {
        let mut seen = seen(3, 3, 3, rolled_out());
        seen.endpoints = vec![Arc::new(Endpoints(vec!["p0".to_owned()]))];
        let sample = |seconds| sample(Some("Running"), "False", seconds);
        let message = "1 of 3 servers are ready; 2 more are ready, but not among the endpoints of the Service";
        assert_eq!(verdict(&sample(1), &seen), expect("waiting", message, "Running"));
        assert_eq!(verdict(&sample(60), &seen), expect("failed", message, "Degraded"));
    }

    #[test]
    fn a_slice_counts_if_a_service_controls_it() {
        let of = |kind: &str, ready: Value| {
            let owner = json!([{ "apiVersion": "v1", "kind": kind, "name": "sample", "uid": "1", "controller": true }]);
            let endpoint = json!({ "addresses": ["10.0.0.1"], "conditions": { "ready": ready },
                "targetRef": { "kind": "Pod", "name": "p0" } });
            let slice = json!({ "metadata": { "namespace": "cache", "ownerReferences": owner }, "addressType": "IPv4",
                "endpoints": [endpoint] });
            Endpoints::of(&serde_json::from_value(slice).unwrap())
        };
        let found = |pods: &[&str]| {
            let pods = pods.iter().map(|pod| (*pod).to_owned()).collect();
            Some((ObjectKey::new("cache", "sample"), Endpoints(pods)))
        };
        assert_eq!(of("Service", json!(true)), found(&["p0"]));
        assert_eq!(of("Service", json!(false)), found(&[]));
        assert_eq!(of("Endpoints", json!(true)), None);
    }

    #[test]
    fn servers_that_ran_stay_available_while_others_are_added() {
        let mut sample = sample(Some("Running"), "True", 100);
        sample.spec.size = 10;
        sample.metadata.generation = Some(2);
        let mut seen = seen(10, 10, 3, rolled_out());
        seen.replicas.as_mut().unwrap().wanted = 10;
        assert_eq!(
            verdict(&sample, &seen),
            expect("waiting", "3 of 10 servers are ready", "Resizing")
        );
        let available = |seen: &Seen, ready: usize| {
            let mut seen = Seen {
                endpoints: Vec::new(),
                replicas: seen.replicas.clone(),
                ..Seen::default()
            };
            seen.endpoints = vec![Arc::new(Endpoints((0..ready).map(|index| index.to_string()).collect()))];
            report(&sample, &seen, &Ok(Outcome::ready())).is_available()
        };
        assert_eq!(
            [3, 2, 1].map(|ready| available(&seen, ready)),
            [Some(true), Some(true), Some(false)]
        );
        assert_eq!(event(&sample, &seen, &Outcome::waiting("A", "")), None);
    }

    #[test]
    fn a_paused_deployment_is_the_cause() {
        let mut paused = seen(
            3,
            0,
            3,
            json!({ "type": "Progressing", "status": "Unknown", "reason": "DeploymentPaused" }),
        );
        let resume = "the Deployment is paused; run kubectl rollout resume deployment/sample";
        paused.replicas.as_mut().unwrap().failure = Some(("DeploymentPaused".to_owned(), resume.to_owned()));
        let message =
            "3 of 3 servers are ready; the Deployment is paused; run kubectl rollout resume deployment/sample";
        assert_eq!(
            verdict(&sample(Some("Running"), "True", 9), &paused),
            expect("failed", message, "Degraded")
        );
    }

    /// Two of three servers of the StatefulSet are ready, besides those of the Deployment.
    #[test]
    fn a_migration_is_reported_until_the_former_workload_is_deleted() {
        let mut sample = sample(Some("Running"), "True", 9);
        sample.spec.workload = Workload::StatefulSet;
        let mut migrating = seen(3, 3, 2, rolled_out());
        migrating.former = seen(3, 3, 3, rolled_out()).replicas;
        let pods = (0..5).map(|index| format!("p{index}"));
        migrating.endpoints = vec![Arc::new(Endpoints(pods.collect()))];
        assert!(migrating.is_migrating(&sample));
        let message = "2 of 3 servers of the StatefulSet are ready; those of the Deployment stop when all are ready";
        assert_eq!(verdict(&sample, &migrating), expect("waiting", message, "Resizing"));
        let outcome = report(&sample, &migrating, &Ok(Outcome::ready()));
        assert_eq!(outcome.is_available(), Some(true));
        assert_eq!(outcome.fields().unwrap()["readyReplicas"], 5);
        let event = event(&sample, &migrating, &outcome).unwrap();
        assert_eq!(
            (event.1, event.2.as_str()),
            ("Migrating", "from Deployment to StatefulSet")
        );

        let mut done = sample.clone();
        done.status.as_mut().unwrap().conditions[0].reason = MIGRATING.to_owned();
        assert!(super::event(&done, &migrating, &outcome).is_none(), "one event");
        let seen = seen(3, 3, 3, rolled_out());
        let outcome = report(&done, &seen, &Ok(Outcome::ready()));
        assert_eq!(super::event(&done, &seen, &outcome).unwrap().1, "Migrated");
        // New servers that never become ready.
        let late = |seconds: i64| {
            let mut sample = super::tests::sample(Some("Resizing"), "False", seconds);
            sample.spec.workload = Workload::StatefulSet;
            verdict(&sample, &migrating).0
        };
        assert_eq!((late(359), late(360)), ("waiting", "failed"));
    }

    #[test]
    fn the_addresses_are_those_of_the_list() {
        let mut seen = seen(3, 3, 3, rolled_out());
        let fields = |seen: &Seen| {
            report(&sample(None, "False", 0), seen, &Ok(Outcome::ready()))
                .fields()
                .unwrap()
                .clone()
        };
        assert_eq!(
            (&fields(&seen)["servers"], &fields(&seen)["binding"]),
            (&Value::Null, &Value::Null)
        );
        (seen.addresses, seen.is_bound) = (vec!["a:1".to_owned()], true);
        assert_eq!(fields(&seen)["servers"], json!(["a:1"]));
        assert_eq!(fields(&seen)["binding"], json!({ "name": "sample-binding" }));
        seen.addresses = vec!["a:1".to_owned(); 201];
        assert_eq!(fields(&seen)["servers"], Value::Null);
    }

    #[test]
    fn a_loss_and_the_recovery_have_one_event_each() {
        let (lost, all) = (seen(3, 3, 2, rolled_out()), seen(3, 3, 3, rolled_out()));
        let verdict = |sample: &Memcached, seen: &Seen| {
            let outcome = report(sample, seen, &Ok(Outcome::ready()));
            event(sample, seen, &outcome).map(|(_, reason, note)| format!("{reason}: {note}"))
        };
        let (ready, unready) = (sample(Some("Running"), "True", 9), sample(Some("Running"), "False", 9));
        assert_eq!(
            verdict(&ready, &lost).as_deref(),
            Some("ServersLost: 2 of 3 servers are ready")
        );
        assert_eq!(verdict(&unready, &lost), None);
        assert_eq!(
            verdict(&unready, &all).as_deref(),
            Some("Recovered: 3 of 3 servers are ready")
        );
        assert_eq!(verdict(&ready, &all), None);
    }

    #[test]
    fn causes_are_reported_at_once() {
        let sample = sample(Some("Running"), "False", 1);
        let mut lost = seen(3, 3, 2, rolled_out());
        let server = |name: &str, failure: Option<PodFailure>| {
            Arc::new(Server {
                name: name.to_owned(),
                workload: Workload::Deployment,
                failure,
                memory: None,
            })
        };
        let failure = PodFailure {
            reason: "ImagePullBackOff".to_owned(),
            message: "pod b: ImagePullBackOff".to_owned(),
        };
        lost.servers = vec![server("a", None), server("b", Some(failure.clone()))];
        let message = "2 of 3 servers are ready; pod b: ImagePullBackOff";
        assert_eq!(verdict(&sample, &lost), expect("failed", message, "Degraded"));
        let other = PodFailure {
            message: "pod c: OOMKilled".to_owned(),
            ..failure
        };
        lost.servers.push(server("c", Some(other)));
        let message = "2 of 3 servers are ready; pod b: ImagePullBackOff; pod c: OOMKilled";
        assert_eq!(verdict(&sample, &lost), expect("failed", message, "Degraded"));
        let refused = json!({ "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota" });
        assert_eq!(
            verdict(&sample, &seen(2, 2, 2, refused)),
            expect("failed", "2 of 3 servers are ready; exceeded quota", "Degraded")
        );
    }

    #[test]
    fn servers_that_change_their_memory_are_available() {
        let resizing = || {
            Ok(Outcome::waiting(
                "ResizingMemory",
                "1 of 3 servers have 128 MiB for items",
            ))
        };
        let sample = sample(Some("Running"), "True", 9);
        let outcome = report(&sample, &seen(3, 3, 3, rolled_out()), &resizing());
        assert_eq!(outcome.message(), Some("1 of 3 servers have 128 MiB for items"));
        assert_eq!(outcome.is_available(), Some(true));
        assert_eq!(outcome.fields().unwrap()["phase"], "Resizing");
        // Lost servers are more important.
        let outcome = report(&sample, &seen(3, 3, 2, rolled_out()), &resizing());
        assert_eq!(outcome.message(), Some("2 of 3 servers are ready"));
        let infeasible = Ok(Outcome::failed("ResizeInfeasible", "pod a: no room"));
        let outcome = report(&sample, &seen(3, 3, 3, rolled_out()), &infeasible);
        assert!(outcome.is_failed());
        assert_eq!(outcome.fields().unwrap()["phase"], "Degraded");
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
    fn a_server_is_controlled_by_the_workload() {
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
        let stateful = of("StatefulSet", "sample").unwrap();
        assert_eq!(stateful.1, "p");
    }
}
