//! The operator as OLM installs it, on the control plane level: the committed bundles, served inline by our own gRPC
//! server; the real OLM; the operator as a process that authenticates only as the ServiceAccount which OLM made from
//! the ClusterServiceVersion, with the arguments and the environment of the Deployment which OLM made.
//!
//! Needs `make tools`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod bundles;
mod installation;
mod operator;

use std::time::Duration;

use installation::{Installation, Targets};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use memcached_operator::api::v1alpha1::Memcached;
use serde_json::json;

/// Polls until the probe gives a value.
pub(crate) async fn eventually<T>(what: &str, limit: Duration, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let end = tokio::time::Instant::now() + limit;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(tokio::time::Instant::now() < end, "not within {} s: {what}", limit.as_secs());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

const SOON: Duration = Duration::from_secs(30);

async fn create_memcached(client: &Client, namespace: &str, size: i32) {
    let memcacheds: Api<Memcached> = Api::namespaced(client.clone(), namespace);
    let object = serde_json::from_value(json!({
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "Memcached",
        "metadata": {"name": "memcached-sample"},
        "spec": {"size": size, "containerPort": 11211},
    }))
    .unwrap();
    memcacheds.create(&PostParams::default(), &object).await.unwrap();
}

async fn running(client: &Client, namespace: &str, ready: i32) {
    let memcacheds: Api<Memcached> = Api::namespaced(client.clone(), namespace);
    eventually(&format!("Memcached in {namespace} Running with {ready} ready"), SOON, async || {
        let object = serde_json::to_value(memcacheds.get("memcached-sample").await.unwrap()).unwrap();
        (object.pointer("/status/phase") == Some(&json!("Running")) && object.pointer("/status/readyReplicas") == Some(&json!(ready)))
            .then_some(())
    })
    .await;
}

async fn operand_image(client: &Client, namespace: &str) -> Option<String> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let deployment = deployments.get_opt("memcached-sample").await.unwrap()?;
    deployment.spec?.template.spec?.containers.first()?.image.clone()
}

/// Installed for its own namespace, the operator manages what is there and nothing elsewhere; the channel upgrades it;
/// scaling leaves pods alone; deletion leaves nothing.
#[tokio::test]
async fn own_namespace_install_and_upgrade() {
    let (old, new) = bundles::both();
    let mut installation = Installation::start("own", Targets::OwnNamespace, &[&old]).await;
    let client = installation.client.clone();
    installation.create_namespace("elsewhere").await;
    installation.succeeded(&old.name).await;
    let operator = installation.run_operator().await;

    create_memcached(&client, "own", 2).await;
    create_memcached(&client, "elsewhere", 1).await;
    running(&client, "own", 2).await;
    assert_eq!(operand_image(&client, "own").await, Some(old.operand_image.clone()));
    assert_eq!(operand_image(&client, "elsewhere").await, None, "an object in a namespace that is not watched stays untouched");
    assert_eq!(operator.forbidden(), Vec::<String>::new());
    drop(operator);

    installation.serve(&[&old, &new]).await;
    installation.succeeded(&new.name).await;
    installation.gone(&old.name).await;
    let operator = installation.run_operator().await;
    eventually("the new version's operand image", SOON, async || {
        (operand_image(&client, "own").await.as_ref() == Some(&new.operand_image)).then_some(())
    })
    .await;
    running(&client, "own", 2).await;

    let before = installation.operand_pods("own").await;
    let memcacheds: Api<Memcached> = Api::namespaced(client.clone(), "own");
    let three = Patch::Merge(json!({"spec": {"size": 3}}));
    memcacheds.patch("memcached-sample", &PatchParams::default(), &three).await.unwrap();
    running(&client, "own", 3).await;
    let after = installation.operand_pods("own").await;
    assert!(before.iter().all(|pod| after.contains(pod)), "{before:?} all in {after:?}");

    memcacheds.delete("memcached-sample", &DeleteParams::default()).await.unwrap();
    eventually("nothing left of the Memcached", SOON, async || {
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), "own");
        let labels = ListParams::default().labels("memcached_cr=memcached-sample");
        let gone = memcacheds.get_opt("memcached-sample").await.unwrap().is_none()
            && deployments.list(&labels).await.unwrap().items.is_empty()
            && installation.operand_pods("own").await.is_empty();
        gone.then_some(())
    })
    .await;
    assert_eq!(operator.forbidden(), Vec::<String>::new());
}

/// Installed for all namespaces, one operator manages objects anywhere.
#[tokio::test]
async fn all_namespaces_install() {
    let (_, new) = bundles::both();
    let mut installation = Installation::start("everywhere", Targets::AllNamespaces, &[&new]).await;
    let client = installation.client.clone();
    installation.create_namespace("tenant").await;
    installation.succeeded(&new.name).await;
    let operator = installation.run_operator().await;

    create_memcached(&client, "tenant", 1).await;
    create_memcached(&client, "everywhere", 2).await;
    running(&client, "tenant", 1).await;
    running(&client, "everywhere", 2).await;
    assert_eq!(operator.forbidden(), Vec::<String>::new());
}
