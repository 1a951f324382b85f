//! V1: what OLM v1 does not install.

use super::super::checked::Checked;
use super::super::context::{Context, field};
use crate::diagnostics::Severity;

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let note = |rule, message: &str| Checked::own(rule, Severity::Info, message);
    let mut findings = Vec::new();
    let apis = "/spec/apiservicedefinitions/owned";
    if !csv.list(apis).is_empty() {
        findings.push(note("V1-1", "OLM v1 does not install bundles with API services").at(csv.object, apis));
    }
    let dependencies = context
        .bundle
        .tree
        .file("metadata/dependencies.yaml")
        .and_then(|bytes| crate::yaml::parse(bytes).ok());
    if dependencies
        .as_ref()
        .and_then(|node| node.get("dependencies"))
        .is_some_and(|list| !list.items().is_empty())
    {
        let checked = note(
            "V1-2",
            "OLM v1 does not resolve dependencies, and refuses bundles that have some",
        );
        findings.push(checked.in_file("metadata/dependencies.yaml"));
    } else if !csv.list("/spec/customresourcedefinitions/required").is_empty() {
        let checked = note("V1-2", "OLM v1 does not resolve required APIs");
        findings.push(checked.at(csv.object, "/spec/customresourcedefinitions/required"));
    }
    let modes = csv.list("/spec/installModes");
    let all = modes.iter().any(|mode| {
        field(mode, "type") == "AllNamespaces" && mode.get("supported") == Some(&serde_json::Value::Bool(true))
    });
    if !modes.is_empty() && !all {
        let checked = note(
            "V1-3",
            "the operator does not support AllNamespaces, the mode in which OLM v1 installs by default",
        );
        findings.push(checked.at(csv.object, "/spec/installModes"));
    }
    findings
}
