//! The API server's requirements for the metadata of any custom resource.

use olmkit_go::structs::decode::misfits;
use serde_json::Value;

use super::{InstanceFault, InstanceFinding, REQUIRED, flag, member};
use crate::crd::validation::metadata::of_any_object;
use crate::object::dns1123_subdomain_problems;

/// Checks types, name, labels and annotations. Nulls count as absent, as for the server's decoder.
pub(super) fn check(object: &Value) -> Vec<InstanceFinding> {
    let mut findings = Vec::new();
    let Some(metadata) = object.get("metadata") else {
        return findings;
    };
    let invalid = |pointer: String, message: String| InstanceFinding {
        pointer,
        fault: InstanceFault::Invalid,
        message,
    };
    for key in ["labels", "annotations"] {
        for (name, value) in metadata.get(key).and_then(Value::as_object).into_iter().flatten() {
            if !value.is_string() && !value.is_null() {
                let message = format!("must be a string, is a {}", olmkit_go::json::kind(value));
                findings.push(invalid(member(&format!("/metadata/{key}"), name), message));
            }
        }
    }
    // Other fields of a wrong type. The server's decoder ignores names with other capital letters.
    for misfit in misfits(metadata, "ObjectMeta", false) {
        let pointer = format!("/metadata{}", misfit.pointer);
        let is_field =
            misfit.pointer.is_empty() || misfit.pointer.as_bytes().get(1).is_some_and(u8::is_ascii_lowercase);
        if is_field && !findings.iter().any(|known| known.pointer == pointer) {
            findings.push(invalid(pointer, misfit.message));
        }
    }
    let field = |pointer: &str| pointer.split('/').nth(2).map(str::to_owned);
    let misfitting: Vec<Option<String>> = findings.iter().map(|known| field(&known.pointer)).collect();
    for problem in of_any_object(metadata) {
        let pointer = format!("/{}", problem.field.replace('.', "/"));
        // A value of the wrong type counts as empty there, and the server stops at it.
        if misfitting.contains(&field(&pointer)) {
            continue;
        }
        let message = problem.message.strip_prefix(&format!("{}: ", problem.field));
        findings.push(invalid(pointer, message.unwrap_or(&problem.message).to_owned()));
    }
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
    if let Some(fault) = dns1123_subdomain_problems(name).first().filter(|_| !name.is_empty()) {
        findings.push(invalid("/metadata/name".to_string(), format!("{name:?}: {fault}")));
    }
    findings
}

/// Checks that whole objects in a value have an `apiVersion` and a `kind`.
pub(super) fn check_types(
    schema: &Value,
    value: &Value,
    is_object: bool,
    pointer: &str,
    findings: &mut Vec<InstanceFinding>,
) {
    let is_embedded = |schema: &Value| flag(schema, "x-kubernetes-embedded-resource");
    match value {
        Value::Object(fields) => {
            for name in ["apiVersion", "kind"].into_iter().filter(|_| is_object) {
                let message = match fields.get(name) {
                    None => REQUIRED.to_owned(),
                    Some(Value::String(text)) if text.is_empty() => "must not be empty".to_owned(),
                    Some(Value::String(_)) => continue,
                    Some(other) => format!("must be a string, is a {}", olmkit_go::json::kind(other)),
                };
                let (pointer, fault) = (member(pointer, name), InstanceFault::Invalid);
                findings.push(InstanceFinding {
                    pointer,
                    fault,
                    message,
                });
            }
            for (name, field) in fields {
                let known = schema.get("properties").and_then(|properties| properties.get(name));
                let others = schema.get("additionalProperties").filter(|others| others.is_object());
                if let Some(schema) = known.or(others) {
                    check_types(schema, field, is_embedded(schema), &member(pointer, name), findings);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (at, item) in items.iter().enumerate() {
                check_types(schema, item, is_embedded(schema), &format!("{pointer}/{at}"), findings);
            }
        }
        _ => {}
    }
}
