//! ClusterExtensions without `spec.namespace`, which is optional from OLM v1 1.12 on. The writes of operator-controller are
//! recorded.

use kube_testbed::Options;
use serde_json::{Value, json};

use super::definitions;
use super::recorded::{EXTENSIONS, GROUP, get, make_objects, owner_labels, succeed};
use crate::bundle::Bundle;
use crate::harness::{Cluster, eventually};

/// Another namespace, in which nothing is installed.
const OTHER: &str = "shop";
/// A namespace before all others, in which a user may create Deployments.
const TENANT: &str = "a-tenant";
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
    let status = answer(&["extension", "status", "first"]).await;
    assert_eq!(status.json[0]["namespace"], "", "{}", status.stdout);
    let text = cluster.olmkit(&["extension", "status", "first"]).await;
    assert!(
        text.stdout
            .contains("ClusterExtension first (package first, no namespace yet): nothing is installed"),
        "{}",
        text.stdout
    );
    for namespace in [OTHER, CHOSEN] {
        let diagnosed = answer(&["diagnose", "-n", namespace]).await;
        assert_eq!(diagnosed.json[0]["package"], "first", "{}", diagnosed.stdout);
        assert_eq!(diagnosed.json[0]["causes"][0]["code"], "olm-idle");
    }

    cluster.scene("a tenant labels a Deployment as one of the ClusterExtension");
    cluster.namespace(TENANT).await;
    let bundle = Bundle::new("first", "0.0.1");
    let mut forged = bundle.deployment();
    forged["metadata"] = json!({"name": "forged", "namespace": TENANT, "labels": owner_labels("first")});
    cluster.apply("deployments", forged).await;
    let status = answer(&["extension", "status", "first"]).await;
    assert_eq!(status.json[0]["namespace"], "", "{}", status.stdout);

    cluster.scene("OLM v1 has installed the operator into the namespace that it chose");
    make_objects(&cluster, "first", CHOSEN, &bundle).await;
    succeed(&cluster, "first", &bundle, "registry.test/first@sha256:1").await;
    eventually("the operator runs", async || {
        answer(&["extension", "status", "first"]).await.success
    })
    .await;
    let status = answer(&["extension", "status", "first"]).await.fine();
    assert_eq!(status.json[0]["namespace"], CHOSEN, "{}", status.stdout);
    assert_eq!(status.json[0]["deployments"][0]["name"], "first-manager");
    let diagnosed = async |namespace: &str| answer(&["diagnose", "-n", namespace]).await.fine().json;
    assert_eq!(diagnosed(OTHER).await, json!([]));
    assert_eq!(diagnosed(CHOSEN).await[0]["namespace"], CHOSEN);

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

    cluster.scene("it is removed with its operator");
    let planned = answer(&["cleanup", "first", "--olm", "v1", "-n", OTHER, "--dry-run"])
        .await
        .fine();
    let is_its_deployment = |object: &&Value| object["kind"] == "Deployment" && object["namespace"] == CHOSEN;
    let of = |removed: &Value| removed.as_array().unwrap().iter().filter(is_its_deployment).count();
    assert_eq!(of(&planned.json["removed"]), 1, "{}", planned.stdout);
    let removed = answer(&["extension", "uninstall", "first"]).await.fine();
    assert_eq!(of(&removed.json["removed"]), 1, "{}", removed.stdout);
    assert_eq!(get(&cluster, EXTENSIONS, "first").await, None);
}
