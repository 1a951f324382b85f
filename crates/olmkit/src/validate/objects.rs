//! OBJ: every object except the ClusterServiceVersion and the CustomResourceDefinitions.

use super::checked::{Checked, Subject};
use super::context::Context;
use super::{Profile, object_meta};
use crate::bundle::MediaType;
use crate::bundle::kinds::{self, Program};
use crate::diagnostics::{Origin, Severity, define_rules};

define_rules! {
    OBJ_1 = {
        id: "OBJ-1",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("objects"),
        summary: "Every object must have a kind that OLM installs from bundles.",
        why: "OLM cannot install a bundle that contains other kinds.",
        bad: "kind: Namespace",
        good: "kind: ConfigMap",
        since: "0.1.0",
    }
    OBJ_2 = {
        id: "OBJ-2",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("objects"),
        summary: "Every object must have a name, no namespace, and valid labels, annotations, owners and finalizers.",
        why: "The API server rejects the object, or OLM creates it in another namespace than the one it names.",
        bad: "metadata:\n  name: demo\n  namespace: default",
        good: "metadata:\n  name: demo",
        since: "0.1.0",
    }
}

/// True if a bundle may contain objects of a kind.
pub fn is_supported(kind: &str, profile: Profile) -> bool {
    let release = match profile {
        Profile::OperatorSdk142 => kinds::OPERATOR_SDK_1_42,
        Profile::Api045 => kinds::API_0_45,
    };
    kinds::is_accepted(kind, Program::OperatorRegistry, release)
}

/// Checks all objects.
pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    for object in &context.bundle.objects {
        // If an apiVersion has two slashes, the kind counts as missing.
        let kind = if object.gvk() == "/, Kind=" { "" } else { object.kind() };
        if matches!(kind, "ClusterServiceVersion" | "CustomResourceDefinition") {
            continue;
        }
        if context.bundle.media_type == MediaType::RegistryV1 && !is_supported(kind, context.options.profile) {
            let subject = Subject::Value(object.gvk());
            let detail = format!("unsupported media type {} for bundle object", MediaType::RegistryV1);
            let hint = if kind.is_empty() {
                "only the first YAML document of a file counts: remove a comment before the first `---`; move files that are not manifests out of the directory".to_string()
            } else {
                format!(
                    "OLM does not install objects of kind {kind}: let the operator create it, or install it separately"
                )
            };
            let mut checked = Checked::shared(&OBJ_1, Severity::Error, &subject, detail)
                .at(object, "/kind")
                .hint(hint);
            if kind.is_empty() {
                checked.finding.message = "this file contains no Kubernetes object".to_string();
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
        let whole = olmkit_go::fmt::v(&object.value);
        let subject = Subject::Value(object.name().to_string());
        let mut reference = Some(subject.text(
            Severity::Error,
            &format!("error validating object: {list}. &{{{whole}}}"),
        ));
        for fault in faults {
            let mut checked = Checked::new(&OBJ_2, fault.text)
                .at(object, fault.pointer)
                .hint(fault.hint);
            checked.reference = reference.take();
            findings.push(checked);
        }
    }
    findings
}
