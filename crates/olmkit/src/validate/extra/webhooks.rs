//! HOOK and CERT: webhooks as OLM serves them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::checked::{Checked, escape};
use super::super::context::{Context, Csv, field, items, strings};
use super::warning;
use crate::object::dns1123_subdomain_problems;

const LIST: &str = "/spec/webhookdefinitions";

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut findings = cert_manager(context);
    if let Some(csv) = context.csv() {
        findings.extend(definitions(&csv));
        findings.extend(conversions(context, &csv));
        findings.extend(volumes(context, &csv));
    }
    findings
}

fn definitions(csv: &Csv<'_>) -> Vec<Checked> {
    let deployments: Vec<&str> = csv
        .deployments()
        .iter()
        .map(|deployment| field(deployment, "name"))
        .collect();
    let mut names = BTreeSet::new();
    let mut findings = Vec::new();
    for (at, webhook) in csv.list(LIST).iter().enumerate() {
        let pointer = format!("{LIST}/{at}");
        let deployment = field(webhook, "deploymentName");
        if !deployments.contains(&deployment) {
            let message =
                format!("the webhook is served by deployment {deployment:?}, which is not in the install strategy");
            let hint = format!("the deployments are: {}", deployments.join(", "));
            findings.push(
                warning("HOOK-1", message)
                    .at(csv.object, &format!("{pointer}/deploymentName"))
                    .hint(hint),
            );
        }
        let (kind, name) = (field(webhook, "type"), field(webhook, "generateName"));
        if !names.insert((kind, name)) {
            let message = format!("two webhooks of type {kind} have the name {name:?}");
            findings.push(
                warning("HOOK-2", message)
                    .at(csv.object, &format!("{pointer}/generateName"))
                    .hint("give each one a name of its own"),
            );
        }
        if let Some(fault) = dns1123_subdomain_problems(name).first() {
            let message = format!("the webhook's name {name:?} is invalid: {fault}");
            let hint = "name it for example `vwidget.kb.io`";
            findings.push(
                warning("HOOK-3", message)
                    .at(csv.object, &format!("{pointer}/generateName"))
                    .hint(hint),
            );
        }
        findings.extend(forbidden_rules(csv, webhook, &pointer));
        findings.extend(blocks_itself(csv, webhook, &pointer));
        let versions: Vec<&str> = strings(webhook, "admissionReviewVersions").collect();
        if !versions.contains(&"v1") {
            let message = format!(
                "the webhook takes admission reviews of [{}] only; Kubernetes 1.22 and later send v1",
                versions.join(", ")
            );
            let hint = "add v1, and let the webhook's server answer in that version";
            findings.push(
                warning("HOOK-5", message)
                    .at(csv.object, &format!("{pointer}/admissionReviewVersions"))
                    .hint(hint),
            );
        }
    }
    findings
}

/// OLM refuses to install webhooks that could stop it.
fn forbidden_rules(csv: &Csv<'_>, webhook: &Value, pointer: &str) -> Option<Checked> {
    for (at, rule) in items(webhook, "rules").iter().enumerate() {
        let group = strings(rule, "apiGroups").find(|group| {
            let configurations = |resource: &str| {
                matches!(
                    resource,
                    "*" | "mutatingwebhookconfigurations" | "validatingwebhookconfigurations"
                )
            };
            match *group {
                "*" | "operators.coreos.com" | "olm.operatorframework.io" => true,
                "admissionregistration.k8s.io" => strings(rule, "resources").any(configurations),
                _ => false,
            }
        });
        if let Some(group) = group {
            let message = format!("the webhook intercepts API group {group:?}: OLM refuses to install it");
            let hint = "name the groups of the operator's own APIs";
            return Some(
                warning("HOOK-4", message)
                    .at(csv.object, &format!("{pointer}/rules/{at}/apiGroups"))
                    .hint(hint),
            );
        }
    }
    None
}

/// A webhook that must answer before its own pods can be made does not come back once they are gone.
fn blocks_itself(csv: &Csv<'_>, webhook: &Value, pointer: &str) -> Option<Checked> {
    let selects = |key: &str| {
        webhook
            .get(key)
            .is_some_and(|selector| selector != &Value::Object(Default::default()))
    };
    let is_conversion = field(webhook, "type") == "ConversionWebhook";
    if field(webhook, "failurePolicy") == "Ignore" || is_conversion || selects("objectSelector") {
        return None;
    }
    let (at, _) = items(webhook, "rules").iter().enumerate().find(|(_, rule)| {
        let has = |key: &str, wanted: &[&str]| strings(rule, key).any(|value| wanted.contains(&value));
        let pods = has("apiGroups", &[""]) && has("resources", &["*", "*/*", "pods"]);
        let owners = has("apiGroups", &["apps"]) && has("resources", &["*", "*/*", "deployments", "replicasets"]);
        (pods || owners) && has("operations", &["*", "CREATE", "UPDATE"])
    })?;
    let message = "the webhook must answer before its own pods can be made: once they are gone they do not come back";
    let hint = "set `failurePolicy: Ignore`, or an `objectSelector` that leaves out the pods of the operator";
    Some(
        warning("HOOK-8", message)
            .at(csv.object, &format!("{pointer}/rules/{at}"))
            .hint(hint),
    )
}

fn conversions(context: &Context<'_>, csv: &Csv<'_>) -> Vec<Checked> {
    let owned: BTreeSet<&str> = csv
        .list("/spec/customresourcedefinitions/owned")
        .iter()
        .map(|owned| field(owned, "name"))
        .collect();
    let mut converted = BTreeSet::new();
    let mut findings = Vec::new();
    for (at, webhook) in csv.list(LIST).iter().enumerate() {
        for name in strings(webhook, "conversionCRDs") {
            converted.insert(name);
            if !owned.contains(name) {
                let message = format!("the webhook converts {name}, which the operator does not own");
                let pointer = format!("{LIST}/{at}/conversionCRDs");
                findings.push(
                    warning("HOOK-6", message)
                        .at(csv.object, &pointer)
                        .hint("list the CRD under `owned`, or leave it out here"),
                );
            }
        }
    }
    for crd in context.bundle.crds() {
        if crd.text("/spec/conversion/strategy") == "Webhook" && !converted.contains(crd.name()) {
            let message = format!(
                "{} is converted by a webhook, but no ConversionWebhook of the ClusterServiceVersion names it",
                crd.name()
            );
            let hint = "add a webhookdefinition of type ConversionWebhook with this name in `conversionCRDs`: OLM writes address and certificate";
            findings.push(warning("HOOK-7", message).at(crd, "/spec/conversion").hint(hint));
        }
    }
    findings
}

/// Secrets with certificates that nobody will make.
fn volumes(context: &Context<'_>, csv: &Csv<'_>) -> Vec<Checked> {
    let in_bundle: BTreeSet<&str> = context
        .bundle
        .objects
        .iter()
        .filter(|object| object.kind() == "Secret")
        .map(super::super::super::bundle::Object::name)
        .collect();
    let mut findings = Vec::new();
    if csv.list(LIST).is_empty() {
        return findings;
    }
    for (at, deployment) in csv.deployments().iter().enumerate() {
        let volumes = deployment
            .pointer("/spec/template/spec")
            .map(|pod| items(pod, "volumes"))
            .unwrap_or_default();
        for (index, volume) in volumes.iter().enumerate() {
            let Some(secret) = volume.get("secret") else { continue };
            let name = field(secret, "secretName");
            let optional = secret.get("optional") == Some(&Value::Bool(true));
            // OLM replaces volumes of these two names by its own.
            let replaced = matches!(field(volume, "name"), "apiservice-cert" | "webhook-cert");
            if name.contains("cert") && !optional && !replaced && !in_bundle.contains(name) {
                let message = format!("the pod waits for secret {name:?}, which neither the bundle nor OLM makes");
                let pointer = format!("/spec/install/spec/deployments/{at}/spec/template/spec/volumes/{index}");
                let hint = "leave volume and mount out: OLM mounts the webhook's certificate at \
                            /tmp/k8s-webhook-server/serving-certs and /apiserver.local.config/certificates";
                findings.push(warning("CERT-1", message).at(csv.object, &pointer).hint(hint));
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
            let message =
                format!("annotation {key} asks cert-manager for a certificate authority; under OLM nobody answers");
            let pointer = format!("/metadata/annotations/{}", escape(key));
            findings.push(
                warning("CERT-2", message)
                    .at(object, &pointer)
                    .hint("remove it: OLM writes the authority into the CRD itself"),
            );
        }
    }
    findings
}
