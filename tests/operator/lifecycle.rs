//! Creation, resizing, updates and lost servers.
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Pod, Service},
        events::v1::Event,
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams},
};
use kube_manager::conditions::{AVAILABLE, DEGRADED, PROGRESSING, READY};
use memcached_operator::api::v1alpha1::{FINALIZER, Memcached, Phase};
use serde_json::json;

use crate::lab::{IMAGE, Lab, UNAVAILABLE, condition, eventually, image, value};

/// Each line about a reconcile names its cause.
#[tokio::test]
async fn the_log_says_why_a_reconcile_began() {
    let lab = Lab::new("causes").await;
    let operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 1 })).await;
    lab.running("sample").await;
    // A key that already waits keeps its cause.
    operator.idle(1).await;
    lab.change("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    operator.idle(2).await;
    lab.api::<Service>()
        .delete("sample", &DeleteParams::default())
        .await
        .unwrap();
    for cause in [
        "object created",
        "object changed: generation 1→2",
        "Service causes/sample deleted",
    ] {
        let text = format!("\"cause\":\"{cause}\"");
        eventually(&text, async || operator.log().contains(&text).then_some(())).await;
    }
}

#[tokio::test]
async fn a_memcached_gets_its_objects_and_its_status() {
    let lab = Lab::new("creation").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    let memcached = lab.running("sample").await;

    let deployment = lab.api::<Deployment>().get("sample").await.unwrap();
    let service = lab.api::<Service>().get("sample").await.unwrap();
    let budget = lab.api::<PodDisruptionBudget>().get("sample").await.unwrap();
    for owners in
        [&deployment.metadata, &service.metadata, &budget.metadata].map(|meta| meta.owner_references.clone().unwrap())
    {
        assert_eq!(owners.len(), 1);
        assert_eq!(
            (owners[0].controller, &owners[0].uid),
            (Some(true), memcached.metadata.uid.as_ref().unwrap())
        );
    }
    assert_eq!(image(&deployment), IMAGE);
    assert_eq!(service.spec.as_ref().unwrap().cluster_ip.as_deref(), Some("None"));
    assert_eq!(budget.spec.as_ref().unwrap().max_unavailable, Some(IntOrString::Int(1)));

    let status = memcached.status.clone().unwrap();
    let pods = lab.pods("sample").await;
    assert_eq!((pods.len(), &status.nodes), (2, &pods));
    assert_eq!((status.replicas, status.ready_replicas), (Some(2), Some(2)));
    assert_eq!(status.image.as_deref(), Some(IMAGE));
    for (type_, expected) in [(AVAILABLE, "True"), (PROGRESSING, "False"), (DEGRADED, "False")] {
        let condition = condition(&memcached, type_);
        assert_eq!(
            (condition.status.as_str(), condition.observed_generation),
            (expected, memcached.metadata.generation)
        );
    }
    assert_eq!(memcached.finalizers(), [FINALIZER]);
    let event = lab.event("sample", "Created").await;
    assert_eq!(
        event.note.as_deref(),
        Some("Deployment sample, Service sample, PodDisruptionBudget sample")
    );
    assert_eq!(event.type_.as_deref(), Some("Normal"));
}

#[tokio::test]
async fn growing_leaves_the_pods_that_run_alone() {
    let lab = Lab::new("growing").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let before = lab.pods("sample").await;

    // As `kubectl scale` and autoscalers do it.
    let scale = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    lab.api::<Memcached>()
        .patch_scale("sample", &PatchParams::default(), &scale)
        .await
        .unwrap();
    let memcached = lab.running("sample").await;
    let after = lab.pods("sample").await;
    assert_eq!((memcached.spec.size, after.len()), (3, 3));
    assert!(before.iter().all(|pod| after.contains(pod)), "{before:?} {after:?}");
    assert_eq!(
        lab.event("sample", "Updated").await.note.as_deref(),
        Some("Deployment sample: .spec.replicas set to 3, was 2")
    );

    let scale = lab.api::<Memcached>().get_scale("sample").await.unwrap();
    let scale = scale.status.unwrap();
    assert_eq!(scale.replicas, 3);
    let selected = lab
        .api::<Pod>()
        .list(&ListParams::default().labels(&scale.selector.unwrap()))
        .await;
    assert_eq!(selected.unwrap().items.len(), 3);

    // Each field, with both values.
    lab.change("sample", json!({ "size": 4, "maxConnections": 2048 })).await;
    lab.running("sample").await;
    eventually("an event about both fields", async || {
        let events = lab.api::<Event>().list(&ListParams::default()).await.unwrap();
        let notes = events.iter().filter_map(|event| event.note.clone());
        let both = |note: &String| {
            note.contains(".spec.replicas set to 4, was 3")
                && note.contains(
                    r#".args set to ["-m","64","-c","2048","-p","11211"], was ["-m","64","-c","1024","-p","11211"]"#,
                )
        };
        notes.into_iter().find(both)
    })
    .await;
}

#[tokio::test]
async fn the_budget_exists_only_for_more_than_one_server() {
    let lab = Lab::new("budget").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let budgets = lab.api::<PodDisruptionBudget>();
    budgets.get("sample").await.unwrap();

    lab.change("sample", json!({ "size": 1 })).await;
    eventually("the budget goes", async || {
        budgets.get_opt("sample").await.unwrap().is_none().then_some(())
    })
    .await;
    lab.running("sample").await;

    lab.change("sample", json!({ "size": 0 })).await;
    let memcached = lab.running("sample").await;
    assert_eq!(memcached.status.unwrap().nodes, Vec::<String>::new());
    assert_eq!(lab.pods("sample").await, Vec::<String>::new());

    lab.change("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    budgets.get("sample").await.unwrap();
}

#[tokio::test]
async fn a_changed_image_rolls_out_without_surplus_servers() {
    let lab = Lab::new("rollout").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let before = lab.pods("sample").await;
    lab.change("sample", json!({ "image": "memcached:1.6.40" })).await;
    let mut most = 0;
    let status = eventually("the new image runs", async || {
        most = most.max(lab.pods("sample").await.len());
        let status = lab.api::<Memcached>().get("sample").await.unwrap().status.unwrap();
        let replaced = lab.pods("sample").await.iter().all(|pod| !before.contains(pod));
        (replaced && status.ready_replicas == Some(2) && status.image.as_deref() == Some("memcached:1.6.40"))
            .then_some(status)
    })
    .await;
    assert!(most <= 2, "{most} servers at once");
    assert_eq!(
        lab.running("sample").await.status.unwrap().nodes,
        lab.pods("sample").await
    );
    assert_eq!(status.replicas, Some(2));
}

/// Servers that are replaced one by one are no failure.
#[tokio::test]
async fn an_ordinary_rollout_publishes_no_warning() {
    let lab = Lab::new("no-warning").await;
    let operator = lab.operator().await;
    for (name, workload) in [("sample", "Deployment"), ("stable", "StatefulSet")] {
        let spec = json!({ "size": 3, "workload": workload });
        lab.memcached(name, spec).await;
        lab.running(name).await;
        for change in [
            json!({ "image": "memcached:1.6.40" }),
            json!({ "maxConnections": 2048 }),
        ] {
            lab.change(name, change).await;
            lab.running(name).await;
        }
    }
    // Its last events are published before it ends.
    let (status, log) = operator.terminate().await;
    assert!(status.success(), "{log}");
    let events = lab.api::<Event>().list(&ListParams::default()).await.unwrap();
    let own = events.items.into_iter().filter(|event| {
        let regarding = event.regarding.as_ref().and_then(|object| object.kind.as_deref());
        regarding == Some("Memcached")
    });
    let (warnings, normal): (Vec<Event>, Vec<Event>) =
        own.partition(|event| event.type_.as_deref() == Some("Warning") || event.reason.as_deref() == Some("Failed"));
    assert_eq!(warnings, Vec::<Event>::new());
    let updates = normal.iter().filter(|event| event.reason.as_deref() == Some("Updated"));
    assert!(updates.count() >= 4, "{normal:?}");
}

#[tokio::test]
async fn two_memcacheds_in_a_namespace_never_share_pods() {
    let lab = Lab::new("neighbours").await;
    let _operator = lab.operator().await;
    lab.memcached("red", json!({ "size": 2 })).await;
    lab.memcached("red-green", json!({ "size": 2 })).await;
    let (red, green) = (
        lab.running("red").await.status.unwrap(),
        lab.running("red-green").await.status.unwrap(),
    );
    assert_eq!((red.nodes.len(), green.nodes.len()), (2, 2));
    assert!(red.nodes.iter().all(|pod| !green.nodes.contains(pod)));
    let pods = lab.api::<Pod>();
    for (selector, nodes) in [(red.selector, red.nodes), (green.selector, green.nodes)] {
        let mut selected: Vec<String> = pods
            .list(&ListParams::default().labels(&selector.unwrap()))
            .await
            .unwrap()
            .iter()
            .map(ResourceExt::name_any)
            .collect();
        selected.sort();
        assert_eq!(selected, nodes);
    }
}

#[tokio::test]
async fn image_names_with_ports_digests_and_without_tags() {
    let lab = Lab::new("images").await;
    let _operator = lab.operator().await;
    let digest = "sha256:9f4fcb1b0a5d2e6b0f6d9dc0a6e3d6b2a9b6e0d9c8b7a6f5e4d3c2b1a0f9e8d7";
    let images = [
        "localhost:5000/memcached".to_owned(),
        "memcached".to_owned(),
        format!("r.example.com:5000/a/b@{digest}"),
        format!("a/b:1.6@{digest}"),
    ];
    for (index, name) in images.iter().enumerate() {
        lab.memcached(&format!("m{index}"), json!({ "image": name })).await;
    }
    for (index, name) in images.iter().enumerate() {
        let memcached = lab.running(&format!("m{index}")).await;
        assert_eq!(memcached.status.unwrap().image.as_ref(), Some(name));
    }
}

#[tokio::test]
async fn settings_reach_the_container() {
    let lab = Lab::new("settings").await;
    let _operator = lab.operator().await;
    let spec = json!({ "containerPort": 11212, "memoryLimitMegabytes": 128, "maxConnections": 64,
        "resources": { "requests": { "cpu": "0.1" }, "limits": { "cpu": 1, "memory": "1024Mi" } } });
    lab.memcached("sample", spec).await;
    lab.running("sample").await;
    let deployment = value(&lab.api::<Deployment>().get("sample").await.unwrap());
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"], json!(["-m", "128", "-c", "64", "-p", "11212"]));
    assert_eq!(container["resources"]["limits"], json!({ "cpu": "1", "memory": "1Gi" }));
    assert_eq!(
        container["resources"]["requests"],
        json!({ "cpu": "100m", "memory": "1Gi" })
    );

    // Fields that are no longer desired are removed.
    lab.change("sample", json!({ "resources": null })).await;
    eventually("the limits go", async || {
        let deployment = value(&lab.api::<Deployment>().get("sample").await.unwrap());
        (deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] == json!({ "memory": "193Mi" }))
            .then_some(())
    })
    .await;
    let service = lab.api::<Service>().get("sample").await.unwrap();
    assert_eq!(service.spec.unwrap().ports.unwrap()[0].port, 11212);
    assert_eq!(Memcached::plural(&()), "memcacheds");
}

/// While servers are added, those that ran before serve.
#[tokio::test]
async fn adding_servers_keeps_the_cache_available() {
    let lab = Lab::new("available").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    let version = lab.running("sample").await.metadata.resource_version.unwrap();
    let memcacheds = lab.api::<Memcached>();
    let mut changes = Box::pin(memcacheds.watch(&WatchParams::default(), &version).await.unwrap());
    lab.change("sample", json!({ "size": 12 })).await;
    loop {
        let WatchEvent::Modified(object) = changes.next().await.unwrap().unwrap() else {
            panic!("not a change");
        };
        let available = condition(&object, AVAILABLE);
        assert_eq!(available.status, "True", "{}", available.message);
        if object.status.unwrap().ready_replicas == Some(12) {
            break;
        }
    }
}

/// A server that stops to answer, without a cause that its pod shows.
#[tokio::test]
async fn a_lost_server_and_its_recovery_have_an_event_each() {
    let lab = Lab::new("lost").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 3 })).await;
    eventually("the rollout is complete", async || {
        let status = lab.api::<Deployment>().get_opt("sample").await.unwrap()?.status?;
        (status.available_replicas == Some(3)).then_some(())
    })
    .await;
    lab.running("sample").await;
    let name = lab.pods("sample").await.remove(0);
    let set_ready = async |ready: &str| {
        let conditions = json!([{ "type": "ContainersReady", "status": ready }, { "type": "Ready", "status": ready }]);
        let patch = Patch::Strategic(json!({ "status": { "conditions": conditions } }));
        let pods = lab.api::<Pod>();
        pods.patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
    };
    set_ready("False").await;
    let event = lab.event("sample", "ServersLost").await;
    assert_eq!(event.note.as_deref(), Some("2 of 3 servers are ready"));
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    set_ready("True").await;
    let event = lab.event("sample", "Recovered").await;
    assert_eq!(event.note.as_deref(), Some("3 of 3 servers are ready"));
}

/// The container is ready again soon after each kill. The condition is as before, and the event stays.
#[tokio::test]
async fn servers_that_run_out_of_memory_leave_an_event() {
    let lab = Lab::new("out-of-memory").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let name = lab.pods("sample").await.remove(0);
    let container = async |restarts: i32, ready: bool| {
        let killed = json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled" } });
        let running = json!({ "running": { "startedAt": "2026-01-01T12:00:00Z" }, "terminated": null });
        let (state, last) = match ready {
            true => (running, killed),
            false => (
                json!({ "running": null, "terminated": killed["terminated"] }),
                json!({}),
            ),
        };
        let text = if ready { "True" } else { "False" };
        let status = json!({ "status": {
            "conditions": [{ "type": "ContainersReady", "status": text }, { "type": "Ready", "status": text }],
            "containerStatuses": [{ "name": "memcached", "ready": ready, "restartCount": restarts, "state": state, "lastState": last }],
        } });
        let pods = lab.api::<Pod>();
        pods.patch_status(&name, &PatchParams::default(), &Patch::Strategic(status))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    for kills in 0..2 {
        container(kills, false).await;
        container(kills + 1, true).await;
    }
    let event = lab.event("sample", "Failed").await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    let note = event.note.unwrap();
    assert!(note.contains(&name) && note.contains("OOMKilled"), "{note}");
    lab.event("sample", "Recovered").await;
    lab.running("sample").await;
    lab.event("sample", "Failed").await;
}

/// The operator reverts such a change at once, unless it is paused.
#[tokio::test]
async fn servers_that_the_service_does_not_select_are_not_ready() {
    let lab = Lab::new("hidden").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let paused =
        |yes: &str| Patch::Merge(json!({ "metadata": { "annotations": { "cache.example.com/paused": yes } } }));
    let (memcacheds, parameters) = (lab.api::<Memcached>(), PatchParams::default());
    memcacheds.patch("sample", &parameters, &paused("true")).await.unwrap();
    eventually("it is paused", async || {
        let now = memcacheds.get("sample").await.unwrap();
        (condition(&now, PROGRESSING).reason == "Paused").then_some(())
    })
    .await;
    let selector = Patch::Merge(json!({ "spec": { "selector": { "another": "label" } } }));
    lab.api::<Service>()
        .patch("sample", &parameters, &selector)
        .await
        .unwrap();
    let is_available = async |expected: &str, ready: i32| {
        eventually(&format!("Available is {expected}"), async || {
            let now = memcacheds.get("sample").await.unwrap();
            let is_expected = condition(&now, AVAILABLE).status == expected;
            (is_expected && now.status.unwrap().ready_replicas == Some(ready)).then_some(())
        })
        .await;
    };
    is_available("False", 0).await;
    memcacheds.patch("sample", &parameters, &paused("false")).await.unwrap();
    is_available("True", 2).await;
    lab.running("sample").await;
}

/// A replacement that does not start, because its image is not there any more.
#[tokio::test]
async fn a_lost_server_that_cannot_start_is_reported_with_its_cause() {
    let lab = Lab::new("evicted").await;
    let _operator = lab.operator().await;
    // The node cannot pull this image: which pods are ready is for the test to say.
    lab.memcached("sample", json!({ "size": 3, "image": UNAVAILABLE }))
        .await;
    let pods = lab.api::<Pod>();
    let waiting = eventually("three pods that wait", async || {
        let found = pods.list(&ListParams::default()).await.unwrap().items;
        let is_seen = |pod: &Pod| {
            pod.status
                .as_ref()
                .is_some_and(|status| status.container_statuses.is_some())
        };
        (found.len() == 3 && found.iter().all(is_seen)).then_some(found)
    })
    .await;
    let memcached = lab.reaches("sample", Phase::Degraded).await;
    assert_eq!(condition(&memcached, DEGRADED).reason, "ImagePullBackOff");
    for (index, pod) in waiting.iter().enumerate() {
        let address = format!("10.99.0.{}", index + 1);
        let ready = Patch::Strategic(
            json!({ "status": { "phase": "Running", "podIP": address, "podIPs": [{ "ip": address }], "conditions": [
            { "type": "ContainersReady", "status": "True" }, { "type": "Ready", "status": "True" },
        ] } }),
        );
        let parameters = PatchParams::default();
        pods.patch_status(&pod.name_any(), &parameters, &ready).await.unwrap();
    }
    lab.running("sample").await;
    let evicted = waiting.first().unwrap().name_any();
    pods.delete(&evicted, &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    let memcached = lab.reaches("sample", Phase::Degraded).await;
    let degraded = condition(&memcached, DEGRADED);
    assert_eq!(degraded.reason, "ImagePullBackOff");
    assert!(
        degraded.message.starts_with("2 of 3 servers are ready; pod sample-")
            && degraded
                .message
                .ends_with(&format!("ImagePullBackOff (image {UNAVAILABLE})")),
        "{}",
        degraded.message
    );
    assert_eq!(condition(&memcached, AVAILABLE).status, "True", "two of three serve");
    assert_eq!(condition(&memcached, READY).status, "False");
    lab.event("sample", "Failed").await;
}
