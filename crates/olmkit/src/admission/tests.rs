use serde_json::{Value, json};

use super::*;

fn csv() -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "demo.v1.0.0"},
        "spec": {
            "displayName": "Demo",
            "install": {"strategy": "deployment", "spec": {"deployments": [{"name": "manager", "spec": {
                "selector": {"matchLabels": {"app": "demo"}},
                "template": {
                    "metadata": {"labels": {"app": "demo"}},
                    "spec": {"containers": [{"name": "manager", "image": "example.com/a:1", "ports": [{"containerPort": 80}]}]},
                },
            }}]}},
            "webhookdefinitions": [{
                "type": "ValidatingAdmissionWebhook", "generateName": "a.example.com", "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "containerPort": 443,
            }],
        },
    })
}

/// The CSV with a value at a pointer. `null` removes it.
fn with(pointer: &str, value: Value) -> Value {
    let mut changed = csv();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = changed.pointer_mut(parent).unwrap();
    match (parent, value) {
        (Value::Object(map), Value::Null) => drop(map.remove(key)),
        (parent, value) => parent[key] = value,
    }
    changed
}

const DEPLOYMENT: &str = "/spec/install/spec/deployments/0";
const POD: &str = "/spec/install/spec/deployments/0/spec/template/spec";

#[test]
fn a_valid_csv_has_no_rejections() {
    assert_eq!(check_csv(&csv()), []);
}

#[test]
fn values_that_the_schema_does_not_allow_are_rejected_at_once() {
    let hook = "/spec/webhookdefinitions/0";
    for (pointer, value) in [
        ("/spec/displayName".to_owned(), Value::Null),
        ("/spec/keywords".to_owned(), json!("a")),
        ("/spec/replaces".to_owned(), json!(["a"])),
        ("/spec/relatedImages".to_owned(), json!([{"image": "a/b:c"}])),
        ("/metadata/annotations".to_owned(), json!({"certified": true})),
        ("/metadata/labels".to_owned(), json!({"a": "b c"})),
        ("/metadata/name".to_owned(), json!("Demo.v1")),
        (format!("{hook}/containerPort"), json!(0)),
        (format!("{hook}/containerPort"), json!(99999)),
        (format!("{hook}/type"), json!("Webhook")),
        (format!("{hook}/sideEffects"), Value::Null),
        (format!("{hook}/admissionReviewVersions"), Value::Null),
        (
            "/spec/install/spec/permissions".to_owned(),
            json!([{"serviceAccountName": "a"}]),
        ),
        (format!("{DEPLOYMENT}/spec/replicas"), json!("1")),
        (
            format!("{POD}/containers/0/ports"),
            json!([{"containerPort": 80}, {"containerPort": 80}]),
        ),
        (format!("{POD}/containers/0/env"), json!([{"name": "A"}, {"name": "A"}])),
    ] {
        let found = check_csv(&with(&pointer, value.clone()));
        assert!(
            found.iter().any(|rejection| !rejection.later),
            "{pointer} {value}: {found:?}"
        );
    }
}

#[test]
fn deployments_are_rejected_later() {
    for (pointer, value) in [
        ("/containers".to_owned(), json!([])),
        ("/containers/0/ports/0/containerPort".to_owned(), json!(80000)),
        ("/containers/0/imagePullPolicy".to_owned(), json!("always")),
        (
            "/containers/0/volumeMounts".to_owned(),
            json!([{"name": "a", "mountPath": "/a"}]),
        ),
        (
            "/containers/0/resources".to_owned(),
            json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1500m"}}),
        ),
        ("/containers/0/resources".to_owned(), json!({"limits": {"gpus": "1"}})),
        (
            "/containers/0/livenessProbe".to_owned(),
            json!({"httpGet": {"port": 99999}}),
        ),
        ("/containers/0/livenessProbe".to_owned(), json!({"periodSeconds": 1})),
        (
            "/containers/0/readinessProbe".to_owned(),
            json!({"httpGet": {"port": 1}, "tcpSocket": {"port": 1}}),
        ),
        ("/restartPolicy".to_owned(), json!("Never")),
        ("/nodeSelector".to_owned(), json!({"a": "b c"})),
        ("/tolerations".to_owned(), json!([{"operator": "Equal"}])),
        (
            "/volumes".to_owned(),
            json!([{"name": "a", "emptyDir": {}, "secret": {"secretName": "b"}}]),
        ),
    ] {
        let found = check_csv(&with(&format!("{POD}{pointer}"), value.clone()));
        assert!(
            found.iter().any(|rejection| rejection.later),
            "{pointer} {value}: {found:?}"
        );
    }
    // The schema of the CRD drops a null, so the selector is empty.
    for labels in [json!({"app": null}), json!({})] {
        let selector = json!({"matchLabels": labels});
        let empty = check_csv(&with(&format!("{DEPLOYMENT}/spec/selector"), selector.clone()));
        assert_eq!(
            empty.first().map(|rejection| rejection.message.as_str()),
            Some("must not be empty"),
            "{selector}"
        );
    }
    let selector = check_csv(&with(
        &format!("{DEPLOYMENT}/spec/selector"),
        json!({"matchLabels": {"app": "other"}}),
    ));
    assert_eq!(
        selector.first().map(|rejection| rejection.message.as_str()),
        Some(UNSELECTED)
    );
}

#[test]
fn values_that_the_server_fills_in_or_ignores_are_accepted() {
    for (pointer, value) in [
        ("/spec/version".to_owned(), json!("0.1")),
        ("/spec/unknown".to_owned(), json!({"a": 1})),
        (
            "/spec/customresourcedefinitions".to_owned(),
            json!({"owned": [{"name": "a", "kind": "b", "version": "c", "specDescriptors": [{"path": "d", "value": [true]}]}]}),
        ),
        ("/status".to_owned(), json!({"phase": 1})),
        (format!("{POD}/volumes"), json!([{"name": "a"}])),
        (format!("{POD}/containers/0/imagePullPolicy"), json!("")),
        (
            format!("{POD}/containers/0/resources"),
            json!({"limits": {"cpu": 1, "memory": "0.5Gi"}, "requests": {"cpu": "1000m"}}),
        ),
        (
            format!("{POD}/containers/0/livenessProbe"),
            json!({"httpGet": {"port": "web"}, "successThreshold": 0}),
        ),
        (format!("{DEPLOYMENT}/spec/strategy"), json!({"type": "Recreate"})),
    ] {
        let found = check_csv(&with(&pointer, value.clone()));
        assert_eq!(found, [], "{pointer} {value}");
    }
}

fn object(version: &str, kind: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}});
    for (key, value) in rest.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

#[test]
fn metadata_of_custom_resources_is_checked() {
    let monitoring = "monitoring.coreos.com/v1";
    for (version, kind, metadata, place) in [
        (
            monitoring,
            "ServiceMonitor",
            json!({"name": "Shop_X"}),
            Some("/metadata/name"),
        ),
        (
            monitoring,
            "PrometheusRule",
            json!({"name": "x", "labels": {"a": 1}}),
            Some("/metadata/labels/a"),
        ),
        (
            "console.openshift.io/v1",
            "ConsolePlugin",
            json!({"name": "x", "annotations": {"a": true}}),
            Some("/metadata/annotations/a"),
        ),
        (
            monitoring,
            "ServiceMonitor",
            json!({"name": "x", "labels": {"a": "1"}}),
            None,
        ),
        ("example.com/v1", "ServiceMonitor", json!({"name": "Shop_X"}), None),
    ] {
        // Their schemas are unknown.
        let object = object(version, kind, json!({"metadata": metadata, "spec": {"endpoints": 1}}));
        let found: Vec<String> = check_object(&object).into_iter().map(|found| found.pointer).collect();
        assert_eq!(found, place.into_iter().collect::<Vec<_>>(), "{object}");
    }
}

/// A real API server (Kubernetes 1.36) gave the same answers for a custom resource.
#[test]
fn metadata_is_decoded_as_by_the_server() {
    for (field, value, is_rejected) in [
        ("labels", json!([]), true),
        ("labels", json!("a"), true),
        ("annotations", json!([]), true),
        ("finalizers", json!("a"), true),
        ("finalizers", json!([1]), true),
        ("creationTimestamp", json!("now"), true),
        ("creationTimestamp", json!(""), true),
        ("generation", json!("a"), true),
        ("generation", json!(1.5), true),
        ("ownerReferences", json!({}), true),
        (
            "ownerReferences",
            json!([{"apiVersion": "v1", "kind": "A", "name": "b", "uid": 1}]),
            true,
        ),
        ("resourceVersion", json!(1), true),
        ("uid", json!(5), true),
        ("managedFields", json!("a"), true),
        ("namespace", json!(7), true),
        ("generateName", json!(7), true),
        ("selfLink", json!(true), true),
        ("deletionGracePeriodSeconds", json!("1"), true),
        ("creationTimestamp", Value::Null, false),
        ("labels", Value::Null, false),
        ("finalizers", Value::Null, false),
        ("Labels", json!([]), false),
    ] {
        let metadata = json!({"metadata": {"name": "x", field: value}});
        let object = object("monitoring.coreos.com/v1", "ServiceMonitor", metadata);
        let found = check_object(&object);
        assert_eq!(!found.is_empty(), is_rejected, "{object}: {found:?}");
        assert!(found.len() <= 1, "{found:?}");
    }
}

#[test]
fn objects_of_built_in_kinds_are_checked() {
    let rbac = "rbac.authorization.k8s.io/v1";
    for (version, kind, rest, place) in [
        ("v1", "ConfigMap", json!({"data": {"a": 1}}), Some("/data/a")),
        ("v1", "ConfigMap", json!({"data": {"a b": "c"}}), Some("/data/a b")),
        ("v1", "ConfigMap", json!({"data": {"a": "1"}}), None),
        ("v1", "Secret", json!({"data": {"a": "!"}}), Some("/data/a")),
        (
            "v1",
            "Secret",
            json!({"type": "kubernetes.io/tls", "stringData": {"tls.crt": "a"}}),
            Some("/data"),
        ),
        (
            "v1",
            "Service",
            json!({"spec": {"ports": [{"port": 99999}]}}),
            Some("/spec/ports/0/port"),
        ),
        (
            "v1",
            "Service",
            json!({"spec": {"ports": [{"port": 1}, {"port": 2, "name": "b"}]}}),
            Some("/spec/ports/0/name"),
        ),
        ("v1", "Service", json!({"spec": {"clusterIP": "None"}}), None),
        (
            rbac,
            "Role",
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"]}]}),
            Some("/rules/0/verbs"),
        ),
        (
            rbac,
            "Role",
            json!({"rules": [{"nonResourceURLs": ["/m"], "verbs": ["get"]}]}),
            Some("/rules/0/nonResourceURLs"),
        ),
        (
            rbac,
            "ClusterRole",
            json!({"rules": [{"nonResourceURLs": ["/m"], "verbs": ["get"]}]}),
            None,
        ),
        (
            rbac,
            "ClusterRoleBinding",
            json!({"roleRef": {"kind": "ClusterRole", "name": "y"}, "subjects": [{"kind": "ServiceAccount", "name": "z"}]}),
            Some("/subjects/0/namespace"),
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": 1, "maxUnavailable": 1}}),
            Some("/spec"),
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": "150%"}}),
            Some("/spec/minAvailable"),
        ),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({"spec": {"podSelector": {}, "policyTypes": ["ingress"]}}),
            Some("/spec/policyTypes/0"),
        ),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({"spec": {"podSelector": {}, "policyTypes": ["Ingress", null]}}),
            Some("/spec/policyTypes/1"),
        ),
        (
            "scheduling.k8s.io/v1",
            "PriorityClass",
            json!({"value": 2_000_000_000}),
            Some("/value"),
        ),
        ("scheduling.k8s.io/v1", "PriorityClass", json!({"value": 1}), None),
        // A kind of another group.
        ("example.com/v1", "Service", json!({"spec": 1}), None),
    ] {
        let found = check_object(&object(version, kind, rest.clone()));
        assert_eq!(
            found.first().map(|first| first.pointer.as_str()),
            place,
            "{kind} {rest}: {found:?}"
        );
    }
}

/// Each kind that OLM installs, with a typed value of the wrong type. The schemas of custom resources are unknown here, so
/// only their metadata is typed. Other rules check CRDs.
#[test]
fn every_kind_that_olm_installs_is_decoded() {
    use crate::bundle::kinds;
    let (rbac, names) = ("rbac.authorization.k8s.io/v1", "/metadata/labels");
    for known in kinds::ALL {
        let (version, rest, place) = match known.kind {
            "CustomResourceDefinition" => continue,
            "ClusterServiceVersion" => {
                assert_eq!(
                    check_csv(&with("/spec/maturity", json!(1)))[0].pointer,
                    "/spec/maturity"
                );
                continue;
            }
            "ConfigMap" => ("v1".to_owned(), json!({"immutable": "true"}), "/immutable"),
            "Secret" => ("v1".to_owned(), json!({"stringData": {"a": 1}}), "/stringData/a"),
            "Service" => (
                "v1".to_owned(),
                json!({"spec": {"ports": [{"port": "80"}]}}),
                "/spec/ports/0/port",
            ),
            "ServiceAccount" => ("v1".to_owned(), json!({"secrets": [{"name": 1}]}), "/secrets/0/name"),
            "NetworkPolicy" => (
                "networking.k8s.io/v1".to_owned(),
                json!({"spec": {"podSelector": {"matchLabels": {"a": 1}}}}),
                "/spec/podSelector/matchLabels/a",
            ),
            "PodDisruptionBudget" => (
                "policy/v1".to_owned(),
                json!({"spec": {"minAvailable": true}}),
                "/spec/minAvailable",
            ),
            "PriorityClass" => ("scheduling.k8s.io/v1".to_owned(), json!({"value": "1"}), "/value"),
            "Role" | "ClusterRole" => (
                rbac.to_owned(),
                json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": "get"}]}),
                "/rules/0/verbs",
            ),
            "RoleBinding" | "ClusterRoleBinding" => (
                rbac.to_owned(),
                json!({"roleRef": {"kind": "ClusterRole", "name": 1}}),
                "/roleRef/name",
            ),
            _ => {
                assert!(
                    known.group.contains('.') && !known.group.ends_with(".authorization.k8s.io"),
                    "{}",
                    known.kind
                );
                let labels = json!({"metadata": {"name": "x", "labels": []}});
                (format!("{}/v1", known.group), labels, names)
            }
        };
        let found = check_object(&object(&version, known.kind, rest));
        assert_eq!(
            found.first().map(|first| first.pointer.as_str()),
            Some(place),
            "{}: {found:?}",
            known.kind
        );
    }
}

#[test]
fn the_csv_schema_is_the_one_of_the_newest_olm() {
    let (major, minor, patch) = crate::bundle::kinds::NEWEST_OLM_V0;
    let first = include_str!("csv.txt").lines().next();
    let wanted = format!("# OLM v{major}.{minor}.{patch}. Printed by dev/csv-schema.py.");
    assert_eq!(first, Some(wanted.as_str()));
    // The tests build this OLM.
    let modules = include_str!("../../../../dev/tools/cluster/go.mod");
    let line = format!("operator-lifecycle-manager v{major}.{minor}.{patch} ");
    assert!(modules.contains(&line), "dev/tools/cluster/go.mod builds another OLM");
}

/// `csv.txt` marks facts that the schemas of older OLM lack.
#[test]
fn values_that_older_olm_accepts_name_the_release() {
    let two = |item: Value| json!([item, item]);
    for (name, items, wanted) in [
        (
            "containers/0/env",
            two(json!({"name": "A"})),
            "repeats the name of an earlier item; the schema of OLM before 0.29 accepts this",
        ),
        (
            "imagePullSecrets",
            two(json!({"name": "a"})),
            "repeats the name of an earlier item; the schema of OLM before 0.29 accepts this",
        ),
        (
            "containers/0/ports",
            two(json!({"containerPort": 80})),
            "repeats the containerPort and protocol of an earlier item",
        ),
    ] {
        let found = check_csv(&with(&format!("{POD}/{name}"), items));
        let messages: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(messages, [wanted], "{name}");
    }
}

#[test]
fn rejections_of_one_object_are_limited() {
    let data: serde_json::Map<String, Value> = (0..10_000).map(|at| (format!("k{at}"), json!(1))).collect();
    assert_eq!(
        check_object(&object("v1", "ConfigMap", json!({"data": data}))).len(),
        MOST
    );
}

/// OLM writes a ClusterServiceVersion with Go's types, which have an empty string in place of a missing one. A missing list stays
/// null, which the schema rejects.
#[test]
fn missing_values_that_olm_writes_are_marked() {
    for (pointer, value, place, is_filled) in [
        (
            "/spec/relatedImages",
            json!([{"image": "a"}]),
            "/spec/relatedImages/0/name",
            true,
        ),
        ("/spec/cleanup", json!({}), "/spec/cleanup/enabled", true),
        (
            "/spec/customresourcedefinitions",
            json!({"owned": [{"name": "a.b", "kind": "A", "version": "v1", "resources": [{"kind": "Pod", "version": "v1"}]}]}),
            "/spec/customresourcedefinitions/owned/0/resources/0/name",
            true,
        ),
        (
            "/spec/install/spec/permissions",
            json!([{"serviceAccountName": "a"}]),
            "/spec/install/spec/permissions/0/rules",
            false,
        ),
        ("/spec/install", Value::Null, "/spec/install", false),
        (
            "/spec/webhookdefinitions/0/sideEffects",
            Value::Null,
            "/spec/webhookdefinitions/0/sideEffects",
            false,
        ),
        // No zero value is one of the types.
        (
            "/spec/webhookdefinitions/0/type",
            Value::Null,
            "/spec/webhookdefinitions/0/type",
            false,
        ),
        // OLM cannot create the Deployment.
        (
            "/spec/install/spec/deployments/0/spec/template/spec/containers/0/name",
            Value::Null,
            "/spec/install/spec/deployments/0/spec/template/spec/containers/0/name",
            false,
        ),
    ] {
        let found = check_csv(&with(pointer, value));
        let found: Vec<(&str, bool)> = found
            .iter()
            .map(|found| (found.pointer.as_str(), found.filled))
            .collect();
        assert_eq!(found, [(place, is_filled)]);
    }
}
