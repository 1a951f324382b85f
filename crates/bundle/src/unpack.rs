//! The reverse of generating: a bundle as plain manifests that `kubectl apply` installs without OLM.
//!
//! Useful for inspecting a bundle's effects, and for clusters without OLM. Objects that OLM would create at run time
//! are created here: service accounts, roles and bindings from the permissions, the Deployments with the namespaces to
//! watch, and for webhooks a Service, configurations and, because OLM also makes their certificates, objects for
//! cert-manager.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::install::{CertificateProvider, ConversionError, Plan, Style, is_namespaced};
use olmkit_base::object::SetAt as _;
use olmkit_go::structs::decode::decode;

/// Why a bundle cannot be unpacked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// The bundle contains no ClusterServiceVersion.
    #[error("the bundle contains no ClusterServiceVersion")]
    NoCsv,
    /// A definition that the bundle's webhooks cannot convert.
    #[error(transparent)]
    Conversion(#[from] ConversionError),
    /// The operator does not support watching these namespaces.
    #[error("the operator does not support install mode {mode}; it supports {supported}. {hint}")]
    InstallMode {
        /// The mode that the namespaces mean.
        mode: &'static str,
        /// The modes it supports.
        supported: String,
        /// Flags to use instead.
        hint: &'static str,
    },
}

/// Target namespace and watched namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The operator's namespace.
    pub namespace: String,
    /// The namespaces it watches. Empty for all.
    pub watched: Vec<String>,
    /// True if the Namespace object is among the manifests.
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

/// The manifests, in an order in which they can be applied.
///
/// # Errors
/// When there is no CSV, or it does not support the namespaces to watch.
pub fn unpack(csv: &Value, others: &[Value], target: &Target) -> Result<Vec<Value>, UnpackError> {
    if csv.get("kind").and_then(Value::as_str) != Some("ClusterServiceVersion") {
        return Err(UnpackError::NoCsv);
    }
    check_mode(csv, target)?;
    let typed = decode(csv, "ClusterServiceVersion", true).unwrap_or_else(|_| csv.clone());
    let plan = Plan {
        csv: &typed,
        namespace: &target.namespace,
        watched: &target.watched,
        style: Style::Plain,
        certificates: Some(CertificateProvider::CertManager),
        config: None,
    };
    let mut manifests = Vec::new();
    if target.create_namespace {
        manifests.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": target.namespace}}));
    }
    let (definitions, rest): (Vec<&Value>, Vec<&Value>) = others
        .iter()
        .partition(|object| kind(object) == "CustomResourceDefinition");
    let definitions: Vec<Value> = definitions.into_iter().map(|object| placed(object, &plan)).collect();
    manifests.extend(plan.definitions(&definitions)?);
    let of_pods = typed
        .pointer("/spec/install/spec/deployments")
        .and_then(Value::as_array);
    let of_pods = of_pods
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.pointer("/spec/template/spec/serviceAccountName")?.as_str());
    manifests.extend(plan.service_accounts(of_pods));
    // Unlike OLM v1, as OLM v0: an operator that watches other namespaces needs its leases in its own.
    let mut namespaces: BTreeSet<&str> = target.watched.iter().map(String::as_str).collect();
    namespaces.insert(&target.namespace);
    manifests.extend(plan.roles(namespaces));
    manifests.extend(plan.cluster_roles());
    manifests.extend(rest.into_iter().map(|object| placed(object, &plan)));
    manifests.extend(plan.certificate_objects());
    manifests.extend(plan.webhook_services());
    manifests.extend(plan.validating_webhooks());
    manifests.extend(plan.mutating_webhooks());
    manifests.extend(plan.deployments().into_iter().map(without_times));
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
            _ => "Omit --watch-namespaces to watch all namespaces, or name others.",
        },
    })
}

/// An object in its namespace, without what only a Go program would print.
fn placed(object: &Value, plan: &Plan<'_>) -> Value {
    let mut object = plan.placed(object, is_namespaced(kind(object)));
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("creationTimestamp");
    }
    // A service account of another namespace, for example of the monitoring, keeps it. The API server requires a
    // namespace for each. If the bundle names none, it is the operator's.
    let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        let named = subject.get("namespace").and_then(Value::as_str).unwrap_or_default();
        if kind(subject) == "ServiceAccount" && named.is_empty() {
            subject.set_at(&["namespace"], plan.namespace.into());
        }
    }
    object
}

/// A Deployment without the times that only a Go program would print.
fn without_times(mut deployment: Value) -> Value {
    if let Some(Value::Object(metadata)) = deployment.pointer_mut("/spec/template/metadata") {
        metadata.remove("creationTimestamp");
    }
    deployment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(modes: &[&str]) -> Value {
        let modes: Vec<Value> = modes
            .iter()
            .map(|mode| json!({"type": mode, "supported": true}))
            .collect();
        let mounted = |path: &str, name: &str| json!({"mountPath": path, "name": name});
        let container = |name: &str| {
            json!({"name": name, "volumeMounts": [
                mounted("/tmp/k8s-webhook-server/serving-certs/", "own"),
                mounted("/data", "data"),
            ]})
        };
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "ClusterServiceVersion",
            "metadata": {"name": "demo.v1.0.0"},
            "spec": {
                "installModes": modes,
                "install": {"strategy": "deployment", "spec": {
                    "permissions": [{"serviceAccountName": "demo", "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}],
                    "deployments": [{"name": "manager", "spec": {
                        "selector": {"matchLabels": {"app": "demo"}},
                        "template": {"metadata": {"creationTimestamp": null, "labels": {"app": "demo"}}, "spec": {
                            "containers": [container("manager")],
                            "initContainers": [container("first")],
                            "volumes": [
                                {"name": "own", "secret": {"secretName": "nobody-makes-it"}},
                                {"name": "data", "emptyDir": {}},
                            ],
                        }},
                    }}],
                }},
                "webhookdefinitions": [{
                    "type": "ValidatingAdmissionWebhook", "generateName": "v.demo.example.com", "deploymentName": "manager",
                    "admissionReviewVersions": ["v1"], "sideEffects": "None",
                }],
            },
        })
    }

    fn target(watched: &[&str]) -> Target {
        Target {
            namespace: "mine".into(),
            watched: watched.iter().map(|&name| name.into()).collect(),
            create_namespace: false,
        }
    }

    fn of_kind<'m>(manifests: &'m [Value], wanted: &str) -> Vec<&'m Value> {
        manifests.iter().filter(|object| kind(object) == wanted).collect()
    }

    #[test]
    fn lifted_permissions_include_looking_at_namespaces() {
        let all = unpack(&csv(&["AllNamespaces"]), &[], &target(&[])).unwrap();
        let role = of_kind(&all, "ClusterRole");
        let [role] = role.as_slice() else { panic!("{role:?}") };
        let looking = json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]});
        assert_eq!(role.pointer("/rules/1"), Some(&looking));
        let one = unpack(&csv(&["SingleNamespace"]), &[], &target(&["other"])).unwrap();
        let roles = of_kind(&one, "Role");
        let namespaces: Vec<_> = roles
            .iter()
            .filter_map(|role| role.pointer("/metadata/namespace"))
            .collect();
        assert_eq!(namespaces, [&json!("mine"), &json!("other")]);
        assert!(roles.iter().all(|role| role.pointer("/rules/1").is_none()));
    }

    #[test]
    fn accounts_of_other_namespaces_keep_them() {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "metrics", "namespace": "elsewhere"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "metrics"},
            "subjects": [
                {"kind": "ServiceAccount", "name": "prometheus-k8s", "namespace": "openshift-monitoring"},
                {"kind": "ServiceAccount", "name": "demo"},
            ],
        });
        let manifests = unpack(&csv(&["AllNamespaces"]), &[binding], &target(&[])).unwrap();
        let bindings = of_kind(&manifests, "RoleBinding");
        let [binding] = bindings.as_slice() else {
            panic!("{bindings:?}")
        };
        assert_eq!(binding.pointer("/metadata/namespace"), Some(&json!("mine")));
        assert_eq!(
            binding.pointer("/subjects/0/namespace"),
            Some(&json!("openshift-monitoring"))
        );
        assert_eq!(binding.pointer("/subjects/1/namespace"), Some(&json!("mine")));
    }

    #[test]
    fn the_bundles_own_certificate_gives_way() {
        let manifests = unpack(&csv(&["AllNamespaces"]), &[], &target(&[])).unwrap();
        let deployments = of_kind(&manifests, "Deployment");
        let [deployment] = deployments.as_slice() else {
            panic!("{deployments:?}")
        };
        let names = |pointer: &str| -> Vec<&str> {
            let list = deployment.pointer(pointer).and_then(Value::as_array).unwrap();
            list.iter().filter_map(|item| item.get("name")?.as_str()).collect()
        };
        let pod = "/spec/template/spec";
        assert_eq!(
            names(&format!("{pod}/volumes")),
            ["data", "webhook-cert", "apiservice-cert"]
        );
        for list in ["containers", "initContainers"] {
            let mounts = names(&format!("{pod}/{list}/0/volumeMounts"));
            assert_eq!(mounts, ["data", "webhook-cert", "apiservice-cert"]);
        }
        let secret = deployment.pointer(&format!("{pod}/volumes/1/secret/secretName"));
        assert_eq!(secret, Some(&json!("manager-service-cert")));
        let certificates = of_kind(&manifests, "Certificate");
        assert_eq!(
            certificates.first().and_then(|one| one.pointer("/spec/secretName")),
            secret
        );
        assert!(
            deployment
                .pointer("/spec/template/metadata/creationTimestamp")
                .is_none()
        );
    }
}
