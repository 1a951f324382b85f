//! Replacements for the certificates that OLM v0 creates itself: cert-manager, or OpenShift's service-ca operator.

use serde_json::{Value, json};

use super::{Plan, fields_mut, object_name};

/// Makes the certificates of webhooks, and hands their authority to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateProvider {
    /// cert-manager.
    CertManager,
    /// OpenShift's service-ca operator.
    ServiceCa,
}

/// Names around the certificate of a Deployment that answers webhooks.
pub(super) struct Names {
    pub service: String,
    /// The certificate and its Secret.
    pub certificate: String,
}

pub(super) fn names(deployment: &str) -> Names {
    let service = object_name(&deployment.replace('.', "-"), "service");
    Names {
        certificate: object_name(&service, "cert"),
        service,
    }
}

fn annotate(object: &mut Value, key: &str, value: &str) {
    let annotations = object
        .get_mut("metadata")
        .and_then(|metadata| fields_mut(metadata, "annotations"));
    if let Some(annotations) = annotations {
        annotations.insert(key.to_owned(), value.into());
    }
}

impl Plan<'_> {
    /// Marks a webhook configuration or a definition for the provider, which writes its authority there.
    pub(super) fn inject_authority(&self, object: &mut Value, deployment: &str) {
        match self.certificates {
            Some(CertificateProvider::CertManager) => {
                let from = format!("{}/{}", self.namespace, names(deployment).certificate);
                annotate(object, "cert-manager.io/inject-ca-from", &from);
            }
            Some(CertificateProvider::ServiceCa) => {
                annotate(object, "service.beta.openshift.io/inject-cabundle", "true");
            }
            None => {}
        }
    }

    /// Marks a Service for the provider, which makes a certificate for it.
    pub(super) fn request_certificate(&self, service: &mut Value, deployment: &str) {
        if self.certificates == Some(CertificateProvider::ServiceCa) {
            let secret = names(deployment).certificate;
            annotate(service, "service.beta.openshift.io/serving-cert-secret-name", &secret);
        }
    }

    /// Additional objects for the provider: an Issuer and a Certificate for each Deployment that serves webhooks.
    #[must_use]
    pub fn certificate_objects(&self) -> Vec<Value> {
        if self.certificates != Some(CertificateProvider::CertManager) {
            return Vec::new();
        }
        self.webhook_deployments()
            .into_iter()
            .flat_map(|deployment| {
                let Names { service, certificate } = names(deployment);
                let namespace = self.namespace;
                let issuer = object_name(&certificate, "selfsigned-issuer");
                let host = format!("{service}.{namespace}");
                [
                    json!({
                        "apiVersion": "cert-manager.io/v1",
                        "kind": "Issuer",
                        "metadata": {"name": issuer, "namespace": namespace},
                        "spec": {"selfSigned": {}},
                    }),
                    json!({
                        "apiVersion": "cert-manager.io/v1",
                        "kind": "Certificate",
                        "metadata": {"name": certificate, "namespace": namespace},
                        "spec": {
                            "commonName": host,
                            "dnsNames": [host, format!("{host}.svc"), format!("{host}.svc.cluster.local")],
                            "duration": "17520h0m0s",
                            "issuerRef": {"name": issuer},
                            "renewBefore": "24h0m0s",
                            "secretName": certificate,
                            "usages": ["server auth"],
                        },
                    }),
                ]
            })
            .collect()
    }
}
