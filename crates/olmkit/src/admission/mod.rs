//! The checks of the API server before it stores an object, for the objects that OLM installs from a bundle.
//!
//! [`check_csv`] checks a ClusterServiceVersion against the schema of OLM's CRD, and its Deployments as the API server does when OLM
//! creates them. [`check_object`] checks an object of a built-in kind, and the metadata of a custom resource. Fields, types and limits come from tables. `rules` contains the
//! checks that need several fields. If a check is not certain, it reports nothing.

mod facts;
mod forms;
mod rules;
mod walk;

use serde_json::Value;

use crate::crd::instance;
use olmkit_go::structs::{Type, newer};
use walk::{Mode, Walk};

/// Maximum rejections of one object that are reported.
pub const MOST: usize = 50;

/// The message about a label of a selector that the pods lack.
pub const UNSELECTED: &str = "must be a label of the pod template";

/// A value that the API server rejects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Rejection {
    /// JSON pointer to the value.
    pub pointer: String,
    /// The reason, without the path.
    pub message: String,
    /// True if the API server rejects the Deployment that OLM creates, and accepts the ClusterServiceVersion.
    pub later: bool,
    /// True if OLM writes an empty value in place of the missing one, and the API server accepts it.
    pub filled: bool,
}

/// The built-in kinds that OLM installs: apiVersion, kind, and the form of their names.
const KINDS: [(&str, &str, &str); 11] = [
    ("v1", "ConfigMap", "subdomain"),
    ("v1", "Secret", "subdomain"),
    ("v1", "Service", "label"),
    ("v1", "ServiceAccount", "subdomain"),
    ("networking.k8s.io/v1", "NetworkPolicy", "subdomain"),
    ("policy/v1", "PodDisruptionBudget", "segment"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "segment"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "segment"),
    ("rbac.authorization.k8s.io/v1", "Role", "segment"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "segment"),
    ("scheduling.k8s.io/v1", "PriorityClass", "subdomain"),
];

/// The custom resources that OLM installs: API group and kind. Their schemas depend on the cluster.
const CUSTOM_KINDS: [(&str, &str); 9] = [
    ("autoscaling.k8s.io", "VerticalPodAutoscaler"),
    ("console.openshift.io", "ConsoleCLIDownload"),
    ("console.openshift.io", "ConsoleLink"),
    ("console.openshift.io", "ConsolePlugin"),
    ("console.openshift.io", "ConsoleQuickStart"),
    ("console.openshift.io", "ConsoleYAMLSample"),
    ("monitoring.coreos.com", "PodMonitor"),
    ("monitoring.coreos.com", "PrometheusRule"),
    ("monitoring.coreos.com", "ServiceMonitor"),
];

/// The reasons why the API server rejects a ClusterServiceVersion, or the Deployments that OLM creates from it.
#[must_use]
pub fn check_csv(csv: &Value) -> Vec<Rejection> {
    run(csv, "ClusterServiceVersion", Mode::SCHEMA, "subdomain")
}

/// The reasons why the API server rejects an object of a built-in kind, or the metadata of a custom resource. Other kinds have none.
#[must_use]
pub fn check_object(object: &Value) -> Vec<Rejection> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let known = KINDS
        .iter()
        .find(|(version, kind, _)| *version == text("apiVersion") && *kind == text("kind"));
    match known {
        Some((_, kind, form)) => run(object, kind, Mode::SERVER, form),
        None => {
            let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
            if CUSTOM_KINDS.contains(&(group, text("kind"))) {
                custom_metadata(object)
            } else {
                Vec::new()
            }
        }
    }
}

fn custom_metadata(object: &Value) -> Vec<Rejection> {
    let mut found: Vec<Rejection> = instance::check_metadata(object)
        .into_iter()
        .map(|finding| Rejection {
            pointer: finding.pointer,
            message: finding.message,
            later: false,
            filled: false,
        })
        .collect();
    found.truncate(MOST);
    found
}

fn run(object: &Value, key: &'static str, mode: Mode, form: &str) -> Vec<Rejection> {
    let (Some(&Type::Struct(at)), Some(fields)) = (newer().get(key), object.as_object()) else {
        return Vec::new();
    };
    let mut walk = Walk::new(key);
    walk.object(fields, at, mode);
    walk.name(object.get("metadata"), form);
    walk.finish()
}

#[cfg(test)]
mod tests;
