//! The real scheduler distributes the servers.
use std::{
    collections::BTreeMap,
    process::{Child, Command, Stdio},
};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use kube_manager::conditions::DEGRADED;
use kube_testbed::{ControlPlane, tools};
use memcached_operator::api::v1alpha1::Phase;
use serde_json::{Value, json};

use crate::lab::{Lab, condition, create, eventually};

/// kube-scheduler. The shell ends it when this process ends, however that happens.
struct Scheduler(Child);

impl Scheduler {
    fn start(plane: &ControlPlane) -> Self {
        let script = r#""$@" > /dev/null 2>&1 < /dev/null & read -r end; kill $!"#;
        let mut command = Command::new("sh");
        command
            .args(["-c", script, "sh"])
            .arg(tools::program("kube-scheduler").unwrap())
            .arg(format!("--kubeconfig={}", plane.kubeconfig().display()))
            .args(["--leader-elect=false", "--secure-port=0"])
            .stdin(Stdio::piped());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A node without a kubelet, to which the scheduler may bind pods.
async fn node(plane: &ControlPlane, name: &str, zone: Option<&str>, cpu: &str) {
    let nodes: Api<Node> = Api::all(plane.client().await.unwrap());
    let mut labels = json!({ "kubernetes.io/hostname": name });
    if let Some(zone) = zone {
        labels["topology.kubernetes.io/zone"] = json!(zone);
    }
    create(&nodes, json!({ "metadata": { "name": name, "labels": labels } })).await;
    let size = json!({ "cpu": cpu, "memory": "64Gi", "pods": "1000" });
    let status = json!({ "status": { "capacity": size, "allocatable": size,
        "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "" }] } });
    let params = PatchParams::default();
    nodes.patch_status(name, &params, &Patch::Merge(status)).await.unwrap();
    // The API server adds this taint to new nodes.
    let untaint = json!({ "spec": { "taints": null } });
    nodes.patch(name, &params, &Patch::Merge(untaint)).await.unwrap();
}

/// The number of servers on each node, when all are scheduled.
async fn servers(lab: &Lab, name: &str, size: usize) -> BTreeMap<String, usize> {
    let selector = ListParams::default().labels(&format!("memcached_cr={name}"));
    eventually(&format!("{size} servers of {name} are scheduled"), async || {
        let pods = lab.api::<Pod>().list(&selector).await.unwrap().items;
        let nodes: Vec<String> = pods.into_iter().filter_map(|pod| pod.spec?.node_name).collect();
        (nodes.len() == size).then(|| {
            let mut counts = BTreeMap::new();
            for node in nodes {
                *counts.entry(node).or_default() += 1;
            }
            counts
        })
    })
    .await
}

fn counts(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    expected
        .iter()
        .map(|(node, count)| ((*node).to_owned(), *count))
        .collect()
}

/// The scheduler prefers the larger node for pods without a spread.
#[tokio::test]
async fn servers_run_on_all_nodes_and_in_all_zones() {
    let plane: &ControlPlane = Box::leak(Box::new(Lab::unscheduled().await));
    let _scheduler = Scheduler::start(plane);
    node(plane, "large", None, "64").await;
    node(plane, "small", None, "4").await;
    let lab = Lab::on_plane(plane, "spread").await;
    let _operator = lab.operator().await;
    let requests = json!({ "requests": { "cpu": "100m" } });
    let memcached = async |name: &str, workload: &str, pod_template: Value| {
        let spec = json!({ "size": 4, "workload": workload, "resources": requests, "podTemplate": pod_template });
        lab.memcached(name, spec).await;
        servers(&lab, name, 4).await
    };
    let both = counts(&[("large", 2), ("small", 2)]);
    assert_eq!(memcached("nodes", "Deployment", json!({})).await, both);
    lab.delete("nodes").await;
    lab.gone("nodes").await;
    assert_eq!(memcached("stable", "StatefulSet", json!({})).await, both);
    lab.delete("stable").await;
    lab.gone("stable").await;

    // Two nodes in one zone and one in another: half of the servers in each zone.
    let nodes: Api<Node> = Api::all(lab.client.clone());
    for (name, zone) in [("large", "a"), ("small", "b")] {
        let labels = json!({ "metadata": { "labels": { "topology.kubernetes.io/zone": zone } } });
        nodes
            .patch(name, &PatchParams::default(), &Patch::Merge(labels))
            .await
            .unwrap();
    }
    node(plane, "other", Some("a"), "64").await;
    let zones = memcached("zones", "Deployment", json!({})).await;
    assert_eq!(zones, counts(&[("large", 1), ("other", 1), ("small", 2)]));

    // No node has room for this server.
    let large = json!({ "requests": { "cpu": "100" } });
    lab.memcached("unschedulable", json!({ "resources": large })).await;
    let degraded = condition(&lab.reaches("unschedulable", Phase::Degraded).await, DEGRADED);
    assert_eq!(
        (degraded.status.as_str(), degraded.reason.as_str()),
        ("True", "Unschedulable")
    );
    assert!(degraded.message.contains("Insufficient cpu"), "{}", degraded.message);
    let event = lab.event("unschedulable", "Failed").await;
    assert!(event.note.unwrap().contains("Insufficient cpu"));
}
