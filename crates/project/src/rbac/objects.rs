//! Roles and bindings as objects.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::PolicyRule;

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// A service account that a binding grants a role.
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

/// A RoleBinding that grants a Role of its namespace to a service account.
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

/// A ClusterRoleBinding that grants a ClusterRole to a service account.
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

/// The ClusterRoles for users of a custom resource: admin, editor and viewer, each with its name suffix. They are not
/// bound. A cluster administrator binds them. A kind that `scales` has the subresource for `kubectl scale` and
/// autoscalers.
#[must_use]
pub fn user_roles(group: &str, plural: &str, scales: bool) -> [(&'static str, Vec<PolicyRule>); 3] {
    let rules = |verbs: &[&str], scale_verbs: &[&str]| {
        let rule = |resource: String, verbs: &[&str]| PolicyRule {
            api_groups: vec![group.to_owned()],
            resources: vec![resource],
            verbs: verbs.iter().map(ToString::to_string).collect(),
            ..PolicyRule::default()
        };
        let mut rules = vec![rule(plural.to_owned(), verbs)];
        if scales {
            rules.push(rule(format!("{plural}/scale"), scale_verbs));
        }
        rules.push(rule(format!("{plural}/status"), &["get"]));
        rules
    };
    [
        ("admin", rules(&["*"], &["*"])),
        (
            "editor",
            rules(
                &["create", "delete", "get", "list", "patch", "update", "watch"],
                &["get", "patch", "update"],
            ),
        ),
        ("viewer", rules(&["get", "list", "watch"], &["get"])),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editors_of_a_scalable_kind_may_scale_it() {
        let resources = |scales| -> Vec<Vec<String>> {
            let roles = user_roles("example.com", "caches", scales);
            roles
                .into_iter()
                .map(|(_, rules)| {
                    let scale = rules.into_iter().filter(|rule| rule.resources == ["caches/scale"]);
                    scale.flat_map(|rule| rule.verbs).collect()
                })
                .collect()
        };
        assert_eq!(
            resources(true),
            [vec!["*"], vec!["get", "patch", "update"], vec!["get"]]
        );
        assert_eq!(resources(false), [vec![""; 0], vec![], vec![]]);
    }
}
