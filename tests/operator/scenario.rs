//! A scenario with every action of the operator, and the permissions it uses.
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::Pod,
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
};
use kube::api::{ListParams, Patch, PatchParams};
use kube_testbed::AuditEvent;
use serde_json::json;

use crate::lab::{Lab, eventually};

/// Permissions that no request of [`live`] shows, because each of its requests needs another one too: a patch that makes an object is
/// also authorized as a creation, and owner references need further permissions on some clusters.
/// `without_a_right_the_operator_says_what_it_lacks` shows them.
pub static HIDDEN: [&str; 10] = [
    "create /configmaps",
    "create /secrets",
    "create /services",
    "create apps/deployments",
    "create apps/statefulsets",
    "create networking.k8s.io/networkpolicies",
    "create policy/poddisruptionbudgets",
    "delete /services",
    "delete apps/deployments",
    "update cache.example.com/memcacheds/finalizers",
];

/// A grant's verb on a resource, as `patch apps/deployments`.
pub fn describe(verb: &str, group: &str, resource: &str, subresource: &str) -> String {
    let slash = if subresource.is_empty() { "" } else { "/" };
    format!("{verb} {group}/{resource}{slash}{subresource}")
}

/// The permission that a request needed, in the same form. `None` for a document of the API, which every user may read.
pub fn asked(event: &AuditEvent) -> Option<String> {
    event.right().map(|right| right.to_string())
}

/// Every action of the operator in one run: create, resize both ways, correct, repeat an event, restrict the clients, change the
/// workload, change the memory of a running server, delete.
pub async fn live(lab: &Lab) {
    lab.memcached("sample", json!({ "size": 2 })).await;
    lab.running("sample").await;
    let grown = json!({ "spec": { "replicas": 7 } });
    for round in 0..2 {
        lab.api::<Deployment>()
            .patch("sample", &PatchParams::default(), &Patch::Merge(&grown))
            .await
            .unwrap();
        eventually(&format!("reverted, round {round}"), async || {
            let deployment = lab.api::<Deployment>().get("sample").await.unwrap();
            (deployment.spec?.replicas == Some(2)).then_some(())
        })
        .await;
    }
    eventually("the repeated event is counted", async || {
        lab.event("sample", "Reverted")
            .await
            .series
            .filter(|series| series.count == 2)
    })
    .await;
    lab.change("sample", json!({ "size": 1, "allowedNamespaces": ["shop"] }))
        .await;
    eventually("the budget goes", async || {
        lab.api::<PodDisruptionBudget>()
            .get_opt("sample")
            .await
            .unwrap()
            .is_none()
            .then_some(())
    })
    .await;
    let policies = lab.api::<NetworkPolicy>();
    eventually("the policy comes", async || policies.get_opt("sample").await.unwrap()).await;
    lab.change("sample", json!({ "allowedNamespaces": null })).await;
    eventually("the policy goes", async || {
        policies.get_opt("sample").await.unwrap().is_none().then_some(())
    })
    .await;
    lab.running("sample").await;
    lab.delete("sample").await;
    lab.gone("sample").await;
    lab.memcached("stable", json!({ "workload": "StatefulSet" })).await;
    lab.running("stable").await;
    lab.change("stable", json!({ "workload": "Deployment" })).await;
    eventually("the StatefulSet goes", async || {
        let set = lab.api::<StatefulSet>().get_opt("stable").await.unwrap();
        set.is_none().then_some(())
    })
    .await;
    lab.running("stable").await;
    lab.delete("stable").await;
    lab.gone("stable").await;
    lab.memcached("memory", json!({ "warmCache": "ResizeInPlace" })).await;
    lab.running("memory").await;
    lab.change("memory", json!({ "memoryLimitMegabytes": 128 })).await;
    let selector = ListParams::default().labels("memcached_cr=memory");
    eventually("the pod is resized", async || {
        let pod = lab.api::<Pod>().list(&selector).await.unwrap().items.pop()?;
        let resources = pod.spec?.containers.remove(0).resources?;
        (resources.limits?.get("memory")?.0 == "208Mi").then_some(())
    })
    .await;
    lab.running("memory").await;
    lab.delete("memory").await;
    lab.gone("memory").await;
}
