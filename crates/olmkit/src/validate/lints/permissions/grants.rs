//! Evaluates the permissions of a ClusterServiceVersion.

use serde_json::Value;

use crate::validate::context::{Context, Csv, field, items, strings};

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

/// At most this many comparisons of words in rules: some seconds.
const COMPARISONS: usize = 100_000_000;

/// A message if the rules are too many to compare each with all others, and with the bundle's APIs.
pub(super) fn too_many(context: &Context<'_>, csv: &Csv<'_>) -> Option<String> {
    let words = |rule: &Value| {
        let keys = ["apiGroups", "resources", "verbs", "nonResourceURLs"];
        1 + keys.iter().map(|key| items(rule, key).len()).sum::<usize>()
    };
    let count = |list: &str| -> usize {
        let permissions = csv.list(list).iter();
        permissions
            .flat_map(|permission| items(permission, "rules"))
            .map(words)
            .sum()
    };
    let (namespaced, cluster) = (count(NAMESPACED), count(CLUSTER));
    let apis = csv.list("/spec/customresourcedefinitions/owned").len() + context.bundle.crds().count();
    let comparisons = (namespaced + cluster).saturating_mul(namespaced + apis);
    (comparisons > COMPARISONS)
        .then(|| format!("the permissions are not checked: {comparisons} comparisons are more than {COMPARISONS}"))
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
