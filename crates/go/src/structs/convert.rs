//! The strict conversion that Kubernetes uses for objects that were read without types: only exact field names, no
//! numbers or booleans for strings. It stops at the first mismatch and keeps the fields that it has converted until
//! then, in the order of the fields in the Go source.

use serde_json::{Map, Value};

use super::{Structs, Type, structs};

/// Converts a value to the struct listed under `key`, and reports whether all of it fit.
pub fn convert(value: &Value, key: &str) -> (Value, bool) {
    let table = structs();
    match table.get(key) {
        Some(kind) => one(table, value, kind),
        None => (Value::Null, false),
    }
}

fn one(table: &Structs, value: &Value, kind: &Type) -> (Value, bool) {
    let nothing = (Value::Null, false);
    match (kind, value) {
        (_, Value::Null) => (Value::Null, true),
        (Type::Pointer(inner), _) => one(table, value, inner),
        (Type::Custom(_), _)
        | (Type::Text(_) | Type::Bytes, Value::String(_))
        | (Type::Bool, Value::Bool(_))
        | (Type::Float64, Value::Number(_)) => (value.clone(), true),
        (Type::Int32 | Type::Int64, Value::Number(number)) => {
            let whole = number.as_f64().is_some_and(|float| float.fract() == 0.0);
            if whole { (value.clone(), true) } else { nothing }
        }
        (Type::List(inner), Value::Array(items)) => list(table, items, inner),
        (Type::Map(inner), Value::Object(entries)) => map(table, entries, inner),
        (Type::Struct(at), Value::Object(entries)) => {
            let mut out = Map::new();
            let complete = fields(table, entries, *at, &mut out);
            (Value::Object(out), complete)
        }
        _ => nothing,
    }
}

fn list(table: &Structs, items: &[Value], inner: &Type) -> (Value, bool) {
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        let (converted, complete) = one(table, item, inner);
        out.push(converted);
        if !complete {
            // The list has its full length from the start.
            out.resize(items.len(), Value::Null);
            return (Value::Array(out), false);
        }
    }
    (Value::Array(out), true)
}

fn map(table: &Structs, entries: &Map<String, Value>, inner: &Type) -> (Value, bool) {
    let mut out = Map::new();
    for (key, item) in entries {
        let (converted, complete) = one(table, item, inner);
        if !complete {
            return (Value::Object(out), false);
        }
        out.insert(key.clone(), converted);
    }
    (Value::Object(out), true)
}

fn fields(table: &Structs, entries: &Map<String, Value>, at: usize, out: &mut Map<String, Value>) -> bool {
    let Some(entry) = table.at(at) else { return false };
    for field in &entry.fields {
        if let (true, Type::Struct(inner)) = (field.embedded, &field.kind) {
            if !fields(table, entries, *inner, out) {
                return false;
            }
            continue;
        }
        let Some(value) = entries.get(field.name).filter(|value| !value.is_null()) else {
            continue;
        };
        let (converted, complete) = one(table, value, &field.kind);
        out.insert(field.name.to_string(), converted);
        if !complete {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_stops_at_the_first_misfit_and_keeps_what_came_before() {
        let csv = serde_json::json!({
            "metadata": {"name": "x"},
            "spec": {"keywords": [1], "install": {"strategy": "deployment"}, "displayName": "later"},
        });
        let (partial, complete) = convert(&csv, "ClusterServiceVersion");
        assert!(!complete);
        assert_eq!(
            partial.pointer("/spec/install/strategy"),
            Some(&serde_json::json!("deployment"))
        );
        assert_eq!(
            convert(
                &serde_json::json!({"metadata": {"annotations": {"a": true}}}),
                "ClusterServiceVersion"
            )
            .0
            .pointer("/spec"),
            None
        );
    }
}
