//! Install, rerun, upgrade, clean up: the ordinary path.

use kube_testbed::Options;
use serde_json::json;

use crate::bundle::Bundle;
use crate::harness::Cluster;

#[tokio::test]
async fn a_bundle_directory_is_installed_upgraded_and_removed_without_residue() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    cluster.namespace("shop").await;
    let before = cluster.inventory().await;
    let (mut old, mut new) = (Bundle::new("first", "0.0.1"), Bundle::new("first", "0.0.2"));
    // OLM leaves a bundle's own ClusterRoles. One of them goes out of use with the upgrade.
    old.extra = vec![
        cluster_role("first-viewer"),
        cluster_role("first-editor"),
        priority("first"),
    ];
    new.extra = vec![cluster_role("first-viewer"), priority("first")];
    let old_folder = old.write(cluster.folder.path());
    let new_folder = new.write(cluster.folder.path());

    let installed = cluster.run_bundle(&old_folder, "shop", &[]).await.fine();
    assert_eq!(installed.json["result"], "succeeded");
    assert_eq!(cluster.phase("shop", "first.v0.0.1").await, "Succeeded");
    // The catalog ends with the command: references to it must not remain, or they would block the namespace.
    for (kind, plural, name) in [
        ("Subscription", "subscriptions", "first-v0-0-1-sub"),
        ("CatalogSource", "catalogsources", "first-catalog"),
    ] {
        let found = cluster
            .get("operators.coreos.com/v1alpha1", kind, plural, Some("shop"), name)
            .await;
        assert!(found.is_none(), "{kind} {name} is left");
    }
    let group = cluster
        .get(
            "operators.coreos.com/v1",
            "OperatorGroup",
            "operatorgroups",
            Some("shop"),
            "operator-sdk-og",
        )
        .await;
    assert!(group.is_some(), "operator-sdk's name for the group");

    let again = cluster.run_bundle(&old_folder, "shop", &[]).await.fine();
    assert_eq!(again.json["result"], "already-installed");

    // A second operator in the same namespace: the first one's catalog, which has ended, must not block it.
    let beside = Bundle::new("second", "1.0.0");
    cluster
        .run_bundle(&beside.write(cluster.folder.path()), "shop", &[])
        .await
        .fine();

    let refused = cluster.run_bundle(&new_folder, "shop", &[]).await;
    assert!(!refused.success);
    assert_eq!(refused.errors(), ["other-version-installed"]);
    let upgraded = cluster.upgrade(&new_folder, "shop").await.fine();
    assert_eq!(upgraded.json["result"], "succeeded");
    // OLM keeps the condition of a resolution during the upgrade, which names the replaced CSV, for minutes.
    cluster.olmkit(&["diagnose", "-n", "shop", "-o", "json"]).await.fine();
    // OLM checks the requirements of the new version once more after the old one is deleted.
    cluster.settled("shop", "first.v0.0.2").await;
    cluster.replaced("shop", "first.v0.0.1").await;
    cluster.settled("shop", "second.v1.0.0").await;

    cluster.apply("things", json!({"apiVersion": "first.example.com/v1", "kind": "Thing", "metadata": {"name": "one", "namespace": "shop"}})).await;
    let planned = cluster.cleanup("first", "shop", &["--dry-run"]).await.fine();
    assert!(
        planned.json["removed"]
            .as_array()
            .unwrap()
            .iter()
            .any(|object| object["kind"] == "Thing")
    );
    cluster.settled("shop", "first.v0.0.2").await;
    cluster.cleanup("first", "shop", &[]).await.fine();
    cluster.settled("shop", "second.v1.0.0").await;
    cluster.cleanup("second", "shop", &[]).await.fine();
    cluster.nothing_left(&before).await;

    let nothing = cluster.cleanup("first", "shop", &[]).await.fine();
    assert_eq!(nothing.json["found"], false);
}

fn priority(name: &str) -> serde_json::Value {
    json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 5})
}

fn cluster_role(name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [{"apiGroups": ["first.example.com"], "resources": ["things"], "verbs": ["get"]}],
    })
}
