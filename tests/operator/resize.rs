//! Servers that change their memory while they run.
use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::Pod,
};
use kube::{
    ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
};
use kube_manager::conditions::{DEGRADED, READY};
use memcached_operator::api::v1alpha1::Phase;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
};

use crate::lab::{Lab, condition, eventually, value};

/// A server that records the commands which change its memory, with the memory limit of its container at that moment.
struct Memcached {
    address: SocketAddr,
    commands: Arc<Mutex<Vec<String>>>,
    rejects: Arc<AtomicBool>,
}

impl Memcached {
    /// Listens at an address of this machine, because the API server accepts no loopback addresses of pods.
    async fn start() -> Self {
        let route = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        route.connect("192.0.2.1:9").unwrap();
        let listener = TcpListener::bind((route.local_addr().unwrap().ip(), 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (commands, rejects) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicBool>::default());
        let server = (Arc::clone(&commands), Arc::clone(&rejects));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (commands, rejects) = server.clone();
                tokio::spawn(async move {
                    let mut client = BufReader::new(client);
                    let mut line = String::new();
                    while client.read_line(&mut line).await.is_ok_and(|bytes| bytes > 0) {
                        let answer = match line.trim() {
                            "stats slabs" => "STAT total_malloced 1048576\r\nEND\r\n",
                            _ if rejects.load(Ordering::SeqCst) => "ERROR\r\n",
                            command => {
                                commands.lock().unwrap().push(command.to_owned());
                                "OK\r\n"
                            }
                        };
                        client.write_all(answer.as_bytes()).await.unwrap();
                        line.clear();
                    }
                });
            }
        });
        Self {
            address,
            commands,
            rejects,
        }
    }

    fn commands(&self) -> Vec<String> {
        self.commands.lock().unwrap().clone()
    }
}

async fn pods(lab: &Lab) -> Vec<Pod> {
    let selector = ListParams::default().labels("memcached_cr=sample");
    lab.api::<Pod>().list(&selector).await.unwrap().items
}

/// The memory limit in the spec of a pod.
fn limit(pod: &Pod) -> String {
    let container = &pod.spec.as_ref().unwrap().containers[0];
    let limits = container.resources.as_ref().unwrap().limits.as_ref().unwrap();
    limits["memory"].0.clone()
}

/// Writes the status that a kubelet writes: the address of the server, its container and the memory that applies, and a condition.
async fn kubelet(lab: &Lab, pod: &Pod, server: &Memcached, container: &str, memory: &str, condition: Option<Value>) {
    let mut status = value(pod)["status"].take();
    let address = server.address.ip().to_string();
    status["podIP"] = json!(address);
    status["podIPs"] = json!([{ "ip": address }]);
    status["containerStatuses"][0]["containerID"] = json!(format!("test://{container}/{}", pod.name_any()));
    let memory = json!({ "memory": memory });
    status["containerStatuses"][0]["resources"] = json!({ "limits": memory, "requests": memory });
    let conditions = status["conditions"].as_array_mut().unwrap();
    conditions.retain(|known| !known["type"].as_str().unwrap().starts_with("PodResize"));
    conditions.extend(condition);
    lab.api::<Pod>()
        .patch_status(
            &pod.name_any(),
            &PatchParams::default(),
            &Patch::Merge(json!({ "status": status })),
        )
        .await
        .unwrap();
}

/// As [`kubelet`], for all pods.
async fn kubelets(lab: &Lab, server: &Memcached, container: &str, memory: &str) {
    for pod in pods(lab).await {
        kubelet(lab, &pod, server, container, memory, None).await;
    }
}

/// Waits until the pods' specs have this memory limit, and returns the pods.
async fn resized(lab: &Lab, memory: &str) -> Vec<Pod> {
    eventually(&format!("the pods have a limit of {memory}"), async || {
        let pods = pods(lab).await;
        pods.iter().all(|pod| limit(pod) == memory).then_some(pods)
    })
    .await
}

async fn commanded(server: &Memcached, expected: &[&str]) {
    eventually(&format!("the server receives {expected:?}"), async || {
        (server.commands() == expected).then_some(())
    })
    .await;
}

/// The names and UIDs of the pods, and the generation of the workload.
async fn identity(lab: &Lab) -> (Vec<(String, String)>, Option<i64>) {
    let pods = pods(lab)
        .await
        .into_iter()
        .map(|pod| (pod.name_any(), pod.uid().unwrap()));
    let deployment = lab.api::<Deployment>().get_opt("sample").await.unwrap();
    let set = lab.api::<StatefulSet>().get_opt("sample").await.unwrap();
    let generation = deployment.map(|deployment| deployment.metadata.generation);
    (
        pods.collect(),
        generation.or(set.map(|set| set.metadata.generation)).flatten(),
    )
}

/// Waits until the condition Ready is True for the current spec.
async fn ready(lab: &Lab) {
    eventually("the Memcached is ready", async || {
        let sample = lab.running("sample").await;
        let ready = condition(&sample, READY);
        (ready.status == "True" && ready.observed_generation == sample.metadata.generation).then_some(())
    })
    .await;
}

async fn grows_and_shrinks(workload: &str) {
    let lab = Lab::new(&format!("resize-{}", workload.to_lowercase())).await;
    let _operator = lab.operator().await;
    let server = Memcached::start().await;
    let spec = json!({ "size": 2, "workload": workload, "warmCache": "ResizeInPlace", "containerPort": server.address.port() });
    lab.memcached("sample", spec).await;
    ready(&lab).await;
    kubelets(&lab, &server, "first", "128Mi").await;
    let once = ["cache_memlimit 64"; 2];
    commanded(&server, &once).await;
    let before = identity(&lab).await;

    // The container grows first.
    lab.change("sample", json!({ "memoryLimitMegabytes": 128 })).await;
    resized(&lab, "208Mi").await;
    let sample = lab.reaches("sample", Phase::Resizing).await;
    assert_eq!(condition(&sample, READY).reason, "ResizingMemory");
    assert_eq!(
        condition(&sample, READY).message,
        "0 of 2 servers have 128 MiB for items"
    );
    assert_eq!(server.commands(), once);
    assert_eq!(
        lab.event("sample", "Resized").await.note.unwrap().split(": ").nth(1),
        Some("memory limit 128 to 208 MiB")
    );
    kubelets(&lab, &server, "first", "208Mi").await;
    let twice = [once, ["cache_memlimit 128"; 2]].concat();
    commanded(&server, &twice).await;
    ready(&lab).await;

    // A container that restarts has the memory of its pod's template.
    kubelets(&lab, &server, "second", "208Mi").await;
    let again = [twice, vec!["cache_memlimit 128"; 2]].concat();
    commanded(&server, &again).await;
    ready(&lab).await;

    // The items shrink first: a server that rejects the command keeps its container.
    server.rejects.store(true, Ordering::SeqCst);
    lab.change("sample", json!({ "memoryLimitMegabytes": 64 })).await;
    let sample = lab.reaches("sample", Phase::Degraded).await;
    let degraded = condition(&sample, DEGRADED);
    assert_eq!(degraded.reason, "ResizeFailed");
    assert!(
        degraded
            .message
            .contains("memcached answers \"ERROR\" to cache_memlimit"),
        "{}",
        degraded.message
    );
    assert!(pods(&lab).await.iter().all(|pod| limit(pod) == "208Mi"));
    server.rejects.store(false, Ordering::SeqCst);
    resized(&lab, "128Mi").await;
    commanded(&server, &[again, vec!["cache_memlimit 64"; 2]].concat()).await;
    kubelets(&lab, &server, "second", "128Mi").await;
    ready(&lab).await;
    assert_eq!(identity(&lab).await, before, "no pod was replaced");
}

#[tokio::test]
async fn a_deployment_changes_its_memory_in_place() {
    grows_and_shrinks("Deployment").await;
}

#[tokio::test]
async fn a_stateful_set_changes_its_memory_in_place() {
    grows_and_shrinks("StatefulSet").await;
}

#[tokio::test]
async fn a_resize_that_the_node_rejects_is_reported_and_can_be_taken_back() {
    let lab = Lab::new("infeasible").await;
    let _operator = lab.operator().await;
    let server = Memcached::start().await;
    let spec = json!({ "warmCache": "ResizeInPlace", "containerPort": server.address.port() });
    lab.memcached("sample", spec).await;
    ready(&lab).await;
    kubelets(&lab, &server, "first", "128Mi").await;
    commanded(&server, &["cache_memlimit 64"]).await;
    lab.change("sample", json!({ "memoryLimitMegabytes": 100_000 })).await;
    let pods = resized(&lab, "125048Mi").await;
    let why = "Node didn't have enough capacity: memory, requested: 131122331648, capacity: 25171644416";
    for (reason, expected) in [("Deferred", "ResizeDeferred"), ("Infeasible", "ResizeInfeasible")] {
        let pending = json!({ "type": "PodResizePending", "status": "True", "reason": reason, "message": why });
        kubelet(&lab, &pods[0], &server, "first", "128Mi", Some(pending)).await;
        eventually("the cause is reported", async || {
            let degraded = condition(&lab.reaches("sample", Phase::Degraded).await, DEGRADED);
            let message = format!(
                "0 of 1 servers have 100000 MiB for items; pod {}: {why}",
                pods[0].name_any()
            );
            (degraded.reason == expected && degraded.message == message).then_some(())
        })
        .await;
    }
    // The server was not told, because it has no room for the items.
    assert_eq!(server.commands(), ["cache_memlimit 64"]);
    lab.change("sample", json!({ "memoryLimitMegabytes": 64 })).await;
    resized(&lab, "128Mi").await;
    kubelets(&lab, &server, "first", "128Mi").await;
    ready(&lab).await;
}

#[tokio::test]
async fn a_new_pod_gets_the_memory_of_the_spec() {
    let lab = Lab::new("replaced").await;
    let _operator = lab.operator().await;
    let server = Memcached::start().await;
    let spec =
        json!({ "workload": "StatefulSet", "warmCache": "ResizeInPlace", "containerPort": server.address.port() });
    lab.memcached("sample", spec).await;
    ready(&lab).await;
    kubelets(&lab, &server, "first", "128Mi").await;
    lab.change("sample", json!({ "memoryLimitMegabytes": 128 })).await;
    let pods = resized(&lab, "208Mi").await;
    let old = pods[0].uid();
    lab.api::<Pod>().delete("sample-0", &Default::default()).await.unwrap();
    eventually("the new pod is resized", async || {
        let pod = lab.api::<Pod>().get_opt("sample-0").await.unwrap()?;
        (pod.uid() != old && limit(&pod) == "208Mi").then_some(())
    })
    .await;
    ready(&lab).await;
    kubelets(&lab, &server, "new", "208Mi").await;
    commanded(&server, &["cache_memlimit 64", "cache_memlimit 128"]).await;
    ready(&lab).await;

    // A change that replaces the pods takes the memory into the template.
    lab.change("sample", json!({ "maxConnections": 2048 })).await;
    eventually("the template has the memory", async || {
        let set = value(&lab.api::<StatefulSet>().get("sample").await.unwrap());
        let container = &set["spec"]["template"]["spec"]["containers"][0];
        (container["args"][1] == "128" && container["resources"]["limits"]["memory"] == "224Mi").then_some(())
    })
    .await;
}
