//! Checks of `openAPIV3Schema`. operator-sdk leaves out all their findings, so authors learn of them from the API server,
//! when the operator is installed.

mod defaults;
mod extensions;
mod nested;
mod rules;
mod structural;

use serde_json::{Map, Value};

use super::finding::{BadValue, Findings};
use super::internal::{Crd, Shared};

/// Fields of a schema that hold one schema.
const ONE: [&str; 2] = ["items", "not"];

/// Fields of a schema that hold lists of alternatives.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Checks the schemas of all versions.
pub(super) fn check(crd: &Crd, findings: &mut Findings) {
    let status = |shared: &Shared| {
        shared
            .subresources
            .as_ref()
            .is_some_and(|own| own.get("status").is_some())
    };
    let any_status = status(&crd.spec.shared) || crd.spec.versions.iter().any(|version| status(&version.own));
    check_root(&crd.spec.shared, "spec.validation", any_status, findings);
    for (at, version) in crd.spec.versions.iter().enumerate() {
        let has_status = status(&version.own) || status(&crd.spec.shared);
        check_root(
            &version.own,
            &format!("spec.versions[{at}].schema"),
            has_status,
            findings,
        );
    }
}

fn check_root(shared: &Shared, path: &str, has_status: bool, findings: &mut Findings) {
    let Some(schema) = shared
        .validation
        .as_ref()
        .and_then(|validation| validation.get("openAPIV3Schema"))
    else {
        return;
    };
    let path = format!("{path}.openAPIV3Schema");
    if has_status {
        root_with_status(schema, &path, findings);
    }
    let before = findings.0.len();
    walk(schema, &path, findings);
    structural::check_root(schema, &path, findings);
    // Defaults and rules presume a sound schema, as in the API server.
    if findings.0.len() == before {
        defaults::check(schema, &path, findings);
        rules::check(schema, &path, findings);
    }
}

/// With a status subresource the schema of the status is taken out of the root, so nothing may be said about the root
/// that would be lost.
fn root_with_status(schema: &Value, path: &str, findings: &mut Findings) {
    const FORBIDDEN: [&str; 12] = [
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "default",
        "enum",
        "maxProperties",
        "minProperties",
        "not",
        "nullable",
        "oneOf",
        "patternProperties",
    ];
    for name in FORBIDDEN.iter().filter(|name| is_set(schema, name)) {
        let problem = "only description, type, properties, required and validations are allowed at the root of the \
                       schema if the status subresource is enabled";
        findings.forbidden(&format!("{path}.{name}"), problem);
    }
}

/// The checks that hold for every schema, also below `allOf` and the like.
fn walk(schema: &Value, path: &str, findings: &mut Findings) {
    unsupported(schema, path, findings);
    extensions::check(schema, path, findings);
    rules::check_texts(schema, path, findings);
    for (path, below) in children(schema, path) {
        walk(below, &path, findings);
    }
}

fn unsupported(schema: &Value, path: &str, findings: &mut Findings) {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    match text(schema, "type") {
        "" => {}
        "null" => {
            findings.forbidden(
                &format!("{path}.type"),
                "type cannot be set to null, use nullable as an alternative",
            );
        }
        kind if !TYPES.contains(&kind) => findings.not_supported(&format!("{path}.type"), kind, &TYPES),
        _ => {}
    }
    for name in [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        if is_set(schema, name) {
            findings.forbidden(&format!("{path}.{name}"), format!("{name} is not supported"));
        }
    }
    if schema.get("items").is_some_and(Value::is_array) {
        findings.forbidden(
            &format!("{path}.items"),
            "items must be a schema object and not an array",
        );
    }
    if flag(schema, "uniqueItems") {
        let problem = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        findings.forbidden(&format!("{path}.uniqueItems"), problem);
    }
    let others = schema.get("additionalProperties");
    if others.is_some_and(|others| *others != Value::Bool(true)) && is_set(schema, "properties") {
        let problem = "additionalProperties and properties are mutual exclusive";
        findings.forbidden(&format!("{path}.additionalProperties"), problem);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let field = format!("{path}.x-kubernetes-preserve-unknown-fields");
        findings.invalid(&field, BadValue::word(false), "must be true or undefined");
    }
}

/// All schemas directly below a schema, with their paths.
fn children<'s>(schema: &'s Value, path: &str) -> Vec<(String, &'s Value)> {
    let mut found = skeleton(schema, path);
    if let Some(not) = schema.get("not") {
        found.push((format!("{path}.not"), not));
    }
    for name in LISTS {
        let items = schema.get(name).and_then(Value::as_array).into_iter().flatten();
        found.extend(
            items
                .enumerate()
                .map(|(at, below)| (format!("{path}.{name}[{at}]"), below)),
        );
    }
    found
}

/// The schemas below a schema that say which fields there are: properties, items, additionalProperties.
fn skeleton<'s>(schema: &'s Value, path: &str) -> Vec<(String, &'s Value)> {
    let mut found = Vec::new();
    for name in ["items", "additionalProperties"] {
        if let Some(below) = schema.get(name).filter(|below| below.is_object()) {
            found.push((format!("{path}.{name}"), below));
        }
    }
    for (name, below) in properties(schema) {
        found.push((format!("{path}.properties[{name}]"), below));
    }
    found
}

/// The same schemas, without their paths.
fn below(schema: &Value) -> impl Iterator<Item = &Value> {
    let inner = ["items", "additionalProperties"]
        .into_iter()
        .filter_map(|name| schema.get(name).filter(|below| below.is_object()));
    inner.chain(properties(schema).map(|(_, below)| below))
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&NONE)
        .iter()
}

fn text<'s>(schema: &'s Value, name: &str) -> &'s str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// Whether a field holds something: empty lists, maps and texts count as nothing.
fn is_set(schema: &Value, name: &str) -> bool {
    match schema.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty() || ONE.contains(&name) || name == "default",
        Some(_) => true,
    }
}

/// A JSON value in a message.
fn shown(value: &Value) -> BadValue {
    match value {
        Value::String(text) => BadValue::text(text),
        other => BadValue::word(other),
    }
}
