//! Memcacheds of commit 7705fa7, the version before the optional fields, keep their meaning.
//!
//! `before/` contains the CustomResourceDefinition of that commit, and the managed objects that its operator wanted for several specs.
use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, PostParams},
};
use kube_testbed::{ControlPlane, Options};
use memcached_operator::{api::v1alpha1::Memcached, operand};
use serde_json::{Value, json};

use crate::lab::{IMAGE, value};

/// The one staged rollout of an upgrade: spread, probes and the message of a container that ends. The library sets the namespace and the
/// owner of all objects.
const CHANGED: [&str; 8] = [
    "/metadata/namespace",
    "/metadata/ownerReferences",
    "/spec/template/spec/affinity",
    "/spec/template/spec/containers/0/livenessProbe/initialDelaySeconds",
    "/spec/template/spec/containers/0/readinessProbe/initialDelaySeconds",
    "/spec/template/spec/containers/0/startupProbe",
    "/spec/template/spec/containers/0/terminationMessagePolicy",
    "/spec/template/spec/topologySpreadConstraints",
];

/// Adds the paths of the fields that differ.
fn differences(path: &str, left: &Value, right: &Value, found: &mut BTreeSet<String>) {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            for key in left.keys().chain(right.keys()) {
                let field = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                differences(&format!("{path}/{key}"), &field(left), &field(right), found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                differences(&format!("{path}/{index}"), left, right, found);
            }
        }
        _ if left == right => {}
        _ => {
            found.insert(path.to_owned());
        }
    }
}

fn definition(text: &str) -> CustomResourceDefinition {
    serde_yaml::from_str(text).unwrap()
}

#[tokio::test]
async fn objects_of_the_former_version_want_the_same_servers() {
    let plane = ControlPlane::start(Options::default().without_controllers())
        .await
        .unwrap();
    plane
        .install([definition(include_str!("before/memcacheds.yaml"))])
        .await
        .unwrap();
    let client = plane.client().await.unwrap();
    let former: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "default", &ApiResource::erase::<Memcached>(&()));
    let memcacheds: Api<Memcached> = Api::namespaced(client, "default");
    let cases: Vec<Value> = serde_json::from_str(include_str!("before/objects.json")).unwrap();
    assert_eq!(cases.len(), 7);
    for (index, case) in cases.iter().enumerate() {
        let object = json!({ "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached",
            "metadata": { "name": format!("m{index}") }, "spec": case["spec"] });
        let object = serde_json::from_value(object).unwrap();
        former.create(&PostParams::default(), &object).await.unwrap();
    }
    let now = include_str!("../../config/crd/bases/cache.example.com_memcacheds.yaml");
    plane.install([definition(now)]).await.unwrap();

    for (index, case) in cases.iter().enumerate() {
        let mut memcached = memcacheds.get(&format!("m{index}")).await.unwrap();
        // The former version made its objects for this one.
        memcached.metadata.name = Some("sample".to_owned());
        memcached.metadata.namespace = Some("cache".to_owned());
        let image = memcached.spec.image.clone().unwrap_or_else(|| IMAGE.to_owned());
        let budget = operand::has_budget(&memcached).then(|| operand::budget(&memcached, 0));
        let wanted = [
            value(&operand::deployment(&memcached, &image)),
            value(&operand::service(&memcached)),
            value(&budget),
        ];
        let mut found = BTreeSet::new();
        for (kind, wanted) in ["deployment", "service", "budget"].iter().zip(&wanted) {
            differences("", &case[kind], wanted, &mut found);
        }
        let expected: BTreeSet<String> = CHANGED.map(str::to_owned).into();
        assert_eq!(found, expected, "left: found, right: documented, {}", case["spec"]);
    }
}
