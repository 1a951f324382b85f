//! A plan that OLM is still carrying out when it goes: what that pass creates belongs to the package.
//!
//! Seen on a real node: the run fails since the account of the OperatorGroup lacks rights, its plan and Subscription are removed, and
//! somebody grants the rights before OLM is through with the steps. Here the test plays the end of that pass, which OLM's
//! controller does under the client name `catalog`.

use kube::api::PostParams;
use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::foreign::names;
use crate::harness::Cluster;

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// The next run finds the objects of that pass and completes the installation.
pub async fn followed_by_a_run(cluster: &Cluster) {
    let before = begin(cluster, "late", "late_pass_followed_by_a_run").await;
    let mut bundle = Bundle::new("late", "1.0.0");
    bundle.extra = vec![role("late-reader"), role("late-of-olm"), role("late-of-others")];
    create(cluster, "late-of-olm", "catalog").await;
    let folder = bundle.write(cluster.folder.path());
    let refused = cluster.run_bundle(&folder, "late", &[]).await;
    assert_eq!(refused.errors(), ["forbidden"]);
    create(cluster, "late-reader", "catalog").await;
    create(cluster, "late-of-others", "kubectl").await;
    grant(cluster, "late").await;
    cluster.run_bundle(&folder, "late", &[]).await.fine();
    let cleaned = cluster.cleanup("late", "late", &[]).await.fine();
    let mut kept = names(&cleaned, "kept");
    kept.sort();
    assert_eq!(kept, ["late-of-olm", "late-of-others"]);
    for name in kept {
        cluster.delete(RBAC, "ClusterRole", "clusterroles", None, &name).await;
    }
    end(cluster, "late", &before).await;
}

/// Nobody runs it again: cleanup finds them without a label.
pub async fn followed_by_a_cleanup(cluster: &Cluster) {
    let before = begin(cluster, "later", "late_pass_followed_by_a_cleanup").await;
    let mut bundle = Bundle::new("later", "1.0.0");
    bundle.extra = vec![role("later-reader")];
    let refused = cluster
        .run_bundle(&bundle.write(cluster.folder.path()), "later", &[])
        .await;
    assert_eq!(refused.errors(), ["forbidden"]);
    grant(cluster, "later").await;
    create(cluster, "later-reader", "catalog").await;
    let cleaned = cluster.cleanup("later", "later", &[]).await.fine();
    assert!(names(&cleaned, "removed").contains(&"later-reader".to_owned()));
    end(cluster, "later", &before).await;
}

/// A namespace where OLM installs with an account that may create ClusterServiceVersions and nothing else.
async fn begin(cluster: &Cluster, namespace: &str, scene: &str) -> Vec<String> {
    cluster.scene(scene);
    let before = cluster.inventory().await;
    cluster.namespace(namespace).await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "installer", "namespace": namespace}});
    cluster.apply("serviceaccounts", account).await;
    let group = json!({
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": "restricted", "namespace": namespace},
        "spec": {"targetNamespaces": [namespace], "serviceAccountName": "installer"},
    });
    cluster.apply("operatorgroups", group).await;
    let csvs = json!({"apiGroups": ["operators.coreos.com"], "resources": ["clusterserviceversions"], "verbs": ["get", "create", "update"]});
    rights(cluster, namespace, "first", csvs).await;
    before
}

async fn end(cluster: &Cluster, namespace: &str, before: &[String]) {
    for role in ["first", "all"] {
        let name = format!("{namespace}-{role}");
        cluster.delete(RBAC, "ClusterRole", "clusterroles", None, &name).await;
        cluster
            .delete(RBAC, "ClusterRoleBinding", "clusterrolebindings", None, &name)
            .await;
    }
    cluster.delete("v1", "Namespace", "namespaces", None, namespace).await;
    cluster.nothing_left(before).await;
}

async fn grant(cluster: &Cluster, namespace: &str) {
    rights(
        cluster,
        namespace,
        "all",
        json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}),
    )
    .await;
}

/// Gives the installer a rule in all namespaces.
async fn rights(cluster: &Cluster, namespace: &str, name: &str, rule: Value) {
    let name = format!("{namespace}-{name}");
    let role = json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]});
    cluster.apply("clusterroles", role).await;
    let binding = json!({
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "installer", "namespace": namespace}],
    });
    cluster.apply("clusterrolebindings", binding).await;
}

fn role(name: &str) -> Value {
    json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
}

/// Creates a ClusterRole as OLM does it, under the name of a client.
async fn create(cluster: &Cluster, name: &str, manager: &str) {
    let mut object = role(name);
    object["metadata"]["labels"] = json!({"olm.managed": "true"});
    let parameters = PostParams {
        field_manager: Some(manager.to_owned()),
        ..PostParams::default()
    };
    let roles = cluster.api(RBAC, "ClusterRole", "clusterroles", None);
    roles
        .create(&parameters, &serde_json::from_value(object).unwrap())
        .await
        .unwrap();
}
