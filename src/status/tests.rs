//! The status of three servers.
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

use super::*;
use crate::{
    observed::{Endpoints, Server},
    operand::fixtures::memcached,
};

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
fn seen(all: i32, updated: i32, ready: i32, condition: Value) -> Observation {
    let deployment = json!({ "metadata": { "name": "sample", "generation": 1 },
        "spec": { "replicas": 3, "selector": {}, "template": { "spec": { "containers": [{ "name": "memcached", "image": "m:1" }] } } },
        "status": { "observedGeneration": 1, "replicas": all, "updatedReplicas": updated, "readyReplicas": ready,
            "conditions": [condition] } });
    Observation {
        replicas: Some(serde_json::from_value::<Deployment>(deployment).unwrap().into()),
        endpoints: vec![Arc::new(Endpoints(
            (0..ready).map(|index| format!("p{index}")).collect(),
        ))],
        now: now(),
        ..Observation::default()
    }
}

fn rolled_out() -> Value {
    json!({ "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" })
}

/// Readiness, message and phase.
fn verdict(memcached: &Memcached, seen: &Observation) -> (&'static str, String, String) {
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
        verdict(&sample, &Observation::default()),
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
    let available = |seen: &Observation, ready: usize| {
        let mut seen = Observation {
            endpoints: Vec::new(),
            replicas: seen.replicas.clone(),
            ..Observation::default()
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
    let message = "3 of 3 servers are ready; the Deployment is paused; run kubectl rollout resume deployment/sample";
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
        let mut sample = self::sample(Some("Resizing"), "False", seconds);
        sample.spec.workload = Workload::StatefulSet;
        verdict(&sample, &migrating).0
    };
    assert_eq!((late(359), late(360)), ("waiting", "failed"));
}

#[test]
fn the_addresses_are_those_of_the_list() {
    let mut seen = seen(3, 3, 3, rolled_out());
    let fields = |seen: &Observation| {
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
    let verdict = |sample: &Memcached, seen: &Observation| {
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
    let refused =
        json!({ "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota" });
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
