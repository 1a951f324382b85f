//! Manifests that a command creates: pure functions of a bundle and an observation.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::base::install_mode::{self, InstallMode};
use crate::base::names;
use crate::bundle::facts::BundleFacts;
use crate::observe::observation::Observation;

/// Connection from OLM to the catalog with the bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// This process serves it at `host:port`.
    FromHost(String),
    /// A pod serves it through a Service at `host:port`.
    FromPod(String),
}

/// The CatalogSource that points to the served catalog.
pub fn catalog_source(package: &str, namespace: &str, served: &Served, secret: Option<&str>) -> Value {
    let (address, place) = match served {
        Served::FromHost(address) => (address, "host"),
        Served::FromPod(address) => (address, "pod"),
    };
    let mut manifest = json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "CatalogSource",
        "metadata": {
            "name": names::catalog_source(package),
            "namespace": namespace,
            "labels": names::labels(package),
            "annotations": {names::SERVED_FROM_ANNOTATION: place},
        },
        "spec": {
            "sourceType": "grpc",
            "address": address,
            "displayName": package,
            "publisher": "olmkit",
            "grpcPodConfig": {"securityContextConfig": "restricted"},
        },
    });
    if let (Some(secret), Some(spec)) = (secret, manifest.get_mut("spec").and_then(Value::as_object_mut)) {
        spec.insert("secrets".into(), json!([secret]));
    }
    manifest
}

/// The OperatorGroup to create, `None` when the namespace has one.
pub fn operator_group(bundle: &BundleFacts, wanted: Option<&InstallMode>, seen: &Observation) -> Option<Value> {
    if !seen.operator_groups.is_empty() {
        return None;
    }
    let targets = match wanted {
        Some(mode) => mode.targets(&seen.namespace),
        None => default_targets(bundle, &seen.namespace),
    };
    let spec = if targets.is_empty() {
        json!({})
    } else {
        json!({"targetNamespaces": targets})
    };
    Some(json!({
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": names::OPERATOR_GROUP, "namespace": seen.namespace, "labels": {names::MANAGED_BY.0: names::MANAGED_BY.1}},
        "spec": spec,
    }))
}

/// Without `--install-mode`: the whole cluster if the operator can serve it, else its own namespace.
fn default_targets(bundle: &BundleFacts, own: &str) -> BTreeSet<String> {
    match install_mode::supported(&bundle.csv.spec.install_modes).first() {
        Some(&"AllNamespaces") | None => BTreeSet::new(),
        Some(_) => BTreeSet::from([own.to_owned()]),
    }
}

/// The Subscription. Plans wait for this tool's approval, so that nothing but the bundle at hand is installed.
pub fn subscription(bundle: &BundleFacts, name: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": names::labels(&bundle.package),
            "annotations": {names::DIGEST_ANNOTATION: bundle.digest},
        },
        "spec": {
            "name": bundle.package,
            "channel": names::CHANNEL,
            "source": names::catalog_source(&bundle.package),
            "sourceNamespace": namespace,
            "startingCSV": bundle.csv_name(),
            "installPlanApproval": "Manual",
        },
    })
}
