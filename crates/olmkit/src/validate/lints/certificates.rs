//! CERT: certificates of webhooks, which OLM creates itself.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bundle::olm_certificates;
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::object::pointer_part;
use crate::validate::checked::Checked;
use crate::validate::context::{Context, Csv, field, items};

define_rules! {
    CERT_1 = {
        id: "CERT-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Containers should not mount a Secret that cert-manager would create, unless OLM mounts its own certificate instead.",
        why: "The pod waits forever for a Secret that does not exist.",
        bad: "volumeMounts:\n- name: cert   # secretName: webhook-server-cert\n  mountPath: /certs",
        good: "volumeMounts:\n- name: cert\n  mountPath: /tmp/k8s-webhook-server/serving-certs",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "nothing creates the Secret, and a container still mounts it",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    CERT_2 = {
        id: "CERT-2",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "Annotations should not request a CA bundle from cert-manager.",
        why: "OLM injects its own CA bundle. Without cert-manager the annotation does nothing, with it the two overwrite each other.",
        bad: "cert-manager.io/inject-ca-from: demo/serving-cert",
        good: "remove the annotation",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "OLM manages the certificates of webhooks itself",
            "any",
            "https://olm.operatorframework.io/docs/advanced-tasks/adding-admission-and-conversion-webhooks/",
        ),
    }
}

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut findings = cert_manager(context);
    if let Some(csv) = context.csv() {
        findings.extend(volumes(context, &csv));
    }
    findings
}

/// Secrets that OpenShift creates for Services of the bundle that request a certificate.
fn serving_certificates<'c>(context: &Context<'c>) -> BTreeSet<&'c str> {
    let annotations = context
        .bundle
        .objects
        .iter()
        .filter_map(|object| object.value.pointer("/metadata/annotations")?.as_object());
    let asked = annotations
        .flatten()
        .filter(|(key, _)| key.starts_with("service.") && key.ends_with("openshift.io/serving-cert-secret-name"));
    asked.filter_map(|(_, name)| name.as_str()).collect()
}

/// The Secret that OLM v0 creates for the webhooks of a Deployment.
fn certificate_secret(deployment: &str) -> String {
    format!("{}-service-cert", deployment.replace('.', "-"))
}

/// Secrets with certificates that nothing creates under OLM.
fn volumes(context: &Context<'_>, csv: &Csv<'_>) -> Vec<Checked> {
    let in_bundle: BTreeSet<&str> = context
        .bundle
        .objects
        .iter()
        .filter(|object| object.kind() == "Secret")
        .map(crate::bundle::Object::name)
        .collect();
    let of_openshift = serving_certificates(context);
    let with_webhooks: BTreeSet<&str> = csv
        .list("/spec/webhookdefinitions")
        .iter()
        .map(|webhook| field(webhook, "deploymentName"))
        .collect();
    let of_olm: BTreeSet<String> = with_webhooks.iter().map(|name| certificate_secret(name)).collect();
    let with_api_services = csv.list("/spec/apiservicedefinitions/owned").iter();
    let served: BTreeSet<&str> = with_api_services
        .map(|service| field(service, "deploymentName"))
        .chain(with_webhooks.iter().copied())
        .collect();
    let mut findings = Vec::new();
    if with_webhooks.is_empty() {
        return findings;
    }
    for (at, deployment) in csv.deployments().iter().enumerate() {
        let Some(pod) = deployment.pointer("/spec/template/spec") else {
            continue;
        };
        let is_served = served.contains(field(deployment, "name"));
        let mounted = olm_certificates::mounted(pod, is_served);
        for (index, volume) in items(pod, "volumes").iter().enumerate() {
            let Some(secret) = volume.get("secret") else { continue };
            let name = field(secret, "secretName");
            let optional = secret.get("optional") == Some(&Value::Bool(true));
            // OLM replaces volumes of these two names by its own.
            let replaced = is_served
                && olm_certificates::MOUNTS
                    .iter()
                    .any(|(own, _)| field(volume, "name") == *own);
            if name.contains("cert")
                && !optional
                && !replaced
                && mounted.contains(field(volume, "name"))
                && !in_bundle.contains(name)
                && !of_openshift.contains(name)
                && !of_olm.contains(name)
            {
                let message = format!("the pod waits for Secret {name:?}, which neither the bundle nor OLM creates");
                let pointer = format!("/spec/install/spec/deployments/{at}/spec/template/spec/volumes/{index}");
                let hint = "remove the volume, or mount it where OLM puts the webhook's certificate instead: \
                            /tmp/k8s-webhook-server/serving-certs or /apiserver.local.config/certificates";
                findings.push(Checked::new(&CERT_1, message).at(csv.object, &pointer).hint(hint));
            }
        }
    }
    findings
}

fn cert_manager(context: &Context<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    for object in &context.bundle.objects {
        let annotations = object.value.pointer("/metadata/annotations").and_then(Value::as_object);
        for (key, _) in annotations
            .into_iter()
            .flatten()
            .filter(|(key, _)| key.starts_with("cert-manager.io/inject"))
        {
            let message = format!("annotation {key} asks cert-manager for a CA bundle, which OLM injects itself");
            let pointer = format!("/metadata/annotations/{}", pointer_part(key));
            findings.push(
                Checked::new(&CERT_2, message)
                    .at(object, &pointer)
                    .hint("remove it: OLM writes the CA bundle into the CRD"),
            );
        }
    }
    findings
}
