//! `scorecard --cluster` on a real API server. No node runs the pods here: the test writes the kubelet's reports.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use kube::api::{ListParams, Patch, PatchParams};
use kube_testbed::Options;
use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::drills::interrupt;
use crate::harness::{Cluster, eventually};

const NAMESPACE: &str = "card";

#[tokio::test]
async fn a_test_without_a_result_says_why_and_nothing_is_left() {
    let cluster = Cluster::start(Options::default().pods_become_ready(false)).await;
    cluster.namespace(NAMESPACE).await;
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAMESPACE}});
    cluster.apply("serviceaccounts", account).await;
    let before = cluster.inventory().await;
    image_that_cannot_be_pulled(&cluster).await;
    pod_that_stays_pending(&cluster).await;
    pod_that_the_namespace_refuses(&cluster).await;
    interrupted(&cluster).await;
    cluster.nothing_left(&before).await;
}

/// The arguments of a run over a bundle with one test.
fn arguments(cluster: &Cluster, more: &[&str]) -> Vec<String> {
    let directory = Bundle::new("card", "1.0.0").write(cluster.folder.path());
    let config: PathBuf = cluster.folder.path().join("config.yaml");
    let text = "stages:\n- tests:\n  - image: registry.example.com/test:1\n    labels: {test: own-test}\n";
    std::fs::write(&config, text).unwrap();
    let fixed = [
        "scorecard",
        directory.to_str().unwrap(),
        "--config",
        config.to_str().unwrap(),
        "--cluster",
    ];
    let flags = ["-n", NAMESPACE, "-o", "json"];
    fixed
        .iter()
        .chain(&flags)
        .chain(more)
        .map(|word| (*word).to_owned())
        .collect()
}

async fn run(cluster: &Cluster, more: &[&str]) -> Value {
    let arguments = arguments(cluster, more);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answer = cluster.olmkit(&arguments).await;
    assert!(!answer.success);
    answer.json["items"][0]["status"]["results"][0].clone()
}

#[track_caller]
fn error_of(result: &Value) -> &str {
    assert_eq!(
        (result["name"].as_str(), result["state"].as_str()),
        (Some("own-test"), Some("error")),
        "{result}"
    );
    result["errors"][0].as_str().unwrap()
}

/// The name of the pod that a run made.
async fn pod(cluster: &Cluster) -> Option<String> {
    let pods = cluster.api("v1", "Pod", "pods", Some(NAMESPACE));
    let found = pods
        .list(&ListParams::default().labels("app=scorecard-test"))
        .await
        .unwrap();
    found.items.into_iter().next()?.metadata.name
}

async fn image_that_cannot_be_pulled(cluster: &Cluster) {
    cluster.scene("an image that cannot be pulled");
    let kubelet = async {
        let mut name = None;
        eventually("the pod is there", async || {
            name = pod(cluster).await;
            name.is_some()
        })
        .await;
        let name = name.unwrap();
        let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "pull", "namespace": NAMESPACE}, "type": "Warning",
            "reason": "Failed", "message": "no such host", "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": name, "namespace": NAMESPACE}});
        cluster.apply("events", event).await;
        let status = json!({"status": {"phase": "Pending", "containerStatuses": [{"name": "scorecard-test", "image": "registry.example.com/test:1",
            "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]}});
        let pods = cluster.api("v1", "Pod", "pods", Some(NAMESPACE));
        pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .unwrap();
        let maps = cluster.api("v1", "ConfigMap", "configmaps", Some(NAMESPACE));
        let maps = maps
            .list(&ListParams::default().labels("app=scorecard-test"))
            .await
            .unwrap();
        assert_eq!(maps.items.len(), 1);
    };
    let (result, ()) = tokio::join!(run(cluster, &["--wait-time", "6s"]), kubelet);
    let error = error_of(&result);
    assert!(
        error.starts_with(
            "no result after 6 s (--wait-time): the node cannot pull registry.example.com/test:1: not found"
        ),
        "{error}"
    );
    assert!(error.contains("--service-account"), "{error}");
    assert!(
        result["log"].as_str().unwrap().contains("Failed: no such host"),
        "{result}"
    );
    cluster.delete("v1", "Event", "events", Some(NAMESPACE), "pull").await;
}

async fn pod_that_stays_pending(cluster: &Cluster) {
    cluster.scene("an account that is not there, and a pod that stays pending");
    let result = run(cluster, &["--wait-time", "2s", "-s", "absent"]).await;
    let error = error_of(&result);
    assert!(
        error.starts_with("the API server rejects the pod") && error.contains("serviceaccount \"absent\" not found"),
        "{error}"
    );
    let result = run(cluster, &["--wait-time", "2s"]).await;
    assert_eq!(
        error_of(&result),
        "no result after 2 s (--wait-time): the pod is Pending"
    );
}

async fn pod_that_the_namespace_refuses(cluster: &Cluster) {
    cluster.scene("pods as root in a restricted namespace");
    let labelled = |level: &str| json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
    let namespaces = cluster.api("v1", "Namespace", "namespaces", None);
    let restricted = Patch::Merge(labelled("restricted"));
    namespaces
        .patch(NAMESPACE, &PatchParams::default(), &restricted)
        .await
        .unwrap();
    let result = run(cluster, &["--wait-time", "2s", "--pod-security", "legacy"]).await;
    assert!(error_of(&result).contains("violates PodSecurity"), "{result}");
    let result = run(cluster, &["--wait-time", "2s"]).await;
    assert_eq!(
        error_of(&result),
        "no result after 2 s (--wait-time): the pod is Pending"
    );
}

async fn interrupted(cluster: &Cluster) {
    cluster.scene("Ctrl-C");
    let arguments = arguments(cluster, &["--wait-time", "10m"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = cluster.command(&arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("the pod is there", async || pod(cluster).await.is_some()).await;
    interrupt(child).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(pod(cluster).await, None);
}
