//! Fields that the API server drops because the schema does not declare them.

use serde_json::Value;

use super::{InstanceFault, InstanceFinding, flag, member};

/// Fields of every object, at the root and in embedded resources.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Finds unknown fields. Fields below an unknown one are not reported.
pub(super) fn check(schema: &Value, object: &Value) -> Vec<InstanceFinding> {
    let mut findings = Vec::new();
    walk(schema, object, true, false, "", &mut findings);
    findings
}

/// Finds unknown fields of a value. `is_object` is set for a whole object.
pub(super) fn check_value(schema: &Value, value: &Value, is_object: bool) -> Vec<InstanceFinding> {
    let mut findings = Vec::new();
    walk(schema, value, is_object, false, "", &mut findings);
    findings
}

/// `keeps` is true if a list around the value keeps unknown fields: that applies to its items, not to their nested
/// fields.
fn walk(
    schema: &Value,
    value: &Value,
    is_object: bool,
    keeps: bool,
    pointer: &str,
    findings: &mut Vec<InstanceFinding>,
) {
    let keeps = keeps || flag(schema, "x-kubernetes-preserve-unknown-fields");
    match value {
        Value::Array(items) => {
            // A string with a format may be a list. Its items have no fields.
            let schema = schema.get("items").unwrap_or(&Value::Null);
            for (at, item) in items.iter().enumerate() {
                walk(
                    schema,
                    item,
                    flag(schema, "x-kubernetes-embedded-resource"),
                    keeps,
                    &format!("{pointer}/{at}"),
                    findings,
                );
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                if is_object && OBJECT_FIELDS.contains(&name.as_str()) {
                    continue;
                }
                let pointer = member(pointer, name);
                match member_schema(schema, name) {
                    Member::Known(schema) => {
                        let embedded = flag(schema, "x-kubernetes-embedded-resource");
                        walk(schema, field, embedded, false, &pointer, findings);
                    }
                    Member::Free => {}
                    Member::Unknown if keeps => {}
                    Member::Unknown => findings.push(InstanceFinding {
                        pointer,
                        fault: InstanceFault::Unknown,
                        message: unknown_message(schema, name),
                    }),
                }
            }
        }
        _ => {}
    }
}

enum Member<'s> {
    Known(&'s Value),
    Free,
    Unknown,
}

fn member_schema<'s>(schema: &'s Value, name: &str) -> Member<'s> {
    if let Some(known) = schema.get("properties").and_then(|properties| properties.get(name)) {
        return Member::Known(known);
    }
    match schema.get("additionalProperties") {
        Some(values @ Value::Object(_)) => Member::Known(values),
        Some(Value::Bool(true)) => Member::Free,
        _ => Member::Unknown,
    }
}

fn unknown_message(schema: &Value, name: &str) -> String {
    let message = "the schema has no such field, so the API server drops it";
    let known = schema.get("properties").and_then(Value::as_object);
    let near = known
        .into_iter()
        .flatten()
        .map(|(known, _)| known)
        .find(|known| is_near(known, name));
    match near {
        Some(near) => format!("{message}; did you mean {near:?}?"),
        None => message.to_owned(),
    }
}

/// Returns true if two names differ in case, or in one inserted, omitted or changed character.
fn is_near(a: &str, b: &str) -> bool {
    if a.eq_ignore_ascii_case(b) {
        return true;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let same_start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let same_end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let longest = a.len().max(b.len());
    longest > 3 && a.len().abs_diff(b.len()) <= 1 && same_start + same_end + 1 >= longest
}
