//! Number of requests that the operator sends.
use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::{Api, api::PostParams};
use kube_testbed::AuditEvent;
use serde_json::json;

use crate::lab::{Lab, eventually};

#[tokio::test]
async fn a_settled_operator_sends_watches_and_lease_renewals_only() {
    let lab = Lab::new("settled").await;
    let _operator = lab.operator_with(&["--leader-elect"], &[]).await;
    for name in ["a", "b", "c"] {
        lab.memcached(name, json!({ "size": 2 })).await;
    }
    for name in ["a", "b", "c"] {
        lab.running(name).await;
    }
    renewals(&lab, 2).await;
    let before = lab.requests().await.len();
    let requests = renewals(&lab, 5).await.split_off(before);
    for request in &requests {
        let agent = &request.user_agent;
        assert!(agent.starts_with("memcached-operator kube-manager/"), "{agent:?}");
    }
    let sent: BTreeSet<String> = requests
        .iter()
        .map(|event| {
            let object = event.object_ref.clone().unwrap();
            format!("{} {}", event.verb, object.resource)
        })
        .filter(|sent| !sent.starts_with("watch "))
        .collect();
    assert_eq!(sent.into_iter().collect::<Vec<_>>(), ["update leases"]);
}

/// Waits until the operator has renewed its lease `count` times more, one each two seconds, and returns all its requests.
async fn renewals(lab: &Lab, count: usize) -> Vec<AuditEvent> {
    let begin = Instant::now();
    let renewed = |requests: &[AuditEvent]| {
        let is_renewal = |event: &&AuditEvent| {
            let object = event.object_ref.as_ref();
            event.verb == "update" && object.is_some_and(|object| object.resource == "leases")
        };
        requests.iter().filter(is_renewal).count()
    };
    let before = renewed(&lab.requests().await);
    let requests = eventually("the lease is renewed", async || {
        let requests = lab.requests().await;
        (renewed(&requests) >= before + count).then_some(requests)
    })
    .await;
    // The first may have been due at once.
    let least = Duration::from_millis(1500) * (count as u32 - 1);
    assert!(begin.elapsed() > least, "{count} renewals within {:?}", begin.elapsed());
    requests
}

/// Also where the API server has defaults that its schema does not contain.
#[tokio::test]
async fn a_restarted_operator_leaves_settled_objects_alone() {
    let lab = Lab::new("restarted").await;
    let operator = lab.operator().await;
    lab.memcached("plain", json!({ "size": 2 })).await;
    let template = json!({ "tolerations": [{ "key": "cache", "operator": "Exists" }] });
    lab.memcached(
        "placed",
        json!({ "podTemplate": template, "allowedNamespaces": ["shop", "web"] }),
    )
    .await;
    lab.memcached(
        "warm",
        json!({ "size": 2, "workload": "StatefulSet", "warmCache": "WarmRestart" }),
    )
    .await;
    for name in ["plain", "placed", "warm"] {
        lab.running(name).await;
    }
    operator.terminate().await;
    eventually("the servers are warm", async || {
        let set = lab.api::<StatefulSet>().get("warm").await.unwrap();
        (set.status?.available_replicas == Some(2)).then_some(())
    })
    .await;
    // The first operator may have ended before its last write, such as that of a PodDisruptionBudget whose servers have become
    // warm. The second one finishes the work.
    let operator = lab.operator().await;
    operator.idle(3).await;
    operator.terminate().await;
    let before = lab.requests().await.len();
    let operator = lab.operator().await;
    // Reconciles begin in the order of creation.
    lab.memcached("last", json!({})).await;
    lab.running("last").await;
    operator.idle(4).await;
    let requests = lab.requests().await;
    let writes: Vec<String> = requests[before..]
        .iter()
        .filter(|event| !matches!(event.verb.as_str(), "get" | "list" | "watch"))
        .filter_map(|event| {
            let object = event.object_ref.as_ref()?;
            let is_settled = ["plain", "placed", "warm"]
                .iter()
                .any(|name| object.name.starts_with(name));
            is_settled.then(|| format!("{} {} {}", event.verb, object.resource, event.request_uri))
        })
        .collect();
    assert_eq!(writes, Vec::<String>::new());
}

#[tokio::test]
async fn a_new_memcached_costs_few_requests() {
    let lab = Lab::new("thrifty").await;
    let _operator = lab.operator().await;
    let before = lab.requests().await.len();
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let requests = lab.requests().await;
    let sent: Vec<String> = requests[before..]
        .iter()
        .filter(|event| event.verb != "watch" && event.stage == "ResponseComplete")
        // Documents of the API are not objects.
        .filter_map(|event| {
            let object = event.object_ref.as_ref()?;
            Some(format!("{} {} {}", event.verb, object.resource, object.subresource))
        })
        .filter(|sent| !sent.contains("selfsubject"))
        .collect();
    let count = |what: &str| sent.iter().filter(|sent| sent.starts_with(what)).count();
    assert_eq!(
        (count("get"), count("list"), count("create events")),
        (3, 0, 2),
        "one event about three objects, and one about their availability: {sent:#?}"
    );
    assert_eq!(
        count("patch") - count("patch memcacheds status"),
        4,
        "finalizer and three objects: {sent:#?}"
    );
    assert!(count("patch memcacheds status") <= 6, "{sent:#?}");
}

/// Pods of other owners cost neither requests nor memory, even if their labels are those of a Memcached.
#[tokio::test]
async fn a_thousand_foreign_pods_change_nothing() {
    let lab = Lab::new("crowd").await;
    let operator = lab.operator().await;
    lab.memcached("sample", json!({})).await;
    lab.running("sample").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (requests, memory) = (lab.requests().await.len(), operator.memory());

    let pods: Api<Pod> = lab.api();
    // Pods with a scheduling gate are ignored by the scheduler and by the helper that replaces it here.
    let pod = |index: usize| {
        serde_json::from_value(json!({
            "metadata": { "name": format!("foreign-{index}"), "labels": { "memcached_cr": "sample" } },
            "spec": { "schedulingGates": [{ "name": "example.com/never" }],
                "containers": [{ "name": "main", "image": "foreign:1" }] },
        }))
        .unwrap()
    };
    for block in 0..50 {
        let creations = (0..20).map(|index| {
            let pod = pod(block * 20 + index);
            let pods = pods.clone();
            async move { pods.create(&PostParams::default(), &pod).await.unwrap() }
        });
        futures::future::join_all(creations).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let grown = operator.memory().saturating_sub(memory);
    assert!(grown < 1024, "grew by {grown} KiB from {memory} KiB");
    let sent: Vec<String> = lab.requests().await[requests..]
        .iter()
        .map(|event| event.request_uri.clone())
        .collect();
    assert!(sent.iter().all(|uri| uri.contains("watch=true")), "{sent:?}");
    let status = lab.running("sample").await.status.unwrap();
    assert_eq!(
        status.nodes,
        eventually("the pods", async || {
            let mut names = lab.pods("sample").await;
            names.retain(|name| !name.starts_with("foreign-"));
            Some(names)
        })
        .await
    );
}
