//! The optional admission policy in `policy/`.
use std::path::Path;

use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    core::v1::ConfigMap,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use memcached_operator::api::v1alpha1::{FINALIZER, Memcached};
use serde_json::{Value, json};

use crate::lab::{IMAGE, Lab, create, eventually};

/// The objects of the manifest. Their namespace is that of `lab`, and they apply only there: other tests use the same API server.
fn manifest(lab: &Lab) -> (ConfigMap, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("policy/memcached_limits.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let mut documents = text
        .split("\n---\n")
        .map(|document| serde_yaml::from_str::<Value>(document).unwrap());
    let mut next = || documents.next().unwrap();
    let (mut map, mut policy, mut binding) = (next(), next(), next());
    let name = format!("{}.cache.example.com", lab.namespace);
    map["metadata"]["namespace"] = json!(lab.namespace);
    map["data"] = json!({ "maxSize": "3", "imagePrefixes": "registry.example.com/, docker.io/library/" });
    policy["metadata"]["name"] = json!(name);
    binding["metadata"]["name"] = json!(name);
    binding["spec"]["policyName"] = json!(name);
    binding["spec"]["paramRef"]["namespace"] = json!(lab.namespace);
    let here = json!({ "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": lab.namespace } } });
    binding["spec"]["matchResources"] = here;
    (
        serde_json::from_value(map).unwrap(),
        serde_json::from_value(policy).unwrap(),
        serde_json::from_value(binding).unwrap(),
    )
}

/// The API server's answer to a change: the message of a rejection.
fn answer<K: std::fmt::Debug>(result: Result<K, kube::Error>) -> Result<(), String> {
    match result {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => {
            assert_eq!(status.code, 403, "{}", status.message);
            Err(status.message.clone())
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn the_policy_limits_size_and_images() {
    let lab = Lab::new("policy").await;
    let memcacheds = lab.api::<Memcached>();
    let object = |name: &str, spec: Value| -> Memcached {
        serde_json::from_value(json!({ "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached",
            "metadata": { "name": name, "finalizers": [FINALIZER] }, "spec": spec }))
        .unwrap()
    };
    let spec = |size: i32, image: &str| json!({ "size": size, "image": image });
    // It exists before the policy.
    create::<Memcached>(
        &memcacheds,
        serde_json::to_value(object("old", spec(5, "quay.io/other/image:1"))).unwrap(),
    )
    .await;

    let (map, policy, binding) = manifest(&lab);
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(lab.client.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(lab.client.clone());
    let now = PostParams::default();
    lab.api::<ConfigMap>().create(&now, &map).await.unwrap();
    policies.create(&now, &policy).await.unwrap();
    bindings.create(&now, &binding).await.unwrap();
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let new = async |spec: Value| answer(memcacheds.create(&dry, &object("new", spec)).await);
    let refused = eventually("the policy is active", async || new(spec(4, IMAGE)).await.err()).await;
    assert!(
        refused.contains("spec.size: must be at most 3 in this cluster"),
        "{refused}"
    );

    assert_eq!(new(spec(3, "registry.example.com/memcached:1")).await, Ok(()));
    assert_eq!(new(spec(3, "docker.io/library/memcached:1")).await, Ok(()));
    assert_eq!(new(json!({})).await, Ok(()), "the operator's image");
    let refused = new(spec(1, "docker.io/librarian/memcached:1")).await.unwrap_err();
    let message = "images must begin with one of: registry.example.com/, docker.io/library/";
    assert!(refused.contains(message), "{refused}");
    let sidecar = json!({ "podTemplate": { "sidecars": [{ "name": "extra", "image": "quay.io/other/image:1" }] } });
    assert!(new(sidecar).await.unwrap_err().contains(message));

    let patch = async |change: Value| {
        let parameters = PatchParams::default();
        answer(memcacheds.patch("old", &parameters, &Patch::Merge(change)).await)
    };
    assert_eq!(patch(json!({ "metadata": { "labels": { "a": "b" } } })).await, Ok(()));
    assert_eq!(
        patch(json!({ "spec": { "size": 4 } })).await,
        Ok(()),
        "less than before"
    );
    assert!(patch(json!({ "spec": { "size": 5 } })).await.is_err());
    assert!(
        patch(json!({ "spec": { "image": "quay.io/other/image:2" } }))
            .await
            .is_err()
    );
    let scale = async |replicas: i32| {
        let change = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        answer(memcacheds.patch_scale("old", &PatchParams::default(), &change).await)
    };
    assert!(scale(6).await.unwrap_err().contains("must be at most 3"));
    assert_eq!(scale(2).await, Ok(()));
    assert_eq!(patch(json!({ "spec": { "image": null } })).await, Ok(()));

    // The operator removes its finalizer.
    memcacheds.delete("old", &DeleteParams::default()).await.unwrap();
    assert_eq!(patch(json!({ "metadata": { "finalizers": null } })).await, Ok(()));
    lab.gone("old").await;
    bindings
        .delete(&binding.name_any(), &DeleteParams::default())
        .await
        .unwrap();
    policies
        .delete(&policy.name_any(), &DeleteParams::default())
        .await
        .unwrap();
}
