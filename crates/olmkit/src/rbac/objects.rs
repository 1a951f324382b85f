//! Roles and bindings as objects.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::PolicyRule;

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// A service account that a binding gives a role to.
#[derive(Debug, Clone, Copy)]
pub struct Account<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
}

/// A Role: rules in one namespace.
#[must_use]
pub fn role(name: &str, namespace: &str, labels: &Labels, rules: &[PolicyRule]) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "Role",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "rules": rules,
    })
}

/// A ClusterRole.
#[must_use]
pub fn cluster_role(name: &str, labels: &Labels, rules: &[PolicyRule]) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels},
        "rules": rules,
    })
}

/// A RoleBinding that gives a Role of its namespace to an account.
#[must_use]
pub fn binding(name: &str, namespace: &str, labels: &Labels, role: &str, account: Account<'_>) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}],
    })
}

/// A ClusterRoleBinding that gives a ClusterRole to an account.
#[must_use]
pub fn cluster_binding(name: &str, labels: &Labels, role: &str, account: Account<'_>) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": labels},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}],
    })
}

/// The ClusterRoles for people who use a custom resource: admin, editor and viewer, each with its name's ending. They are
/// not bound; whoever runs the cluster binds them.
#[must_use]
pub fn user_roles(group: &str, plural: &str) -> [(&'static str, Vec<PolicyRule>); 3] {
    let rules = |verbs: &[&str]| {
        let rule = |resource: String, verbs: &[&str]| PolicyRule {
            api_groups: vec![group.to_owned()],
            resources: vec![resource],
            verbs: verbs.iter().map(ToString::to_string).collect(),
            ..PolicyRule::default()
        };
        vec![
            rule(plural.to_owned(), verbs),
            rule(format!("{plural}/status"), &["get"]),
        ]
    };
    [
        ("admin", rules(&["*"])),
        (
            "editor",
            rules(&["create", "delete", "get", "list", "patch", "update", "watch"]),
        ),
        ("viewer", rules(&["get", "list", "watch"])),
    ]
}
