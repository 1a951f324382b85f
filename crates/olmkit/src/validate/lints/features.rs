//! KUBE: features of Kubernetes that the bundle uses, against the oldest release that it supports (`minKubeVersion`).

use olmkit_cel::Library;
use serde_json::Value;

use crate::bundle::{Object, kinds};
use crate::crd::cel::{Need, newest_need};
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::object::Version;
use crate::validate::checked::Checked;
use crate::validate::context::Context;

define_rules! {
    KUBE_1 = {
        id: "KUBE-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Every used API should exist in the oldest Kubernetes release that `minKubeVersion` allows.",
        why: "The bundle fails, or loses features, on clusters that it claims to support. \
              Without `minKubeVersion` it claims all clusters: features newer than Kubernetes 1.25 are then an info.",
        bad: "minKubeVersion: 1.20.0   # a CRD has x-kubernetes-validations, new in 1.25",
        good: "minKubeVersion: 1.25.0",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "Kubernetes names the release of each feature",
            "any",
            "https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/",
        ),
    }
    KUBE_2 = {
        id: "KUBE-2",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "All objects should use APIs that every cluster has.",
        why: "OLM fails the installation where the API is missing.",
        bad: "kind: ServiceMonitor",
        good: "let the operator create it where the API exists",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the InstallPlan fails where the API is missing",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    KUBE_3 = {
        id: "KUBE-3",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "An object with the kind name of an OLM-installed kind should be of that kind's API group.",
        why: "OLM matches by kind only: it treats the object as its own kind, and never creates the intended object.",
        bad: "apiVersion: demo.example.com/v1\nkind: Service",
        good: "let the operator create the object, or give it as an example in alm-examples",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the InstallPlan fails, or makes an object of the kind's own API instead",
            "OLM 0.46",
            "crates/cli/tests/cluster/kinds.rs: install_plans_complete_for_the_kinds_of_the_table_only",
        ),
    }
}

/// The keyword of CEL rules.
const VALIDATIONS: &str = "x-kubernetes-validations";

/// Keywords of CRD schemas, the minor release of Kubernetes 1 that first supports them without a feature gate, and the
/// behavior of older ones.
const KEYWORDS: [(&str, u64, &str); 3] = [
    (VALIDATIONS, 25, "older releases drop the rules and check nothing"),
    (
        "messageExpression",
        27,
        "older releases drop it and use their own message",
    ),
    (
        "selectableFields",
        31,
        "older releases drop them, and field selectors fail",
    ),
];

/// The newest minor release of Kubernetes 1 whose features are no finding if `minKubeVersion` is missing. It is the one of
/// OpenShift 4.12, the oldest platform for which the public repositories have catalogs.
const COMMON_MINOR: u64 = 25;

/// The group of roles and their bindings.
const RBAC: &str = "rbac.authorization.k8s.io";

/// Objects that older releases do not serve.
const KINDS: [(&str, &str, u64); 1] = [("policy/v1", "PodDisruptionBudget", 21)];

/// Kinds whose APIs are not part of Kubernetes, and their providers.
const FOREIGN_KINDS: [(&str, &str); 8] = [
    ("ConsoleCLIDownload", "OpenShift"),
    ("ConsoleLink", "OpenShift"),
    ("ConsolePlugin", "OpenShift"),
    ("ConsoleQuickStart", "OpenShift"),
    ("ConsoleYAMLSample", "OpenShift"),
    ("PrometheusRule", "the Prometheus operator"),
    ("ServiceMonitor", "the Prometheus operator"),
    ("VerticalPodAutoscaler", "the vertical pod autoscaler"),
];

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut found = foreign_kinds(context);
    found.extend(other_groups(context));
    found.extend(too_new(context));
    found
}

/// Objects of APIs that Kubernetes does not have.
fn foreign_kinds(context: &Context<'_>) -> Vec<Checked> {
    let mut found = Vec::new();
    for object in &context.bundle.objects {
        if let Some((kind, owner)) = FOREIGN_KINDS.iter().find(|(kind, _)| *kind == object.kind()) {
            let message = format!("{kind} is an API of {owner}: without it the bundle cannot be installed");
            found.push(
                Checked::new(&KUBE_2, message)
                    .at(object, "/kind")
                    .hint("let the operator create the object where the API exists"),
            );
        }
    }
    found
}

/// Objects with the name of a kind that OLM decodes into a dedicated type, and another group. It creates objects of the
/// other kinds unchanged.
fn other_groups(context: &Context<'_>) -> Vec<Checked> {
    let objects = context.bundle.objects.iter();
    objects
        .filter_map(|object| {
            let known = kinds::find(object.kind()).filter(|known| ["", RBAC].contains(&known.group))?;
            if !is_foreign(object.group()) {
                return None;
            }
            let (kind, api_version) = (known.kind, object.api_version());
            let own = if known.group.is_empty() {
                "the core API"
            } else {
                known.group
            };
            let message = format!("OLM matches by kind only and treats this {api_version} {kind} as a {kind} of {own}");
            let hint = "let the operator create the object, or give it as an example in `alm-examples`";
            Some(Checked::new(&KUBE_3, message).at(object, "/apiVersion").hint(hint))
        })
        .collect()
}

/// Returns true if a group is neither of Kubernetes nor of OpenShift, whose older kinds for roles mean the same as today's.
fn is_foreign(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io") && !group.ends_with(".openshift.io")
}

fn too_new(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let text = csv.text("/spec/minKubeVersion");
    let declared = match Version::parse(text) {
        Ok(version) => Some(version),
        // CSV-16 reports a missing version.
        Err(_) if text.trim().is_empty() => None,
        // CSV-17 reports a version that cannot be read.
        Err(_) => return Vec::new(),
    };
    let is_older = |minor: u64| match &declared {
        Some(oldest) => oldest.major < 1 || oldest.major == 1 && oldest.minor < minor,
        None => minor > COMMON_MINOR,
    };
    let finding = |object: &Object, what: &str, minor: u64, else_what: &str| {
        let (bound, verb, severity) = match &declared {
            Some(oldest) => (format!("minKubeVersion is {oldest}"), "raise", Severity::Warning),
            None => ("the bundle has no minKubeVersion".to_owned(), "set", Severity::Info),
        };
        let message = format!("{what} requires Kubernetes 1.{minor}, but {bound}: {else_what}");
        Checked::new(&KUBE_1, message)
            .severity(severity)
            .at(object, "")
            .hint(format!(
                "{verb} `spec.minKubeVersion` to 1.{minor}.0, or do not use the feature"
            ))
    };
    let mut found = Vec::new();
    for object in &context.bundle.objects {
        for (api_version, kind, minor) in KINDS {
            if object.api_version() == api_version && object.kind() == kind && is_older(minor) {
                let what = format!("{kind} of {api_version}");
                found.push(finding(object, &what, minor, "older releases refuse the object"));
            }
        }
    }
    for crd in context.bundle.crds() {
        let Some(spec) = crd.typed.as_ref().and_then(|typed| typed.get("spec")) else {
            continue;
        };
        let mut has = [false; KEYWORDS.len()];
        find_keywords(spec, &mut has);
        let mut newest = None;
        for ((keyword, minor, else_what), has) in KEYWORDS.into_iter().zip(has) {
            if has && is_older(minor) {
                found.push(finding(crd, &format!("`{keyword}`"), minor, else_what));
            }
            if has && keyword == VALIDATIONS {
                newest = expressions(spec);
            }
        }
        let newest = newest.filter(|need| is_older(u64::from(need.since.minor)));
        found.extend(newest.map(|need| {
            let rule = need.rule.split_whitespace().collect::<Vec<_>>().join(" ");
            let what = format!("the CEL expression {rule:?} uses {}, and", need.library.name());
            finding(
                crd,
                &what,
                u64::from(need.since.minor),
                "older releases refuse the definition",
            )
        }));
    }
    found
}

/// The expression of a CRD that needs the newest release, if it needs a newer one than expressions as such.
fn expressions(spec: &Value) -> Option<Need> {
    let schemas = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
    schemas
        .filter_map(|version| newest_need(version.pointer("/schema/openAPIV3Schema")?))
        .filter(|need| need.since > Library::Core.since())
        .max_by_key(|need| need.since)
}

/// Notes which of [`KEYWORDS`] occur anywhere in a decoded CRD, other than as the name of a property.
fn find_keywords(value: &Value, has: &mut [bool; KEYWORDS.len()]) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| find_keywords(item, has)),
        Value::Object(map) => {
            for (key, inner) in map {
                match (key.as_str(), inner) {
                    ("properties" | "patternProperties", Value::Object(named)) => {
                        named.values().for_each(|schema| find_keywords(schema, has));
                    }
                    ("default" | "example" | "enum", _) => {}
                    (key, inner) => {
                        for ((keyword, ..), has) in KEYWORDS.iter().zip(has.iter_mut()) {
                            *has |= key == *keyword;
                        }
                        find_keywords(inner, has);
                    }
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keywords(value: &Value) -> [bool; KEYWORDS.len()] {
        let mut has = [false; KEYWORDS.len()];
        find_keywords(value, &mut has);
        has
    }

    #[test]
    fn a_property_named_like_a_keyword_is_not_a_keyword() {
        let property =
            json!({"properties": {"selectableFields": {"type": "string"}}, "default": {"messageExpression": 1}});
        assert_eq!(keywords(&property), [false, false, false]);
        let rule =
            json!({"versions": [{"schema": {"properties": {"a": {"x-kubernetes-validations": [{"rule": "true"}]}}}}]});
        assert_eq!(keywords(&rule), [true, false, false]);
    }
}
