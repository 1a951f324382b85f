//! Reads JSON values of the API server.

use serde_json::Value;

/// A string of a value, empty when it is absent or something else.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
