//! Evaluates the permissions of a ClusterServiceVersion.

use serde_json::Value;

use crate::validate::context::{Csv, field, items, strings};

pub(super) const NAMESPACED: &str = "/spec/install/spec/permissions";
pub(super) const CLUSTER: &str = "/spec/install/spec/clusterPermissions";

/// All rules with their places.
pub(super) fn rules<'v>(csv: &Csv<'v>) -> Vec<(String, &'v str, &'v Value)> {
    let mut all = Vec::new();
    for list in [NAMESPACED, CLUSTER] {
        for (at, permission) in csv.list(list).iter().enumerate() {
            let account = field(permission, "serviceAccountName");
            for (index, rule) in items(permission, "rules").iter().enumerate() {
                all.push((format!("{list}/{at}/rules/{index}"), account, rule));
            }
        }
    }
    all
}

/// True when a rule covers a group, a resource and a verb.
pub(super) fn allows(rule: &Value, group: &str, resource: &str, verb: &str) -> bool {
    items(rule, "resourceNames").is_empty() && allows_some(rule, group, resource, verb)
}

/// True when a rule covers a group, a resource and a verb, perhaps for objects of certain names only.
pub(super) fn allows_some(rule: &Value, group: &str, resource: &str, verb: &str) -> bool {
    let has = |key: &str, wanted: &str| strings(rule, key).any(|value| value == "*" || value == wanted);
    has("apiGroups", group) && has("resources", resource) && has("verbs", verb)
}
