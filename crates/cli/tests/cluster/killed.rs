//! Commands that are killed after each of their writes, and run again: nothing blocks, nothing is left, nothing is lost.

use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use kube_testbed::Options;
use serde_json::json;

use crate::bundle::Bundle;
use crate::harness::{Cluster, eventually};
use crate::proxy::run_until;

/// No command writes more often.
const MOST: usize = 14;

/// Commands that are tested in parallel.
const AT_ONCE: usize = 3;

#[tokio::test]
#[ignore = "minutes of restarts: `make drills` runs it"]
async fn an_installation_goes_on_after_a_kill_at_any_write() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    cluster.scene("run is killed, then run again and removed; or removed at once");
    let ended = each(&cluster, "run", async |cluster, name, writes| {
        let directory = bundle(name, "1.0.0").write(cluster.folder.path());
        let killed = run_until(cluster, &run(&directory, name), writes).await.killed;
        if writes % 2 == 0 {
            cluster.run_bundle(&directory, name, &[]).await.fine();
            // The obstacle in the namespace is removed: another package can be installed.
            let beside = bundle(&format!("{name}-beside"), "1.0.0");
            cluster
                .run_bundle(&beside.write(cluster.folder.path()), name, &[])
                .await
                .fine();
            cluster.cleanup(&beside.package, name, &[]).await.fine();
        }
        cluster.cleanup(name, name, &[]).await.fine();
        killed
    });
    let killed = ended.await;
    assert!(killed >= 7, "only {killed} writes");
}

#[tokio::test]
#[ignore = "minutes of restarts: `make drills` runs it"]
async fn an_upgrade_goes_on_after_a_kill_at_any_write() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    cluster.scene("run bundle-upgrade is killed, and run again");
    let ended = each(&cluster, "up", async |cluster, name, writes| {
        let old = bundle(name, "1.0.0").write(cluster.folder.path());
        let new = bundle(name, "2.0.0").write(cluster.folder.path());
        cluster.run_bundle(&old, name, &[]).await.fine();
        let killed = run_until(cluster, &upgrade(&new, name), writes).await.killed;
        cluster.upgrade(&new, name).await.fine();
        cluster.settled(name, &format!("{name}.v2.0.0")).await;
        cluster.replaced(name, &format!("{name}.v1.0.0")).await;
        cluster.cleanup(name, name, &[]).await.fine();
        killed
    });
    let killed = ended.await;
    assert!(killed >= 8, "only {killed} writes");
}

#[tokio::test]
#[ignore = "minutes of restarts: `make drills` runs it"]
async fn a_cleanup_goes_on_after_a_kill_at_any_write() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    cluster.scene("cleanup is killed after each write");
    cluster.namespace("clean").await;
    let before = cluster.inventory().await;
    let mut bundle = bundle("clean", "1.0.0");
    bundle.extra = vec![
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "clean-viewer"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    ];
    cluster
        .run_bundle(&bundle.write(cluster.folder.path()), "clean", &[])
        .await
        .fine();
    cluster
        .apply("things", json!({"apiVersion": "clean.example.com/v1", "kind": "Thing", "metadata": {"name": "one", "namespace": "clean"}}))
        .await;
    let mut killed = 0;
    while run_until(&cluster, &["cleanup", "clean", "-n", "clean", "-o", "json"], 1)
        .await
        .killed
    {
        killed += 1;
        assert!(killed < 40, "it removes the same again and again");
        // While OLM processes the removed objects, it creates the Operator object again.
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    assert!(killed >= 8, "only {killed} writes");
    cluster.nothing_left(&before).await;
}

/// The CRD and its custom resource are kept, so the finalizer must be released.
#[tokio::test]
#[ignore = "minutes of restarts: `make drills` runs it"]
async fn a_cleanup_releases_finalizers_after_a_kill_at_any_write() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    cluster.scene("cleanup --delete-all=false is killed after each write");
    cluster.namespace("keep").await;
    let bundle = bundle("keep", "1.0.0");
    cluster
        .run_bundle(&bundle.write(cluster.folder.path()), "keep", &[])
        .await
        .fine();
    cluster.serves("keep.example.com/v1", "things").await;
    cluster
        .apply(
            "things",
            json!({"apiVersion": "keep.example.com/v1", "kind": "Thing",
            "metadata": {"name": "one", "namespace": "keep", "finalizers": ["keep.example.com/finalizer"]}}),
        )
        .await;
    let arguments = ["cleanup", "keep", "-n", "keep", "--delete-all=false", "-o", "json"];
    let mut killed = 0;
    while run_until(&cluster, &arguments, 1).await.killed {
        killed += 1;
        assert!(killed < 40, "it removes the same again and again");
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    assert!(killed >= 4, "only {killed} writes");
    let thing = cluster
        .get("keep.example.com/v1", "Thing", "things", Some("keep"), "one")
        .await
        .unwrap();
    assert_eq!(thing["metadata"].get("finalizers"), None);
    cluster.delete("v1", "Namespace", "namespaces", None, "keep").await;
    eventually("the namespace is deleted", async || {
        let namespace = cluster.get("v1", "Namespace", "namespaces", None, "keep").await;
        namespace.is_none()
    })
    .await;
}

/// No OLM runs here: its objects are removed one by one, and the command restarts each time.
#[tokio::test]
#[ignore = "minutes of restarts: `make drills` runs it"]
async fn an_uninstall_goes_on_after_a_kill_at_any_write() {
    let cluster = Cluster::start(Options::default()).await;
    cluster.scene("olm uninstall is killed after each write");
    let before = cluster.inventory().await;
    cluster.install_elsewhere(&[]).await.fine();
    let mut killed = 0;
    while run_until(&cluster, &["olm", "uninstall", "-o", "json", "--timeout", "120s"], 1)
        .await
        .killed
    {
        killed += 1;
        assert!(killed < 200, "it removes the same again and again");
        // The command polls a namespace that is being deleted until its content is deleted.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert!(killed >= 15, "only {killed} writes");
    cluster.nothing_left(&before).await;
}

/// Runs a scene for each number of writes after which the command is killed, each in a separate namespace, until the
/// command completes. Returns how often it was killed.
async fn each(cluster: &Cluster, prefix: &str, scene: impl AsyncFn(&Cluster, &str, usize) -> bool) -> usize {
    let names: Vec<String> = (1..=MOST).map(|writes| format!("{prefix}{writes}")).collect();
    for name in &names {
        cluster.namespace(name).await;
    }
    let before = cluster.inventory().await;
    let (scene, is_over) = (&scene, &std::cell::Cell::new(false));
    let trials = names.iter().enumerate().map(|(index, name)| async move {
        // Parallel runs beyond the last one complete. No further ones start.
        let was_killed = !is_over.get() && scene(cluster, name, index + 1).await;
        is_over.set(is_over.get() || !was_killed);
        was_killed
    });
    let ended: Vec<bool> = futures::stream::iter(trials).buffered(AT_ONCE).collect().await;
    let killed = ended.iter().take_while(|was_killed| **was_killed).count();
    assert!(killed < MOST, "the command writes more often");
    cluster.nothing_left(&before).await;
    killed
}

/// Only for its own namespace: otherwise OLM copies each into the namespaces of the others.
fn bundle(name: &str, version: &str) -> Bundle {
    let mut bundle = Bundle::new(name, version);
    bundle.modes = vec!["OwnNamespace"];
    bundle
}

fn run<'a>(directory: &'a Path, namespace: &'a str) -> [&'a str; 9] {
    [
        "run",
        "bundle",
        directory.to_str().unwrap(),
        "-n",
        namespace,
        "-o",
        "json",
        "--timeout",
        "180s",
    ]
}

fn upgrade<'a>(directory: &'a Path, namespace: &'a str) -> [&'a str; 9] {
    [
        "run",
        "bundle-upgrade",
        directory.to_str().unwrap(),
        "-n",
        namespace,
        "-o",
        "json",
        "--timeout",
        "180s",
    ]
}
