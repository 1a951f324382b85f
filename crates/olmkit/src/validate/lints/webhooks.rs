//! HOOK: webhooks as OLM serves them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bundle::ports::target_ports;
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::object::dns1123_subdomain_problems;
use crate::validate::checked::Checked;
use crate::validate::context::{Context, Csv, field, items, strings};

define_rules! {
    HOOK_1 = {
        id: "HOOK-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A webhook should name a deployment of the ClusterServiceVersion.",
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
        summary: "Webhooks of one type should have different names.",
        why: "OLM rejects two webhooks of one type with the same name.",
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
        summary: "A webhook's name should be a DNS subdomain. Admission webhooks need at least three segments.",
        why: "The API server rejects the webhook configuration.",
        bad: "generateName: My_Hook",
        good: "generateName: my-hook.example.com",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the API server rejects the webhook configuration, and the ClusterServiceVersion never succeeds",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    HOOK_4 = {
        id: "HOOK-4",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A webhook should not intercept OLM's own objects, webhook configurations or all API groups. OLM rejects it.",
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
        summary: "A webhook should accept review version v1.",
        why: "v1beta1 reviews are deprecated. An API server that drops them cannot call the webhook.",
        bad: "admissionReviewVersions: [v1beta1]",
        good: "admissionReviewVersions: [v1]",
        since: "0.1.0",
    }
    HOOK_6 = {
        id: "HOOK-6",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A conversion webhook should convert CRDs that the operator owns.",
        why: "OLM does not configure the conversion of a CRD that the operator does not own.",
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
        summary: "A CRD with a conversion webhook and several versions should be listed by a ConversionWebhook of the CSV. OLM takes the URL and the certificate from it.",
        why: "Otherwise the API server calls an address that OLM does not serve, and reading objects in another version fails.",
        bad: "conversion: {strategy: Webhook}   # without a webhookdefinition",
        good: "webhookdefinitions:\n- type: ConversionWebhook\n  conversionCRDs: [widgets.example.com]",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "OLM leaves the conversion as the definition has it, and objects cannot be read in another version",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    HOOK_8 = {
        id: "HOOK-8",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A webhook with `failurePolicy: Fail` should not intercept the operator's own pods.",
        why: "After an outage the operator's pod cannot be created because its own webhook does not answer.",
        bad: "failurePolicy: Fail\nrules:\n- {apiGroups: [''], resources: [pods], operations: [CREATE]}",
        good: "failurePolicy: Ignore",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server rejects pods while the webhook does not answer",
            "Kubernetes 1.36, since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
    HOOK_9 = {
        id: "HOOK-9",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A webhook's target port name should be the name of a port in its Deployment.",
        why: "Otherwise the Service that OLM creates leads to no port, and every call of the webhook fails.",
        bad: "targetPort: webhook-server   # no container has this port",
        good: "targetPort: webhook-server\n# in a container of the Deployment:\nports:\n- name: webhook-server\n  containerPort: 9443",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the Service's EndpointSlice has no port for the pod",
            "Kubernetes 1.36",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
}

const LIST: &str = "/spec/webhookdefinitions";

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let mut findings = definitions(&csv);
    findings.extend(conversions(context, &csv));
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
        findings.extend(missing_port(csv, webhook, &pointer));
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

/// A named target port must be in a container. A number need not be.
fn missing_port(csv: &Csv<'_>, webhook: &Value, pointer: &str) -> Option<Checked> {
    let port = webhook.get("targetPort")?.as_str()?;
    let name = field(webhook, "deploymentName");
    let mut deployments = csv.deployments().iter();
    let deployment = deployments.find(|deployment| field(deployment, "name") == name)?;
    let pod = deployment.pointer("/spec/template/spec")?;
    let mut ports = target_ports(pod);
    if ports.any(|found| field(found, "name") == port) {
        return None;
    }
    let message = format!("no container of deployment {name:?} has a port named {port:?}, which the webhook calls");
    let hint = "name the port in the container that serves the webhook, or set `targetPort` to its number";
    Some(
        Checked::new(&HOOK_9, message)
            .at(csv.object, &format!("{pointer}/targetPort"))
            .hint(hint),
    )
}

/// OLM does not install webhooks that could stop it.
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
            let message = format!("the webhook intercepts API group {group:?}; OLM does not install it");
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

/// A webhook that must answer before its own pods are created does not recover after they are deleted.
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
    let message = "the webhook blocks the creation of its pods: after they are deleted, it cannot recover";
    let hint = "set `failurePolicy: Ignore`, or an `objectSelector` that excludes the pods of the operator";
    Some(
        Checked::new(&HOOK_8, message)
            .at(csv.object, &format!("{pointer}/rules/{at}"))
            .hint(hint),
    )
}

/// Returns true if the API server ever converts: some version that is served is not the one that is stored.
fn is_converted(crd: &Value) -> bool {
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    let is = |version: &Value, key: &str| version.get(key) == Some(&Value::Bool(true));
    versions
        .into_iter()
        .flatten()
        .any(|version| is(version, "served") && !is(version, "storage"))
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
        let has_webhook = crd.text("/spec/conversion/strategy") == "Webhook";
        if has_webhook && is_converted(&crd.value) && !converted.contains(crd.name()) {
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
