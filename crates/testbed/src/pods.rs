//! The helper that replaces the scheduler and the kubelet: it binds pods to one Node object, marks them running and
//! ready, and finishes their deletion. No container runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Binding, Container, ContainerStatus, Node, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::watcher;
use kube::runtime::{WatchStreamExt, watcher::Config as WatcherConfig};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::Error;

const NODE: &str = "testbed-node";

/// Pause after a request that failed.
const AGAIN: Duration = Duration::from_millis(200);

/// A separate thread, because a test's runtime may end while another test still uses the control plane.
#[derive(Debug)]
pub(crate) struct Helper {
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Helper {
    /// Creates the node and begins to watch pods.
    pub(crate) async fn start(config: Config, waiting_images: HashMap<String, &'static str>) -> Result<Self, Error> {
        let client = Client::try_from(config.clone()).map_err(Error::request("create a client for the pod helper"))?;
        register_node(&client).await?;
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::io("start the pod helper", std::path::Path::new("thread")))?;
        let thread = std::thread::Builder::new()
            .name("pod-helper".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    match Client::try_from(config) {
                        Ok(client) => {
                            let pods = Pods {
                                client,
                                waiting_images,
                                addresses: AtomicU32::new(2),
                            };
                            tokio::select! { () = pods.watch() => {}, _ = stopped => {} }
                        }
                        Err(error) => tracing::error!(%error, "pod helper has no client"),
                    }
                });
            })
            .map_err(Error::io("start the pod helper", std::path::Path::new("thread")))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn register_node(client: &Client) -> Result<(), Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = Node {
        metadata: ObjectMeta {
            name: Some(NODE.to_owned()),
            ..ObjectMeta::default()
        },
        ..Node::default()
    };
    nodes
        .create(&PostParams::default(), &node)
        .await
        .map_err(Error::request(format!("create node {NODE}")))?;
    let status = json!({"status": {
        "capacity": {"cpu": "64", "memory": "256Gi", "pods": "10000"},
        "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "10000"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated node"}],
    }});
    nodes
        .patch_status(NODE, &PatchParams::default(), &Patch::Merge(status))
        .await
        .map_err(Error::request(format!("write the status of node {NODE}")))?;
    // The server adds this taint to new nodes. The controller that would remove it is disabled.
    let untaint = json!({"spec": {"taints": null}});
    nodes
        .patch(NODE, &PatchParams::default(), &Patch::Merge(untaint))
        .await
        .map_err(Error::request(format!("remove the taints of node {NODE}")))?;
    Ok(())
}

struct Pods {
    client: Client,
    waiting_images: HashMap<String, &'static str>,
    addresses: AtomicU32,
}

impl Pods {
    async fn watch(&self) {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let begin = || {
            watcher(pods.clone(), WatcherConfig::default())
                .default_backoff()
                .applied_objects()
                .boxed()
        };
        let mut changes = begin();
        loop {
            match changes.try_next().await {
                Ok(Some(pod)) => {
                    if let Err(error) = self.advance(&pod).await {
                        tracing::debug!(pod = pod.name_any(), %error, "pod helper");
                        // No event will return the pod: list all again.
                        sleep(AGAIN).await;
                        changes = begin();
                    }
                }
                Ok(None) => return,
                Err(error) => tracing::debug!(%error, "pod helper's watch"),
            }
        }
    }

    /// Advances a pod by one step. The watch event of the change triggers the next one.
    async fn advance(&self, pod: &Pod) -> kube::Result<()> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        let name = pod.name_any();
        let result = if pod.metadata.deletion_timestamp.is_some() {
            let preconditions = Preconditions {
                uid: pod.uid(),
                resource_version: None,
            };
            let now = DeleteParams {
                grace_period_seconds: Some(0),
                preconditions: Some(preconditions),
                ..DeleteParams::default()
            };
            api.delete(&name, &now).await.map(drop)
        } else if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none()) {
            let target = ObjectReference {
                kind: Some("Node".to_owned()),
                name: Some(NODE.to_owned()),
                ..ObjectReference::default()
            };
            let metadata = ObjectMeta {
                name: Some(name.clone()),
                ..ObjectMeta::default()
            };
            let binding = Binding { metadata, target };
            api.create_subresource::<_, Value>("binding", &name, &PostParams::default(), &binding)
                .await
                .map(drop)
        } else if pod.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Running") {
            match self.status(pod) {
                Some(status) => api
                    .patch_status(&name, &PatchParams::default(), &Patch::Strategic(status))
                    .await
                    .map(drop),
                None => Ok(()),
            }
        } else {
            Ok(())
        };
        match result {
            // Deleted or changed in the meantime: the watch delivers the current state.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            other => other,
        }
    }

    /// The status to write: running and ready, or waiting for an image. `None` if that is already written.
    fn status(&self, pod: &Pod) -> Option<Value> {
        let spec = pod.spec.as_ref()?;
        let now = Time(Timestamp::now());
        let reason = |container: &Container| self.waiting_images.get(container.image.as_ref()?).copied();
        let waits = spec.containers.iter().any(|container| reason(container).is_some());
        let written = pod
            .status
            .as_ref()
            .and_then(|status| status.container_statuses.as_ref())
            .is_some();
        if waits && written {
            return None;
        }
        let containers: Vec<ContainerStatus> = spec
            .containers
            .iter()
            .map(|container| container_status(container, reason(container), &now))
            .collect();
        let ready = if waits { "False" } else { "True" };
        let conditions: Vec<Value> = [
            ("PodScheduled", "True"),
            ("Initialized", "True"),
            ("ContainersReady", ready),
            ("Ready", ready),
        ]
        .into_iter()
        .map(|(kind, status)| json!({"type": kind, "status": status, "lastTransitionTime": now}))
        .collect();
        let mut status = BTreeMap::from([
            ("phase", json!(if waits { "Pending" } else { "Running" })),
            ("conditions", json!(conditions)),
            ("containerStatuses", json!(containers)),
            ("startTime", json!(now)),
            ("hostIP", json!("10.0.0.1")),
        ]);
        if !waits {
            let number = self.addresses.fetch_add(1, Ordering::Relaxed);
            let address = format!("10.88.{}.{}", (number / 254) % 254, number % 254 + 1);
            status.insert("podIPs", json!([{"ip": address.clone()}]));
            status.insert("podIP", json!(address));
        }
        Some(json!({ "status": status }))
    }
}

fn container_status(container: &Container, waits: Option<&str>, now: &Time) -> ContainerStatus {
    let image = container.image.clone().unwrap_or_default();
    let state = match waits {
        Some("ImagePullBackOff") => {
            json!({"waiting": {"reason": "ImagePullBackOff", "message": format!("Back-off pulling image \"{image}\"")}})
        }
        Some(reason) => json!({"waiting": {"reason": reason}}),
        None => json!({"running": {"startedAt": now}}),
    };
    ContainerStatus {
        name: container.name.clone(),
        image,
        image_id: String::new(),
        ready: waits.is_none(),
        started: Some(waits.is_none()),
        restart_count: 0,
        // The API server rejects the resize of a pod whose kubelet reports none.
        resources: container.resources.clone(),
        // The value above is in the API's form, so this cannot fail. An empty state would also be valid.
        state: serde_json::from_value(state).ok(),
        ..ContainerStatus::default()
    }
}
