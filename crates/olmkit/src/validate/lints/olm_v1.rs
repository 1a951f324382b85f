//! V1: features that OLM v1 does not install.

use crate::bundle::load::Entry;
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::validate::checked::Checked;
use crate::validate::context::{Context, Csv, field};
use crate::yaml::{self, Node};

define_rules! {
    V1_1 = {
        id: "V1-1",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "The bundle should not own API services.",
        why: "OLM v1 up to 1.11 does not install bundles with API services.",
        bad: "apiservicedefinitions: {owned: […]}",
        good: "a CustomResourceDefinition",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "OLM v1 does not support API services",
            "OLM v1 1.11",
            "https://operator-framework.github.io/operator-controller/project/olmv1_limitations/",
        ),
    }
    V1_2 = {
        id: "V1-2",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "The bundle should not have dependencies.",
        why: "OLM v1 does not resolve dependencies.",
        bad: "dependencies: [{type: olm.package, …}]",
        good: "document what must be installed first",
        since: "0.1.0",
        proof: Proof::new(
            Witness::OlmV1,
            "OLM v1 rejects the bundle: it has a dependency",
            "OLM v1 1.11",
            "crates/olmkit/tests/library/rules/recorded.rs: olm_v1_refuses_what_rules_say",
        ),
    }
    V1_3 = {
        id: "V1-3",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "The operator should support AllNamespaces.",
        why: "OLM v1 has no OperatorGroups: with its standard manifests it installs only operators for all namespaces.",
        bad: "- type: AllNamespaces\n  supported: false",
        good: "- type: AllNamespaces\n  supported: true",
        since: "0.1.0",
        proof: Proof::new(
            Witness::OlmV1,
            "OLM v1 rejects the bundle with its standard manifests: it does not support AllNamespaces",
            "OLM v1 1.11",
            "crates/olmkit/tests/library/rules/recorded.rs: olm_v1_refuses_what_rules_say",
        ),
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
    findings.extend(dependencies(context, &csv));
    let modes = csv.list("/spec/installModes");
    let all = modes.iter().any(|mode| {
        field(mode, "type") == "AllNamespaces" && mode.get("supported") == Some(&serde_json::Value::Bool(true))
    });
    if !modes.is_empty() && !all {
        let checked = note(
            &V1_3,
            "the operator does not support AllNamespaces: OLM v1 rejects it with its standard manifests",
        );
        findings.push(checked.at(csv.object, "/spec/installModes"));
    }
    findings
}

/// Types of entries that OLM v1 rejects, as dependencies and as properties.
const REQUIREMENTS: [(&str, [&str; 3]); 2] = [
    ("dependencies", ["olm.package", "olm.gvk", "olm.constraint"]),
    (
        "properties",
        ["olm.package.required", "olm.gvk.required", "olm.constraint"],
    ),
];

/// The bundle's requirements. As in opm, any file of the directory is read, and the first one with entries counts.
fn dependencies(context: &Context<'_>, csv: &Csv<'_>) -> Option<Checked> {
    let note = |message: &str| Checked::new(&V1_2, message);
    let files: Vec<(String, Node)> = context
        .bundle
        .tree
        .children("metadata")
        .filter_map(|(name, entry)| match entry {
            Entry::File(bytes) => Some((format!("metadata/{name}"), yaml::parse(bytes).ok()?)),
            _ => None,
        })
        .collect();
    for (key, types) in REQUIREMENTS {
        let has_entries = |node: &Node| node.get(key).is_some_and(|list| !list.items().is_empty());
        let Some((path, node)) = files.iter().find(|(_, node)| has_entries(node)) else {
            continue;
        };
        let entries = node.get(key).map(Node::items).unwrap_or_default();
        let requires = |entry: &&Node| {
            let kind = entry.get("type").and_then(Node::as_str);
            kind.is_some_and(|kind| types.contains(&kind))
        };
        if let Some(entry) = entries.iter().find(requires) {
            let message = "OLM v1 does not resolve dependencies, and rejects bundles that declare them";
            let mut checked = note(message).in_file(path);
            checked.finding = checked.finding.at_node(entry);
            return Some(checked);
        }
    }
    if csv
        .annotation("olm.properties")
        .is_some_and(crate::olmv1::is_in_annotation)
    {
        let message = "OLM v1 does not resolve dependencies, and rejects bundles that declare them";
        return Some(note(message).at(csv.object, "/metadata/annotations/olm.properties"));
    }
    ["customresourcedefinitions", "apiservicedefinitions"]
        .into_iter()
        .map(|kind| format!("/spec/{kind}/required"))
        .find(|pointer| !csv.list(pointer).is_empty())
        .map(|pointer| {
            note("OLM v1 does not resolve required APIs, and rejects bundles that have them").at(csv.object, &pointer)
        })
}
