//! The inverse of [`decode`](super::decode): the printed form of Go types.
//!
//! A manifest that was decoded into its Go type has every field that the type always prints (`status: {}`, `strategy:
//! {}`, `creationTimestamp: null`), lacks empty fields if the type omits those, and has quantities and times in one
//! spelling. Bundles of the Go tools are full of such forms; printing the same keeps diffs empty when users switch.

use crate::quantity::canonical;
use serde_json::{Map, Value};

use super::{Custom, Struct, Structs, Type, structs};

/// Decodes a manifest into the struct that the table lists under `key`: known fields only, no nulls.
///
/// # Errors
/// The first mismatch: a JSON pointer to it, and the message.
pub fn decode(value: &Value, key: &str) -> Result<Value, (String, String)> {
    super::decode::decode(value, key, true).map_err(|error| (error.pointer, error.message))
}

/// Prints a decoded value in the form of the struct that the table lists under `key`.
#[must_use]
pub fn encode(value: &Value, key: &str) -> Value {
    encode_with(structs(), value, key)
}

/// As [`encode`], with the types of another table.
#[must_use]
pub fn encode_with(table: &Structs, value: &Value, key: &str) -> Value {
    match table.get(key) {
        Some(kind) => print(table, kind, Some(value)),
        None => value.clone(),
    }
}

/// The JSON of a decoded value as Go writes it: the fields of structs in the order of the source.
#[must_use]
pub fn json_text(table: &Structs, value: &Value, key: &str) -> String {
    let mut out = String::new();
    if let Some(kind) = table.get(key) {
        write(table, kind, &print(table, kind, Some(value)), &mut out);
    }
    out
}

/// Writes a printed value.
fn write(table: &Structs, kind: &Type, value: &Value, out: &mut String) {
    match (kind, value) {
        (Type::Pointer(inner), _) => write(table, inner, value, out),
        (Type::List(inner), Value::Array(items)) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write(table, inner, item, out);
            }
            out.push(']');
        }
        (Type::Struct(at), Value::Object(entries)) => {
            out.push('{');
            let fields = table.at(*at).map(|entry| entry.fields.as_slice()).unwrap_or_default();
            let mut separator = "";
            for field in fields {
                if let Some(value) = entries.get(field.name) {
                    out.push_str(separator);
                    separator = ",";
                    out.push_str(&crate::json::string(field.name));
                    out.push(':');
                    write(table, &field.kind, value, out);
                }
            }
            out.push('}');
        }
        _ => out.push_str(&crate::json::marshal(value)),
    }
}

fn print(table: &Structs, kind: &Type, value: Option<&Value>) -> Value {
    let value = value.filter(|value| !value.is_null());
    match (kind, value) {
        (Type::Text(_), None) => Value::String(String::new()),
        (Type::Bool, None) => Value::Bool(false),
        (Type::Int32 | Type::Int64 | Type::Float64, None) => Value::from(0),
        (Type::Float64, Some(value)) => whole(value),
        (Type::Pointer(_) | Type::Bytes | Type::List(_) | Type::Map(_), None) => Value::Null,
        (Type::Pointer(inner), Some(_)) => print(table, inner, value),
        (Type::Bytes, Some(Value::String(text))) => Value::String(padded(text)),
        (Type::List(inner), Some(Value::Array(items))) => {
            items.iter().map(|item| print(table, inner, Some(item))).collect()
        }
        (Type::Map(inner), Some(Value::Object(entries))) => Value::Object(
            entries
                .iter()
                .map(|(name, item)| (name.clone(), print(table, inner, Some(item))))
                .collect(),
        ),
        (Type::Struct(at), value) => table.at(*at).map_or(Value::Null, |entry| fields(table, entry, value)),
        (Type::Custom(custom), value) => special(table, *custom, value),
        (Type::Int32 | Type::Int64, Some(value)) => whole(value),
        (_, Some(value)) => value.clone(),
    }
}

fn fields(table: &Structs, entry: &Struct, value: Option<&Value>) -> Value {
    let mut out = Map::with_capacity(value.and_then(Value::as_object).map_or(0, Map::len));
    collect(table, entry, value, &mut out);
    Value::Object(out)
}

fn collect(table: &Structs, entry: &Struct, value: Option<&Value>, out: &mut Map<String, Value>) {
    for field in &entry.fields {
        if let (true, Type::Struct(at)) = (field.embedded, &field.kind) {
            if let Some(inner) = table.at(*at) {
                collect(table, inner, value, out);
            }
            continue;
        }
        let own = value
            .and_then(|value| value.get(field.name))
            .filter(|own| !own.is_null());
        let unset_time = own.is_none() && field.kind == Type::Custom(Custom::Time);
        if field.omit_empty && (is_empty(&field.kind, own) || unset_time && table.omits_zero_times()) {
            continue;
        }
        out.insert(field.name.to_owned(), print(table, &field.kind, own));
    }
}

/// Values that encoding/json considers empty: zero values of scalars, nil, and containers without members. Structs
/// never are.
fn is_empty(kind: &Type, value: Option<&Value>) -> bool {
    match (kind, value) {
        (Type::Struct(_), _) => false,
        // Of these, only the raw value is a slice. The others are structs.
        (Type::Custom(Custom::Any(_)), value) => value.is_none(),
        (Type::Custom(_), _) => false,
        (_, None) => true,
        (Type::Pointer(_), Some(_)) => false,
        (_, Some(Value::String(text))) => text.is_empty(),
        (_, Some(Value::Bool(set))) => !set,
        (_, Some(Value::Number(number))) => number.as_f64() == Some(0.0),
        (_, Some(Value::Array(items))) => items.is_empty(),
        (_, Some(Value::Object(entries))) => entries.is_empty(),
        (_, Some(Value::Null)) => true,
    }
}

fn special(table: &Structs, custom: Custom, value: Option<&Value>) -> Value {
    match (custom, value) {
        (Custom::Quantity, None) => "0".into(),
        (Custom::Quantity, Some(value)) => {
            let text = match value {
                Value::String(text) => text.trim().to_owned(),
                other => crate::json::marshal(other),
            };
            Value::String(canonical(&text).unwrap_or(text))
        }
        (Custom::Time, Some(Value::String(text))) => crate::time::parse_rfc3339(text)
            .map_or_else(|_| Value::String(text.clone()), |time| Value::String(time.to_rfc3339())),
        (Custom::IntOrString, None) => 0.into(),
        (Custom::OperatorVersion, None) => "0.0.0".into(),
        (Custom::SchemaOrBool(_), None) => Value::Bool(false),
        (
            Custom::SchemaOrBool(at) | Custom::SchemaOrList(at) | Custom::SchemaOrNames(at),
            Some(value @ Value::Object(_)),
        ) => table
            .at(at)
            .map_or(Value::Null, |entry| fields(table, entry, Some(value))),
        (Custom::SchemaOrList(at), Some(Value::Array(items))) if !items.is_empty() => items
            .iter()
            .map(|item| print(table, &Type::Struct(at), Some(item)))
            .collect(),
        (Custom::SchemaOrList(_) | Custom::SchemaOrNames(_), Some(Value::Array(items))) if items.is_empty() => {
            Value::Null
        }
        (_, Some(value)) => plain(value),
        (_, None) => Value::Null,
    }
}

/// Any value after Go has written it as JSON: floats without a fraction are integers.
fn plain(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(entries) => entries.iter().map(|(name, item)| (name.clone(), plain(item))).collect(),
        other => whole(other),
    }
}

/// A float without a fraction prints as an integer.
fn whole(value: &Value) -> Value {
    match value.as_f64() {
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
        Some(float) if value.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => Value::from(float as i64),
        _ => value.clone(),
    }
}

/// Base64 as Go prints it: without line ends.
fn padded(text: &str) -> String {
    let compact: String = text.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
    crate::base64::decode(text).map_or(compact, crate::base64::encode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_deployment_gets_the_form_of_its_type() {
        let given = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "unknown": 1,
            "metadata": {"name": "a", "labels": {}},
            "spec": {
                "paused": false,
                "template": {"spec": {"containers": [{
                    "name": "c",
                    "env": [{"name": "N", "value": 12}],
                    "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}},
                }]}},
            },
        });
        let decoded = decode(&given, "Deployment").unwrap();
        assert_eq!(
            encode(&decoded, "Deployment"),
            json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"creationTimestamp": null, "name": "a"},
                "spec": {
                    "selector": null,
                    "strategy": {},
                    "template": {
                        "metadata": {"creationTimestamp": null},
                        "spec": {"containers": [{
                            "name": "c",
                            "env": [{"name": "N", "value": "12"}],
                            "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
                        }]},
                    },
                },
                "status": {},
            })
        );
    }

    #[test]
    fn misfits_are_reported_with_their_place() {
        let error = decode(&json!({"spec": {"replicas": "three"}}), "Deployment").unwrap_err();
        assert_eq!(error.0, "/spec/replicas");
    }
}
