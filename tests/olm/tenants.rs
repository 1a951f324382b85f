//! The install modes of tenants: one namespace that is not the operator's, and several; where OLM may do only what a
//! ServiceAccount of the tenant may, and the Subscription has settings for the operator's pod.
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use kube::Api;
use memcached_operator::permissions::grants;
use serde_json::{Value, json};

use crate::{
    DEPLOYMENT,
    lab::{Lab, create, eventually, rules},
    olm, start, start_with, subscribe, subscribe_with, succeeded, uninstall,
};

/// Makes the OperatorGroup of `lab` with these targets.
async fn group(lab: &Lab, targets: &[&str], account: Option<&str>) {
    let mut spec = json!({ "targetNamespaces": targets });
    if let (Some(account), Some(spec)) = (account, spec.as_object_mut()) {
        spec.insert("serviceAccountName".to_owned(), account.into());
    }
    let group = json!({ "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": { "name": "tenants" }, "spec": spec });
    create(&olm(lab, "v1", "OperatorGroup", "operatorgroups"), group).await;
}

/// SingleNamespace: the operator in one namespace, its Memcacheds in another.
pub async fn one(version: &str, address: &str) {
    let (platform, tenant) = (Lab::bare("single-platform").await, Lab::bare("single-tenant").await);
    group(&platform, &["single-tenant"], None).await;
    subscribe(&platform, address).await;
    succeeded(&platform, version).await;
    let operator = start(&platform).await;
    platform.memcached("ignored", json!({ "size": 1 })).await;
    tenant.memcached("served", json!({ "size": 1 })).await;
    tenant.running("served").await;
    ignored(&platform).await;
    drop(operator);
    uninstall(&platform, version).await;
}

/// MultiNamespace, with a ServiceAccount that may do no more than the installation takes, and settings in the Subscription.
pub async fn several(version: &str, address: &str) {
    let platform = Lab::bare("platform").await;
    let tenants = [Lab::bare("tenant-a").await, Lab::bare("tenant-b").await];
    let stranger = Lab::bare("stranger").await;
    create::<ServiceAccount>(&platform.api(), json!({ "metadata": { "name": "installer" } })).await;
    group(&platform, &["tenant-a", "tenant-b"], Some("installer")).await;
    let variables = [
        ("HTTPS_PROXY", "http://proxy.example.com:3128"),
        ("NO_PROXY", "127.0.0.1,.svc,.cluster.local"),
        ("LOG_LEVEL", "debug"),
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

    // Without rights OLM says whose are missing, tries again, and goes on once they are there.
    let plans = olm(&platform, "v1alpha1", "InstallPlan", "installplans");
    eventually("the plan is refused", async || {
        let found = plans.list(&Default::default()).await.unwrap();
        let text = serde_json::to_string(&found.items).unwrap();
        (text.contains("forbidden") && text.contains("system:serviceaccount:platform:installer")).then_some(())
    })
    .await;
    allow(&platform, &tenants).await;
    succeeded(&platform, version).await;

    let deployment = platform.api::<Deployment>().get(DEPLOYMENT).await.unwrap();
    let container = deployment.spec.unwrap().template.spec.unwrap().containers.remove(0);
    assert_eq!(serde_json::to_value(container.resources).unwrap(), resources);
    let operator = start_with(&platform, &variables).await;
    for tenant in &tenants {
        tenant.memcached("served", json!({ "size": 1 })).await;
        tenant.running("served").await;
    }
    stranger.memcached("ignored", json!({ "size": 1 })).await;
    ignored(&stranger).await;
    drop(operator);
    uninstall(&platform, version).await;
}

/// No operator looks after the Memcached `ignored`.
async fn ignored(lab: &Lab) {
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let object = lab
        .api::<memcached_operator::api::v1alpha1::Memcached>()
        .get("ignored")
        .await
        .unwrap();
    assert_eq!((object.metadata.finalizers, object.status), (None, None));
}

/// Gives the installer what the installation takes: the bundle's objects, and the operator's own rights, which nobody may
/// hand on without having them.
async fn allow(platform: &Lab, tenants: &[Lab]) {
    let subject = json!([{ "kind": "ServiceAccount", "name": "installer", "namespace": "platform" }]);
    let mut namespaced = rules(&grants());
    let objects = json!([
        { "apiGroups": [""], "resources": ["services", "serviceaccounts", "configmaps", "secrets"], "verbs": ["*"] },
        { "apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"] },
        { "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["*"] },
        { "apiGroups": ["operators.coreos.com"], "resources": ["clusterserviceversions", "subscriptions"], "verbs": ["create", "get", "update"] },
    ]);
    if let (Some(all), Some(more)) = (namespaced.as_array_mut(), objects.as_array()) {
        all.extend(more.clone());
    }
    for lab in std::iter::once(platform).chain(tenants) {
        create::<Role>(
            &lab.api(),
            json!({ "metadata": { "name": "installer" }, "rules": namespaced }),
        )
        .await;
        let binding = json!({ "metadata": { "name": "installer" }, "subjects": subject,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "installer" } });
        create::<RoleBinding>(&lab.api(), binding).await;
    }
    // The definition and the roles for its users belong to no namespace.
    let cluster = json!({ "metadata": { "name": "installer" }, "rules": [
        { "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["create", "get", "update"] },
        { "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create", "get", "update"] },
        { "apiGroups": ["cache.example.com"], "resources": ["*"], "verbs": ["*"] },
    ] });
    create::<ClusterRole>(&Api::all(platform.client.clone()), cluster).await;
    let binding = json!({ "metadata": { "name": "installer" }, "subjects": subject,
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "installer" } });
    create::<ClusterRoleBinding>(&Api::all(platform.client.clone()), binding).await;
}
