//! Failures: each scene asserts the cause's code, and that the suggested fix works when it is executed.
//!
//! Needs the programs that `dev/tools/build.sh control-plane` builds.

use std::process::Stdio;
use std::time::Duration;

use kube_testbed::Options;
use serde_json::json;

use crate::bundle::Bundle;
use crate::harness::{Cluster, eventually};

const UNAVAILABLE: &str = "registry.example.com/missing:1";

#[tokio::test]
async fn causes_are_reported_and_their_remedies_repair_them() {
    let cluster = Cluster::start(Options::default().with_olm().unavailable_image(UNAVAILABLE)).await;
    namespace_is_missing(&cluster).await;
    two_operator_groups(&cluster).await;
    install_mode_is_not_supported(&cluster).await;
    broken_catalog_beside(&cluster).await;
    subscription_beside_has_no_catalog(&cluster).await;
}

#[tokio::test]
async fn causes_during_installation_are_reported_and_repaired() {
    let cluster = Cluster::start(Options::default().with_olm().unavailable_image(UNAVAILABLE)).await;
    required_api_is_missing(&cluster).await;
    operator_image_is_missing(&cluster).await;
    crd_belongs_to_another_operator(&cluster).await;
    orphan_csv(&cluster).await;
    all_problems_at_once(&cluster).await;
    interrupted(&cluster).await;
    upgrade_is_interrupted(&cluster).await;
    custom_resource_blocks(&cluster).await;
}

async fn namespace_is_missing(cluster: &Cluster) {
    cluster.scene("namespace_is_missing");
    let directory = Bundle::new("missing-namespace", "1.0.0").write(cluster.folder.path());
    let refused = cluster.run_bundle(&directory, "nowhere", &[]).await;
    assert_eq!(refused.errors(), ["namespace-missing"]);
    cluster
        .carry_out(refused.cause("namespace-missing")["help"].as_str().unwrap())
        .await;
    cluster.run_bundle(&directory, "nowhere", &[]).await.fine();
    cluster.cleanup("missing-namespace", "nowhere", &[]).await.fine();
}

async fn two_operator_groups(cluster: &Cluster) {
    cluster.scene("two_operator_groups");
    cluster.namespace("groups").await;
    cluster.operator_group("groups", "one", &[]).await;
    cluster.operator_group("groups", "two", &[]).await;
    let directory = Bundle::new("groups", "1.0.0").write(cluster.folder.path());
    let refused = cluster.run_bundle(&directory, "groups", &[]).await;
    assert_eq!(refused.json["result"], "rejected");
    assert_eq!(refused.errors(), ["multiple-operator-groups"]);
    cluster
        .carry_out(refused.cause("multiple-operator-groups")["help"].as_str().unwrap())
        .await;
    cluster.run_bundle(&directory, "groups", &[]).await.fine();
    cluster.cleanup("groups", "groups", &[]).await.fine();
}

async fn install_mode_is_not_supported(cluster: &Cluster) {
    cluster.scene("install_mode_is_not_supported");
    cluster.namespace("modes").await;
    let mut bundle = Bundle::new("modes", "1.0.0");
    bundle.modes = vec!["OwnNamespace"];
    let directory = bundle.write(cluster.folder.path());
    let refused = cluster
        .run_bundle(&directory, "modes", &["--install-mode", "AllNamespaces"])
        .await;
    assert_eq!(refused.errors(), ["install-mode-unsupported"]);
    let remedy = refused.cause("install-mode-unsupported")["help"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(remedy.contains("--install-mode OwnNamespace"), "{remedy}");
    cluster
        .run_bundle(&directory, "modes", &["--install-mode", "OwnNamespace"])
        .await
        .fine();
    let group = cluster
        .get(
            "operators.coreos.com/v1",
            "OperatorGroup",
            "operatorgroups",
            Some("modes"),
            "operator-sdk-og",
        )
        .await
        .unwrap();
    assert_eq!(group["spec"]["targetNamespaces"], json!(["modes"]));
    cluster.cleanup("modes", "modes", &[]).await.fine();

    // An existing group with other targets.
    cluster.operator_group("modes", "everything", &[]).await;
    let refused = cluster.run_bundle(&directory, "modes", &[]).await;
    assert_eq!(refused.errors(), ["operator-group-mismatch"]);
    cluster
        .carry_out(refused.cause("operator-group-mismatch")["help"].as_str().unwrap())
        .await;
    cluster.run_bundle(&directory, "modes", &[]).await.fine();
    cluster.cleanup("modes", "modes", &[]).await.fine();
}

async fn broken_catalog_beside(cluster: &Cluster) {
    cluster.scene("broken_catalog_beside");
    cluster.namespace("beside").await;
    cluster
        .apply(
            "catalogsources",
            json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "metadata": {"name": "dead", "namespace": "beside"},
                "spec": {"sourceType": "grpc", "address": "127.0.0.1:1", "displayName": "dead", "publisher": "nobody"}}),
        )
        .await;
    eventually("the dead catalog is known to be dead", async || {
        let found = cluster
            .get(
                "operators.coreos.com/v1alpha1",
                "CatalogSource",
                "catalogsources",
                Some("beside"),
                "dead",
            )
            .await
            .unwrap();
        found.pointer("/status/connectionState/lastObservedState") == Some(&json!("TRANSIENT_FAILURE"))
    })
    .await;
    let directory = Bundle::new("beside", "1.0.0").write(cluster.folder.path());
    let refused = cluster.run_bundle(&directory, "beside", &[]).await;
    assert_eq!(refused.errors(), ["other-catalog-broken"]);
    cluster
        .carry_out(refused.cause("other-catalog-broken")["help"].as_str().unwrap())
        .await;
    cluster.run_bundle(&directory, "beside", &[]).await.fine();
    cluster.cleanup("beside", "beside", &[]).await.fine();
}

async fn subscription_beside_has_no_catalog(cluster: &Cluster) {
    cluster.scene("subscription_beside_has_no_catalog");
    cluster.namespace("lost").await;
    cluster
        .apply(
            "subscriptions",
            json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": "other", "namespace": "lost"},
                "spec": {"name": "other", "channel": "x", "source": "gone", "sourceNamespace": "lost"}}),
        )
        .await;
    let directory = Bundle::new("lost", "1.0.0").write(cluster.folder.path());
    let refused = cluster.run_bundle(&directory, "lost", &[]).await;
    assert_eq!(refused.errors(), ["other-subscription-broken"]);
    cluster
        .carry_out(refused.cause("other-subscription-broken")["help"].as_str().unwrap())
        .await;
    cluster.run_bundle(&directory, "lost", &[]).await.fine();
    cluster.cleanup("lost", "lost", &[]).await.fine();
}

async fn required_api_is_missing(cluster: &Cluster) {
    cluster.scene("required_api_is_missing");
    cluster.namespace("needs").await;
    let provider = Bundle::new("provider", "1.0.0");
    let mut bundle = Bundle::new("needs", "1.0.0");
    bundle.required = vec![
        json!({"name": provider.crd_name(), "version": "v1", "kind": "Thing", "displayName": "Thing", "description": "Needed."}),
    ];
    let directory = bundle.write(cluster.folder.path());
    let failed = cluster.run_bundle(&directory, "needs", &["--timeout", "60s"]).await;
    assert!(!failed.success);
    // Before: the API is missing. During the installation: no catalog has a provider for it.
    assert!(
        failed.codes().contains(&"requirement-api-missing"),
        "{:?}",
        failed.codes()
    );
    cluster
        .run_bundle(&provider.write(cluster.folder.path()), "needs", &[])
        .await
        .fine();
    cluster.run_bundle(&directory, "needs", &[]).await.fine();
    // The CRD that is only required is kept with its owner.
    cluster.cleanup("needs", "needs", &[]).await.fine();
    assert_eq!(cluster.phase("needs", "provider.v1.0.0").await, "Succeeded");
    assert!(
        cluster
            .get(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                "customresourcedefinitions",
                None,
                &provider.crd_name()
            )
            .await
            .is_some()
    );
    cluster.cleanup("provider", "needs", &[]).await.fine();
}

async fn operator_image_is_missing(cluster: &Cluster) {
    cluster.scene("operator_image_is_missing");
    cluster.namespace("pull").await;
    let mut bundle = Bundle::new("pull", "1.0.0");
    bundle.image = UNAVAILABLE.into();
    let failed = cluster
        .run_bundle(&bundle.write(cluster.folder.path()), "pull", &[])
        .await;
    assert_eq!(failed.json["result"], "failed");
    assert_eq!(failed.errors(), ["operator-image-pull"]);
    let explained = cluster.olmkit(&["diagnose", "pull", "-n", "pull", "-o", "json"]).await;
    assert!(explained.stdout.contains("operator-image-pull"), "{}", explained.stdout);
    // The fix: correct the reference and run again. The rerun replaces the objects of the failed run.
    bundle.image = "registry.example.com/there:1".into();
    cluster
        .run_bundle(&bundle.write(cluster.folder.path()), "pull", &[])
        .await
        .fine();
    cluster.cleanup("pull", "pull", &[]).await.fine();

    let before = cluster.inventory().await;
    bundle.image = UNAVAILABLE.into();
    let failed = cluster
        .run_bundle(&bundle.write(cluster.folder.path()), "pull", &["--rollback-on-failure"])
        .await;
    assert_eq!(failed.errors(), ["operator-image-pull"]);
    cluster.nothing_left(&before).await;
}

async fn crd_belongs_to_another_operator(cluster: &Cluster) {
    cluster.scene("crd_belongs_to_another_operator");
    cluster.namespace("owner").await;
    let first = Bundle::new("owner", "1.0.0");
    let mut second = Bundle::new("intruder", "1.0.0");
    second.group.clone_from(&first.group);
    cluster
        .run_bundle(&first.write(cluster.folder.path()), "owner", &[])
        .await
        .fine();
    let directory = second.write(cluster.folder.path());
    let refused = cluster.run_bundle(&directory, "owner", &[]).await;
    assert_eq!(refused.errors(), ["crd-owned-by-other"]);
    let remedy = refused.cause("crd-owned-by-other")["help"].as_str().unwrap().to_owned();
    assert!(remedy.contains("olmkit cleanup owner -n owner"), "{remedy}");
    cluster.cleanup("owner", "owner", &[]).await.fine();
    cluster.run_bundle(&directory, "owner", &[]).await.fine();
    cluster.cleanup("intruder", "owner", &[]).await.fine();
}

async fn orphan_csv(cluster: &Cluster) {
    cluster.scene("orphan_csv");
    cluster.namespace("orphan").await;
    let bundle = Bundle::new("orphan", "1.0.0");
    let directory = bundle.write(cluster.folder.path());
    cluster.run_bundle(&directory, "orphan", &[]).await.fine();
    // As if another tool had installed it and the user deleted the Subscription: without olmkit's mark.
    let csv = cluster.api(
        "operators.coreos.com/v1alpha1",
        "ClusterServiceVersion",
        "clusterserviceversions",
        Some("orphan"),
    );
    let patch = json!({"metadata": {"labels": {"olmkit.dev/bundle-digest": null}}});
    csv.patch(
        &bundle.csv_name(),
        &kube::api::PatchParams::default(),
        &kube::api::Patch::Merge(patch),
    )
    .await
    .unwrap();
    let refused = cluster.run_bundle(&directory, "orphan", &[]).await;
    assert_eq!(refused.errors(), ["orphaned-csv"]);
    let remedy = refused.cause("orphaned-csv")["help"].as_str().unwrap().to_owned();
    assert!(remedy.contains("olmkit cleanup orphan -n orphan"), "{remedy}");
    cluster.cleanup("orphan", "orphan", &[]).await.fine();
    cluster.run_bundle(&directory, "orphan", &[]).await.fine();
    cluster.cleanup("orphan", "orphan", &[]).await.fine();
}

async fn all_problems_at_once(cluster: &Cluster) {
    cluster.scene("all_problems_at_once");
    cluster.namespace("many").await;
    cluster.operator_group("many", "one", &[]).await;
    cluster.operator_group("many", "two", &[]).await;
    let mut bundle = Bundle::new("many", "1.0.0");
    bundle.extra = vec![json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "no"}})];
    let refused = cluster
        .run_bundle(&bundle.write(cluster.folder.path()), "many", &[])
        .await;
    let mut codes = refused.errors();
    codes.sort_unstable();
    assert_eq!(codes, ["bundle-kind-unsupported", "multiple-operator-groups"]);
}

async fn interrupted(cluster: &Cluster) {
    cluster.scene("interrupted");
    cluster.namespace("stop").await;
    let before = cluster.inventory().await;
    let directory = Bundle::new("stop", "1.0.0").write(cluster.folder.path());
    let mut command = cluster.command(&["run", "bundle", directory.to_str().unwrap(), "-n", "stop", "-o", "json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("the Subscription is there", async || {
        cluster
            .get(
                "operators.coreos.com/v1alpha1",
                "Subscription",
                "subscriptions",
                Some("stop"),
                "stop-v1-0-0-sub",
            )
            .await
            .is_some()
    })
    .await;
    assert!(interrupt(child).await.contains("\"interrupted\""));
    cluster.cleanup("stop", "stop", &[]).await.fine();
    cluster.nothing_left(&before).await;
    cluster.run_bundle(&directory, "stop", &[]).await.fine();
    cluster.cleanup("stop", "stop", &[]).await.fine();
}

/// An upgrade from this host that is interrupted in the middle, and run again.
async fn upgrade_is_interrupted(cluster: &Cluster) {
    cluster.scene("upgrade_is_interrupted");
    cluster.namespace("halfway").await;
    let before = cluster.inventory().await;
    let old = Bundle::new("halfway", "1.0.0").write(cluster.folder.path());
    let new = Bundle::new("halfway", "2.0.0").write(cluster.folder.path());
    cluster.run_bundle(&old, "halfway", &[]).await.fine();
    let upgrade = [
        "run",
        "bundle-upgrade",
        new.to_str().unwrap(),
        "-n",
        "halfway",
        "-o",
        "json",
    ];
    let child = cluster
        .command(&upgrade)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the new version exists", async || {
        !cluster.phase("halfway", "halfway.v2.0.0").await.is_empty()
    })
    .await;
    interrupt(child).await;
    // No object remains that blocks the namespace.
    for (kind, plural) in [("Subscription", "subscriptions"), ("CatalogSource", "catalogsources")] {
        let api = cluster.api("operators.coreos.com/v1alpha1", kind, plural, Some("halfway"));
        let left = api.list(&kube::api::ListParams::default()).await.unwrap();
        assert!(left.items.is_empty(), "a {kind} is left");
    }
    cluster.olmkit(&upgrade).await.fine();
    cluster.settled("halfway", "halfway.v2.0.0").await;
    cluster.replaced("halfway", "halfway.v1.0.0").await;
    cluster.cleanup("halfway", "halfway", &[]).await.fine();
    cluster.nothing_left(&before).await;
}

/// Sends the signal of Ctrl-C and returns the command's output.
pub async fn interrupt(child: std::process::Child) -> String {
    let kill = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap())
        .await
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(130),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

async fn custom_resource_blocks(cluster: &Cluster) {
    cluster.scene("custom_resource_blocks");
    cluster.namespace("blocked").await;
    let bundle = Bundle::new("blocked", "1.0.0");
    cluster
        .run_bundle(&bundle.write(cluster.folder.path()), "blocked", &[])
        .await
        .fine();
    cluster
        .apply(
            "things",
            json!({"apiVersion": "blocked.example.com/v1", "kind": "Thing",
                "metadata": {"name": "one", "namespace": "blocked", "finalizers": ["blocked.example.com/finalizer"]}}),
        )
        .await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let blocked = cluster.cleanup("blocked", "blocked", &["--timeout", "3s"]).await;
    assert!(!blocked.success);
    let cause = blocked.cause("custom-resource-deletion-blocked");
    assert!(
        cause["message"]
            .as_str()
            .unwrap()
            .contains("blocked.example.com/finalizer")
    );
    // The operator was kept, because it might still become ready.
    assert_eq!(cluster.phase("blocked", "blocked.v1.0.0").await, "Succeeded");
    cluster.carry_out(cause["help"].as_str().unwrap()).await;
    cluster.cleanup("blocked", "blocked", &[]).await.fine();
}

#[tokio::test]
async fn a_cluster_without_olm_differs_from_a_partial_olm() {
    let cluster = Cluster::start(Options::default()).await;
    cluster.namespace("shop").await;
    let directory = Bundle::new("early", "1.0.0").write(cluster.folder.path());
    let refused = cluster.run_bundle(&directory, "shop", &[]).await;
    assert_eq!(refused.errors(), ["olm-not-installed"]);
    let status = cluster.olmkit(&["olm", "status", "-o", "json"]).await;
    assert!(!status.success);
    assert_eq!(status.json["installed"], false);
}

/// No OLM runs here. The test shows that its objects are created in an order without deadlocks, and that a repeated run
/// does no harm.
#[tokio::test]
async fn olm_is_installed_and_installed_again() {
    let cluster = Cluster::start(Options::default()).await;
    cluster.install_olm(&["--timeout", "60s"]).await.fine();
    // Again: existing objects are kept.
    cluster.install_olm(&["--timeout", "60s"]).await.fine();
    let status = cluster.olmkit(&["olm", "status", "-o", "json"]).await;
    assert_eq!(status.json["installed"], true);
    assert_eq!(status.errors(), Vec::<&str>::new(), "{}", status.stdout);
}

/// JSON output if the cluster does not answer, or rejects the request.
#[tokio::test]
async fn a_cluster_that_does_not_answer_or_refuses_is_a_cause() {
    let cluster = Cluster::start(Options::default()).await;
    cluster.namespace("shop").await;
    cluster
        .apply(
            "serviceaccounts",
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": "shop"}}),
        )
        .await;
    let nobody = cluster
        .plane
        .service_account_kubeconfig("shop", "nobody")
        .await
        .unwrap();
    let refused = cluster
        .olmkit(&[
            "diagnose",
            "-n",
            "shop",
            "-o",
            "json",
            "--kubeconfig",
            nobody.to_str().unwrap(),
        ])
        .await;
    assert!(!refused.success);
    assert_eq!(refused.errors(), ["forbidden"]);

    let text = std::fs::read_to_string(cluster.plane.kubeconfig()).unwrap();
    let elsewhere = cluster.folder.path().join("elsewhere");
    std::fs::write(&elsewhere, text.replace(cluster.plane.url(), "https://127.0.0.1:1")).unwrap();
    let kubeconfig = elsewhere.to_str().unwrap();
    let directory = Bundle::new("early", "1.0.0").write(cluster.folder.path());
    for arguments in [
        vec!["run", "bundle", directory.to_str().unwrap()],
        vec!["run", "bundle-upgrade", directory.to_str().unwrap()],
        vec!["cleanup", "early"],
        vec!["diagnose"],
        vec!["subscribe", "early"],
        vec!["olm", "status"],
        vec!["olm", "uninstall"],
    ] {
        let answer = cluster
            .olmkit(&[arguments.as_slice(), &["-o", "json", "--kubeconfig", kubeconfig]].concat())
            .await;
        assert!(!answer.success);
        assert_eq!(answer.errors(), ["api-unreachable"], "{}", answer.stdout);
    }
}
