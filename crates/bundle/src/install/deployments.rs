//! The Deployments of a ClusterServiceVersion as OLM applies them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use olmkit_base::object::SetAt as _;

use super::{Plan, Style, certificates, customize, fields_mut, items_mut, text};

/// The volumes of a webhook's certificate: name, mount path, and the file names of certificate and key. The first is
/// controller-runtime's path, the second that of API servers.
const VOLUMES: [(&str, &str, &str, &str); 2] = [
    (
        "webhook-cert",
        "/tmp/k8s-webhook-server/serving-certs",
        "tls.crt",
        "tls.key",
    ),
    (
        "apiservice-cert",
        "/apiserver.local.config/certificates",
        "apiserver.crt",
        "apiserver.key",
    ),
];

impl Plan<'_> {
    /// The Deployments, with the namespaces to watch as annotations of the pods.
    #[must_use]
    pub fn deployments(&self) -> Vec<Value> {
        let with_certificates = self.webhook_deployments();
        self.deployment_specs()
            .iter()
            .map(|entry| {
                let name = text(entry, "name");
                let mut deployment = self.deployment(entry, name);
                if self.certificates.is_some() && with_certificates.contains(name) {
                    self.mount_certificates(&mut deployment, name);
                }
                if let Some(config) = self.config {
                    customize::apply(&mut deployment, config);
                }
                deployment
            })
            .collect()
    }

    fn deployment(&self, entry: &Value, name: &str) -> Value {
        let mut metadata = json!({"name": name, "namespace": self.namespace});
        if let Some(labels) = entry.get("label").filter(|labels| labels.is_object()) {
            metadata.set_at(&["labels"], labels.clone());
        }
        let mut spec = entry.get("spec").cloned().unwrap_or_else(|| json!({}));
        let mut annotations = Map::new();
        if self.style == Style::OlmV1 {
            spec.set_at(&["revisionHistoryLimit"], 1.into());
            if let Some(Value::Object(of_csv)) = self.csv.pointer("/metadata/annotations") {
                annotations.extend(of_csv.clone());
            }
        }
        if let Some(Value::Object(own)) = spec.pointer("/template/metadata/annotations") {
            annotations.extend(own.clone());
        }
        annotations.insert("olm.targetNamespaces".into(), self.watched.join(",").into());
        annotations.insert("olm.operatorNamespace".into(), self.namespace.into());
        if let Some(template) = fields_mut(&mut spec, "template")
            && let Some(metadata) = template.entry("metadata").or_insert_with(|| json!({})).as_object_mut()
        {
            metadata.insert("annotations".into(), Value::Object(annotations));
        }
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    }

    /// Replaces the bundle's certificate volumes by the Secret that the provider makes.
    fn mount_certificates(&self, deployment: &mut Value, name: &str) {
        let secret = certificates::names(name).certificate;
        let Some(pod) = deployment.pointer_mut("/spec/template").and_then(|template| {
            let template = template.as_object_mut()?;
            Some(template.entry("spec").or_insert_with(|| json!({})))
        }) else {
            return;
        };
        // OLM v1 does not change init containers with mounts of removed volumes, and compares paths literally.
        let (lists, slash): (&[&str], &[char]) = match self.style {
            Style::OlmV1 => (&["containers"], &[]),
            Style::Plain => (&["containers", "initContainers"], &['/']),
        };
        let mut replaced: BTreeSet<String> = VOLUMES.iter().map(|(name, ..)| (*name).to_owned()).collect();
        for container in lists.iter().flat_map(|list| containers(pod, list)) {
            let mounts = container.get("volumeMounts").and_then(Value::as_array);
            let at_place = |mount: &&Value| {
                let place = text(mount, "mountPath").trim_end_matches(slash);
                VOLUMES.iter().any(|(_, path, ..)| place == *path)
            };
            replaced.extend(
                mounts
                    .into_iter()
                    .flatten()
                    .filter(at_place)
                    .map(|mount| text(mount, "name").to_owned()),
            );
        }
        if let Some(volumes) = items_mut(pod, "volumes") {
            volumes.retain(|volume| !replaced.contains(text(volume, "name")));
            volumes.extend(VOLUMES.iter().map(|(name, _, certificate, key)| {
                let items = json!([
                    {"key": "tls.crt", "path": certificate},
                    {"key": "tls.key", "path": key},
                ]);
                json!({"name": name, "secret": {"items": items, "secretName": secret}})
            }));
        }
        for list in lists {
            let containers = pod.get_mut(*list).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                let Some(mounts) = items_mut(container, "volumeMounts") else {
                    continue;
                };
                mounts.retain(|mount| !replaced.contains(text(mount, "name")));
                mounts.extend(
                    VOLUMES
                        .iter()
                        .map(|(name, path, ..)| json!({"mountPath": path, "name": name})),
                );
            }
        }
    }
}

fn containers<'v>(pod: &'v Value, list: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    pod.get(list).and_then(Value::as_array).into_iter().flatten()
}
