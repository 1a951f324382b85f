//! The flows through the real operator-controller with the experimental manifests: it applies revisions, waits until their objects are
//! ready, and takes a namespace to watch. Runs where OPERATOR_CONTROLLER names the program.

use serde_json::json;

use super::site::{Channel, NAMESPACE, PACKAGE, Site};

#[tokio::test]
async fn the_experimental_manifests_install_for_one_namespace() {
    let Some(site) = Site::start(Channel::Experimental).await else {
        return;
    };
    let before = site.cluster.inventory().await;
    let (old, new) = (
        test_support::repository("releases/0.0.1/bundle"),
        test_support::repository("bundle"),
    );
    site.cluster.scene("an operator for its own namespace");
    let own = ["--install-mode", "OwnNamespace"];
    let installed = site.run_bundle(&old, &own).await.fine();
    assert_eq!(installed.json["result"], "succeeded");
    let watched = json!({"watchNamespace": NAMESPACE});
    assert_eq!(site.extension().await.unwrap()["spec"]["config"]["inline"], watched);

    site.cluster.scene("an upgrade keeps what was chosen");
    let upgraded = site.upgrade(&new).await.fine();
    assert_eq!(upgraded.json["result"], "succeeded");
    let extension = site.extension().await.unwrap();
    assert_eq!(extension["spec"]["config"]["inline"], watched);
    assert_eq!(extension["status"]["install"]["bundle"]["version"], "0.1.0");
    let status = site
        .olmkit(&["extension", "status", PACKAGE, "-o", "json"])
        .await
        .fine();
    assert_eq!(status.json[0]["definitions"], json!(["memcacheds.cache.example.com"]));
    assert_eq!(status.json[0]["deployments"][0]["available"], 1);

    site.cluster.scene("everything goes");
    site.olmkit(&["cleanup", PACKAGE, "--olm", "v1", "-o", "json"])
        .await
        .fine();
    site.cluster.nothing_left(&before).await;
}
