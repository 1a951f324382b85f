//! Input that the API server rejects.
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use kube_testbed::{ControlPlane, Options};
use memcached_operator::api::v1alpha1::Memcached;
use serde_json::{Value, json};

use crate::lab::{Lab, create, eventually};

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
        (json!({ "size": 1001 }), "size must be at most 1000"),
        (json!({ "maxConnections": 20 }), "maxConnections must be at least 32"),
        (
            json!({ "maxConnections": 40, "threads": 8 }),
            "must be at least 16 + 4 * threads",
        ),
        (json!({ "threads": 0 }), "spec.threads"),
        (
            json!({ "maxItemSizeMegabytes": 33 }),
            "at most half of memoryLimitMegabytes",
        ),
        (
            json!({ "extraArgs": ["-vm", "7"] }),
            "must not contain flags that the operator sets",
        ),
        (
            json!({ "extraArgs": ["--mem=7"] }),
            "must not contain flags that the operator sets",
        ),
        (
            json!({ "resources": { "limits": { "cpu": "-1" } } }),
            "quantities must not be negative",
        ),
        (
            json!({ "resources": { "requests": { "cpu": -1 } } }),
            "quantities must not be negative",
        ),
        (
            json!({ "resources": { "limits": { "cpu": "much" } } }),
            "spec.resources.limits.cpu",
        ),
        (
            json!({ "resources": { "limits": { "memory": "66Mi" } } }),
            "must be at least memoryLimitMegabytes + 32",
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
        (json!({ "workload": "DaemonSet" }), "spec.workload"),
        (json!({ "warmCache": "Always" }), "spec.warmCache"),
        (
            json!({ "warmCache": "WarmRestart", "resources": { "limits": { "memory": "135Mi" } } }),
            "or + 72 with WarmRestart",
        ),
        (json!({ "tls": {} }), "spec.tls.secretName"),
        (
            json!({ "warmCache": "ResizeInPlace", "tls": { "secretName": "a" } }),
            "nor ResizeInPlace with tls",
        ),
        (
            json!({ "warmCache": "WarmRestart", "extraArgs": ["-ve", "/data/items"] }),
            "spec.warmCache",
        ),
        (
            json!({ "warmCache": "ResizeInPlace", "extraArgs": ["-Y", "/etc/users"] }),
            "spec.warmCache",
        ),
        (
            json!({ "warmCache": "ResizeInPlace", "extraArgs": ["--auth-file=/etc/users"] }),
            "spec.warmCache",
        ),
        (
            json!({ "warmCache": "ResizeInPlace", "extraArgs": ["-vL"] }),
            "spec.warmCache",
        ),
        (
            json!({ "disruptionBudget": { "maxUnavailable": -1 } }),
            "spec.disruptionBudget.maxUnavailable",
        ),
        (
            json!({ "disruptionBudget": { "maxUnavailable": "101%" } }),
            "spec.disruptionBudget.maxUnavailable",
        ),
        (
            json!({ "podTemplate": { "sidecars": [{ "name": "memcached", "image": "a" }] } }),
            "sidecars must not have the name memcached",
        ),
        (
            json!({ "podTemplate": { "sidecars": [{ "name": "a", "ports": 7 }] } }),
            "spec.podTemplate.sidecars[0].ports",
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
    let answer = refusal(&lab, &"x".repeat(53), json!({ "workload": "StatefulSet" })).await;
    assert!(answer.contains("at most 52 characters"), "{answer}");
}

#[tokio::test]
async fn good_input_is_accepted_and_completed() {
    let lab = Lab::new("defaults").await;
    for (name, spec) in [
        (
            "a",
            json!({ "resources": { "limits": { "memory": "96Mi", "cpu": 1 }, "requests": { "cpu": "1000m" } } }),
        ),
        ("b", json!({ "size": 0, "resources": {} })),
        (
            "warm",
            json!({ "warmCache": "WarmRestart", "resources": { "limits": { "memory": "136Mi" } } }),
        ),
        (
            "resizes",
            json!({ "warmCache": "ResizeInPlace", "resources": { "limits": { "memory": "96Mi" } }, "extraArgs": ["-o", "modern", "-v"] }),
        ),
        (
            &"x".repeat(63),
            json!({ "containerPort": 1, "size": 1000, "maxConnections": 32 }),
        ),
        (
            "c",
            json!({ "threads": 8, "maxConnections": 48, "maxItemSizeMegabytes": 32,
                "extraArgs": ["-o", "modern,no_lru_crawler", "-v", "--max-reqs-per-event=5"] }),
        ),
        (
            &"x".repeat(52),
            json!({ "workload": "StatefulSet", "disruptionBudget": { "maxUnavailable": "25%" } }),
        ),
        (
            "d",
            json!({ "disruptionBudget": { "enabled": false, "maxUnavailable": 2 }, "podTemplate": { "sidecars": [
                { "name": "exporter", "image": "exporter:1", "resources": { "limits": { "cpu": "1", "memory": "32Mi" } },
                    "readinessProbe": { "httpGet": { "path": "/", "port": 9150 } } }] } }),
        ),
    ] {
        assert_eq!(refusal(&lab, name, spec).await, "accepted", "{name}");
    }
    let bare = json!({ "metadata": { "name": "bare" }, "spec": {} });
    let object: Memcached = create(&lab.api(), bare).await;
    assert_eq!(object.spec, memcached_operator::api::v1alpha1::MemcachedSpec::default());
}

/// Objects that an earlier version of the definition accepted. OLM checks them against the new schema, and clients change them later.
#[tokio::test]
async fn objects_that_are_out_of_bounds_stay_updatable() {
    const EARLIER: &str = "releases/0.0.1/bundle/manifests/cache.example.com_memcacheds.yaml";
    let plane = ControlPlane::start(Options::default().without_controllers())
        .await
        .unwrap();
    let client = plane.client().await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let read = |path: &str| -> CustomResourceDefinition {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    create(&definitions, serde_json::to_value(read(EARLIER)).unwrap()).await;
    let memcacheds: Api<Memcached> = Api::namespaced(client, "default");
    let specs = [
        json!({ "size": 5000 }),
        json!({ "maxConnections": 20 }),
        json!({ "resources": { "limits": { "memory": "66Mi", "cpu": "-1" } } }),
    ];
    for (index, spec) in specs.iter().enumerate() {
        let object = json!({ "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached",
            "metadata": { "name": format!("m{index}") }, "spec": spec });
        let object: Memcached = serde_json::from_value(object).unwrap();
        eventually("the definition is served", async || {
            memcacheds.create(&PostParams::default(), &object).await.ok()
        })
        .await;
    }
    let now = serde_json::to_value(read("config/crd/bases/cache.example.com_memcacheds.yaml")).unwrap();
    let (parameters, patch) = (PatchParams::apply("test").force(), Patch::Apply(now));
    let name = "memcacheds.cache.example.com";
    definitions.patch(name, &parameters, &patch).await.unwrap();
    let parameters = PatchParams::default();
    eventually("the new definition is served", async || {
        let too_many = Patch::Merge(json!({ "spec": { "size": 5001 } }));
        let dry = PatchParams::default().dry_run();
        memcacheds.patch("m1", &dry, &too_many).await.err()
    })
    .await;
    for name in ["m0", "m1", "m2"] {
        let size = if name == "m0" { 5000 } else { 3 };
        for change in [
            json!({ "metadata": { "annotations": { "a": "b" } } }),
            json!({ "spec": { "image": "memcached:1.6", "size": size } }),
            json!({ "status": { "readyReplicas": 1 } }),
        ] {
            let patch = Patch::Merge(&change);
            let patched = match change.get("status") {
                Some(_) => memcacheds.patch_status(name, &parameters, &patch).await,
                None => memcacheds.patch(name, &parameters, &patch).await,
            };
            patched.unwrap_or_else(|error| panic!("{name} {change}: {error}"));
        }
    }
    for (name, change, expected) in [
        ("m0", json!({ "size": 4999 }), "at most 1000"),
        ("m1", json!({ "maxConnections": 21 }), "at least 32"),
        ("m2", json!({ "memoryLimitMegabytes": 65 }), "memoryLimitMegabytes + 32"),
    ] {
        let change = Patch::Merge(json!({ "spec": change }));
        let error = memcacheds
            .patch(name, &parameters, &change)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// The table of settings in the catalog entry names fields of the definition, with their defaults.
#[test]
fn the_catalog_entry_has_the_fields_and_defaults_of_the_definition() {
    let read = |path: &str| -> Value {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let package = read("config/package.yaml");
    let definition = read("config/crd/bases/cache.example.com_memcacheds.yaml");
    let fields = definition
        .pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties")
        .unwrap();
    let description = package["description"].as_str().unwrap();
    let rows = description.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut defaults = 0;
    for row in rows {
        let mut cells = row.split(" | ").map(|cell| cell.trim_matches('`'));
        let (name, given) = (cells.next().unwrap(), cells.next().unwrap());
        let field = fields.get(name).unwrap_or_else(|| panic!("no field {name}"));
        match field.get("default") {
            Some(Value::String(default)) => assert_eq!(given, default, "{name}"),
            Some(default) => assert_eq!(given, default.to_string(), "{name}"),
            None => continue,
        }
        defaults += 1;
    }
    assert_eq!(defaults, 6, "{description}");
}
