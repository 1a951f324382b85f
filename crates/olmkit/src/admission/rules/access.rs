//! RBAC.

use super::{Fields, list, object, text};
use crate::admission::forms;
use crate::admission::walk::Walk;

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn cluster_role(walk: &mut Walk<'_>, map: &Fields) {
    if object(map, "aggregationRule").is_some_and(|rule| list(rule, "clusterRoleSelectors").is_empty()) {
        walk.reject_at(
            &["aggregationRule", "clusterRoleSelectors"],
            "must have at least one item",
        );
    }
}

pub(super) fn policy_rule(walk: &mut Walk<'_>, map: &Fields) {
    if list(map, "verbs").is_empty() {
        walk.reject_at(&["verbs"], "must contain at least one value");
    }
    let is_empty = |key: &str| list(map, key).is_empty();
    if !is_empty("nonResourceURLs") {
        if walk.root == "Role" {
            walk.reject_at(
                &["nonResourceURLs"],
                "namespaced rules cannot apply to non-resource URLs",
            );
        } else if !["apiGroups", "resources", "resourceNames"].into_iter().all(is_empty) {
            let message = "rules cannot apply to both regular resources and non-resource URLs";
            walk.reject_at(&["nonResourceURLs"], message);
        }
        return;
    }
    for (key, what) in [("apiGroups", "API group"), ("resources", "resource")] {
        if is_empty(key) {
            walk.reject_at(&[key], format!("resource rules must supply at least one {what}"));
        }
    }
}

pub(super) fn cluster_role_binding(walk: &mut Walk<'_>, map: &Fields) {
    if object(map, "roleRef").is_some_and(|role| text(role, "kind") == "Role") {
        walk.reject_at(&["roleRef", "kind"], "must be ClusterRole");
    }
}

pub(super) fn subject(walk: &mut Walk<'_>, map: &Fields) {
    let (group, name) = (text(map, "apiGroup"), text(map, "name"));
    match text(map, "kind") {
        "ServiceAccount" => {
            if let Some(problem) = forms::problem("subdomain", name).filter(|_| !name.is_empty()) {
                walk.reject_at(&["name"], problem);
            }
            if !group.is_empty() {
                walk.reject_at(&["apiGroup"], "must be empty for a ServiceAccount");
            }
            if walk.root == "ClusterRoleBinding" && text(map, "namespace").is_empty() {
                walk.reject_at(&["namespace"], "is required for a ServiceAccount");
            }
        }
        "User" | "Group" if !group.is_empty() && group != RBAC => {
            walk.reject_at(&["apiGroup"], format!("must be {RBAC}"));
        }
        _ => {}
    }
}
