//! Checks that a schema is structural: a type at every level, and no types below `allOf` and the like.

use serde_json::Value;

use super::path::Path;
use super::{Level, flag, is_set, nested, pattern, properties, text};
use crate::crd::validation::finding::{BadValue, Findings};

/// Checks a schema. Those below it are checked on their own.
pub(super) fn check(schema: &Value, level: Level, path: &Path<'_>, findings: &mut Findings) {
    type_of(schema, level, path, findings);
    collections(schema, level, path, findings);
    if flag(schema, "x-kubernetes-int-or-string") {
        for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if flag(schema, name) {
                let problem = "must be false if x-kubernetes-int-or-string is true";
                findings.invalid(&format!("{path}.{name}"), BadValue::word(true), problem);
            }
        }
    }
    pattern::check(schema, path, findings);
    nested::check(schema, level == Level::Root, path, findings);
    object_fields(schema, level, path, findings);
}

fn type_of(schema: &Value, level: Level, path: &Path<'_>, findings: &mut Findings) {
    let (kind, field) = (text(schema, "type"), || format!("{path}.type"));
    let free = flag(schema, "x-kubernetes-int-or-string") || flag(schema, "x-kubernetes-preserve-unknown-fields");
    if flag(schema, "x-kubernetes-embedded-resource") && kind != "object" {
        let problem = "must be object if x-kubernetes-embedded-resource is true";
        if kind.is_empty() {
            findings.required(&field(), problem);
        } else {
            findings.invalid(&field(), BadValue::text(kind), problem);
        }
    } else if kind.is_empty() && !free {
        let place = match level {
            Level::Root => "at the root",
            Level::Field => "for specified object fields",
            Level::Item => "for specified array items",
        };
        findings.required(&field(), format!("must not be empty {place}"));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        findings.invalid(&field(), BadValue::text(kind), "must be object at the root");
    }
}

fn collections(schema: &Value, level: Level, path: &Path<'_>, findings: &mut Findings) {
    if text(schema, "type") == "array" && schema.get("items").is_none_or(Value::is_null) {
        findings.required(&format!("{path}.items"), "must be specified");
    }
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    if schema.get("additionalProperties").is_some() {
        let field = format!("{path}.additionalProperties");
        if level == Level::Root {
            findings.forbidden(&field, "must not be used at the root");
        }
        if embedded {
            findings.forbidden(&field, "must not be used if x-kubernetes-embedded-resource is set");
        }
    }
    if embedded && !flag(schema, "x-kubernetes-preserve-unknown-fields") && !is_set(schema, "properties") {
        let problem = "must not be empty if x-kubernetes-embedded-resource is true without \
                       x-kubernetes-preserve-unknown-fields";
        findings.required(&format!("{path}.properties"), problem);
    }
}

/// `apiVersion`, `kind` and `metadata` belong to Kubernetes.
fn object_fields(schema: &Value, level: Level, path: &Path<'_>, findings: &mut Findings) {
    if level != Level::Root && !flag(schema, "x-kubernetes-embedded-resource") {
        return;
    }
    for (name, below) in properties(schema) {
        let field = format!("{path}.properties[{name}]");
        let kind = text(below, "type");
        match name.as_str() {
            "apiVersion" | "kind" if kind != "string" => {
                findings.invalid(&format!("{field}.type"), BadValue::text(kind), "must be string");
            }
            "metadata" if kind != "object" => {
                findings.invalid(&format!("{field}.type"), BadValue::text(kind), "must be object");
            }
            "metadata" if level == Level::Root && says_too_much(below) => {
                let problem = "must not specify anything other than name and generateName, but metadata is implicitly \
                               specified";
                findings.forbidden(&field, problem);
            }
            _ => {}
        }
    }
}

/// Returns true if the root's `metadata` has more than names. Below some keywords, the server counts empty values too.
fn says_too_much(metadata: &Value) -> bool {
    let fields = metadata.as_object().into_iter().flatten();
    let has_keyword = fields
        .filter(|(_, value)| !value.is_null())
        .any(|(name, value)| match name.as_str() {
            "type" | "properties" | "default" => false,
            "additionalProperties" | "example" | "x-kubernetes-list-type" | "x-kubernetes-map-type" => true,
            "required" | "x-kubernetes-list-map-keys" | "x-kubernetes-validations" => value.is_array(),
            _ => is_set(metadata, name),
        });
    has_keyword || properties(metadata).any(|(name, _)| !matches!(name.as_str(), "name" | "generateName"))
}
