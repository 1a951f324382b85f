//! Adds `resources` to owned APIs, from the operator's create permissions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::facts::Facts;
use super::{Action, Proposal, proposal};
use crate::validate::Csv;

/// Kinds that consoles show below a custom resource: group, plural, version, kind.
const KINDS: [(&str, &str, &str, &str); 16] = [
    ("apps", "daemonsets", "v1", "DaemonSet"),
    ("apps", "deployments", "v1", "Deployment"),
    ("apps", "replicasets", "v1", "ReplicaSet"),
    ("apps", "statefulsets", "v1", "StatefulSet"),
    ("batch", "cronjobs", "v1", "CronJob"),
    ("batch", "jobs", "v1", "Job"),
    ("", "configmaps", "v1", "ConfigMap"),
    ("", "persistentvolumeclaims", "v1", "PersistentVolumeClaim"),
    ("", "pods", "v1", "Pod"),
    ("", "secrets", "v1", "Secret"),
    ("", "serviceaccounts", "v1", "ServiceAccount"),
    ("", "services", "v1", "Service"),
    ("networking.k8s.io", "ingresses", "v1", "Ingress"),
    ("rbac.authorization.k8s.io", "rolebindings", "v1", "RoleBinding"),
    ("rbac.authorization.k8s.io", "roles", "v1", "Role"),
    ("route.openshift.io", "routes", "v1", "Route"),
];

/// The kinds that the operator may create, for each API without resources: no file relates them to a specific API.
pub(super) fn propose(facts: &Facts) -> Vec<Proposal> {
    let Some(csv) = facts.csv() else { return Vec::new() };
    let created = created(&csv);
    if created.is_empty() {
        return Vec::new();
    }
    let items: Vec<Value> = created
        .iter()
        .map(|(kind, version)| json!({"kind": kind, "name": "", "version": version}))
        .collect();
    let owned = facts.owned(&csv).into_iter();
    owned
        .filter(|owned| {
            owned
                .entry
                .get("resources")
                .and_then(Value::as_array)
                .is_none_or(Vec::is_empty)
        })
        .map(|owned| {
            let action = Action::Append {
                map: owned.pointer.clone(),
                key: "resources".to_owned(),
                items: items.clone(),
            };
            let title = format!(
                "list the kinds the operator may create as resources of {}",
                owned.shown()
            );
            let group = format!("resources {}", owned.group());
            proposal(&csv.object.path, title, false, &group, vec![action])
        })
        .collect()
}

fn created(csv: &Csv<'_>) -> BTreeSet<(&'static str, &'static str)> {
    let mut kinds = BTreeSet::new();
    for list in ["permissions", "clusterPermissions"] {
        let accounts = csv.list(&format!("/spec/install/spec/{list}")).iter();
        let rules = accounts
            .filter_map(|account| account.get("rules")?.as_array())
            .flatten();
        for rule in rules {
            let has = |key: &str, wanted: &str| {
                let names = rule.get(key).and_then(Value::as_array);
                names.into_iter().flatten().any(|name| name.as_str() == Some(wanted))
            };
            if !has("verbs", "create") && !has("verbs", "*") {
                continue;
            }
            let of_rule = KINDS
                .iter()
                .filter(|(group, plural, ..)| has("apiGroups", group) && has("resources", plural));
            kinds.extend(of_rule.map(|(_, _, version, kind)| (*kind, *version)));
        }
    }
    kinds
}
