//! DEP: the entries of the dependencies file.

use serde_json::Value;

use super::cel;
use super::context::field;
use crate::diagnostics::{Finding, Origin, Rule, Severity, define_rules};
use crate::object::VersionRange;
use crate::yaml::Node;
use olmkit_go::structs::decode::decode;

define_rules! {
    DEP_1 = {
        id: "DEP-1",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("dependencies"),
        summary: "A dependency must have a known type and a matching value.",
        why: "OLM cannot resolve a dependency whose type or value it does not know.",
        bad: "type: olm.crd",
        good: "type: olm.gvk",
        since: "0.1.0",
    }
    DEP_2 = {
        id: "DEP-2",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("dependencies"),
        summary: "A required API must have a group.",
        why: "OLM finds an API's provider by group, version and kind.",
        bad: "type: olm.gvk\nvalue: {kind: A, version: v1}",
        good: "type: olm.gvk\nvalue: {group: a.example.com, kind: A, version: v1}",
        since: "0.1.0",
    }
    DEP_3 = {
        id: "DEP-3",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("dependencies"),
        summary: "A required API must have a version.",
        why: "OLM finds an API's provider by group, version and kind.",
        bad: "value: {group: a.example.com, kind: A}",
        good: "value: {group: a.example.com, kind: A, version: v1}",
        since: "0.1.0",
    }
    DEP_4 = {
        id: "DEP-4",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("dependencies"),
        summary: "A required API must have a kind.",
        why: "OLM finds an API's provider by group, version and kind.",
        bad: "value: {group: a.example.com, version: v1}",
        good: "value: {group: a.example.com, kind: A, version: v1}",
        since: "0.1.0",
    }
    DEP_5 = {
        id: "DEP-5",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("dependencies"),
        summary: "A required package must have a name.",
        why: "OLM finds a required package by its name.",
        bad: "value: {version: \">=1.0.0\"}",
        good: "value: {packageName: a, version: \">=1.0.0\"}",
        since: "0.1.0",
    }
    DEP_6 = {
        id: "DEP-6",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("dependencies"),
        summary: "A required package must have a version range.",
        why: "Without a range OLM cannot select a package version.",
        bad: "value: {packageName: a}",
        good: "value: {packageName: a, version: \">=1.0.0\"}",
        since: "0.1.0",
    }
    DEP_7 = {
        id: "DEP-7",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("dependencies"),
        summary: "The range must contain full versions, as OLM parses it.",
        why: "OLM cannot resolve the dependency if the range does not parse.",
        bad: "version: ^1.0",
        good: "version: \">=1.0.0 <2.0.0\"",
        since: "0.1.0",
    }
    DEP_8 = {
        id: "DEP-8",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("dependencies"),
        summary: "A required label must not be empty.",
        why: "An empty label selects nothing.",
        bad: "type: olm.label\nvalue: {label: \"\"}",
        good: "type: olm.label\nvalue: {label: gpu}",
        since: "0.1.0",
    }
    DEP_9 = {
        id: "DEP-9",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("dependencies"),
        summary: "A constraint must have a `cel` member. operator-sdk supports no other member.",
        why: "operator-sdk rejects a constraint without CEL, although OLM supports compound constraints.",
        bad: "type: olm.constraint\nvalue: {all: {}}",
        good: "type: olm.constraint\nvalue: {cel: {rule: \"true\"}}",
        since: "0.1.0",
    }
    DEP_10 = {
        id: "DEP-10",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("dependencies"),
        summary: "A CEL constraint must have a rule.",
        why: "Without a rule there is nothing to evaluate.",
        bad: "cel: {}",
        good: "cel: {rule: \"properties.exists(p, p.type == 'x')\"}",
        since: "0.1.0",
    }
    DEP_11 = {
        id: "DEP-11",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("dependencies"),
        summary: "The CEL rule must compile to a boolean over `properties`.",
        why: "OLM evaluates the rule for each candidate and fails if it does not compile or is not a boolean.",
        bad: "rule: properties.size()",
        good: "rule: properties.size() > 0",
        since: "0.1.0",
    }
}

/// Checks all entries of the file at `path`: its source, and its decoded content.
pub(super) fn check(path: &str, node: &Node, content: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    let list = content
        .get("dependencies")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    for (at, dependency) in list.iter().enumerate() {
        for (rule, message, hint) in entry(dependency) {
            let entry_node = node.pointer(&format!("/dependencies/{at}")).unwrap_or(node);
            let finding = Finding::new(rule, Severity::Error, message);
            findings.push(
                finding
                    .file(path)
                    .path(format!("dependencies[{at}]"))
                    .at(entry_node.start)
                    .hint(hint),
            );
        }
    }
    findings
}

type Fault = (&'static Rule, String, &'static str);

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
        vec![(&DEP_1, format!("couldn't parse dependency of type {kind}"), hint)]
    })
}

fn gvk(value: &Value) -> Vec<Fault> {
    let parts = [
        (&DEP_2, "group", "API Group is empty"),
        (&DEP_3, "version", "API Version is empty"),
        (&DEP_4, "kind", "API Kind is empty"),
    ];
    parts
        .into_iter()
        .filter(|(_, key, _)| field(value, key).is_empty())
        .map(|(rule, _, text)| (rule, text.to_string(), "a required API needs group, version and kind"))
        .collect()
}

fn package(value: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    if field(value, "packageName").is_empty() {
        faults.push((
            &DEP_5,
            "Package name is empty".to_string(),
            "name the package in `packageName`",
        ));
    }
    let version = field(value, "version");
    if version.is_empty() {
        faults.push((
            &DEP_6,
            "Package version is empty".to_string(),
            "give a range, for example `>=1.0.0`",
        ));
    } else if VersionRange::parse(version).is_err() {
        let hint = "a range has full versions: `>=1.2.0 <2.0.0`, `1.2.x`, `>1.0.0 || 0.9.1`; `1.0` and `^1.2.0` are not ranges";
        faults.push((&DEP_7, "Invalid semver format version".to_string(), hint));
    }
    faults
}

fn label(value: &Value) -> Vec<Fault> {
    if field(value, "label").is_empty() {
        return vec![(
            &DEP_8,
            "Label information is missing".to_string(),
            "give the label in `label`",
        )];
    }
    Vec::new()
}

fn constraint(value: &Value) -> Vec<Fault> {
    let Some(constraint) = value.get("cel") else {
        let hint = "operator-sdk supports only `cel` constraints; OLM accepts all, any, not, gvk and package as well";
        return vec![(&DEP_9, "The CEL field is missing".to_string(), hint)];
    };
    let rule = field(constraint, "rule");
    if rule.is_empty() {
        return vec![(
            &DEP_10,
            "The CEL expression is missing".to_string(),
            "give the expression in `cel.rule`",
        )];
    }
    match cel::check(rule) {
        Ok(()) => Vec::new(),
        Err(error) => {
            let hint = "the expression must be a boolean over `properties`; semver_compare(a, b) is available";
            vec![(&DEP_11, format!("Invalid CEL expression: {error}"), hint)]
        }
    }
}
