//! OBJ: every object beside the ClusterServiceVersion and the CustomResourceDefinitions.

use super::checked::{Checked, Subject};
use super::context::Context;
use super::{Profile, object_meta};
use crate::bundle::MediaType;
use crate::diagnostics::Severity;
use crate::types::go_text;

/// Kinds that OLM takes from a bundle, whatever their group and version.
pub const SUPPORTED_KINDS: [&str; 21] = [
    "ClusterServiceVersion",
    "CustomResourceDefinition",
    "Secret",
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ServiceAccount",
    "Service",
    "Role",
    "RoleBinding",
    "PrometheusRule",
    "ServiceMonitor",
    "PodDisruptionBudget",
    "PriorityClass",
    "VerticalPodAutoscaler",
    "ConsoleYAMLSample",
    "ConsoleQuickStart",
    "ConsoleCLIDownload",
    "ConsoleLink",
    "ConsolePlugin",
    "NetworkPolicy",
];

/// True when a bundle may hold objects of a kind.
pub fn is_supported(kind: &str, profile: Profile) -> bool {
    SUPPORTED_KINDS.contains(&kind) || (profile == Profile::Api045 && kind == "PodMonitor")
}

/// Checks all objects.
pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    for object in &context.bundle.objects {
        // A kind beside an apiVersion with two slashes counts as none.
        let kind = if object.gvk() == "/, Kind=" { "" } else { object.kind() };
        if matches!(kind, "ClusterServiceVersion" | "CustomResourceDefinition") {
            continue;
        }
        if context.bundle.media_type == MediaType::RegistryV1 && !is_supported(kind, context.options.profile) {
            let subject = Subject::Value(object.gvk());
            let detail = format!("unsupported media type {} for bundle object", MediaType::RegistryV1);
            let hint = if kind.is_empty() {
                "only the first YAML document of a file counts: remove a comment before the first `---`; move files that are no manifests out of the directory".to_string()
            } else {
                format!(
                    "OLM does not install objects of kind {kind}: let the operator create it, or deliver it outside the bundle"
                )
            };
            let mut checked = Checked::shared("OBJ-1", Severity::Error, &subject, detail)
                .at(object, "/kind")
                .hint(hint);
            if kind.is_empty() {
                checked.finding.message = "this file holds no Kubernetes object".to_string();
                checked.finding.object = None;
                checked.finding.path = None;
            } else {
                checked.finding.message = format!("objects of kind {kind} are not supported in a registry+v1 bundle");
            }
            findings.push(checked);
            continue;
        }
        let faults = object_meta::check(&object.value);
        if faults.is_empty() {
            continue;
        }
        let texts: Vec<String> = faults.iter().map(|fault| fault.text.clone()).collect();
        let list = object_meta::aggregate(&texts);
        let whole = go_text::value(&object.value);
        let subject = Subject::Value(object.name().to_string());
        let mut reference = Some(subject.text(
            Severity::Error,
            &format!("error validating object: {list}. &{{{whole}}}"),
        ));
        for fault in faults {
            let mut checked = Checked::own("OBJ-2", Severity::Error, fault.text)
                .at(object, fault.pointer)
                .hint(fault.hint);
            checked.reference = reference.take();
            findings.push(checked);
        }
    }
    findings
}
