//! Leader election, start and shutdown of several replicas.
use std::time::{Duration, Instant};

use k8s_openapi::{
    api::{apps::v1::Deployment, coordination::v1::Lease},
    jiff::Timestamp,
};
use kube::api::{Patch, PatchParams};
use kube_testbed::faults::ProxiedRequest;
use memcached_operator::api::v1alpha1::Memcached;
use serde_json::json;

use crate::lab::{Lab, Operator, eventually};

const LEASE: &str = "memcached-operator.cache.example.com";
const ELECT: &[&str] = &["--leader-elect"];

async fn holder(lab: &Lab) -> Option<String> {
    lab.api::<Lease>()
        .get_opt(LEASE)
        .await
        .unwrap()?
        .spec?
        .holder_identity
        .filter(|holder| !holder.is_empty())
}

/// A rolling update of the operator waits until the new replica is ready, while the old one still has the lease.
#[tokio::test]
async fn a_standby_is_ready_and_takes_over_when_the_leader_ends() {
    let lab = Lab::new("rolling-update").await;
    let old = lab.operator_with(ELECT, &[("POD_NAME", "old")]).await;
    let leader = eventually("a leader", async || holder(&lab).await).await;
    assert!(leader.starts_with("old_"), "{leader}");
    let new = lab.operator_with(ELECT, &[("POD_NAME", "new")]).await;
    assert_eq!(new.get("probes", "/readyz").await.0, 200);
    assert_eq!(holder(&lab).await, Some(leader), "ready without the lease");

    lab.memcached("sample", json!({ "size": 1 })).await;
    lab.running("sample").await;
    assert!(!new.log().contains("\"reconciled\""), "the standby does nothing");

    let (status, log) = old.terminate().await;
    let released = Timestamp::now();
    assert!(status.success(), "{log}");
    assert!(log.contains("released the lease"), "{log}");
    lab.change("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let lease = lab.api::<Lease>().get(LEASE).await.unwrap().spec.unwrap();
    let waited = lease.acquire_time.unwrap().0.duration_since(released);
    assert!(
        waited.as_secs() < 12,
        "{waited}: a released lease is taken before its 15 seconds are over"
    );
    assert!(holder(&lab).await.unwrap().starts_with("new_"));
    let (_, metrics) = new.get("metrics", "/metrics").await;
    let line = format!("leader_election_master_status{{name=\"{LEASE}\"}} 1");
    assert!(metrics.contains(&line), "{metrics}");
    assert!(metrics.contains("controller_runtime_reconcile_total{controller=\"memcached\",result=\"success\"}"));
}

/// Two developers call `make run` for one cluster, or one does so twice.
#[tokio::test]
async fn a_second_make_run_waits() {
    let makefile = include_str!("../../Makefile");
    let (_, flags) = makefile.split_once("--bin memcached-operator -- ").unwrap();
    let flags: Vec<&str> = flags.lines().next().unwrap().split_whitespace().collect();
    let lab = Lab::new("make-run").await;
    let variables = [("WATCH_NAMESPACE", "make-run"), ("MEMCACHED_IMAGE", "memcached:1")];
    let leads = |operator: &Operator| operator.log().contains("leading lease=").then_some(());
    let first = lab.run_by_user(&flags, &variables);
    eventually("a leader", async || leads(&first)).await;
    let second = lab.run_by_user(&flags, &variables);
    let synced = || second.log().contains("all caches synced").then_some(());
    eventually("the second operator's caches", async || synced()).await;
    lab.memcached("sample", json!({ "size": 1 })).await;
    lab.running("sample").await;
    let log = second.log();
    assert!(!log.contains("leading lease=") && !log.contains("reconciled"), "{log}");
    let (status, log) = first.terminate().await;
    assert!(status.success(), "{log}");
    eventually("the next leader", async || leads(&second)).await;
}

#[tokio::test]
async fn a_leader_that_vanishes_is_replaced_after_the_lease_ran_out() {
    let lab = Lab::new("vanished").await;
    let mut first = lab.operator_with(ELECT, &[("POD_NAME", "first")]).await;
    eventually("a leader", async || holder(&lab).await).await;
    let _second = lab.operator_with(ELECT, &[("POD_NAME", "second")]).await;
    first.kill();
    let started = Instant::now();
    lab.memcached("sample", json!({})).await;
    lab.running("sample").await;
    let took = started.elapsed();
    assert!(
        took > Duration::from_secs(8),
        "{took:?}: a lease must not be taken before it expires"
    );
    assert!(holder(&lab).await.unwrap().starts_with("second_"));
    let spec = lab.api::<Lease>().get(LEASE).await.unwrap().spec.unwrap();
    assert_eq!(spec.lease_transitions, Some(1));
}

/// A replica that loses the lease must stop at once: another may already be active.
#[tokio::test]
async fn a_leader_whose_lease_is_taken_ends_with_an_error() {
    let lab = Lab::new("deposed").await;
    let mut operator = lab.operator_with(ELECT, &[]).await;
    eventually("a leader", async || holder(&lab).await).await;
    let thief = Patch::Merge(json!({ "spec": { "holderIdentity": "thief" } }));
    lab.api::<Lease>()
        .patch(LEASE, &PatchParams::default(), &thief)
        .await
        .unwrap();
    let status = eventually("the end", async || operator.ended()).await;
    assert_eq!(status.code(), Some(1));
    assert!(operator.log().contains("leadership lost"), "{}", operator.log());
    assert_eq!(holder(&lab).await.as_deref(), Some("thief"));
}

/// A leader that was stopped for longer than its lease finds out late. It sends nothing of what it had begun, and begins nothing.
#[tokio::test]
async fn a_leader_that_was_stopped_past_its_lease_writes_nothing() {
    let lab = Lab::new("stopped").await;
    let proxy = lab.faults(1).await;
    let mut first = lab.operator_through(&proxy, ELECT, &[("POD_NAME", "first")]).await;
    eventually("a leader", async || holder(&lab).await).await;
    let _second = lab.operator_with(ELECT, &[("POD_NAME", "second")]).await;
    let writes = || -> Vec<ProxiedRequest> {
        let mut seen = proxy.requests();
        seen.retain(|request| request.verb.is_write());
        seen
    };
    for index in 0..30 {
        lab.memcached(&format!("m{index}"), json!({})).await;
    }
    eventually("it works", async || {
        writes()
            .iter()
            .any(|request| request.resource == "deployments")
            .then_some(())
    })
    .await;
    first.signal("STOP");
    eventually("another leader", async || {
        holder(&lab).await?.starts_with("second_").then_some(())
    })
    .await;
    for index in 0..30 {
        lab.running(&format!("m{index}")).await;
    }
    let before = writes().len();
    first.signal("CONT");
    let status = eventually("the end", async || first.ended()).await;
    assert_eq!(status.code(), Some(1));
    assert!(first.log().contains("lost the lease"), "{}", first.log());
    let late = writes().split_off(before);
    assert!(late.is_empty(), "{late:#?}");
}

#[tokio::test]
async fn on_sigterm_running_work_is_finished() {
    let lab = Lab::new("sigterm").await;
    let operator = lab
        .operator_with(
            // The limit counts seconds, and a busy machine needs more of them.
            &[
                "--leader-elect",
                "--max-concurrent-reconciles=4",
                "--graceful-shutdown-timeout=120",
            ],
            &[],
        )
        .await;
    eventually("a leader", async || holder(&lab).await).await;
    for index in 0..20 {
        lab.memcached(&format!("m{index}"), json!({})).await;
    }
    let (status, log) = operator.terminate().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert_eq!(holder(&lab).await, None, "released");
    // Every Memcached that was begun was finished: it has all of its objects and a status, or none of them.
    for index in 0..20 {
        let name = format!("m{index}");
        let memcached = lab.api::<Memcached>().get(&name).await.unwrap();
        let deployment = lab.api::<Deployment>().get_opt(&name).await.unwrap();
        assert_eq!(deployment.is_some(), memcached.status.is_some(), "{name}: {log}");
    }
}

#[tokio::test]
async fn a_namespace_that_is_not_watched_stays_untouched() {
    let (watched, other) = (Lab::new("watched").await, Lab::new("unwatched").await);
    let _operator = watched.operator().await;
    other.memcached("sample", json!({})).await;
    watched.memcached("sample", json!({})).await;
    watched.running("sample").await;
    let untouched = other.api::<Memcached>().get("sample").await.unwrap();
    assert_eq!((untouched.metadata.finalizers, untouched.status), (None, None));
    assert!(other.api::<Deployment>().get_opt("sample").await.unwrap().is_none());
}

#[tokio::test]
async fn several_namespaces_are_watched_with_rights_in_each() {
    let (first, second) = (Lab::new("several-1").await, Lab::new("several-2").await);
    first.grant_everywhere().await;
    let operator = first
        .operator_with(&[], &[("WATCH_NAMESPACE", "several-1,several-2")])
        .await;
    for lab in [&first, &second] {
        lab.memcached("sample", json!({})).await;
        lab.running("sample").await;
    }
    let (_, verbose) = operator.get("probes", "/readyz?verbose").await;
    assert!(verbose.contains("[+]watch-pods-in-several-2 ok"), "{verbose}");
}
