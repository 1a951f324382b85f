//! The conversion from an untyped object to a Go struct, as apimachinery's converter does it for OLM v1: exact field
//! names, no numbers or booleans for strings, and an error at the first mismatch. Unlike [`convert`](super::convert),
//! which keeps the previous fields, it returns nothing then.

use serde_json::{Map, Value};

use super::decode;
use super::{Structs, Type, newer};
use crate::json::pointer_part;

/// A value that does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct RestoreError {
    /// apimachinery's message.
    pub message: String,
    /// JSON pointer to the value.
    pub pointer: String,
}

/// Converts a value to the struct that the newer table lists under `key`: known fields only, no nulls.
///
/// # Errors
/// The first misfit, in the order of the fields in the Go source.
pub fn restore(value: &Value, key: &str) -> Result<Value, RestoreError> {
    let table = newer();
    let Some(kind) = table.get(key) else {
        return Ok(value.clone());
    };
    let mut restorer = Restorer {
        table,
        pointer: String::new(),
    };
    restorer.value(value, kind).map(Option::unwrap_or_default)
}

struct Restorer {
    table: &'static Structs,
    pointer: String,
}

impl Restorer {
    /// `None` is Go's zero value.
    fn value(&mut self, value: &Value, kind: &Type) -> Result<Option<Value>, RestoreError> {
        match (kind, value) {
            (_, Value::Null) => Ok(None),
            (Type::Pointer(inner), _) => self.value(value, inner),
            (Type::Custom(custom), _) => decode::custom(self.table, value, *custom).map_err(|error| RestoreError {
                pointer: format!("{}{}", self.pointer, error.pointer),
                message: error.message,
            }),
            (Type::Text(_) | Type::Bytes, Value::String(_))
            | (Type::Bool, Value::Bool(_))
            | (Type::Float64, Value::Number(_)) => Ok(Some(value.clone())),
            (Type::Int32 | Type::Int64, Value::Number(number)) => {
                let float = number.as_f64().unwrap_or_default();
                if number.is_f64() && float.fract() != 0.0 {
                    return self.fail(format!("cannot convert float64 to {}", simple(kind)));
                }
                #[expect(clippy::cast_possible_truncation, reason = "Go truncates too")]
                Ok(Some(Value::from(number.as_i64().unwrap_or(float as i64))))
            }
            (Type::List(inner), Value::Array(items)) => {
                let mut out = Vec::with_capacity(items.len());
                for (at, item) in items.iter().enumerate() {
                    out.push(self.below(&at.to_string(), item, inner)?.unwrap_or_default());
                }
                Ok(Some(Value::Array(out)))
            }
            (Type::Map(inner), Value::Object(entries)) => {
                let mut out = Map::with_capacity(entries.len());
                for (key, item) in entries {
                    let item = self.below(key, item, inner)?.unwrap_or_default();
                    out.insert(key.clone(), item);
                }
                Ok(Some(Value::Object(out)))
            }
            (Type::Struct(at), Value::Object(entries)) => {
                let mut out = Map::with_capacity(entries.len());
                self.fields(entries, *at, &mut out)?;
                Ok(Some(Value::Object(out)))
            }
            (Type::List(_), _) => self.fail(format!("cannot restore slice from {}", go_kind(value))),
            (Type::Bytes, Value::Array(_)) => self.fail("cannot convert int64 to uint8".to_owned()),
            (Type::Bytes, _) => self.fail(format!("cannot restore slice from {}", go_kind(value))),
            (Type::Map(_), _) => self.fail(format!("cannot restore map from {}", go_kind(value))),
            (Type::Struct(_), _) => self.fail(format!("cannot restore struct from: {}", go_kind(value))),
            (Type::Text(_), Value::Number(number)) if !number.is_f64() => {
                self.fail(format!("cannot convert int64 to {}", simple(kind)))
            }
            _ => self.fail(format!("unrecognized type: {}", simple_kind(kind))),
        }
    }

    fn below(&mut self, key: &str, value: &Value, kind: &Type) -> Result<Option<Value>, RestoreError> {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&pointer_part(key));
        let restored = self.value(value, kind)?;
        self.pointer.truncate(length);
        Ok(restored)
    }

    fn fields(
        &mut self,
        entries: &Map<String, Value>,
        at: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), RestoreError> {
        let Some(entry) = self.table.at(at) else { return Ok(()) };
        for field in &entry.fields {
            if let (true, Type::Struct(inner)) = (field.embedded, &field.kind) {
                self.fields(entries, *inner, out)?;
            } else if let Some(value) = entries.get(field.name)
                && let Some(restored) = self.below(field.name, value, &field.kind)?
            {
                out.insert(field.name.to_owned(), restored);
            }
        }
        Ok(())
    }

    fn fail(&self, message: String) -> Result<Option<Value>, RestoreError> {
        Err(RestoreError {
            message,
            pointer: self.pointer.clone(),
        })
    }
}

/// The kind of Go value that JSON becomes.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// The Go name of a simple type.
fn simple(kind: &Type) -> &'static str {
    match kind {
        Type::Text(name) => name,
        _ => simple_kind(kind),
    }
}

fn simple_kind(kind: &Type) -> &'static str {
    match kind {
        Type::Text(_) => "string",
        Type::Bool => "bool",
        Type::Int32 => "int32",
        Type::Int64 => "int64",
        Type::Float64 => "float64",
        _ => "struct",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(value: &Value) -> (String, String) {
        let error = restore(value, "ClusterServiceVersion").unwrap_err();
        (error.pointer, error.message)
    }

    #[test]
    fn unknown_fields_and_nulls_are_gone() {
        let csv = json!({"spec": {"displayName": null, "unknown": 1, "DisplayName": "x", "version": "1.0"}});
        let restored = restore(&csv, "ClusterServiceVersion").unwrap();
        assert_eq!(restored, json!({"spec": {"version": "1.0.0"}}));
    }

    #[test]
    fn misfits_are_named_as_go_names_them() {
        let at = |pointer: &str, message: &str| (pointer.to_owned(), message.to_owned());
        assert_eq!(
            refusal(&json!({"spec": {"displayName": 1}})),
            at("/spec/displayName", "cannot convert int64 to string")
        );
        assert_eq!(
            refusal(&json!({"spec": {"keywords": "a"}})),
            at("/spec/keywords", "cannot restore slice from string")
        );
        assert_eq!(
            refusal(&json!({"spec": {"version": "0one"}})).1,
            "Invalid character(s) found in major number \"0one\""
        );
    }
}
