//! The install modes of tenants: one namespace that is not the operator's, and several, with settings for the
//! operator's pod in the Subscription.
use k8s_openapi::api::apps::v1::Deployment;
use kube_manager::conditions::PROGRESSING;
use memcached_operator::api::v1alpha1::Memcached;
use serde_json::{Value, json};

use crate::{
    DEPLOYMENT,
    lab::{Lab, UNAVAILABLE, condition, create, eventually, image},
    olm, rights_match,
    scenario::live,
    start, start_changed, start_with, subscribe, subscribe_with, succeeded, uninstall,
};

/// Creates the OperatorGroup of `lab` with these targets.
async fn group(lab: &Lab, targets: &[&str]) {
    let group = json!({ "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": { "name": "tenants" }, "spec": { "targetNamespaces": targets } });
    create(&olm(lab, "v1", "OperatorGroup", "operatorgroups"), group).await;
}

/// SingleNamespace: the operator in one namespace, its Memcacheds in another.
pub async fn one(version: &str, address: &str) {
    let (platform, tenant) = (Lab::bare("single-platform").await, Lab::bare("single-tenant").await);
    group(&platform, &["single-tenant"]).await;
    subscribe(&platform, address).await;
    succeeded(&platform, version).await;
    let operator = start(&platform).await;
    platform.memcached("ignored", json!({ "size": 1 })).await;
    tenant.memcached("served", json!({ "size": 1 })).await;
    tenant.running("served").await;
    ignored(&platform).await;
    live(&tenant).await;
    rights_match(&platform, &operator).await;
    drop(operator);
    uninstall(&platform, version).await;
}

/// MultiNamespace, with settings in the Subscription.
pub async fn several(version: &str, address: &str) {
    let platform = Lab::bare("platform").await;
    let tenants = [Lab::bare("tenant-a").await, Lab::bare("tenant-b").await];
    let stranger = Lab::bare("stranger").await;
    group(&platform, &["tenant-a", "tenant-b"]).await;
    let variables = [
        ("HTTPS_PROXY", "http://proxy.example.com:3128"),
        ("NO_PROXY", "127.0.0.1,.svc,.cluster.local"),
        ("LOG_LEVEL", "debug"),
        ("MAX_ROLLING", "1"),
    ];
    let environment: Vec<Value> = variables
        .iter()
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect();
    let resources = json!({ "limits": { "memory": "96Mi" }, "requests": { "cpu": "7m", "memory": "48Mi" } });
    subscribe_with(
        &platform,
        address,
        json!({ "env": environment, "resources": resources }),
    )
    .await;
    succeeded(&platform, version).await;

    // OLM may have made the Deployment before it knew whose Subscription it belongs to.
    eventually("the Subscription's resources are the operator's", async || {
        let deployment = platform.api::<Deployment>().get(DEPLOYMENT).await.unwrap();
        let container = deployment.spec?.template.spec?.containers.into_iter().next()?;
        (serde_json::to_value(container.resources).unwrap() == resources).then_some(())
    })
    .await;
    let operator = start_with(&platform, &variables).await;
    for tenant in &tenants {
        tenant.memcached("served", json!({ "size": 1 })).await;
        tenant.running("served").await;
    }
    stranger.memcached("ignored", json!({ "size": 1 })).await;
    ignored(&stranger).await;
    live(&tenants[1]).await;
    rights_match(&platform, &operator).await;
    drop(operator);

    // An upgrade to an image that cannot be pulled. With the default of MAX_ROLLING, both caches would get it.
    let other = [("RELATED_IMAGE_MEMCACHED", UNAVAILABLE)];
    let operator = start_changed(&platform, &variables, &other).await;
    eventually("one cache has the image, and the other one waits", async || {
        let (mut changed, mut waiting) = (0, 0);
        for tenant in &tenants {
            let served = tenant.api::<Memcached>().get("served").await.unwrap();
            waiting += usize::from(condition(&served, PROGRESSING).reason == "RolloutQueued");
            let deployment = tenant.api::<Deployment>().get("served").await.unwrap();
            changed += usize::from(image(&deployment) == UNAVAILABLE);
        }
        assert!(changed <= 1, "the operator has changed both");
        (changed == 1 && waiting == 1).then_some(())
    })
    .await;
    drop(operator);
    uninstall(&platform, version).await;
}

/// No operator reconciles the Memcached `ignored`.
async fn ignored(lab: &Lab) {
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let object = lab.api::<Memcached>().get("ignored").await.unwrap();
    assert_eq!((object.metadata.finalizers, object.status), (None, None));
}
