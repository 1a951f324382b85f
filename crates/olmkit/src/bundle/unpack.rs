//! The reverse of generating: a bundle as plain manifests that `kubectl apply` installs without OLM.
//!
//! Useful to look at what a bundle really does, and for clusters that have no OLM. What OLM would make at run time is made
//! here as objects: service accounts, roles and bindings from the permissions, the Deployments with the namespaces to
//! watch, and for webhooks a Service, configurations and, because OLM also makes their certificates, objects for
//! cert-manager.

mod permissions;
mod webhooks;

use crate::object::SetAt as _;
use serde_json::{Value, json};

/// Why a bundle cannot be unpacked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// The bundle holds no ClusterServiceVersion.
    #[error("the bundle holds no ClusterServiceVersion")]
    NoCsv,
    /// The operator does not support watching these namespaces.
    #[error("the operator does not support install mode {mode}; it supports {supported}. {hint}")]
    InstallMode {
        /// The mode that the namespaces mean.
        mode: &'static str,
        /// The modes it supports.
        supported: String,
        /// Which flags to use instead.
        hint: &'static str,
    },
}

/// Where the operator shall run and what it shall watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The operator's namespace.
    pub namespace: String,
    /// The namespaces it watches; empty for all.
    pub watched: Vec<String>,
    /// Whether the Namespace object is among the manifests.
    pub create_namespace: bool,
}

impl Target {
    fn mode(&self) -> &'static str {
        match self.watched.as_slice() {
            [] => "AllNamespaces",
            [one] if *one == self.namespace => "OwnNamespace",
            [_] => "SingleNamespace",
            _ => "MultiNamespace",
        }
    }
}

/// Kinds whose objects belong to no namespace.
const CLUSTER_SCOPED: &[&str] = &[
    "ClusterRole",
    "ClusterRoleBinding",
    "ConsoleCLIDownload",
    "ConsoleLink",
    "ConsolePlugin",
    "ConsoleQuickStart",
    "ConsoleYAMLSample",
    "CustomResourceDefinition",
    "Namespace",
    "PriorityClass",
];

/// The manifests, in an order in which they can be applied.
///
/// # Errors
/// When there is no CSV, or it does not support the namespaces to watch.
pub fn unpack(csv: &Value, others: &[Value], target: &Target) -> Result<Vec<Value>, UnpackError> {
    if csv.get("kind").and_then(Value::as_str) != Some("ClusterServiceVersion") {
        return Err(UnpackError::NoCsv);
    }
    check_mode(csv, target)?;
    let mut manifests = Vec::new();
    if target.create_namespace {
        manifests.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": target.namespace}}));
    }
    let (definitions, rest): (Vec<&Value>, Vec<&Value>) = others
        .iter()
        .partition(|object| kind(object) == "CustomResourceDefinition");
    let hooks = webhooks::objects(csv, target);
    for definition in definitions {
        let mut definition = placed(definition, target);
        webhooks::convert(&mut definition, csv, target);
        manifests.push(definition);
    }
    manifests.extend(permissions::objects(csv, target));
    for object in rest {
        manifests.push(placed(object, target));
    }
    manifests.extend(hooks);
    manifests.extend(deployments(csv, target));
    Ok(manifests)
}

fn kind(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

fn check_mode(csv: &Value, target: &Target) -> Result<(), UnpackError> {
    let modes = csv
        .pointer("/spec/installModes")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let supported: Vec<&str> = modes
        .iter()
        .filter(|mode| mode.get("supported") == Some(&Value::Bool(true)))
        .filter_map(|mode| mode.get("type").and_then(Value::as_str))
        .collect();
    let mode = target.mode();
    if supported.contains(&mode) {
        return Ok(());
    }
    Err(UnpackError::InstallMode {
        mode,
        supported: if supported.is_empty() {
            "none".into()
        } else {
            supported.join(", ")
        },
        hint: match mode {
            "AllNamespaces" => "Name the namespaces with --watch-namespaces.",
            _ => "Leave --watch-namespaces away to watch all, or name others.",
        },
    })
}

/// An object in its namespace, without what only a Go program would print.
fn placed(object: &Value, target: &Target) -> Value {
    let mut object = object.clone();
    let cluster_scoped = CLUSTER_SCOPED.contains(&kind(&object));
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("creationTimestamp");
        if !cluster_scoped {
            metadata.insert("namespace".into(), target.namespace.clone().into());
        }
    }
    // Accounts that bindings of the bundle name live where the operator lives.
    for subject in object
        .get_mut("subjects")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if kind(subject) == "ServiceAccount" {
            subject["namespace"] = target.namespace.clone().into();
        }
    }
    object
}

/// The Deployments as OLM makes them: the CSV's annotations on the pods, among them the namespaces to watch.
fn deployments(csv: &Value, target: &Target) -> Vec<Value> {
    let list = csv.pointer("/spec/install/spec/deployments").and_then(Value::as_array);
    let with_certificates = webhooks::served_by(csv);
    list.into_iter()
        .flatten()
        .map(|entry| {
            let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
            let mut metadata = json!({"name": name, "namespace": target.namespace});
            if let Some(labels) = entry.get("label").filter(|labels| labels.is_object()) {
                metadata.set_at(&["labels"], labels.clone());
            }
            let mut spec = entry.get("spec").cloned().unwrap_or_else(|| json!({}));
            for (key, value) in [
                ("olm.targetNamespaces", target.watched.join(",")),
                ("olm.operatorNamespace", target.namespace.clone()),
            ] {
                spec.set_at(&["template", "metadata", "annotations", key], value.into());
            }
            let Some(template) = spec.get_mut("template") else {
                return Value::Null;
            };
            if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("creationTimestamp");
            }
            if with_certificates.contains(name) {
                webhooks::mount(template, name);
            }
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
        })
        .collect()
}
