//! Webhooks that the operator serves: their configurations, their Service, and for plain installs cert-manager's
//! objects. For a bundle, OLM creates all of these itself, from the webhook definitions that `generate bundle --strict`
//! derives from them.

use kube_core::{ApiResource, Resource};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Error, Files, Project};

/// The port that the operator serves webhooks on, as operators of controller-runtime do.
pub const WEBHOOK_PORT: u16 = 9443;
/// Mount path of the certificate.
const CERTIFICATE: &str = "/tmp/k8s-webhook-server/serving-certs";
/// The longest value of a label: OLM labels its configurations with the name of the webhook.
const LONGEST: usize = 63;

/// An admission webhook for a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    mutates: bool,
    resource: ApiResource,
    path: String,
    operations: Vec<String>,
}

impl Webhook {
    /// A webhook at `path` that may change objects when they are created or updated.
    #[must_use]
    pub fn mutating<K: Resource<DynamicType = ()>>(path: &str) -> Self {
        Self::mutating_resource(ApiResource::erase::<K>(&()), path)
    }

    /// A webhook at `path` that can reject objects when they are created or updated.
    #[must_use]
    pub fn validating<K: Resource<DynamicType = ()>>(path: &str) -> Self {
        Self::validating_resource(ApiResource::erase::<K>(&()), path)
    }

    /// As [`Webhook::mutating`], for a kind whose type is not at hand.
    #[must_use]
    pub fn mutating_resource(resource: ApiResource, path: &str) -> Self {
        Self {
            mutates: true,
            resource,
            path: path.to_owned(),
            operations: ["CREATE", "UPDATE"].map(str::to_owned).into(),
        }
    }

    /// As [`Webhook::validating`], for a kind whose type is not at hand.
    #[must_use]
    pub fn validating_resource(resource: ApiResource, path: &str) -> Self {
        Self {
            mutates: false,
            ..Self::mutating_resource(resource, path)
        }
    }

    /// Sets the operations for which the API server calls it: `CREATE`, `UPDATE`, `DELETE`, `CONNECT`.
    #[must_use]
    pub fn operations<'a>(mut self, operations: impl IntoIterator<Item = &'a str>) -> Self {
        self.operations = operations.into_iter().map(str::to_owned).collect();
        self
    }

    /// A DNS name of three labels at least, unique among the webhooks of its type, and short enough for a label.
    fn name(&self) -> String {
        let letter = if self.mutates { 'm' } else { 'v' };
        let ApiResource {
            group, version, kind, ..
        } = &self.resource;
        let first = format!("{letter}{}-{version}", kind.to_lowercase());
        // Kinds of the core group, and groups without a dot such as apps.
        let end = if group.contains('.') {
            group.clone()
        } else {
            format!("{group}.k8s.io")
        };
        let end = end.trim_start_matches('.');
        let name = format!("{first}.{end}");
        if name.len() <= LONGEST {
            return name;
        }
        let digest: String = Sha256::digest(&name)
            .iter()
            .take(6)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{letter}{digest}.{end}")
    }

    fn entry(&self, project: &Project) -> Value {
        let ApiResource {
            group, version, plural, ..
        } = &self.resource;
        json!({
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": service(project, &self.path)},
            "failurePolicy": "Fail",
            "name": self.name(),
            "rules": [{
                "apiGroups": [group],
                "apiVersions": [version],
                "operations": self.operations,
                "resources": [plural],
            }],
            "sideEffects": "None",
        })
    }
}

/// Names of objects around the webhooks of a project.
struct Names {
    service: String,
    certificate: String,
    issuer: String,
    secret: String,
}

fn names(project: &Project) -> Names {
    // The name of a Service has at most 63 characters.
    let mut short: String = project.name.chars().take(LONGEST - "-webhook-service".len()).collect();
    short.truncate(short.trim_end_matches('-').len());
    let name = &project.name;
    Names {
        service: format!("{short}-webhook-service"),
        certificate: format!("{name}-serving-cert"),
        issuer: format!("{name}-selfsigned-issuer"),
        secret: format!("{name}-webhook-server-cert"),
    }
}

fn service(project: &Project, path: &str) -> Value {
    json!({"name": names(project).service, "namespace": project.namespace, "path": path})
}

/// Annotation by which cert-manager injects its authority.
const INJECT: &str = "cert-manager.io/inject-ca-from";

fn authority(project: &Project) -> String {
    format!("{}/{}", project.namespace, names(project).certificate)
}

/// `spec.conversion` of a definition.
pub(super) fn conversion(project: &Project, path: &str) -> Value {
    json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": service(project, path)},
            "conversionReviewVersions": ["v1"],
        },
    })
}

/// The volume with the certificate, its mount and the port, for the operator's Deployment.
pub(super) fn pod_parts(project: &Project) -> Option<(Value, Value, Value)> {
    project.serves_webhooks().then(|| {
        (
            json!({"name": "webhook-certs", "secret": {"secretName": names(project).secret}}),
            json!({"mountPath": CERTIFICATE, "name": "webhook-certs", "readOnly": true}),
            json!({"containerPort": WEBHOOK_PORT, "name": "webhook-server", "protocol": "TCP"}),
        )
    })
}

/// Patches for installations without OLM: the CRDs get cert-manager's authority. They are inside the kustomization, so
/// that a bundle, for which OLM injects an authority, does not have them.
pub(super) fn patches(project: &Project) -> Vec<Value> {
    let converted = project.apis.iter().filter(|api| api.conversion_path.is_some());
    converted
        .map(|api| {
            let patch = json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"annotations": {INJECT: authority(project)}, "name": api.crd.metadata.name},
            });
            json!({"patch": patch.to_string()})
        })
        .collect()
}

/// `config/webhook` and `config/certmanager`. Returns the names of files in each.
pub(super) fn render(project: &Project, files: &mut Files) -> Result<Vec<(&'static str, Vec<String>)>, Error> {
    if !project.serves_webhooks() {
        return Ok(Vec::new());
    }
    let labels = project.labels();
    let Names {
        service,
        certificate,
        issuer,
        secret,
    } = names(project);
    let mut written = vec!["service.yaml".to_owned()];
    let mut configurations = Vec::new();
    for (mutates, kind, name) in [
        (true, "MutatingWebhookConfiguration", "mutating"),
        (false, "ValidatingWebhookConfiguration", "validating"),
    ] {
        let mut hooks: Vec<&Webhook> = project.webhooks.iter().filter(|hook| hook.mutates == mutates).collect();
        hooks.sort_by_key(|hook| hook.name());
        if !hooks.is_empty() {
            configurations.push(json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": {
                    "name": format!("{}-{name}-webhook-configuration", project.name),
                    "annotations": {INJECT: authority(project)},
                    "labels": labels,
                },
                "webhooks": hooks.into_iter().map(|hook| hook.entry(project)).collect::<Vec<_>>(),
            }));
        }
    }
    if !configurations.is_empty() {
        files.add("webhook/manifests.yaml", &configurations)?;
        written.insert(0, "manifests.yaml".to_owned());
    }
    files.add(
        "webhook/service.yaml",
        &[json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": service, "namespace": project.namespace, "labels": labels},
            "spec": {
                "ports": [{"name": "webhook-server", "port": 443, "protocol": "TCP", "targetPort": WEBHOOK_PORT}],
                "selector": project.selector(),
            },
        })],
    )?;
    let host = format!("{service}.{}.svc", project.namespace);
    files.add(
        "certmanager/certificate.yaml",
        &[
            json!({
                "apiVersion": "cert-manager.io/v1",
                "kind": "Issuer",
                "metadata": {"name": issuer, "namespace": project.namespace, "labels": labels},
                "spec": {"selfSigned": {}},
            }),
            json!({
                "apiVersion": "cert-manager.io/v1",
                "kind": "Certificate",
                "metadata": {"name": certificate, "namespace": project.namespace, "labels": labels},
                "spec": {
                    "dnsNames": [&host, format!("{host}.cluster.local")],
                    "issuerRef": {"kind": "Issuer", "name": issuer},
                    "secretName": secret,
                },
            }),
        ],
    )?;
    Ok(vec![
        ("webhook", written),
        ("certmanager", vec!["certificate.yaml".to_owned()]),
    ])
}

#[cfg(test)]
mod tests {
    use kube_core::GroupVersionKind;

    use super::*;

    fn resource(group: &str, kind: &str) -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind))
    }

    #[test]
    fn names_have_three_labels_and_fit_into_a_label() {
        let name = |group: &str, kind: &str| Webhook::validating_resource(resource(group, kind), "/x").name();
        assert_eq!(
            name("cache.example.com", "Memcached"),
            "vmemcached-v1.cache.example.com"
        );
        assert_eq!(name("example.com", "Memcached"), "vmemcached-v1.example.com");
        assert_eq!(name("apps", "Deployment"), "vdeployment-v1.apps.k8s.io");
        assert_eq!(name("", "Pod"), "vpod-v1.k8s.io");
        let long = name(
            "a-rather-long-group-name.example.com",
            "ThisKindHasAVeryLongNameThatNobodyWouldChoose",
        );
        assert!(
            long.len() <= LONGEST && long.ends_with(".a-rather-long-group-name.example.com"),
            "{long}"
        );
    }

    #[test]
    fn the_name_of_the_service_is_a_label() {
        let package = crate::Package::parse("displayName: A\ndescription: A.\n").unwrap();
        let name = "x".repeat(46) + "-abcdefghi";
        let project = Project::new(&name, "0.0.1", "a", package);
        assert_eq!(names(&project).service, "x".repeat(46) + "-webhook-service");
    }
}
