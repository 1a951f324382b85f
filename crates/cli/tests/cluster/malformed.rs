//! One malformed Subscription does not stop the commands for the others in its namespace.

use kube_testbed::Options;
use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::harness::{Cluster, eventually};

const OLM: &str = "operators.coreos.com/v1alpha1";
const NAMESPACE: &str = "shared";
const SUBSCRIPTIONS: &str = "subscriptions.operators.coreos.com";

#[tokio::test]
async fn a_malformed_subscription_does_not_stop_the_commands_in_its_namespace() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    cluster.namespace(NAMESPACE).await;
    for package in ["first", "second"] {
        let directory = Bundle::new(package, "1.0.0").write(cluster.folder.path());
        cluster.run_bundle(&directory, NAMESPACE, &[]).await.fine();
    }
    let catalog = json!({"sourceType": "grpc", "address": "127.0.0.1:1", "displayName": "other", "publisher": "test"});
    cluster
        .apply("catalogsources", object("CatalogSource", "other", catalog))
        .await;

    cluster.scene("names that no object can have");
    let spec = json!({"name": "first", "source": "../x", "sourceNamespace": "a/b", "startingCSV": "../../x"});
    cluster
        .apply("subscriptions", object("Subscription", "names", spec))
        .await;
    commands(&cluster, "first", "").await;
    let left = cluster.api(OLM, "Subscription", "subscriptions", Some(NAMESPACE));
    assert!(
        left.get_opt("names").await.unwrap().is_none(),
        "it is one of the package's"
    );

    cluster.scene("fields of other types");
    accept_anything(&cluster).await;
    let malformed = object("Subscription", "types", json!({"name": 7, "source": ["x"]}));
    eventually("the API server accepts it", async || {
        left.create(&Default::default(), &serde_json::from_value(malformed.clone()).unwrap())
            .await
            .is_ok()
    })
    .await;
    commands(
        &cluster,
        "second",
        "skipping subscriptions types in namespace \"shared\"",
    )
    .await;
    assert!(
        left.get_opt("types").await.unwrap().is_some(),
        "it belongs to no package"
    );
}

/// `diagnose`, `subscribe` and `cleanup` of the package, with this warning.
async fn commands(cluster: &Cluster, package: &str, warning: &str) {
    let diagnosed = cluster.olmkit(&["diagnose", "-n", NAMESPACE, "-o", "json"]).await;
    let packages: Vec<&str> = diagnosed
        .json
        .as_array()
        .unwrap_or_else(|| panic!("{}{}", diagnosed.stdout, diagnosed.stderr))
        .iter()
        .filter_map(|found| found["package"].as_str())
        .collect();
    assert!(packages.contains(&package), "{packages:?}");
    assert!(diagnosed.stderr.contains(warning), "{}", diagnosed.stderr);

    let catalog = format!("{NAMESPACE}/other");
    let planned = cluster
        .olmkit(&[
            "subscribe",
            "third",
            "--catalog",
            &catalog,
            "-n",
            NAMESPACE,
            "--dry-run",
            "-o",
            "json",
        ])
        .await;
    // The catalog is not ready, which is a cause. The plan is printed with it.
    let manifests = planned.json.as_array().unwrap_or_else(|| panic!("{}", planned.stderr));
    assert!(
        manifests.iter().any(|manifest| manifest["spec"]["name"] == "third"),
        "{manifests:?}"
    );
    assert!(planned.stderr.contains(warning), "{}", planned.stderr);

    let cleaned = cluster.cleanup(package, NAMESPACE, &[]).await.fine();
    assert!(cleaned.stderr.contains(warning), "{}", cleaned.stderr);
    let csv = format!("{package}.v1.0.0");
    assert_eq!(cluster.phase(NAMESPACE, &csv).await, "");
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": OLM, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
}

/// Takes the schema out of the CRD, as in clusters with Subscriptions from before it had one.
async fn accept_anything(cluster: &Cluster) {
    let crds = cluster.api(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        None,
    );
    let version = json!({"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    let patch = json!({"spec": {"versions": [version]}});
    crds.patch(SUBSCRIPTIONS, &Default::default(), &kube::api::Patch::Merge(patch))
        .await
        .unwrap();
}
