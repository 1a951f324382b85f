//! Permissions of the commands for OLM v1, as in `crate::rights`: sufficient, minimal, and checked before anything is
//! changed. The controllers' writes are recorded.

use std::path::Path;

use kube_testbed::Options;
use olmkit_cluster::rights::{Command, Right};
use serde_json::json;
use test_support::registry::{Registry, Setup};

use super::definitions;
use super::recorded::{CATALOGS, EXTENSIONS, GROUP, appears, make_objects, serve, succeed};
use crate::bundle::Bundle;
use crate::harness::{Answer, Cluster};
use crate::rights::{ACCOUNTS, NAMESPACE, assert_named, compare, grant, revoke, text};

#[tokio::test]
async fn commands_for_olm_v1_need_the_rights_that_are_listed_and_no_others() {
    let Some(registry) = Registry::start(&Setup::default()) else {
        return;
    };
    let cluster = Cluster::start(Options::default().with_audit()).await;
    for name in [ACCOUNTS, NAMESPACE] {
        cluster.namespace(name).await;
    }
    if !definitions::standard(&cluster).await {
        return;
    }
    let before = cluster.inventory().await;
    bundles(&cluster, &registry.host()).await;
    packages(&cluster).await;
    let used = [
        Command::RunBundleV1,
        Command::CleanupV1,
        Command::ExtensionInstall,
        Command::ExtensionStatus,
        Command::ExtensionUninstall,
    ];
    compare(&cluster, &used, "first.example.com").await;
    revoke(&cluster).await;
    cluster.nothing_left(&before).await;
}

async fn run(cluster: &Cluster, account: &Path, arguments: &[&str]) -> Answer {
    let more = ["-o", "json", "--kubeconfig", text(account)];
    cluster.olmkit(&[arguments, &more].concat()).await
}

async fn bundles(cluster: &Cluster, host: &str) {
    let (old, new) = (Bundle::new("first", "0.0.1"), Bundle::new("first", "0.0.2"));
    let folders = [&old, &new].map(|bundle| bundle.write(cluster.folder.path()));
    let push_to = format!("{host}/rights");
    let flow = |command: &'static str, directory: &'static str| {
        [
            "run",
            command,
            directory,
            "--olm",
            "v1",
            "-n",
            NAMESPACE,
            "--timeout",
            "60s",
            "--push-to",
        ]
    };
    cluster.scene("a right that is missing is named before anything is pushed or made");
    let lacks = |right: &Right| !(right.resources.contains(&"clusterextensions") && right.verbs.contains(&"create"));
    let account = grant(cluster, Command::RunBundleV1, lacks).await;
    let first: &'static str = Box::leak(text(&folders[0]).to_owned().into_boxed_str());
    let second: &'static str = Box::leak(text(&folders[1]).to_owned().into_boxed_str());
    let refused = run(cluster, &account, &[&flow("bundle", first)[..], &[&push_to]].concat()).await;
    assert_eq!(refused.json["result"], "rejected", "{}", refused.stdout);
    assert_named(&refused, "clusterextensions", "create");

    cluster.scene("install, inspect, upgrade, remove, each with its command's permissions");
    let account = grant(cluster, Command::RunBundleV1, |_| true).await;
    for (command, directory, bundle) in [("bundle", first, &old), ("bundle-upgrade", second, &new)] {
        let arguments = [&flow(command, directory)[..], &[&push_to]].concat();
        let (ended, ()) = tokio::join!(run(cluster, &account, &arguments), play(cluster, bundle, &push_to));
        assert_eq!(ended.fine().json["result"], "succeeded");
    }
    let account = grant(cluster, Command::ExtensionStatus, |_| true).await;
    for arguments in [&["extension", "status", "first"][..], &["extension", "status"]] {
        let status = run(cluster, &account, arguments).await.fine();
        assert_eq!(status.json[0]["bundle"], "first.v0.0.2");
    }
    thing(cluster).await;
    let account = grant(cluster, Command::CleanupV1, |_| true).await;
    let cleaned = run(cluster, &account, &["cleanup", "first", "--olm", "v1"])
        .await
        .fine();
    assert_eq!(cleaned.json["kept"], json!([]));
}

async fn packages(cluster: &Cluster) {
    cluster.scene("a package of a catalog");
    let ours = json!({"apiVersion": GROUP, "kind": "ClusterCatalog",
        "metadata": {"name": "ours", "labels": {"olm.operatorframework.io/metadata.name": "ours"}},
        "spec": {"source": {"type": "Image", "image": {"ref": "registry.test/ours:v1"}}}});
    cluster.apply("clustercatalogs", ours).await;
    serve(cluster, "ours").await;
    let bundle = Bundle::new("first", "0.0.1");
    let account = grant(cluster, Command::ExtensionInstall, |_| true).await;
    let arguments = ["extension", "install", "first", "-n", NAMESPACE, "--timeout", "60s"];
    let installed = async {
        appears(cluster, EXTENSIONS, "first", |_| true).await;
        make_objects(cluster, "first", NAMESPACE, &bundle).await;
        succeed(cluster, "first", &bundle, "registry.test/first@sha256:1").await;
    };
    let (ended, ()) = tokio::join!(run(cluster, &account, &arguments), installed);
    ended.fine();
    thing(cluster).await;
    let account = grant(cluster, Command::ExtensionUninstall, |_| true).await;
    let removed = run(cluster, &account, &["extension", "uninstall", "first"])
        .await
        .fine();
    assert!(
        removed.json["removed"].to_string().contains("\"Thing\""),
        "{}",
        removed.stdout
    );
    cluster.delete(CATALOGS.0, CATALOGS.1, CATALOGS.2, None, "ours").await;
}

/// Writes the objects that the controllers create after they have installed the bundle that `run bundle` pushed.
async fn play(cluster: &Cluster, bundle: &Bundle, repository: &str) {
    let is_new =
        |extension: &serde_json::Value| extension["spec"]["source"]["catalog"]["version"] == bundle.version.as_str();
    appears(cluster, EXTENSIONS, "first", is_new).await;
    serve(cluster, "first-catalog").await;
    make_objects(cluster, "first", NAMESPACE, bundle).await;
    let name = format!("{repository}/first-bundle");
    let mut inspect = cluster.command(&["image", "inspect", &format!("{name}:{}", bundle.version)]);
    let output = tokio::task::spawn_blocking(move || inspect.output().unwrap())
        .await
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let digest = said.split_once("sha256:").map(|(_, rest)| &rest[..64]).unwrap();
    succeed(cluster, "first", bundle, &format!("{name}@sha256:{digest}")).await;
}

async fn thing(cluster: &Cluster) {
    cluster.serves("first.example.com/v1", "things").await;
    let object = json!({"apiVersion": "first.example.com/v1", "kind": "Thing", "metadata": {"name": "one", "namespace": NAMESPACE}});
    cluster.apply("things", object).await;
}
