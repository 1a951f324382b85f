//! The NetworkPolicy of a Memcached.
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::lab::{Lab, eventually, value};

/// The namespaces that a policy lets in. Null if it names none.
fn allowed(policy: &NetworkPolicy) -> Value {
    let values = "/spec/ingress/0/from/0/namespaceSelector/matchExpressions/0/values";
    value(policy).pointer(values).cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_policy_allows_the_namespaces_of_the_list() {
    let lab = Lab::new("network").await;
    let _operator = lab.operator().await;
    lab.memcached("sample", json!({ "allowedNamespaces": ["shop", "web"] }))
        .await;
    let memcached = lab.running("sample").await;
    let policies = lab.api::<NetworkPolicy>();
    let policy = policies.get("sample").await.unwrap();
    assert_eq!(allowed(&policy), json!(["shop", "web"]));
    let spec = value(&policy.spec);
    assert_eq!(spec["podSelector"]["matchLabels"]["memcached_cr"], "sample");
    assert_eq!(spec["ingress"][0]["ports"][0]["port"], "memcached");
    let owner = policy.metadata.owner_references.unwrap().remove(0);
    assert_eq!(Some(owner.uid), memcached.metadata.uid);

    // Another client must not let others in.
    let open = Patch::Merge(json!({ "spec": { "ingress": [{}] } }));
    policies.patch("sample", &PatchParams::default(), &open).await.unwrap();
    eventually("the policy is closed again", async || {
        let policy = policies.get("sample").await.unwrap();
        (allowed(&policy) == json!(["shop", "web"])).then_some(())
    })
    .await;
    lab.event("sample", "Reverted").await;

    lab.change("sample", json!({ "allowedNamespaces": [] })).await;
    eventually("the list is empty", async || {
        let spec = policies.get("sample").await.unwrap().spec?;
        spec.ingress.unwrap_or_default().is_empty().then_some(())
    })
    .await;
    lab.change("sample", json!({ "allowedNamespaces": null })).await;
    eventually("the operator deletes the policy", async || {
        policies.get_opt("sample").await.unwrap().is_none().then_some(())
    })
    .await;
}
