//! CSV-23, POD-5 and OBJ-3 compared with the answers of a real API server with OLM's definitions.

use kube_testbed::Options;
use serde_json::{Value, json};

use super::broken;
use super::server::ask;
use crate::bundle::Bundle;
use crate::harness::Cluster;

const CSVS: &str = "/apis/operators.coreos.com/v1alpha1/namespaces/default/clusterserviceversions";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const POD: &str = "/spec/install/spec/deployments/0/spec/template/spec";

/// Why the server rejects an object. Empty if it accepts it.
async fn reason(cluster: &Cluster, path: &str, object: &Value) -> String {
    let reply = ask(cluster, "POST", &format!("{path}?dryRun=All"), object).await;
    if reply.status < 300 {
        return String::new();
    }
    reply.body["message"].as_str().unwrap_or("rejected").to_owned()
}

#[tokio::test]
async fn the_api_server_rejects_what_the_lints_report() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    cluster.scene("ClusterServiceVersions and their Deployments");
    csvs(&cluster).await;
    cluster.scene("other objects");
    objects(&cluster).await;
    cluster.scene("missing values that OLM writes");
    filled(&cluster).await;
}

/// The API server rejects a ClusterServiceVersion without these values, and OLM installs it: it writes empty ones.
async fn filled(cluster: &Cluster) {
    let mut bundle = Bundle::new("filled", "1.0.0");
    let definition = "/spec/customresourcedefinitions/owned/0/resources";
    bundle.changes = vec![
        ("/spec/relatedImages", json!([{"image": "example.com/a:1"}])),
        ("/spec/cleanup", json!({})),
        (definition, json!([{"kind": "Pod", "version": "v1"}])),
    ];
    let directory = bundle.write(cluster.folder.path());
    let reported = broken(&directory).into_iter().filter(|id| *id == "CSV-23");
    assert_eq!(reported.count(), bundle.changes.len());
    let mut csv = bundle.csv();
    csv["metadata"]["namespace"] = "default".into();
    let why = reason(cluster, CSVS, &csv).await;
    for place in ["relatedImages[0].name", "cleanup.enabled", "owned[0].resources[0].name"] {
        assert!(why.contains(place), "{place}: {why}");
    }
    cluster.namespace("filled").await;
    let answer = cluster.run_bundle(&directory, "filled", &[]).await;
    assert!(answer.success, "{}", answer.stderr);
    let path = CSVS.replace("/default/", "/filled/");
    let installed = ask(cluster, "GET", &format!("{path}/{}", bundle.csv_name()), &Value::Null).await;
    for (pointer, written) in [
        ("/spec/relatedImages/0/name", json!("")),
        ("/spec/cleanup/enabled", json!(false)),
        (&format!("{definition}/0/name"), json!("")),
    ] {
        assert_eq!(installed.body.pointer(pointer), Some(&written), "{pointer}");
    }
}

async fn csvs(cluster: &Cluster) {
    let hook = |key: &str, value: Value| {
        let mut hook = json!({
            "type": "ValidatingAdmissionWebhook", "generateName": "a.example.com", "deploymentName": "checked-manager",
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "containerPort": 443, "failurePolicy": "Fail",
        });
        hook[key] = value;
        json!([hook])
    };
    let pod = |key: &str, value: Value| {
        let mut container = json!({"name": "manager", "image": "example.com/a:1"});
        container[key] = value;
        json!({"containers": [container]})
    };
    let hooks = "/spec/webhookdefinitions";
    let permissions = "/spec/install/spec/permissions";
    for (pointer, value, rule) in [
        ("/spec/keywords", json!(["a"]), ""),
        ("/spec/keywords", json!("a"), "LOAD-7"),
        ("/spec/relatedImages", json!([{"name": "a", "image": "b"}]), ""),
        ("/spec/relatedImages", json!([{"image": "b"}]), "CSV-23"),
        ("/metadata/annotations", json!({"certified": true}), "CSV-23"),
        ("/metadata/labels", json!({"a": "b c"}), "CSV-23"),
        (hooks, hook("containerPort", json!(9443)), ""),
        (hooks, hook("containerPort", json!(0)), "CSV-23"),
        (hooks, hook("containerPort", json!(99999)), "CSV-23"),
        (hooks, hook("type", json!("Webhook")), "CSV-23"),
        (hooks, hook("sideEffects", json!(null)), "CSV-23"),
        (hooks, hook("admissionReviewVersions", json!(null)), "CSV-23"),
        (permissions, json!([{"serviceAccountName": "a", "rules": []}]), ""),
        (permissions, json!([{"serviceAccountName": "a"}]), "CSV-23"),
        (
            POD,
            pod("ports", json!([{"containerPort": 80}, {"containerPort": 81}])),
            "",
        ),
        (
            POD,
            pod("ports", json!([{"containerPort": 80}, {"containerPort": 80}])),
            "CSV-23",
        ),
        (POD, pod("ports", json!([{"containerPort": 80000}])), "POD-5"),
        (POD, pod("env", json!([{"name": "A", "value": 1}])), "CSV-23"),
        (POD, pod("imagePullPolicy", json!("Always")), ""),
        (POD, pod("imagePullPolicy", json!("always")), "POD-5"),
        (
            POD,
            pod("volumeMounts", json!([{"name": "a", "mountPath": "/a"}])),
            "POD-5",
        ),
        (
            POD,
            pod(
                "resources",
                json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1000m"}}),
            ),
            "",
        ),
        (
            POD,
            pod(
                "resources",
                json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1001m"}}),
            ),
            "POD-5",
        ),
        (POD, pod("livenessProbe", json!({"httpGet": {"port": "web"}})), ""),
        (POD, pod("livenessProbe", json!({"periodSeconds": 1})), "POD-5"),
    ] {
        let mut bundle = Bundle::new("checked", "1.0.0");
        bundle.changes = vec![(pointer, value.clone())];
        let ids = broken(&bundle.write(cluster.folder.path()));
        // LOAD-7 replaces CSV-23 where operator-sdk reports the same value.
        let found = ["LOAD-7", "CSV-23", "POD-5"].into_iter().find(|id| ids.contains(id));
        assert_eq!(found.unwrap_or_default(), rule, "{pointer} {value}: {ids:?}");
        let mut csv = bundle.csv();
        csv["metadata"]["namespace"] = "default".into();
        let at_once = reason(cluster, CSVS, &csv).await;
        let is_at_once = matches!(rule, "CSV-23" | "LOAD-7");
        assert_eq!(at_once.is_empty(), !is_at_once, "{pointer} {value}: {at_once}");
        let spec = csv["spec"]["install"]["spec"]["deployments"][0]["spec"].clone();
        let deployment =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec});
        let later = reason(cluster, DEPLOYMENTS, &deployment).await;
        if at_once.is_empty() {
            assert_eq!(later.is_empty(), rule.is_empty(), "{pointer} {value}: {later}");
        }
    }
}

async fn objects(cluster: &Cluster) {
    let rbac = "rbac.authorization.k8s.io/v1";
    let rule = |value: Value| json!({"rules": [value]});
    for (version, kind, plural, rest, is_rejected) in [
        ("v1", "ConfigMap", "configmaps", json!({"data": {"a": "1"}}), false),
        ("v1", "ConfigMap", "configmaps", json!({"data": {"a": 1}}), true),
        ("v1", "ConfigMap", "configmaps", json!({"data": {"a b": "c"}}), true),
        (
            "v1",
            "Service",
            "services",
            json!({"spec": {"ports": [{"port": 80}]}}),
            false,
        ),
        (
            "v1",
            "Service",
            "services",
            json!({"spec": {"ports": [{"port": 99999}]}}),
            true,
        ),
        (
            rbac,
            "Role",
            "roles",
            rule(json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]})),
            false,
        ),
        (
            rbac,
            "Role",
            "roles",
            rule(json!({"apiGroups": [""], "resources": ["pods"]})),
            true,
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            json!({"spec": {"minAvailable": 1}}),
            false,
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            json!({"spec": {"minAvailable": 1, "maxUnavailable": 1}}),
            true,
        ),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "networkpolicies",
            json!({"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
            false,
        ),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "networkpolicies",
            json!({"spec": {"podSelector": {}, "policyTypes": ["ingress"]}}),
            true,
        ),
    ] {
        let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "checked"}});
        for (key, value) in rest.as_object().unwrap() {
            object[key] = value.clone();
        }
        let mut bundle = Bundle::new("checked", "1.0.0");
        bundle.extra = vec![object.clone()];
        let ids = broken(&bundle.write(cluster.folder.path()));
        assert_eq!(ids.contains(&"OBJ-3"), is_rejected, "{object}: {ids:?}");
        let prefix = if version == "v1" {
            "/api/v1".to_owned()
        } else {
            format!("/apis/{version}")
        };
        let why = reason(cluster, &format!("{prefix}/namespaces/default/{plural}"), &object).await;
        assert_eq!(!why.is_empty(), is_rejected, "{object}: {why}");
    }
}
