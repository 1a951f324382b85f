//! Service accounts, roles and bindings from the permissions of a CSV.

use crate::object::SetAt as _;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Target;
use crate::rbac::{self, Account, Labels};

/// The objects: accounts, then the roles of each with their bindings.
pub(super) fn objects(csv: &Value, target: &Target) -> Vec<Value> {
    let name = csv
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or("operator");
    let operator = name.split('.').next().unwrap_or(name);
    let list = |field: &str| {
        csv.pointer(&format!("/spec/install/spec/{field}"))
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (permissions, cluster_permissions) = (list("permissions"), list("clusterPermissions"));
    let mut objects = Vec::new();
    for account in accounts(csv, &permissions, &cluster_permissions) {
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": account, "namespace": target.namespace},
        }));
    }
    for entry in &permissions {
        let account = account_of(entry);
        let label = format!("{operator}-{account}");
        if target.watched.is_empty() {
            // OLM lifts namespaced permissions to the cluster when all namespaces are watched.
            objects.extend(clusterwide(&format!("{label}-watched"), account, entry, target));
            continue;
        }
        let mut namespaces: BTreeSet<&str> = target.watched.iter().map(String::as_str).collect();
        namespaces.insert(&target.namespace);
        for namespace in namespaces {
            let mut role = rbac::role(&label, namespace, &Labels::new(), &[]);
            role.set_at(&["rules"], entry.get("rules").cloned().unwrap_or_default());
            objects.push(unlabelled(role));
            let account = Account {
                name: account,
                namespace: &target.namespace,
            };
            objects.push(unlabelled(rbac::binding(
                &label,
                namespace,
                &Labels::new(),
                &label,
                account,
            )));
        }
    }
    for entry in &cluster_permissions {
        let account = account_of(entry);
        objects.extend(clusterwide(&format!("{operator}-{account}"), account, entry, target));
    }
    objects
}

fn clusterwide(name: &str, account: &str, entry: &Value, target: &Target) -> [Value; 2] {
    let mut role = rbac::cluster_role(name, &Labels::new(), &[]);
    role.set_at(&["rules"], entry.get("rules").cloned().unwrap_or_default());
    let account = Account {
        name: account,
        namespace: &target.namespace,
    };
    [
        unlabelled(role),
        unlabelled(rbac::cluster_binding(name, &Labels::new(), name, account)),
    ]
}

fn unlabelled(mut object: Value) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("labels");
    }
    object
}

fn account_of(entry: &Value) -> &str {
    entry
        .get("serviceAccountName")
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty())
        .unwrap_or("default")
}

/// Accounts that must be made: those of permissions and Deployments, without the one every namespace has.
fn accounts<'a>(csv: &'a Value, permissions: &'a [Value], cluster_permissions: &'a [Value]) -> BTreeSet<&'a str> {
    let deployments = csv.pointer("/spec/install/spec/deployments").and_then(Value::as_array);
    let of_pods = deployments
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.pointer("/spec/template/spec/serviceAccountName")?.as_str());
    permissions
        .iter()
        .chain(cluster_permissions)
        .map(account_of)
        .chain(of_pods)
        .filter(|account| !account.is_empty() && *account != "default")
        .collect()
}
