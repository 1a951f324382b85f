//! `x-kubernetes-list-type`, `x-kubernetes-list-map-keys` and `x-kubernetes-map-type`.

use serde_json::Value;

use super::path::Path;
use super::{flag, text};
use crate::crd::validation::finding::{BadValue, Findings};
use crate::crd::validation::internal::texts;

/// Checks the extensions of a schema.
pub(super) fn check(schema: &Value, path: &Path<'_>, findings: &mut Findings) {
    wants_type(schema, "x-kubernetes-map-type", "object", path, findings);
    wants_type(schema, "x-kubernetes-list-type", "array", path, findings);
    one_of(schema, "x-kubernetes-map-type", &["atomic", "granular"], path, findings);
    one_of(
        schema,
        "x-kubernetes-list-type",
        &["atomic", "set", "map"],
        path,
        findings,
    );
    let (list_type, keys) = (
        text(schema, "x-kubernetes-list-type"),
        texts(schema, "x-kubernetes-list-map-keys"),
    );
    if !keys.is_empty() && list_type != "map" {
        let (field, problem) = (
            format!("{path}.x-kubernetes-list-type"),
            "must be map if x-kubernetes-list-map-keys is non-empty",
        );
        if list_type.is_empty() {
            findings.required(&field, problem);
        } else {
            findings.invalid(&field, BadValue::text(list_type), problem);
        }
    }
    match list_type {
        "map" => map_list(schema, &keys, path, findings),
        "set" => set_list(schema, path, findings),
        _ => {}
    }
}

fn wants_type(schema: &Value, name: &str, wanted: &str, path: &Path<'_>, findings: &mut Findings) {
    let kind = text(schema, "type");
    if schema.get(name).is_none() || kind == wanted {
        return;
    }
    let field = format!("{path}.type");
    let problem = format!("must be {wanted} if {name} is specified");
    if kind.is_empty() {
        findings.required(&field, problem);
    } else {
        findings.invalid(&field, BadValue::text(kind), problem);
    }
}

fn one_of(schema: &Value, name: &str, allowed: &[&str], path: &Path<'_>, findings: &mut Findings) {
    let value = text(schema, name);
    if schema.get(name).is_some() && !allowed.contains(&value) {
        findings.not_supported(&format!("{path}.{name}"), value, allowed);
    }
}

fn set_list(schema: &Value, path: &Path<'_>, findings: &mut Findings) {
    let Some(items) = schema.get("items") else { return };
    let problem = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let (list_type, map_type) = (
        text(items, "x-kubernetes-list-type"),
        text(items, "x-kubernetes-map-type"),
    );
    match text(items, "type") {
        "array" if !matches!(list_type, "" | "atomic") => {
            findings.invalid(
                &format!("{path}.items.x-kubernetes-list-type"),
                BadValue::text(list_type),
                problem,
            );
        }
        "object" if map_type != "atomic" => {
            findings.invalid(
                &format!("{path}.items.x-kubernetes-map-type"),
                BadValue::text(map_type),
                problem,
            );
        }
        _ => {}
    }
    if flag(items, "nullable") {
        findings.forbidden(
            &format!("{path}.items.nullable"),
            "cannot be nullable when x-kubernetes-list-type is set",
        );
    }
}

fn map_list(schema: &Value, keys: &[String], path: &Path<'_>, findings: &mut Findings) {
    let keys_field = format!("{path}.x-kubernetes-list-map-keys");
    if keys.is_empty() {
        findings.required(&keys_field, "must not be empty if x-kubernetes-list-type is map");
    }
    let Some(items) = schema.get("items") else {
        findings.required(
            &format!("{path}.items"),
            "must have a schema if x-kubernetes-list-type is map",
        );
        return;
    };
    let items_path = format!("{path}.items");
    if flag(items, "nullable") {
        findings.forbidden(
            &format!("{items_path}.nullable"),
            "cannot be nullable when x-kubernetes-list-type is map",
        );
    }
    if text(items, "type") != "object" {
        let problem = "must be object if parent array's x-kubernetes-list-type is map";
        findings.invalid(
            &format!("{items_path}.type"),
            BadValue::text(text(items, "type")),
            problem,
        );
        return;
    }
    let required = texts(items, "required");
    for (at, key) in keys.iter().enumerate() {
        if keys.iter().take(at).any(|earlier| earlier == key) {
            findings.invalid(&keys_field, BadValue::texts(keys), "must not contain duplicate entries");
        }
        let field = format!("{items_path}.properties[{key}]");
        let Some(property) = items.get("properties").and_then(|properties| properties.get(key)) else {
            findings.invalid(
                &keys_field,
                BadValue::texts(keys),
                "entries must all be names of item properties",
            );
            continue;
        };
        if matches!(text(property, "type"), "array" | "object") {
            let problem = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            findings.invalid(&format!("{field}.type"), BadValue::text("object"), problem);
        }
        if flag(property, "nullable") {
            let problem = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            findings.forbidden(&format!("{field}.nullable"), problem);
        }
        if property.get("default").is_none() && !required.contains(key) {
            let problem = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                           property";
            findings.required(&format!("{field}.default"), problem);
        }
    }
}
