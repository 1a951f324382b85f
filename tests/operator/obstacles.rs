//! Problems: the operator reports them, harms no other object, and recovers when they are solved.
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ResourceQuota, Service},
};
use kube::Resource;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube_manager::conditions::{AVAILABLE, DEGRADED};
use memcached_operator::api::v1alpha1::{FINALIZER, Memcached, Phase};
use serde_json::{Value, json};

use crate::lab::{Lab, UNAVAILABLE, condition, create, eventually, image, value};

#[tokio::test]
async fn a_deployment_of_another_owner_is_never_taken_over() {
    let lab = Lab::new("foreign").await;
    let theirs: Deployment = create(
        &lab.api(),
        json!({ "metadata": { "name": "sample" }, "spec": {
            "selector": { "matchLabels": { "app": "theirs" } },
            "template": { "metadata": { "labels": { "app": "theirs" } },
                "spec": { "containers": [{ "name": "theirs", "image": "theirs:1" }] } },
        } }),
    )
    .await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.memcached("other", json!({ "size": 1 })).await;

    let memcached = lab.reaches("sample", Phase::Degraded).await;
    let degraded = condition(&memcached, DEGRADED);
    assert_eq!(
        (degraded.status.as_str(), degraded.reason.as_str()),
        ("True", "NameTaken")
    );
    assert!(
        degraded.message.contains("Deployment foreign/sample"),
        "{}",
        degraded.message
    );
    assert_eq!(condition(&memcached, AVAILABLE).status, "False");
    assert_eq!(memcached.status.unwrap().nodes, Vec::<String>::new());
    lab.event("sample", "Failed").await;
    lab.running("other").await;

    let now = lab.api::<Deployment>().get("sample").await.unwrap();
    assert_eq!(
        (now.metadata.uid, now.metadata.labels, now.metadata.owner_references),
        (theirs.metadata.uid, None, None)
    );
    assert_eq!(value(&now.spec), value(&theirs.spec));

    // Its deletion is seen by watch, not by the next retry.
    eventually("the Deployment is watched", async || {
        let requests = lab.requests().await;
        let uris = requests.iter().map(|event| &event.request_uri);
        let mut watches = uris.filter(|uri| uri.contains("/deployments") && uri.contains("watch=true"));
        watches.any(|uri| uri.contains("metadata.name%3Dsample")).then_some(())
    })
    .await;
    lab.api::<Deployment>()
        .delete("sample", &DeleteParams::default())
        .await
        .unwrap();
    lab.running("sample").await;
}

#[tokio::test]
async fn a_paused_deployment_is_named_as_the_cause() {
    let lab = Lab::new("paused-deployment").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let paused = |yes: bool| Patch::Merge(json!({ "spec": { "paused": yes } }));
    let (deployments, parameters) = (lab.api::<Deployment>(), PatchParams::default());
    deployments.patch("sample", &parameters, &paused(true)).await.unwrap();
    lab.change("sample", json!({ "image": "memcached:1.6" })).await;
    let memcached = lab.reaches("sample", Phase::Degraded).await;
    let degraded = condition(&memcached, DEGRADED);
    assert_eq!(degraded.reason, "DeploymentPaused");
    assert_eq!(
        degraded.message,
        "2 of 2 servers are ready; the Deployment is paused; run kubectl rollout resume deployment/sample"
    );
    assert_eq!(condition(&memcached, AVAILABLE).status, "True");
    deployments.patch("sample", &parameters, &paused(false)).await.unwrap();
    lab.running("sample").await;
}

#[tokio::test]
async fn a_service_of_another_owner_is_never_taken_over() {
    let lab = Lab::new("foreign-service").await;
    let spec = json!({ "selector": { "app": "theirs" }, "ports": [{ "port": 80 }] });
    let theirs: Service = create(&lab.api(), json!({ "metadata": { "name": "sample" }, "spec": spec })).await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({})).await;
    let memcached = lab.reaches("sample", Phase::Degraded).await;
    assert_eq!(condition(&memcached, DEGRADED).reason, "NameTaken");
    eventually("the servers run, but clients do not find them", async || {
        let now = lab.api::<Memcached>().get("sample").await.unwrap();
        (condition(&now, AVAILABLE).status == "False" && lab.pods("sample").await.len() == 1).then_some(())
    })
    .await;
    let now = lab.api::<Service>().get("sample").await.unwrap();
    assert_eq!(now.metadata.resource_version, theirs.metadata.resource_version);
}

#[tokio::test]
async fn without_an_image_the_status_names_the_variable() {
    let lab = Lab::new("imageless").await;
    let _operator = lab.operator_with(&[], &[("MEMCACHED_IMAGE", "")]).await;
    lab.memcached("sample", json!({})).await;
    let memcached = lab.reaches("sample", Phase::Degraded).await;
    let available = condition(&memcached, AVAILABLE);
    assert_eq!(
        (available.status.as_str(), available.reason.as_str()),
        ("False", "ImageNotSet")
    );
    assert!(
        available
            .message
            .starts_with("Unable to find MEMCACHED_IMAGE environment variable with the image")
    );
    assert!(
        available.message.contains("RELATED_IMAGE_MEMCACHED"),
        "{}",
        available.message
    );
    assert!(lab.api::<Deployment>().get_opt("sample").await.unwrap().is_none());

    lab.change("sample", json!({ "image": "memcached:1.6" })).await;
    lab.running("sample").await;
}

#[tokio::test]
async fn the_related_image_goes_before_the_tutorials_variable() {
    let lab = Lab::new("related-image").await;
    let _operator = lab
        .operator_with(&[], &[("RELATED_IMAGE_MEMCACHED", "mirror:5000/memcached:1.6")])
        .await;
    lab.memcached("sample", json!({})).await;
    lab.running("sample").await;
    assert_eq!(
        image(&lab.api::<Deployment>().get("sample").await.unwrap()),
        "mirror:5000/memcached:1.6"
    );
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_named_at_once() {
    let lab = Lab::new("unpullable").await;
    let _operator = lab.operator().await;
    // The Deployment reports nothing before its deadline, which is longer than an hour.
    lab.memcached("sample", json!({ "image": UNAVAILABLE, "warmUpSeconds": 3600 }))
        .await;
    lab.memcached("other", json!({})).await;
    lab.running("other").await;
    let memcached = lab.reaches("sample", Phase::Degraded).await;
    let degraded = condition(&memcached, DEGRADED);
    assert_eq!(
        (degraded.status.as_str(), degraded.reason.as_str()),
        ("True", "ImagePullBackOff")
    );
    assert!(
        degraded
            .message
            .contains(&format!("ImagePullBackOff (image {UNAVAILABLE})")),
        "{}",
        degraded.message
    );
    assert_eq!(condition(&memcached, AVAILABLE).status, "False");
    // `kubectl get memcacheds -o wide` shows the cause.
    let path = format!("{}/sample", Memcached::url_path(&(), Some(&lab.namespace)));
    let request = http::Request::get(path)
        .header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .unwrap();
    let table: Value = lab.client.request(request).await.unwrap();
    let columns = table["columnDefinitions"].as_array().unwrap();
    let cell = |name: &str| {
        let column = columns.iter().position(|column| column["name"] == name).unwrap();
        table["rows"][0]["cells"][column].as_str().unwrap()
    };
    assert_eq!(cell("Reason"), "ImagePullBackOff");
    assert!(cell("Message").contains(UNAVAILABLE), "{}", cell("Message"));

    lab.change("sample", json!({ "image": "memcached:1.6" })).await;
    lab.running("sample").await;
}

#[tokio::test]
async fn pods_that_the_namespace_does_not_admit_are_reported_at_once() {
    let lab = Lab::new("quota").await;
    let quota = json!({ "metadata": { "name": "none" }, "spec": { "hard": { "pods": "0" } } });
    create::<ResourceQuota>(&lab.api(), quota).await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({})).await;
    let memcached = lab.reaches("sample", Phase::Degraded).await;
    let degraded = condition(&memcached, DEGRADED);
    assert!(
        degraded.message.contains("exceeded quota"),
        "{}: {}",
        degraded.reason,
        degraded.message
    );
}

/// Annotations of a quarter of a megabyte are allowed, and the operator keeps every Memcached in memory.
#[tokio::test]
async fn a_memcached_that_is_too_large_is_reported_and_can_be_deleted() {
    let lab = Lab::new("too-large").await;
    let _operator = lab.operator().await;
    let object = json!({ "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "spec": {},
        "metadata": { "name": "sample", "annotations": { "note": "x".repeat(100_000) }, "finalizers": [FINALIZER] } });
    create::<Memcached>(&lab.api(), object).await;
    let event = lab.event("sample", "Unreadable").await;
    assert!(
        event
            .note
            .as_ref()
            .is_some_and(|note| note.contains("larger than 81920 bytes")),
        "{event:?}"
    );
    assert!(lab.api::<Deployment>().get_opt("sample").await.unwrap().is_none());
    lab.delete("sample").await;
    lab.gone("sample").await;
}
