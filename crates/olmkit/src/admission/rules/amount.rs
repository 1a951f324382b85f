//! Quantities as numbers.

use olmkit_go::quantity::Quantity;
use serde_json::Value;

/// A quantity. `None` if it is none, or too large to compare.
pub(in crate::admission) fn amount(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => Quantity::parse(&olmkit_go::json::number(number)).ok(),
        _ => None,
    }
}
