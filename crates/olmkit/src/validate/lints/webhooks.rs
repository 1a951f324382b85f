//! HOOK and CERT: webhooks as OLM serves them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::checked::Checked;
use super::super::context::{Context, Csv, field, items, strings};
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::object::{dns1123_subdomain_problems, pointer_part};

define_rules! {
    HOOK_1 = {
        id: "HOOK-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A webhook names a deployment of the ClusterServiceVersion.",
        why: "OLM routes the webhook's requests to this deployment, and fails the installation without it.",
        bad: "deploymentName: webhook   # no such deployment",
        good: "deploymentName: manager",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the ClusterServiceVersion never succeeds",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    HOOK_2 = {
        id: "HOOK-2",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Webhooks of one type have different names.",
        why: "OLM refuses two webhooks of one type with the same name.",
        bad: "generateName: a.example.com, twice",
        good: "generateName: a.example.com, b.example.com",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the ClusterServiceVersion never succeeds",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    HOOK_3 = {
        id: "HOOK-3",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A webhook's name is a DNS subdomain, for admission of three segments at least.",
        why: "The API server refuses the webhook configuration.",
        bad: "generateName: My_Hook",
        good: "generateName: my-hook.example.com",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the API server refuses the webhook configuration, and the ClusterServiceVersion never succeeds",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    HOOK_4 = {
        id: "HOOK-4",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A webhook does not intercept OLM's own objects, webhook configurations or all API groups: OLM refuses to install it.",
        why: "Such a webhook could block OLM or the whole cluster.",
        bad: "apiGroups: ['*']",
        good: "apiGroups: [example.com]",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the ClusterServiceVersion never succeeds",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    HOOK_5 = {
        id: "HOOK-5",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A webhook accepts review version v1.",
        why: "v1beta1 reviews are deprecated; an API server that drops them cannot call the webhook.",
        bad: "admissionReviewVersions: [v1beta1]",
        good: "admissionReviewVersions: [v1]",
        since: "0.1.0",
    }
    HOOK_6 = {
        id: "HOOK-6",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A conversion webhook converts CRDs that the operator owns.",
        why: "OLM refuses to configure the conversion of a CRD that the operator does not own.",
        bad: "conversionCRDs: [gadgets.example.com]",
        good: "conversionCRDs: [widgets.example.com]",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the ClusterServiceVersion never succeeds",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    HOOK_7 = {
        id: "HOOK-7",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A CRD with a conversion webhook is listed by a ConversionWebhook of the ClusterServiceVersion: OLM sets the address and the certificate from it.",
        why: "Otherwise the API server calls an address that OLM does not serve, and reading objects in another version fails.",
        bad: "conversion: {strategy: Webhook}   # without a webhookdefinition",
        good: "webhookdefinitions:\n- type: ConversionWebhook\n  conversionCRDs: [widgets.example.com]",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "OLM leaves the conversion as the definition has it",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    HOOK_8 = {
        id: "HOOK-8",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A webhook with `failurePolicy: Fail` does not intercept the operator's own pods.",
        why: "After an outage the operator's pod cannot be created because its own webhook does not answer.",
        bad: "failurePolicy: Fail\nrules:\n- {apiGroups: [''], resources: [pods], operations: [CREATE]}",
        good: "failurePolicy: Ignore",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server refuses pods while the webhook does not answer",
            "Kubernetes 1.36; since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
    CERT_1 = {
        id: "CERT-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "No volume needs a Secret that cert-manager would create: OLM creates and mounts its own certificate.",
        why: "The pod waits forever for a Secret that does not exist.",
        bad: "volumes:\n- secret: {secretName: webhook-server-cert}",
        good: "remove the volume and its mount",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "nobody creates the Secret",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    CERT_2 = {
        id: "CERT-2",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "No annotation asks cert-manager to inject a CA bundle.",
        why: "OLM injects its own CA bundle; without cert-manager the annotation does nothing, with it the two overwrite each other.",
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
                Checked::new(&HOOK_1, message)
                    .at(csv.object, &format!("{pointer}/deploymentName"))
                    .hint(hint),
            );
        }
        let (kind, name) = (field(webhook, "type"), field(webhook, "generateName"));
        if !names.insert((kind, name)) {
            let message = format!("duplicate name {name:?} of webhooks of type {kind}");
            findings.push(
                Checked::new(&HOOK_2, message)
                    .at(csv.object, &format!("{pointer}/generateName"))
                    .hint("use a different name for each"),
            );
        }
        // A conversion webhook's name is not part of any object.
        let is_short = kind != "ConversionWebhook" && name.split('.').count() < 3;
        let short = is_short.then(|| "should be a domain with at least three segments separated by dots".to_string());
        if let Some(fault) = dns1123_subdomain_problems(name).into_iter().next().or(short) {
            let message = format!("the webhook's name {name:?} is invalid: {fault}");
            let hint = "use a name such as `vwidget.kb.io`";
            findings.push(
                Checked::new(&HOOK_3, message)
                    .at(csv.object, &format!("{pointer}/generateName"))
                    .hint(hint),
            );
        }
        findings.extend(forbidden_rules(csv, webhook, &pointer));
        findings.extend(blocks_itself(csv, webhook, &pointer));
        let versions: Vec<&str> = strings(webhook, "admissionReviewVersions").collect();
        if !versions.contains(&"v1") {
            let message = format!(
                "admissionReviewVersions [{}] lacks v1; v1beta1 is deprecated",
                versions.join(", ")
            );
            let hint = "add v1, and answer in that version";
            findings.push(
                Checked::new(&HOOK_5, message)
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
            let message = format!("the webhook intercepts API group {group:?}; OLM refuses to install it");
            let hint = "list the API groups that the operator owns";
            return Some(
                Checked::new(&HOOK_4, message)
                    .at(csv.object, &format!("{pointer}/rules/{at}/apiGroups"))
                    .hint(hint),
            );
        }
    }
    None
}

/// A webhook that must answer before its own pods are created does not recover once they are gone.
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
    let message = "the webhook blocks the creation of its own pods: once they are gone, it cannot recover";
    let hint = "set `failurePolicy: Ignore`, or an `objectSelector` that excludes the pods of the operator";
    Some(
        Checked::new(&HOOK_8, message)
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
                    Checked::new(&HOOK_6, message)
                        .at(csv.object, &pointer)
                        .hint("list the CRD under `owned`, or remove it here"),
                );
            }
        }
    }
    for crd in context.bundle.crds() {
        if crd.text("/spec/conversion/strategy") == "Webhook" && !converted.contains(crd.name()) {
            let message = format!(
                "{} has a conversion webhook, but no ConversionWebhook of the ClusterServiceVersion lists it",
                crd.name()
            );
            let hint = "add a webhookdefinition of type ConversionWebhook with this name in `conversionCRDs`; OLM sets the address and the certificate";
            findings.push(Checked::new(&HOOK_7, message).at(crd, "/spec/conversion").hint(hint));
        }
    }
    findings
}

/// Secrets that OpenShift creates for Services of the bundle that ask for a certificate.
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

/// The Secret that OLM v0 makes for the webhooks of a Deployment.
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
        .map(super::super::super::bundle::Object::name)
        .collect();
    let of_openshift = serving_certificates(context);
    let of_olm: BTreeSet<String> = csv
        .list(LIST)
        .iter()
        .map(|webhook| certificate_secret(field(webhook, "deploymentName")))
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
            if name.contains("cert")
                && !optional
                && !replaced
                && !in_bundle.contains(name)
                && !of_openshift.contains(name)
                && !of_olm.contains(name)
            {
                let message = format!("the pod waits for Secret {name:?}, which neither the bundle nor OLM creates");
                let pointer = format!("/spec/install/spec/deployments/{at}/spec/template/spec/volumes/{index}");
                let hint = "remove the volume and its mount: OLM mounts the webhook's certificate at \
                            /tmp/k8s-webhook-server/serving-certs and /apiserver.local.config/certificates";
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
