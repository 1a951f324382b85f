//! Fills in defaults, as the API server does before it checks an object.

use serde_json::{Map, Value};

use super::flag;

/// The object with the defaults of its schema. A field that is null although the schema does not allow it counts as absent.
pub(super) fn apply(schema: &Value, object: &Value) -> Value {
    let mut defaulted = object.clone();
    fill(schema, &mut defaulted);
    defaulted
}

fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => fill_fields(schema, fields),
        Value::Array(items) => {
            let Some(own) = schema.get("items") else { return };
            for item in items {
                replace_null(own, item);
                fill(own, item);
            }
        }
        _ => {}
    }
}

fn fill_fields(schema: &Value, fields: &mut Map<String, Value>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, own) in properties.into_iter().flatten() {
        if let Some(default) = default_of(own).filter(|_| !fields.contains_key(name)) {
            fields.insert(name.clone(), default.clone());
        }
    }
    let others = schema.get("additionalProperties").filter(|others| others.is_object());
    fields.retain(|name, value| {
        let Some(own) = properties.and_then(|properties| properties.get(name)).or(others) else {
            return true;
        };
        replace_null(own, value);
        fill(own, value);
        !value.is_null() || flag(own, "nullable")
    });
}

fn replace_null(schema: &Value, value: &mut Value) {
    if let Some(default) = default_of(schema).filter(|_| value.is_null() && !flag(schema, "nullable")) {
        *value = default.clone();
    }
}

fn default_of(schema: &Value) -> Option<&Value> {
    schema.get("default").filter(|default| !default.is_null())
}
