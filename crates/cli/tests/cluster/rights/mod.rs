//! The permissions of each command: sufficient, minimal, checked before anything is changed, and as documented.

mod accounts;
mod audit;

use std::path::Path;

use kube_testbed::Options;
use olmkit_cluster::rights::{Command, Right, When};
use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::harness::{Answer, Cluster, eventually};
use crate::offered;

pub use accounts::{ACCOUNTS, grant, revoke};
pub use audit::compare;

/// Namespace for operators.
pub const NAMESPACE: &str = "rights";

#[tokio::test]
async fn each_command_needs_the_rights_that_are_listed_and_no_others() {
    let cluster = Cluster::start(Options::default().with_olm().with_audit()).await;
    for name in [ACCOUNTS, NAMESPACE] {
        cluster.namespace(name).await;
    }
    let (mut old, mut new) = (Bundle::new("first", "0.0.1"), Bundle::new("first", "0.0.2"));
    old.extra = vec![cluster_role("first-viewer"), cluster_binding(), priority_class()];
    new.extra = old.extra.clone();
    let before = cluster.inventory().await;
    flows(&cluster, &old, &new).await;
    subscription(&cluster, &old).await;
    catalog_in_a_pod(&cluster).await;
    let used = [
        Command::RunBundle,
        Command::BundleUpgrade,
        Command::Cleanup,
        Command::Subscribe,
        Command::Diagnose,
        Command::Migrate,
        Command::Scorecard,
        Command::OlmStatus,
    ];
    compare(&cluster, &used, "first.example.com").await;
    revoke(&cluster).await;
    cluster.nothing_left(&before).await;
}

async fn flows(cluster: &Cluster, old: &Bundle, new: &Bundle) {
    cluster.scene("install, inspect, upgrade, remove, each with its command's permissions");
    let (old, new) = (old.write(cluster.folder.path()), new.write(cluster.folder.path()));
    let account = grant(cluster, Command::RunBundle, |_| true).await;
    let arguments = ["run", "bundle", text(&old), "--timeout", "90s"];
    run(cluster, &account, &arguments).await.fine();
    let account = grant(cluster, Command::Diagnose, |_| true).await;
    run(cluster, &account, &["diagnose"]).await.fine();
    cluster.scene("scorecard, whose pods no node runs");
    let config = cluster.folder.path().join("scorecard.yaml");
    std::fs::write(&config, "stages:\n- tests:\n  - image: registry.example.com/test:1\n").unwrap();
    let account = grant(cluster, Command::Scorecard, |_| true).await;
    let arguments = [
        "scorecard",
        text(&old),
        "--config",
        text(&config),
        "--cluster",
        "--wait-time",
        "1s",
    ];
    let tests = run(cluster, &account, &arguments).await;
    assert_eq!(
        tests.json["items"][0]["status"]["results"][0]["state"], "error",
        "{}",
        tests.stderr
    );
    let account = grant(cluster, Command::OlmStatus, |_| true).await;
    // No Deployments of OLM run here, which the status reports.
    let status = run(cluster, &account, &["olm", "status"]).await;
    assert!(!status.codes().contains(&"forbidden"), "{}", status.stdout);
    let account = grant(cluster, Command::BundleUpgrade, |_| true).await;
    let arguments = ["run", "bundle-upgrade", text(&new), "--timeout", "90s"];
    run(cluster, &account, &arguments).await.fine();
    cluster.settled(NAMESPACE, "first.v0.0.2").await;
    make_thing(cluster, NAMESPACE, &[]).await;
    let account = grant(cluster, Command::Cleanup, |_| true).await;
    let cleaned = run(cluster, &account, &["cleanup", "first"]).await.fine();
    assert_eq!(cleaned.json["kept"], json!([]));

    cluster.scene("a custom resource that outlives its operator");
    cluster.run_bundle(&new, NAMESPACE, &[]).await.fine();
    cluster.serves("first.example.com/v1", "things").await;
    make_thing(cluster, ACCOUNTS, &["first.example.com/finalizer"]).await;
    let cleaned = run(cluster, &account, &["cleanup", "first"]).await.fine();
    assert_eq!(
        cleaned.json["released"].as_array().unwrap().len(),
        1,
        "{}",
        cleaned.json
    );
    let (group, plural) = ("apiextensions.k8s.io/v1", "customresourcedefinitions");
    let (kind, name) = ("CustomResourceDefinition", "things.first.example.com");
    cluster.delete(group, kind, plural, None, name).await;
    eventually("the CRD is deleted", async || {
        cluster.get(group, kind, plural, None, name).await.is_none()
    })
    .await;
}

async fn subscription(cluster: &Cluster, bundle: &Bundle) {
    cluster.scene("subscribe to a catalog");
    let (address, serving) = offered::bundles(cluster, &[bundle]).await;
    let source = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "offered", "namespace": NAMESPACE},
        "spec": {"sourceType": "grpc", "address": address, "displayName": "offered", "publisher": "people"}});
    cluster.apply("catalogsources", source).await;
    let account = grant(cluster, Command::Subscribe, |_| true).await;
    let arguments = [
        "subscribe",
        "first",
        "--catalog",
        "offered",
        "--approval",
        "manual",
        "--timeout",
        "90s",
    ];
    run(cluster, &account, &arguments).await.fine();
    let account = grant(cluster, Command::Migrate, |_| true).await;
    let assessed = run(cluster, &account, &["migrate", "check"]).await;
    assert_eq!(assessed.json[0]["package"], "first", "{}", assessed.stdout);
    let account = grant(cluster, Command::Cleanup, |_| true).await;
    run(cluster, &account, &["cleanup", "first"]).await.fine();
    cluster
        .delete(
            "operators.coreos.com/v1alpha1",
            "CatalogSource",
            "catalogsources",
            Some(NAMESPACE),
            "offered",
        )
        .await;
    serving.abort();
}

/// No node runs the pod, so OLM never reaches it. All of it is made nevertheless.
async fn catalog_in_a_pod(cluster: &Cluster) {
    cluster.scene("a catalog in a pod");
    let directory = Bundle::new("second", "1.0.0").write(cluster.folder.path());
    let account = grant(cluster, Command::RunBundle, |_| true).await;
    let arguments = [
        "run",
        "bundle",
        text(&directory),
        "--helper-image",
        "registry.example.com/helper:1",
        "--timeout",
        "8s",
    ];
    let failed = run(cluster, &account, &arguments).await;
    assert!(!failed.codes().contains(&"forbidden"), "{}", failed.stdout);
    assert_eq!(failed.json["result"], "failed");
    let account = grant(cluster, Command::Cleanup, |_| true).await;
    let cleaned = run(cluster, &account, &["cleanup", "second"]).await.fine();
    let removed: Vec<&str> = cleaned.json["removed"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|object| object["kind"].as_str())
        .collect();
    // The rest belongs to the CatalogSource, and the garbage collector may be quicker.
    for kind in ["CatalogSource", "Subscription"] {
        assert!(removed.contains(&kind), "{kind} of {removed:?}");
    }
}

#[tokio::test]
async fn rights_that_are_missing_are_named_before_anything_is_changed() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    for name in [ACCOUNTS, NAMESPACE] {
        cluster.namespace(name).await;
    }
    let mut bundle = Bundle::new("first", "0.0.1");
    bundle.extra = vec![cluster_role("first-viewer")];
    let directory = bundle.write(cluster.folder.path());
    let lacks = |resource: &'static str, verb: &'static str| {
        move |right: &Right| !(right.resources.contains(&resource) && right.verbs.contains(&verb))
    };
    let arguments = ["run", "bundle", text(&directory), "--timeout", "90s"];
    for (resource, verb) in [
        ("installplans", "patch"),
        ("events", "list"),
        ("operatorgroups", "create"),
    ] {
        cluster.scene(&format!("run bundle without {verb} {resource}"));
        let account = grant(&cluster, Command::RunBundle, lacks(resource, verb)).await;
        let before = cluster.inventory().await;
        let refused = run(&cluster, &account, &arguments).await;
        assert_eq!(refused.json["result"], "rejected", "{}", refused.stdout);
        assert_named(&refused, resource, verb);
        assert_eq!(cluster.inventory().await, before);
    }
    cluster.scene("optional permissions may be missing");
    let account = grant(&cluster, Command::RunBundle, |right| {
        !matches!(right.when, When::Better(_) | When::Repair)
    })
    .await;
    run(&cluster, &account, &arguments).await.fine();
    for (resource, verb) in [
        ("clusterroles", "delete"),
        ("customresourcedefinitions", "delete"),
        ("services", "list"),
    ] {
        cluster.scene(&format!("cleanup without {verb} {resource}"));
        let account = grant(&cluster, Command::Cleanup, lacks(resource, verb)).await;
        let before = cluster.inventory().await;
        let refused = run(
            &cluster,
            &account,
            &["cleanup", "first", "--delete-crds=things.first.example.com"],
        )
        .await;
        assert!(!refused.success);
        assert_named(&refused, resource, verb);
        assert_eq!(cluster.inventory().await, before);
    }
    cluster.scene("cleanup without patch things, of which one outlives the operator");
    make_thing(&cluster, ACCOUNTS, &["first.example.com/finalizer"]).await;
    let account = grant(&cluster, Command::Cleanup, lacks("things", "patch")).await;
    let before = cluster.inventory().await;
    let refused = run(&cluster, &account, &["cleanup", "first"]).await;
    assert!(!refused.success);
    assert_named(&refused, "things", "patch");
    assert_eq!(cluster.inventory().await, before);
    label_of_a_kept_object(&cluster).await;
    cluster.scene("olm uninstall without the right to delete definitions");
    let account = grant(
        &cluster,
        Command::OlmUninstall,
        lacks("customresourcedefinitions", "delete"),
    )
    .await;
    let before = cluster.inventory().await;
    let refused = run(&cluster, &account, &["olm", "uninstall", "--with-operators"]).await;
    assert!(!refused.success);
    assert_named(&refused, "customresourcedefinitions", "delete");
    assert_eq!(cluster.inventory().await, before);
}

/// OLM creates its Operator object again while any object has its label.
async fn label_of_a_kept_object(cluster: &Cluster) {
    const LABEL: &str = "operators.coreos.com/first.rights";
    let mut role = cluster_role("first-of-others");
    role["metadata"]["labels"] = json!({"olm.managed": "true", LABEL: ""});
    cluster.apply("clusterroles", role).await;
    cluster.scene("cleanup without the right to remove the label of an object that it keeps");
    let account = grant(cluster, Command::Cleanup, |right| {
        !matches!(right.when, When::Better(_))
    })
    .await;
    let cleaned = run(cluster, &account, &["cleanup", "first"]).await.fine();
    let kept = cleaned.json["kept"].as_array().unwrap();
    let kept = |kind: &str| kept.iter().find(|kept| kept["object"]["kind"] == kind);
    let why = kept("Operator").expect("the Operator object is kept")["why"]
        .as_str()
        .unwrap();
    assert!(why.contains("ClusterRole first-of-others"), "{why}");
    cluster.scene("cleanup with that right");
    let account = grant(cluster, Command::Cleanup, |_| true).await;
    run(cluster, &account, &["cleanup", "first"]).await.fine();
    let group = "rbac.authorization.k8s.io/v1";
    let role = cluster
        .get(group, "ClusterRole", "clusterroles", None, "first-of-others")
        .await;
    let labels = &role.expect("the role is kept")["metadata"]["labels"];
    assert!(labels.get(LABEL).is_none(), "{labels}");
    let operator = cluster
        .get("operators.coreos.com/v1", "Operator", "operators", None, "first.rights")
        .await;
    assert!(operator.is_none());
}

#[track_caller]
pub fn assert_named(refused: &Answer, resource: &str, verb: &str) {
    assert!(refused.codes().contains(&"forbidden"), "{}", refused.stdout);
    let causes = refused.json["causes"].as_array().unwrap();
    let named = causes
        .iter()
        .filter_map(|cause| cause["message"].as_str())
        .any(|message| message.contains(resource) && message.contains(verb));
    assert!(named, "{verb} {resource} is not named: {causes:#?}");
}

/// OLM is installed and removed on a control plane without one.
#[tokio::test]
async fn olm_is_installed_and_removed_with_the_rights_that_are_listed() {
    let cluster = Cluster::start(Options::default().with_audit()).await;
    cluster.namespace(ACCOUNTS).await;
    cluster.namespace("elsewhere").await;
    let before = cluster.inventory().await;
    let account = grant(&cluster, Command::OlmInstall, |_| true).await;
    cluster
        .install_elsewhere(&["--kubeconfig", text(&account)])
        .await
        .fine();
    let account = grant(&cluster, Command::OlmUninstall, |_| true).await;
    cluster.scene("a namespace that others use stays");
    cluster
        .apply(
            "configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "operators"}}),
        )
        .await;
    let removed = run(&cluster, &account, &["olm", "uninstall", "--timeout", "120s"])
        .await
        .fine();
    let kept = removed.json["kept"].as_array().unwrap();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(kept[0]["object"]["name"], "operators");
    assert!(
        kept[0]["why"].as_str().unwrap().contains("ConfigMap operators/theirs"),
        "{kept:?}"
    );
    assert!(
        cluster
            .get("v1", "Namespace", "namespaces", None, "elsewhere")
            .await
            .is_none()
    );
    cluster
        .delete("v1", "ConfigMap", "configmaps", Some("operators"), "theirs")
        .await;
    run(&cluster, &account, &["olm", "uninstall", "--timeout", "120s"])
        .await
        .fine();
    assert!(
        cluster
            .get("v1", "Namespace", "namespaces", None, "operators")
            .await
            .is_none()
    );
    compare(&cluster, &[Command::OlmInstall, Command::OlmUninstall], "none").await;
    revoke(&cluster).await;
    let left: Vec<String> = before
        .iter()
        .filter(|object| !object.contains("elsewhere"))
        .cloned()
        .collect();
    cluster.nothing_missing(&left).await;
}

/// The service account of an OperatorGroup, as the documentation describes it: also if a ClusterRole of the bundle
/// exists already.
#[tokio::test]
async fn the_account_of_the_documentation_lets_olm_install() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    cluster.namespace("shop").await;
    let guide =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/cluster.md")).unwrap();
    let section = guide.split_once("## Install with limited permissions").unwrap().1;
    let yaml = section.split_once("```yaml\n").unwrap().1.split_once("```").unwrap().0;
    cluster
        .apply("serviceaccounts", json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "installer", "namespace": "shop"}}))
        .await;
    for document in yaml.split("---\n") {
        let object: Value = serde_yaml::from_str(document).unwrap();
        let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
        cluster.apply(&plural, object).await;
    }
    cluster
        .apply("operatorgroups", json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "limited", "namespace": "shop"},
            "spec": {"targetNamespaces": ["shop"], "serviceAccountName": "installer"}}))
        .await;
    let mut bundle = Bundle::new("first", "0.0.1");
    bundle.extra = vec![cluster_role("first-viewer")];
    let directory = bundle.write(cluster.folder.path());
    let mode = ["--install-mode", "OwnNamespace"];
    for scene in ["nothing exists", "the ClusterRole exists"] {
        cluster.scene(scene);
        cluster.run_bundle(&directory, "shop", &mode).await.fine();
        cluster.cleanup("first", "shop", &[]).await.fine();
        cluster.apply("clusterroles", cluster_role("first-viewer")).await;
    }
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

async fn run(cluster: &Cluster, kubeconfig: &Path, arguments: &[&str]) -> Answer {
    let mut all = arguments.to_vec();
    all.extend(["-o", "json", "--kubeconfig", text(kubeconfig)]);
    if !arguments.contains(&"olm") {
        all.extend(["-n", NAMESPACE]);
    }
    cluster.olmkit(&all).await
}

async fn make_thing(cluster: &Cluster, namespace: &str, finalizers: &[&str]) {
    cluster
        .apply("things", json!({"apiVersion": "first.example.com/v1", "kind": "Thing", "metadata": {"name": "one", "namespace": namespace, "finalizers": finalizers}}))
        .await;
}

fn cluster_role(name: &str) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": ["first.example.com"], "resources": ["things"], "verbs": ["get"]}]})
}

fn priority_class() -> Value {
    json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "first"}, "value": 5})
}

fn cluster_binding() -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "first-viewers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "first-viewer"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "first-viewers"}]})
}
