//! Fields that the Kubernetes types do not have. operator-sdk drops them when it decodes an object.

use serde_json::Value;

use super::collect::Collection;
use super::typed::Typed;
use super::{Notice, Weight};

/// Most fields that a notice lists.
const LISTED: usize = 10;

/// Reports the unknown fields of all objects that are decoded.
pub(super) fn report(found: &Collection, notices: &mut Vec<Notice>) {
    let lists = [
        &found.csvs,
        &found.roles,
        &found.cluster_roles,
        &found.role_bindings,
        &found.cluster_role_bindings,
        &found.deployments,
        &found.service_accounts,
        &found.services,
        &found.definitions,
    ];
    notices.extend(lists.into_iter().flatten().filter_map(notice));
    notices.extend(found.configurations().filter_map(notice));
}

/// The notice about the unknown fields of an object.
pub(super) fn notice(object: &Typed) -> Option<Notice> {
    let mut fields = Vec::new();
    for (key, value) in object.document.untyped.as_object()? {
        // A bundle contains no status.
        if key != "status" {
            compare(value, field(&object.value, key), key, &mut fields);
        }
    }
    let shown = fields.get(..LISTED).unwrap_or(&fields);
    let rest = match fields.len() - shown.len() {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    (!fields.is_empty()).then(|| {
        object.notice(
            Weight::Loss,
            format!(
                "loses {}{rest}: the type of the kind has no such field",
                shown.join(", ")
            ),
            "Correct its name. OLM does not support fields that are newer than its Kubernetes version.",
        )
    })
}

/// A field of a map. Go compares names without regard to case.
fn field<'a>(map: &'a Value, key: &str) -> Option<&'a Value> {
    let fields = map.as_object()?;
    let folded = || fields.iter().find(|(name, _)| olmkit_go::json::names_field(key, name));
    fields.get(key).or_else(|| folded().map(|(_, value)| value))
}

/// Collects the paths whose values are missing after decoding.
fn compare(before: &Value, after: Option<&Value>, path: &str, lost: &mut Vec<String>) {
    match (before, after) {
        (_, None) if is_empty(before) => {}
        (_, None) => lost.push(path.to_owned()),
        (Value::Object(fields), Some(after @ Value::Object(_))) => {
            for (key, value) in fields {
                compare(value, field(after, key), &format!("{path}.{key}"), lost);
            }
        }
        (Value::Array(items), Some(Value::Array(after))) if items.len() == after.len() => {
            for (at, (item, after)) in items.iter().zip(after).enumerate() {
                compare(item, Some(after), &format!("{path}[{at}]"), lost);
            }
        }
        _ => {}
    }
}

/// Returns true if Go omits a value when it prints it.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
    }
}
