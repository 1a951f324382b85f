//! V1: what OLM v1 does not install.

use super::super::checked::Checked;
use super::super::context::{Context, field};
use crate::diagnostics::{Origin, Severity, define_rules};

define_rules! {
    V1_1 = {
        id: "V1-1",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "The bundle owns no API services.",
        why: "OLM v1 refuses to install bundles with API services.",
        bad: "apiservicedefinitions: {owned: […]}",
        good: "a CustomResourceDefinition",
        since: "0.1.0",
    }
    V1_2 = {
        id: "V1-2",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "The bundle has no dependencies.",
        why: "OLM v1 does not resolve dependencies.",
        bad: "dependencies: [{type: olm.package, …}]",
        good: "document what must be installed first",
        since: "0.1.0",
    }
    V1_3 = {
        id: "V1-3",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "The operator supports AllNamespaces.",
        why: "OLM v1 has no OperatorGroups: by default it installs an operator for all namespaces.",
        bad: "- type: AllNamespaces\n  supported: false",
        good: "- type: AllNamespaces\n  supported: true",
        since: "0.1.0",
    }
}

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let note = |rule, message: &str| Checked::new(rule, message);
    let mut findings = Vec::new();
    let apis = "/spec/apiservicedefinitions/owned";
    if !csv.list(apis).is_empty() {
        findings.push(note(&V1_1, "OLM v1 does not install bundles with API services").at(csv.object, apis));
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
            &V1_2,
            "OLM v1 does not resolve dependencies, and refuses bundles that declare them",
        );
        findings.push(checked.in_file("metadata/dependencies.yaml"));
    } else if !csv.list("/spec/customresourcedefinitions/required").is_empty() {
        let checked = note(&V1_2, "OLM v1 does not resolve required APIs");
        findings.push(checked.at(csv.object, "/spec/customresourcedefinitions/required"));
    }
    let modes = csv.list("/spec/installModes");
    let all = modes.iter().any(|mode| {
        field(mode, "type") == "AllNamespaces" && mode.get("supported") == Some(&serde_json::Value::Bool(true))
    });
    if !modes.is_empty() && !all {
        let checked = note(
            &V1_3,
            "the operator does not support AllNamespaces, the mode in which OLM v1 installs by default",
        );
        findings.push(checked.at(csv.object, "/spec/installModes"));
    }
    findings
}
