//! ClusterExtensions without `spec.namespace`, which is optional from OLM v1 1.12 on. The writes of operator-controller are
//! recorded.

use kube_testbed::Options;
use serde_json::json;

use super::definitions;
use super::recorded::{EXTENSIONS, GROUP, get, make_objects, succeed};
use crate::bundle::Bundle;
use crate::harness::Cluster;

/// The namespace of `-n`, in which nothing is installed.
const OTHER: &str = "shop";
/// The namespace that OLM v1 derives from the bundle.
const CHOSEN: &str = "first-system";

#[tokio::test]
async fn a_namespace_that_olm_v1_chooses_is_found_and_kept() {
    let cluster = Cluster::start(Options::default()).await;
    for name in [OTHER, CHOSEN] {
        cluster.namespace(name).await;
    }
    if !definitions::standard(&cluster).await {
        return;
    }
    definitions::optional_namespace(&cluster).await;
    let extension = json!({"apiVersion": GROUP, "kind": "ClusterExtension",
        "metadata": {"name": "first", "labels": {"app.kubernetes.io/managed-by": "olmkit", "olmkit.dev/package": "first"}},
        "spec": {"source": {"sourceType": "Catalog", "catalog": {"packageName": "first"}}}});
    cluster.apply("clusterextensions", extension).await;

    cluster.scene("OLM v1 has not chosen the namespace yet");
    let answer = async |arguments: &[&str]| cluster.olmkit(&[arguments, &["-o", "json"]].concat()).await;
    let status = answer(&["extension", "status", "first", "-n", OTHER]).await;
    assert_eq!(status.json[0]["namespace"], "", "{}", status.stdout);
    let text = cluster.olmkit(&["extension", "status", "first", "-n", OTHER]).await;
    assert!(
        text.stdout
            .contains("ClusterExtension first (package first, no namespace yet): nothing is installed"),
        "{}",
        text.stdout
    );
    for namespace in [OTHER, CHOSEN] {
        let diagnosed = answer(&["diagnose", "-n", namespace]).await;
        assert_eq!(diagnosed.json[0]["package"], "first", "{}", diagnosed.stdout);
        assert_eq!(diagnosed.codes(), ["olm-idle"]);
    }

    cluster.scene("OLM v1 has installed the operator into the namespace that it chose");
    let bundle = Bundle::new("first", "0.0.1");
    make_objects(&cluster, "first", CHOSEN, &bundle).await;
    succeed(&cluster, "first", &bundle, "registry.test/first@sha256:1").await;
    let status = answer(&["extension", "status", "first", "-n", OTHER]).await;
    assert_eq!(status.json[0]["namespace"], CHOSEN, "{}", status.stdout);
    assert_eq!(status.json[0]["deployments"][0]["name"], "first-manager");
    let of = async |namespace: &str| answer(&["diagnose", "-n", namespace]).await.fine().json;
    assert_eq!(of(OTHER).await, json!([]));
    assert_eq!(of(CHOSEN).await[0]["namespace"], CHOSEN);

    cluster.scene("a namespace cannot be added");
    let planned = answer(&["extension", "install", "first", "-n", CHOSEN, "--any-catalog"]).await;
    assert_eq!(planned.codes(), ["other-version-installed"], "{}", planned.stdout);
    assert!(
        planned
            .stdout
            .contains("has no spec.namespace: OLM v1 chooses its namespace"),
        "{}",
        planned.stdout
    );

    cluster.scene("it is removed with its operator, whatever -n says");
    let removed = answer(&["extension", "uninstall", "first", "-n", OTHER]).await.fine();
    let objects = removed.json["removed"].as_array().unwrap();
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment");
    assert_eq!(deployment.unwrap()["namespace"], CHOSEN, "{}", removed.stdout);
    assert_eq!(get(&cluster, EXTENSIONS, "first").await, None);
}
