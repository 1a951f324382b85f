//! The kubeconfigs that kubectl takes: several files as one, and a program that gives the credentials.

use std::fs;
use std::path::Path;

use kube_testbed::Options;
use serde_json::{Value, json};

use crate::harness::{Answer, Cluster, answer};

#[tokio::test]
async fn kubeconfigs_are_those_of_kubectl() {
    let cluster = Cluster::start(Options::default()).await;
    let directory = cluster.folder.path().to_owned();
    cluster.namespace("accounts").await;
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": "accounts"}});
    cluster.apply("serviceaccounts", account).await;
    cluster
        .apply("clusterrolebindings", json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "accounts"}]}))
        .await;
    let path = cluster
        .plane
        .service_account_kubeconfig("accounts", "reader")
        .await
        .unwrap();
    let whole: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let token = whole["users"][0]["user"]["token"].as_str().unwrap().to_owned();
    let part = |name: &str, keys: &[&str]| {
        let mut config = json!({"apiVersion": "v1", "kind": "Config"});
        for key in keys {
            config[*key] = whole[*key].clone();
        }
        let path = directory.join(name);
        fs::write(&path, config.to_string()).unwrap();
        path
    };

    cluster.scene("several files are one");
    let (first, second) = (
        part("first", &["clusters", "contexts"]),
        part("second", &["users", "current-context"]),
    );
    let both = format!("{}:{}", first.display(), second.display());
    absent(&run(&cluster, &[], &both));

    cluster.scene("a program gives the credentials");
    let credential =
        json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}});
    fs::write(directory.join("credential"), credential.to_string()).unwrap();
    let with_program = |name: &str, program: &str, arguments: Value| {
        let mut config = whole.clone();
        config["users"][0]["user"] = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": program,
            "args": arguments, "interactiveMode": "Never", "installHint": "install the helper of the provider"}});
        let path = directory.join(name);
        fs::write(&path, config.to_string()).unwrap();
        path
    };
    let credential = directory.join("credential");
    let path = with_program("exec", "cat", json!([credential]));
    absent(&run(&cluster, &["--kubeconfig", text(&path)], "/nonexistent"));

    cluster.scene("a program that fails, and one that is missing, are named");
    let failing = with_program("failing", "sh", json!(["-c", "echo no session >&2; exit 3"]));
    let failed = run(&cluster, &["--kubeconfig", text(&failing)], "/nonexistent");
    assert!(!failed.success && failed.stderr.contains("exec"), "{}", failed.stderr);
    let missing = with_program("missing", "no-such-helper", json!([]));
    let failed = run(&cluster, &["--kubeconfig", text(&missing)], "/nonexistent");
    assert!(
        !failed.success && failed.stderr.contains("no-such-helper"),
        "{}",
        failed.stderr
    );
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn run(cluster: &Cluster, arguments: &[&str], kubeconfig: &str) -> Answer {
    let mut command = cluster.command(&[&["olm", "status", "-o", "json"], arguments].concat());
    answer(&command.env("KUBECONFIG", kubeconfig).output().unwrap())
}

/// The API server answered: there is no OLM.
#[track_caller]
fn absent(found: &Answer) {
    assert_eq!(
        found.errors(),
        ["olm-not-installed"],
        "{}{}",
        found.stdout,
        found.stderr
    );
}
