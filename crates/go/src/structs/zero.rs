//! Checks if a decoded value is Go's zero value.

use serde_json::Value;

use super::{Custom, Structs, Type, structs};

/// True if a value that was decoded into the struct listed under `key` equals Go's value before decoding. An existing
/// empty list or map does not: it is not nil.
pub fn is_zero(value: &Value, key: &str) -> bool {
    let table = structs();
    table.get(key).is_some_and(|kind| zero(table, value, kind))
}

fn zero(table: &Structs, value: &Value, kind: &Type) -> bool {
    match (kind, value) {
        (_, Value::Null) => true,
        (Type::Text(_), Value::String(text)) => text.is_empty(),
        (Type::Bool, Value::Bool(value)) => !value,
        (Type::Int32 | Type::Int64 | Type::Float64, Value::Number(number)) => number.as_f64() == Some(0.0),
        (Type::Struct(at), Value::Object(entries)) => entries.iter().all(|(key, value)| {
            let field = table.at(*at).and_then(|entry| table.field(entry, key));
            field.is_none_or(|kind| zero(table, value, kind))
        }),
        (Type::Custom(Custom::OperatorVersion), Value::String(text)) => text == "0.0.0",
        (Type::Custom(Custom::IntOrString), Value::Number(number)) => number.as_i64() == Some(0),
        // Existing pointers, lists, maps and bytes are not nil.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_is_not_nil_but_an_empty_text_is_nothing() {
        let spec = |value: serde_json::Value| is_zero(&value, "ClusterServiceVersionSpec");
        assert!(spec(serde_json::json!({})));
        assert!(spec(serde_json::json!({"displayName": "", "install": {"spec": {}}})));
        assert!(!spec(serde_json::json!({"icon": []})));
        assert!(!spec(serde_json::json!({"version": "0.0.1"})));
    }
}
