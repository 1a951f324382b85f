//! KUBE: what the bundle uses of Kubernetes against the oldest release it says it runs on (`minKubeVersion`).

use serde_json::Value;

use super::super::checked::Checked;
use super::super::context::Context;
use super::warning;
use crate::bundle::Object;
use crate::diagnostics::Severity;
use crate::object::Version;

/// Keywords of CRD schemas, the minor release of Kubernetes 1 that first knows them without a feature gate, and what older ones
/// do.
const KEYWORDS: [(&str, u64, &str); 3] = [
    (
        "x-kubernetes-validations",
        25,
        "older releases drop the rules: nothing is checked",
    ),
    (
        "messageExpression",
        27,
        "older releases drop it and give their own message",
    ),
    (
        "selectableFields",
        31,
        "older releases drop them: the field selectors fail",
    ),
];

/// Objects that older releases do not serve.
const KINDS: [(&str, &str, u64); 1] = [("policy/v1", "PodDisruptionBudget", 21)];

/// Kinds of bundles whose APIs Kubernetes does not bring, and who brings them.
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
    found.extend(too_new(context));
    found
}

/// Objects that can only be installed where somebody else's API is.
fn foreign_kinds(context: &Context<'_>) -> Vec<Checked> {
    let mut found = Vec::new();
    for object in &context.bundle.objects {
        if let Some((kind, owner)) = FOREIGN_KINDS.iter().find(|(kind, _)| *kind == object.kind()) {
            let message = format!("{kind} is an API of {owner}: where that is missing the bundle cannot be installed");
            found.push(
                Checked::own("KUBE-2", Severity::Info, message)
                    .at(object, "/kind")
                    .hint("let the operator create the object where the API is there"),
            );
        }
    }
    found
}

fn too_new(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    // A version that cannot be read is a finding of CSV-17, a missing one of CSV-16.
    let Ok(oldest) = Version::parse(csv.text("/spec/minKubeVersion")) else {
        return Vec::new();
    };
    let is_older = |minor: u64| oldest.major < 1 || oldest.major == 1 && oldest.minor < minor;
    let tell = |object: &Object, what: &str, minor: u64, else_what: &str| {
        let message = format!("{what} needs Kubernetes 1.{minor}, minKubeVersion is {oldest}: {else_what}");
        warning("KUBE-1", message)
            .at(object, "")
            .hint(format!("raise `spec.minKubeVersion` to 1.{minor}.0, or do without"))
    };
    let mut found = Vec::new();
    for object in &context.bundle.objects {
        for (api_version, kind, minor) in KINDS {
            if object.api_version() == api_version && object.kind() == kind && is_older(minor) {
                let what = format!("{kind} of {api_version}");
                found.push(tell(object, &what, minor, "older releases refuse the object"));
            }
        }
    }
    for crd in context.bundle.crds() {
        let Some(spec) = crd.typed.as_ref().and_then(|typed| typed.get("spec")) else {
            continue;
        };
        for (keyword, minor, else_what) in KEYWORDS.into_iter().filter(|(_, minor, _)| is_older(*minor)) {
            if has_keyword(spec, keyword) {
                found.push(tell(crd, &format!("`{keyword}`"), minor, else_what));
            }
        }
    }
    found
}

/// Whether a keyword stands anywhere in a decoded CRD, other than as the name of a property.
fn has_keyword(value: &Value, keyword: &str) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| has_keyword(item, keyword)),
        Value::Object(map) => map.iter().any(|(key, inner)| match (key.as_str(), inner) {
            (key, _) if key == keyword => true,
            ("properties" | "patternProperties", Value::Object(named)) => {
                named.values().any(|schema| has_keyword(schema, keyword))
            }
            ("default" | "example" | "enum", _) => false,
            _ => has_keyword(inner, keyword),
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_property_with_the_name_of_a_keyword_is_no_keyword() {
        let property =
            json!({"properties": {"selectableFields": {"type": "string"}}, "default": {"messageExpression": 1}});
        assert!(!has_keyword(&property, "selectableFields"));
        assert!(!has_keyword(&property, "messageExpression"));
        let rule =
            json!({"versions": [{"schema": {"properties": {"a": {"x-kubernetes-validations": [{"rule": "true"}]}}}}]});
        assert!(has_keyword(&rule, "x-kubernetes-validations"));
    }
}
