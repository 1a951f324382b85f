//! POD-4: pods against the Pod Security Standard `restricted`.

use serde_json::Value;

use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::validate::checked::Checked;
use crate::validate::context::{Context, field, items, strings};

define_rules! {
    POD_4 = {
        id: "POD-4",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "Pods should meet the Pod Security Standard `restricted`.",
        why: "Namespaces that enforce it do not admit the operator's pods.",
        bad: "securityContext: {}",
        good: "securityContext:\n  allowPrivilegeEscalation: false\n  runAsNonRoot: true\n  capabilities: {drop: [ALL]}\n  seccompProfile: {type: RuntimeDefault}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "namespaces that enforce the standard do not admit the pods",
            "Kubernetes 1.36, since 1.25",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
}

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let mut findings = Vec::new();
    for (at, deployment) in csv.deployments().iter().enumerate() {
        let Some(pod) = deployment.pointer("/spec/template/spec") else {
            continue;
        };
        let missing = missing(pod);
        if !missing.is_empty() {
            let message = format!(
                "the pods of deployment {:?} violate the Pod Security Standard `restricted`; missing: {}",
                field(deployment, "name"),
                missing.join(", ")
            );
            let pointer = format!("/spec/install/spec/deployments/{at}/spec/template/spec");
            findings.push(
                Checked::new(&POD_4, message)
                    .at(csv.object, &pointer)
                    .hint("set the missing fields, unless the operator needs more privileges"),
            );
        }
    }
    findings
}

/// The fields that a pod lacks.
fn missing(pod: &Value) -> Vec<&'static str> {
    let of_pod = pod.get("securityContext").unwrap_or(&Value::Null);
    let containers: Vec<&Value> = ["initContainers", "containers"]
        .iter()
        .flat_map(|list| items(pod, list))
        .map(|container| container.get("securityContext").unwrap_or(&Value::Null))
        .collect();
    let seccomp = |context: &Value| {
        let kind = context.pointer("/seccompProfile/type").and_then(Value::as_str);
        matches!(kind, Some("RuntimeDefault" | "Localhost"))
    };
    let yes = |context: &Value, key: &str| context.get(key) == Some(&Value::Bool(true));
    let no = |context: &Value, key: &str| context.get(key) == Some(&Value::Bool(false));
    let drops_all = |context: &Value| {
        context
            .get("capabilities")
            .is_some_and(|capabilities| strings(capabilities, "drop").any(|name| name == "ALL"))
    };
    let every = |holds: &dyn Fn(&Value) -> bool| containers.iter().all(|context| holds(context));
    [
        (
            every(&|context| {
                yes(context, "runAsNonRoot") || yes(of_pod, "runAsNonRoot") && !no(context, "runAsNonRoot")
            }),
            "runAsNonRoot: true",
        ),
        (
            every(&|context| seccomp(context) || seccomp(of_pod) && context.get("seccompProfile").is_none()),
            "seccompProfile: {type: RuntimeDefault}",
        ),
        (
            every(&|context| no(context, "allowPrivilegeEscalation")),
            "allowPrivilegeEscalation: false",
        ),
        (every(&drops_all), "capabilities: {drop: [ALL]}"),
    ]
    .into_iter()
    .filter_map(|(holds, what)| (!holds).then_some(what))
    .collect()
}
