//! Service accounts, roles and bindings from the permissions of a ClusterServiceVersion.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Plan, Style, hash, object_name, text};
use olmkit_base::object::SetAt as _;
use olmkit_go::structs::encode;
use olmkit_go::structs::newer;

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
const PERMISSIONS: &str = "/spec/install/spec/permissions";
const CLUSTER_PERMISSIONS: &str = "/spec/install/spec/clusterPermissions";

/// The service account of every namespace.
const DEFAULT: &str = "default";

fn account_of(entry: &Value) -> &str {
    match text(entry, "serviceAccountName") {
        "" => DEFAULT,
        name => name,
    }
}

impl<'a> Plan<'a> {
    /// The service accounts in permissions, without the default one. `more` are created too.
    #[must_use]
    pub fn service_accounts(&self, more: impl IntoIterator<Item = &'a str>) -> Vec<Value> {
        let entries = self.list(PERMISSIONS).iter().chain(self.list(CLUSTER_PERMISSIONS));
        let names: BTreeSet<&str> = entries.map(account_of).chain(more).collect();
        names
            .into_iter()
            .filter(|name| !name.is_empty() && *name != DEFAULT)
            .map(|name| {
                json!({
                    "apiVersion": "v1",
                    "kind": "ServiceAccount",
                    "metadata": {"name": name, "namespace": self.namespace},
                })
            })
            .collect()
    }

    /// Roles and their bindings in each of the namespaces. None when all namespaces are watched.
    #[must_use]
    pub fn roles<'n>(&self, namespaces: impl IntoIterator<Item = &'n str>) -> Vec<Value> {
        if self.watched.is_empty() {
            return Vec::new();
        }
        let mut objects = Vec::new();
        for namespace in namespaces {
            for entry in self.list(PERMISSIONS) {
                let name = self.role_name(entry, false);
                objects.extend(self.granted("Role", &name, entry, Some(namespace)));
            }
        }
        objects
    }

    /// ClusterRoles and their bindings: the cluster permissions, and the others if all namespaces are watched. As in
    /// both OLM versions, those may then also read namespaces.
    #[must_use]
    pub fn cluster_roles(&self) -> Vec<Value> {
        let mut objects = Vec::new();
        for entry in self.list(CLUSTER_PERMISSIONS) {
            objects.extend(self.granted("ClusterRole", &self.role_name(entry, false), entry, None));
        }
        if !self.watched.is_empty() {
            return objects;
        }
        for entry in self.list(PERMISSIONS) {
            let mut entry = entry.clone();
            if let Some(rules) = super::items_mut(&mut entry, "rules") {
                rules.push(json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]}));
            }
            objects.extend(self.granted("ClusterRole", &self.role_name(&entry, true), &entry, None));
        }
        objects
    }

    fn role_name(&self, entry: &Value, lifted: bool) -> String {
        let (csv, account) = (self.csv_name(), account_of(entry));
        match self.style {
            Style::OlmV1 => {
                let json = encode::json_text(newer(), entry, "StrategyDeploymentPermissions");
                object_name(&format!("{csv}-{account}"), &hash(&json))
            }
            Style::Plain => {
                let operator = csv
                    .split('.')
                    .next()
                    .filter(|name| !name.is_empty())
                    .unwrap_or("operator");
                format!("{operator}-{account}{}", if lifted { "-watched" } else { "" })
            }
        }
    }

    fn granted(&self, kind: &str, name: &str, entry: &Value, namespace: Option<&str>) -> [Value; 2] {
        let mut metadata = json!({"name": name});
        if let Some(namespace) = namespace {
            metadata.set_at(&["namespace"], namespace.into());
        }
        let rules = entry.get("rules").cloned().unwrap_or_else(|| json!([]));
        [
            json!({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "rules": rules}),
            json!({
                "apiVersion": API_VERSION,
                "kind": format!("{kind}Binding"),
                "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": account_of(entry), "namespace": self.namespace}],
            }),
        ]
    }
}
