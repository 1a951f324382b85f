//! The pod that serves a catalog inside the cluster: a Deployment, so that it survives the loss of its pod and node; a
//! Service, so that its address survives too; and a ConfigMap with the catalog.
//!
//! The image contains `/bin/opm`: olmkit's helper image, or operator-framework's `opm` image. No shell is needed, and
//! the pod fits a namespace that enforces the `restricted` pod security standard.

use serde_json::{Value, json};

use crate::base::names;

/// The port that catalogs are served on by convention.
pub const PORT: u16 = 50051;

/// Maximum size of a ConfigMap.
const CONFIG_MAP_LIMIT: usize = 1_000_000;

/// The catalog in the ConfigMap and in the pod.
const FILE: &str = "catalog.json";

/// Options for the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodOptions {
    /// The image with `/bin/opm`.
    pub image: String,
    /// `Always`, `IfNotPresent`, `Never`.
    pub pull_policy: String,
    /// Account of the pod. The namespace's default one when absent.
    pub service_account: Option<String>,
    /// Secret with credentials for the image.
    pub pull_secret: Option<String>,
}

/// Names the Service: a DNS label.
pub fn service_name(package: &str) -> String {
    let name: String = names::catalog_source(package)
        .replace('.', "-")
        .chars()
        .take(63)
        .collect();
    name.trim_end_matches('-').to_owned()
}

/// The address that OLM dials.
pub fn address(package: &str, namespace: &str) -> String {
    format!("{}.{namespace}.svc:{PORT}", service_name(package))
}

/// The ConfigMap, Service and Deployment, in this order.
///
/// # Errors
/// The size in bytes when the catalog does not fit into a ConfigMap.
pub fn manifests(package: &str, namespace: &str, blobs: &[Value], options: &PodOptions) -> Result<Vec<Value>, usize> {
    let content: String = blobs.iter().map(|blob| format!("{blob}\n")).collect();
    if content.len() > CONFIG_MAP_LIMIT {
        return Err(content.len());
    }
    let name = service_name(package);
    let catalog = names::catalog_source(package);
    let mut labels = names::labels(package);
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(names::CATALOG_LABEL.into(), catalog.clone().into());
    }
    let metadata = json!({"name": name, "namespace": namespace, "labels": labels});
    let selector = json!({names::CATALOG_LABEL: catalog});
    Ok(vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {FILE: content}}),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": selector, "ports": [{"name": "grpc", "port": PORT, "targetPort": "grpc", "protocol": "TCP"}]},
        }),
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": selector},
                // The content is part of the template, so that a changed catalog rolls the pod.
                "template": {
                    "metadata": {"labels": labels, "annotations": {"olmkit.dev/catalog-digest": fingerprint(&content)}},
                    "spec": pod_spec(&name, options),
                },
            },
        }),
    ])
}

fn pod_spec(config_map: &str, options: &PodOptions) -> Value {
    let mut spec = json!({
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "automountServiceAccountToken": false,
        "containers": [{
            "name": "catalog",
            "image": options.image,
            "imagePullPolicy": options.pull_policy,
            "command": ["/bin/opm", "serve", "/catalog", "-p", PORT.to_string()],
            "ports": [{"name": "grpc", "containerPort": PORT}],
            "readinessProbe": {"grpc": {"port": PORT}, "periodSeconds": 2},
            "livenessProbe": {"grpc": {"port": PORT}, "initialDelaySeconds": 10, "periodSeconds": 10, "failureThreshold": 6},
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": true,
            },
            // Mounts only the file: a mounted ConfigMap also contains links to directories (`..data`), at which opm
            // fails.
            "volumeMounts": [
                {"name": "catalog", "mountPath": format!("/catalog/{FILE}"), "subPath": FILE, "readOnly": true},
                {"name": "tmp", "mountPath": "/tmp"},
            ],
        }],
        "volumes": [{"name": "catalog", "configMap": {"name": config_map}}, {"name": "tmp", "emptyDir": {}}],
    });
    if let Some(spec) = spec.as_object_mut() {
        if let Some(account) = &options.service_account {
            spec.insert("serviceAccountName".into(), account.clone().into());
        }
        if let Some(secret) = &options.pull_secret {
            spec.insert("imagePullSecrets".into(), json!([{"name": secret}]));
        }
    }
    spec
}

fn fingerprint(content: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(content.as_bytes())
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> PodOptions {
        PodOptions {
            image: "example.com/olmkit:1".into(),
            pull_policy: "IfNotPresent".into(),
            service_account: None,
            pull_secret: Some("s".into()),
        }
    }

    #[test]
    fn every_container_fits_the_restricted_standard() {
        let made = manifests(
            "a.b",
            "ns",
            &[json!({"schema": "olm.package", "name": "a.b"})],
            &options(),
        )
        .unwrap();
        let spec = made[2].pointer("/spec/template/spec").unwrap();
        assert_eq!(spec.pointer("/securityContext/runAsNonRoot"), Some(&json!(true)));
        assert_eq!(
            spec.pointer("/securityContext/seccompProfile/type"),
            Some(&json!("RuntimeDefault"))
        );
        for container in spec["containers"].as_array().unwrap() {
            assert_eq!(
                container.pointer("/securityContext/allowPrivilegeEscalation"),
                Some(&json!(false))
            );
            assert_eq!(
                container.pointer("/securityContext/capabilities/drop"),
                Some(&json!(["ALL"]))
            );
        }
        assert_eq!(made[1]["metadata"]["name"], "a-b-catalog");
        assert_eq!(address("a.b", "ns"), "a-b-catalog.ns.svc:50051");
    }

    #[test]
    fn a_catalog_larger_than_a_config_map_is_refused() {
        let blob = json!({"schema": "olm.bundle", "x": "y".repeat(CONFIG_MAP_LIMIT)});
        assert!(manifests("a", "ns", &[blob], &options()).unwrap_err() > CONFIG_MAP_LIMIT);
    }
}
