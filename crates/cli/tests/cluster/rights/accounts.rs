//! Service accounts with the permissions of one command.

use std::path::PathBuf;

use olmkit_cluster::rights::{Command, Place, RIGHTS, Right, When};
use serde_json::{Value, json};

use super::NAMESPACE;
use crate::catalogd::SYSTEM;
use crate::harness::Cluster;

/// Namespace of the service accounts.
pub const ACCOUNTS: &str = "accounts";

/// The permission for custom resources that outlive their operator. The table has no rows for their groups.
const RELEASE: Right = Right {
    commands: &[
        Command::Cleanup,
        Command::CleanupV1,
        Command::ExtensionUninstall,
        Command::OlmUninstall,
    ],
    group: "first.example.com",
    resources: &["things"],
    verbs: &["list", "get", "patch"],
    place: Place::Cluster,
    when: When::Operands,
};

/// Service account name for a command.
pub fn name(command: Command) -> String {
    command.as_str().replace(' ', "-")
}

/// A service account with exactly those permissions of a command that satisfy `passes`.
pub async fn grant(cluster: &Cluster, command: Command, passes: impl Fn(&Right) -> bool) -> PathBuf {
    let account = name(command);
    let object =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": ACCOUNTS}});
    cluster.apply("serviceaccounts", object).await;
    let rights = || {
        RIGHTS
            .iter()
            .filter(|right| right.commands.contains(&command) && passes(right))
    };
    let rules = |places: &[Place]| -> Vec<Value> {
        rights()
            .filter(|right| places.contains(&right.place))
            .map(|right| json!({"apiGroups": [right.group], "resources": right.resources, "verbs": right.verbs}))
            .collect()
    };
    let mut of_cluster = rules(&[Place::Cluster]);
    if [Command::Cleanup, Command::CleanupV1, Command::ExtensionUninstall].contains(&command) {
        of_cluster.push(json!({"apiGroups": ["first.example.com", "second.example.com"], "resources": ["things"], "verbs": ["list", "get", "delete"]}));
    }
    if RELEASE.commands.contains(&command) && passes(&RELEASE) {
        of_cluster.push(json!({"apiGroups": ["first.example.com", "second.example.com"], "resources": RELEASE.resources, "verbs": RELEASE.verbs}));
    }
    bind(cluster, &account, None, of_cluster).await;
    bind(cluster, &account, Some("kube-system"), rules(&[Place::KubeSystem])).await;
    let exists = |name| cluster.get("v1", "Namespace", "namespaces", None, name);
    if exists("olm").await.is_some() {
        bind(cluster, &account, Some("olm"), rules(&[Place::Catalogs, Place::Olm])).await;
    }
    if exists(SYSTEM).await.is_some() {
        bind(cluster, &account, Some(SYSTEM), rules(&[Place::Catalogd])).await;
    }
    if exists(NAMESPACE).await.is_some() {
        bind(
            cluster,
            &account,
            Some(NAMESPACE),
            rules(&[Place::Namespace, Place::Catalogs]),
        )
        .await;
    }
    cluster
        .plane
        .service_account_kubeconfig(ACCOUNTS, &account)
        .await
        .unwrap()
}

async fn bind(cluster: &Cluster, account: &str, namespace: Option<&str>, rules: Vec<Value>) {
    let role = format!("test-{account}");
    let (kind, scope) = if namespace.is_some() {
        ("Role", "roles")
    } else {
        ("ClusterRole", "clusterroles")
    };
    let group = "rbac.authorization.k8s.io";
    let metadata = json!({"name": role, "namespace": namespace});
    let api_version = format!("{group}/v1");
    cluster
        .apply(
            scope,
            json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": rules}),
        )
        .await;
    let bindings = if namespace.is_some() {
        "rolebindings"
    } else {
        "clusterrolebindings"
    };
    cluster
        .apply(
            bindings,
            json!({"apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": ACCOUNTS}]}),
        )
        .await;
}

/// Removes the service accounts and their grants.
pub async fn revoke(cluster: &Cluster) {
    let api_version = "rbac.authorization.k8s.io/v1";
    for object in cluster.inventory().await {
        let Some((kind, path)) = object.split_once(' ') else {
            continue;
        };
        let Some((namespace, name)) = path.split_once('/') else {
            continue;
        };
        let namespace = (!namespace.is_empty()).then_some(namespace);
        match kind {
            "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" if name.starts_with("test-") => {
                cluster
                    .delete(api_version, kind, &format!("{}s", kind.to_lowercase()), namespace, name)
                    .await;
            }
            "ServiceAccount" if namespace == Some(ACCOUNTS) && name != "default" => {
                cluster.delete("v1", kind, "serviceaccounts", namespace, name).await;
            }
            _ => {}
        }
    }
}
