//! Input that the API server rejects.
use kube::{Api, api::PostParams};
use memcached_operator::api::v1alpha1::Memcached;
use serde_json::{Value, json};

use crate::lab::{Lab, create};

/// The API server's response to a Memcached of this name and spec.
async fn refusal(lab: &Lab, name: &str, spec: Value) -> String {
    let object = json!({ "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached",
        "metadata": { "name": name }, "spec": spec });
    // As JSON, because some of it does not deserialize into the typed object.
    let api: Api<kube::api::DynamicObject> = Api::namespaced_with(
        lab.client.clone(),
        &lab.namespace,
        &kube::api::ApiResource::erase::<Memcached>(&()),
    );
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    match api.create(&dry, &serde_json::from_value(object).unwrap()).await {
        Ok(_) => "accepted".to_owned(),
        Err(kube::Error::Api(status)) => {
            assert_eq!(status.code, 422, "{}", status.message);
            status.message.clone()
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn bad_input_is_refused_with_the_reason() {
    let lab = Lab::new("input").await;
    let cases = [
        (json!({ "size": -1 }), "spec.size"),
        (json!({ "size": 1.5 }), "spec.size"),
        (json!({ "containerPort": 0 }), "spec.containerPort"),
        (json!({ "containerPort": 65536 }), "spec.containerPort"),
        (json!({ "image": "" }), "spec.image"),
        (json!({ "image": "memcached 1.6" }), "spec.image"),
        (json!({ "memoryLimitMegabytes": 0 }), "spec.memoryLimitMegabytes"),
        (json!({ "maxConnections": 0 }), "spec.maxConnections"),
        (
            json!({ "resources": { "limits": { "cpu": "much" } } }),
            "spec.resources.limits.cpu",
        ),
        (
            json!({ "resources": { "limits": { "memory": "64Mi" } } }),
            "must be above memoryLimitMegabytes",
        ),
        (
            json!({ "resources": { "limits": { "cpu": 1 }, "requests": { "cpu": "1001m" } } }),
            "requests.cpu must not be above",
        ),
        (
            json!({ "resources": { "limits": { "memory": "1Gi" }, "requests": { "memory": "2Gi" } } }),
            "requests.memory must not be above",
        ),
        (
            json!({ "resources": { "requests": { "memory": "2Gi" } } }),
            "requests.memory needs limits.memory",
        ),
    ];
    for (spec, expected) in cases {
        let answer = refusal(&lab, "sample", spec.clone()).await;
        assert!(answer.contains(expected), "{spec}: {answer}");
    }
    for name in ["9lives", "a.b", &"x".repeat(64)] {
        let answer = refusal(&lab, name, json!({})).await;
        assert!(answer.contains("metadata.name must be a DNS label"), "{name}: {answer}");
    }
}

#[tokio::test]
async fn good_input_is_accepted_and_completed() {
    let lab = Lab::new("defaults").await;
    for (name, spec) in [
        (
            "a",
            json!({ "resources": { "limits": { "memory": "65Mi", "cpu": 1 }, "requests": { "cpu": "1000m" } } }),
        ),
        ("b", json!({ "size": 0, "resources": {} })),
        (&"x".repeat(63), json!({ "containerPort": 1 })),
    ] {
        assert_eq!(refusal(&lab, name, spec).await, "accepted", "{name}");
    }
    let bare = json!({ "metadata": { "name": "bare" }, "spec": {} });
    let object: Memcached = create(&lab.api(), bare).await;
    assert_eq!(object.spec, memcached_operator::api::v1alpha1::MemcachedSpec::default());
}
