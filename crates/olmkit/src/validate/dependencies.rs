//! DEP: the entries of the dependencies file.

use serde_json::Value;

use super::cel;
use super::context::field;
use super::format::MetadataFile;
use crate::diagnostics::{Finding, Severity};
use crate::object::VersionRange;
use crate::types::decode::decode;

/// Checks all entries.
pub(super) fn check(file: &MetadataFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let list = file
        .content
        .get("dependencies")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    for (at, dependency) in list.iter().enumerate() {
        for (rule, message, hint) in entry(dependency) {
            let node = file.node.pointer(&format!("/dependencies/{at}")).unwrap_or(&file.node);
            let finding = Finding::new(rule, Severity::Error, message);
            findings.push(
                finding
                    .file(&file.path)
                    .path(format!("dependencies[{at}]"))
                    .at(node.start)
                    .hint(hint),
            );
        }
    }
    findings
}

type Fault = (&'static str, String, &'static str);

fn entry(dependency: &Value) -> Vec<Fault> {
    let kind = field(dependency, "type");
    let decoded = |key: &str| dependency.get("value").and_then(|value| decode(value, key, false).ok());
    let faults = match kind {
        "olm.gvk" => decoded("GVKDependency").map(|value| gvk(&value)),
        "olm.package" => decoded("PackageDependency").map(|value| package(&value)),
        "olm.label" => decoded("LabelDependency").map(|value| label(&value)),
        "olm.constraint" => decoded("CelConstraint").map(|value| constraint(&value)),
        _ => None,
    };
    faults.unwrap_or_else(|| {
        let hint = "the type must be olm.gvk, olm.package, olm.label or olm.constraint, and the value a map with strings in it";
        vec![("DEP-1", format!("couldn't parse dependency of type {kind}"), hint)]
    })
}

fn gvk(value: &Value) -> Vec<Fault> {
    let parts = [
        ("DEP-2", "group", "API Group is empty"),
        ("DEP-3", "version", "API Version is empty"),
        ("DEP-4", "kind", "API Kind is empty"),
    ];
    parts
        .into_iter()
        .filter(|(_, key, _)| field(value, key).is_empty())
        .map(|(rule, _, text)| (rule, text.to_string(), "an API is named by group, version and kind"))
        .collect()
}

fn package(value: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    if field(value, "packageName").is_empty() {
        faults.push((
            "DEP-5",
            "Package name is empty".to_string(),
            "name the package in `packageName`",
        ));
    }
    let version = field(value, "version");
    if version.is_empty() {
        faults.push((
            "DEP-6",
            "Package version is empty".to_string(),
            "give a range, for example `>=1.0.0`",
        ));
    } else if VersionRange::parse(version).is_err() {
        let hint = "a range has full versions: `>=1.2.0 <2.0.0`, `1.2.x`, `>1.0.0 || 0.9.1`; neither `1.0` nor `^1.2.0` is one";
        faults.push(("DEP-7", "Invalid semver format version".to_string(), hint));
    }
    faults
}

fn label(value: &Value) -> Vec<Fault> {
    if field(value, "label").is_empty() {
        return vec![(
            "DEP-8",
            "Label information is missing".to_string(),
            "give the label in `label`",
        )];
    }
    Vec::new()
}

fn constraint(value: &Value) -> Vec<Fault> {
    let Some(constraint) = value.get("cel") else {
        let hint = "operator-sdk knows `cel` constraints only; OLM accepts all, any, not, gvk and package as well";
        return vec![("DEP-9", "The CEL field is missing".to_string(), hint)];
    };
    let rule = field(constraint, "rule");
    if rule.is_empty() {
        return vec![(
            "DEP-10",
            "The CEL expression is missing".to_string(),
            "give the expression in `cel.rule`",
        )];
    }
    match cel::check(rule) {
        Ok(()) => Vec::new(),
        Err(error) => {
            let hint = "the expression must be a boolean over `properties`, with semver_compare(a, b) at hand";
            vec![("DEP-11", format!("Invalid CEL expression: {error}"), hint)]
        }
    }
}
