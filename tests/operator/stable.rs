//! Servers with names that stay, and changes of the workload.
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::TryStreamExt as _;
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{ConfigMap, Pod, Secret},
    discovery::v1::EndpointSlice,
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use kube_manager::conditions::{AVAILABLE, READY};
use memcached_operator::api::v1alpha1::{Memcached, Phase, Workload};
use serde_json::json;

use crate::lab::{Lab, UNAVAILABLE, condition, eventually};

/// The address of a server of the Memcached `sample`.
fn address(lab: &Lab, ordinal: usize) -> String {
    format!("sample-{ordinal}.sample.{}.svc:11211", lab.namespace)
}

/// The published addresses of the servers of `sample`: in the ConfigMap and in the Secret.
async fn published(lab: &Lab) -> Option<(String, String)> {
    let list = lab.api::<ConfigMap>().get_opt("sample-servers").await.unwrap()?;
    let secret = lab.api::<Secret>().get_opt("sample-binding").await.unwrap()?;
    let bound = secret.data?.remove("servers")?;
    Some((list.data?.remove("servers")?, String::from_utf8(bound.0).unwrap()))
}

async fn workloads(lab: &Lab) -> [bool; 2] {
    let deployment = lab.api::<Deployment>().get_opt("sample").await.unwrap();
    let set = lab.api::<StatefulSet>().get_opt("sample").await.unwrap();
    [deployment.is_some(), set.is_some()]
}

#[tokio::test]
async fn servers_keep_their_names() {
    let lab = Lab::new("stable").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2, "workload": "StatefulSet" }))
        .await;
    let memcached = lab.running("sample").await;
    assert_eq!(workloads(&lab).await, [false, true]);
    let status = memcached.status.clone().unwrap();
    assert_eq!(status.nodes, ["sample-0", "sample-1"]);
    assert_eq!((status.replicas, status.ready_replicas), (Some(2), Some(2)));
    let two = [address(&lab, 0), address(&lab, 1)];
    assert_eq!(status.servers, two);
    assert_eq!(status.binding.unwrap().name, "sample-binding");
    assert_eq!(published(&lab).await, Some((two.join(","), two.join(","))));
    let secret = lab.api::<Secret>().get("sample-binding").await.unwrap();
    assert_eq!(secret.type_.as_deref(), Some("servicebinding.io/memcached"));
    let text = |key: &str| String::from_utf8(secret.data.as_ref().unwrap()[key].0.clone()).unwrap();
    let entries = ["type", "provider", "host", "port"].map(text);
    assert_eq!(
        entries,
        ["memcached", "memcached-operator", "sample.stable.svc", "11211"]
    );
    let set = lab.api::<StatefulSet>().get("sample").await.unwrap();
    assert_eq!(set.spec.unwrap().service_name.as_deref(), Some("sample"));
    lab.api::<PodDisruptionBudget>().get("sample").await.unwrap();

    // The other server does not restart, and the new one follows in the list.
    let pods = lab.api::<Pod>();
    let uid = async |name: &str| pods.get_opt(name).await.unwrap().and_then(|pod| pod.metadata.uid);
    let before = (uid("sample-0").await, uid("sample-1").await);
    lab.change("sample", json!({ "size": 3 })).await;
    let status = lab.running("sample").await.status.unwrap();
    let three = [address(&lab, 0), address(&lab, 1), address(&lab, 2)];
    assert_eq!(status.servers, three);
    assert_eq!(published(&lab).await, Some((three.join(","), three.join(","))));
    assert_eq!((uid("sample-0").await, uid("sample-1").await), before);

    // A server that is replaced keeps its name.
    pods.delete("sample-0", &DeleteParams::default()).await.unwrap();
    eventually("the server is replaced", async || {
        let now = uid("sample-0").await;
        (now.is_some() && now != before.0).then_some(())
    })
    .await;
    eventually("the list is the same", async || {
        let status = lab.running("sample").await.status.unwrap();
        (status.servers == three && status.nodes.len() == 3).then_some(())
    })
    .await;

    lab.change("sample", json!({ "size": 1, "disruptionBudget": { "enabled": false } }))
        .await;
    eventually("one server is listed", async || {
        let one = address(&lab, 0);
        (published(&lab).await? == (one.clone(), one)).then_some(())
    })
    .await;
    eventually("one server is left", async || {
        let status = lab.running("sample").await.status.unwrap();
        (status.nodes == ["sample-0"] && uid("sample-1").await.is_none()).then_some(())
    })
    .await;
    lab.delete("sample").await;
    lab.gone("sample").await;
    eventually("all is deleted", async || {
        (workloads(&lab).await == [false, false] && published(&lab).await.is_none()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_new_image_replaces_one_stable_server_at_a_time() {
    let lab = Lab::new("stable-rollout").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 3, "workload": "StatefulSet" }))
        .await;
    lab.running("sample").await;
    let least = Least::begin(&lab, 2);
    lab.change("sample", json!({ "image": "memcached:1.6.40" })).await;
    all_run(&lab, "memcached:1.6.40").await;
    assert_eq!(least.end(), 2, "one server at a time");
}

/// Waits until three servers have this image and are ready.
async fn all_run(lab: &Lab, image: &str) {
    eventually("all servers have the image", async || {
        let selector = ListParams::default().labels("memcached_cr=sample");
        let pods = lab.api::<Pod>().list(&selector).await.unwrap();
        let of = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone();
        let has_it = |pod: &Pod| of(pod).as_deref() == Some(image);
        (pods.items.len() == 3 && pods.iter().all(has_it)).then_some(())
    })
    .await;
    eventually("all servers are ready", async || {
        let status = lab.running("sample").await.status.unwrap();
        (status.image.as_deref() == Some(image) && status.ready_replicas == Some(3)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_rollback_of_a_deployment_replaces_one_server_at_a_time() {
    roll_back("Deployment").await;
}

#[tokio::test]
async fn a_rollback_of_a_stateful_set_replaces_one_server_at_a_time() {
    roll_back("StatefulSet").await;
}

/// Back to the former image, after an upgrade and in the middle of one that failed.
async fn roll_back(workload: &str) {
    let lab = Lab::new(&format!("rollback-{}", workload.to_lowercase())).await;
    let _operator = lab.operator().await;
    let spec = json!({ "size": 3, "workload": workload, "image": "memcached:1.6.39" });
    lab.memcached("sample", spec).await;
    lab.running("sample").await;
    let least = Least::begin(&lab, 3);
    lab.change("sample", json!({ "image": "memcached:1.6.40" })).await;
    all_run(&lab, "memcached:1.6.40").await;
    lab.change("sample", json!({ "image": "memcached:1.6.39" })).await;
    all_run(&lab, "memcached:1.6.39").await;
    assert_eq!(least.end(), 2, "one server at a time");

    let uids = async || -> Vec<String> {
        let selector = ListParams::default().labels("memcached_cr=sample");
        let pods = lab.api::<Pod>().list(&selector).await.unwrap();
        pods.iter().filter_map(|pod| pod.metadata.uid.clone()).collect()
    };
    let before = uids().await;
    lab.change("sample", json!({ "image": UNAVAILABLE })).await;
    lab.reaches("sample", Phase::Degraded).await;
    lab.change("sample", json!({ "image": "memcached:1.6.39" })).await;
    all_run(&lab, "memcached:1.6.39").await;
    let after = uids().await;
    let kept = before.iter().filter(|uid| after.contains(uid)).count();
    assert_eq!(kept, 2, "the other servers are not replaced");
}

/// The number of servers that clients found at the worst moment.
struct Least {
    least: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Least {
    /// Watches the endpoints of the Service. Counts from the moment when there are `from`.
    fn begin(lab: &Lab, from: usize) -> Self {
        let slices: Api<EndpointSlice> = lab.api();
        let least = Arc::new(AtomicUsize::new(usize::MAX));
        let counted = Arc::clone(&least);
        let task = tokio::spawn(async move {
            let config = watcher::Config::default().labels("kubernetes.io/service-name=sample");
            let mut changes = Box::pin(watcher(slices, config).default_backoff().applied_objects());
            while let Some(slice) = changes.try_next().await.unwrap() {
                let is_ready = |endpoint: &&k8s_openapi::api::discovery::v1::Endpoint| {
                    endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) == Some(true)
                };
                let ready = slice.endpoints.iter().filter(is_ready).count();
                if ready >= from || counted.load(Ordering::Relaxed) < usize::MAX {
                    counted.fetch_min(ready, Ordering::Relaxed);
                }
            }
        });
        Self { least, task }
    }

    fn end(self) -> usize {
        self.task.abort();
        self.least.load(Ordering::Relaxed)
    }
}

/// Makes the pod `name`, whose image cannot be pulled, ready.
async fn make_ready(lab: &Lab, name: &str, address: &str) {
    let running = json!({ "name": "memcached", "ready": true, "started": true, "image": UNAVAILABLE, "imageID": "a",
        "restartCount": 0, "state": { "waiting": null, "running": { "startedAt": "2026-01-01T00:00:00Z" } } });
    let conditions = json!([{ "type": "ContainersReady", "status": "True" }, { "type": "Ready", "status": "True",
        "lastTransitionTime": k8s_openapi::jiff::Timestamp::now().to_string() }]);
    let status = json!({ "status": { "phase": "Running", "podIP": address, "podIPs": [{ "ip": address }],
        "conditions": conditions, "containerStatuses": [running] } });
    let pods = lab.api::<Pod>();
    pods.patch_status(name, &PatchParams::default(), &Patch::Strategic(status))
        .await
        .unwrap();
}

/// Names of the pods of `sample` whose image cannot be pulled, besides `old` ones, as soon as there are two.
async fn starting(lab: &Lab, old: &[String]) -> Vec<String> {
    let selector = ListParams::default().labels("memcached_cr=sample");
    eventually("two new pods", async || {
        let pods = lab.api::<Pod>().list(&selector).await.unwrap();
        let is_new = |pod: &&Pod| {
            let waits = pod
                .status
                .as_ref()
                .is_some_and(|status| status.container_statuses.is_some());
            let is_other = !old.contains(&pod.name_any());
            waits && is_other && pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some(UNAVAILABLE)
        };
        let names: Vec<String> = pods.iter().filter(is_new).map(ResourceExt::name_any).collect();
        (names.len() == 2).then_some(names)
    })
    .await
}

/// In both directions, the new servers become ready one after the other, and the old ones stop only after that.
#[tokio::test]
async fn a_change_of_the_workload_never_stops_all_servers() {
    let lab = Lab::new("migration").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let least = Least::begin(&lab, 2);
    for (index, workload) in [Workload::StatefulSet, Workload::Deployment].into_iter().enumerate() {
        let old = lab.pods("sample").await;
        let lists = published(&lab).await;
        lab.change("sample", json!({ "workload": workload, "image": UNAVAILABLE }))
            .await;
        let new = starting(&lab, &old).await;
        let degraded = lab.reaches("sample", Phase::Degraded).await;
        assert_eq!(condition(&degraded, READY).reason, "ImagePullBackOff");
        assert_eq!(condition(&degraded, AVAILABLE).status, "True");
        make_ready(&lab, &new[0], &format!("10.99.{index}.1")).await;
        eventually("three servers are ready", async || {
            let now = lab.api::<Memcached>().get("sample").await.unwrap();
            assert_eq!(condition(&now, AVAILABLE).status, "True");
            (now.status.unwrap().ready_replicas == Some(3)).then_some(())
        })
        .await;
        assert_eq!(workloads(&lab).await, [true, true]);
        let running = lab.pods("sample").await;
        assert!(old.iter().all(|pod| running.contains(pod)), "{running:?}");
        assert_eq!(published(&lab).await, lists, "the names of a StatefulSet that serves");
        make_ready(&lab, &new[1], &format!("10.99.{index}.2")).await;
        let migrating = eventually("no cause is left", async || {
            let now = lab.api::<Memcached>().get("sample").await.unwrap();
            (condition(&now, READY).reason == "Migrating").then_some(now)
        })
        .await;
        assert_eq!(condition(&migrating, AVAILABLE).status, "True");
        let message = condition(&migrating, READY).message;
        assert!(message.contains(&format!("{:?}", workload.other())), "{message}");

        lab.running("sample").await;
        let is_set = workload == Workload::StatefulSet;
        assert_eq!(workloads(&lab).await, [!is_set, is_set]);
        lab.event("sample", "Migrating").await;
        let event = lab.event("sample", "Migrated").await;
        assert_eq!(event.note.as_deref(), Some("2 of 2 servers are ready"));
        let status = eventually("the old servers stop", async || {
            let status = lab.running("sample").await.status.unwrap();
            (lab.pods("sample").await == new && status.nodes == new).then_some(status)
        })
        .await;
        let listed = if is_set {
            vec![address(&lab, 0), address(&lab, 1)]
        } else {
            Vec::new()
        };
        assert_eq!((published(&lab).await.is_some(), status.servers), (is_set, listed));
        assert_eq!(status.binding.is_some(), is_set);
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(least.end(), 2, "clients found two servers at every moment");
}

/// The user changes the workload and changes it back before the new servers are ready.
#[tokio::test]
async fn a_change_that_is_taken_back_stops_no_server() {
    let lab = Lab::new("taken-back").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    eventually("the rollout is complete", async || {
        let status = lab.api::<Deployment>().get("sample").await.unwrap().status?;
        (status.available_replicas == Some(2)).then_some(())
    })
    .await;
    let old = lab.pods("sample").await;
    let image = lab.api::<Memcached>().get("sample").await.unwrap().spec.image;
    lab.change("sample", json!({ "workload": "StatefulSet", "image": UNAVAILABLE }))
        .await;
    starting(&lab, &old).await;
    lab.change("sample", json!({ "workload": "Deployment", "image": image }))
        .await;
    eventually("the StatefulSet is deleted", async || {
        (workloads(&lab).await == [true, false]).then_some(())
    })
    .await;
    eventually("the new servers stop", async || {
        (lab.pods("sample").await == old).then_some(())
    })
    .await;
    eventually("the status names the old servers", async || {
        let status = lab.running("sample").await.status.unwrap();
        (status.nodes == old).then_some(())
    })
    .await;
    assert_eq!(published(&lab).await, None);
}
