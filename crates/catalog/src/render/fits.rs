//! A fast check if a value fits a Go type.
//!
//! Decoding builds a second tree to find a mismatch and Go's message for it. Nearly every manifest fits, and checking
//! that needs no copy. If this check is not certain, the decoder decides.

use crate::text::Value;
use olmkit_go::structs::{Custom, Structs, Type};

/// Returns true if the value certainly fits the type. If `false`, the value may still fit.
pub fn certainly(value: &Value<'_>, kind: &Type, table: &Structs) -> bool {
    match (kind, value) {
        (Type::Pointer(_) | Type::Custom(Custom::Any(_)), Value::Null) => true,
        (Type::Pointer(inner), value) => certainly(value, inner, table),
        (Type::Custom(custom), value) => custom_fits(value, *custom, table),
        (_, Value::Null)
        | (Type::Text(_), Value::String(_))
        | (Type::Bool, Value::Bool(_))
        | (Type::Int64, Value::Integer(_))
        | (Type::Float64, Value::Integer(_) | Value::Unsigned(_) | Value::Float(_)) => true,
        (Type::Int32, Value::Integer(number)) => i32::try_from(*number).is_ok(),
        (Type::List(inner), Value::Sequence(items)) => items.iter().all(|item| certainly(item, inner, table)),
        (Type::Map(inner), Value::Mapping(entries)) => entries.iter().all(|(_, value)| certainly(value, inner, table)),
        (Type::Struct(at), Value::Mapping(entries)) => {
            let Some(entry) = table.at(*at) else { return false };
            entries.iter().all(|(key, value)| match table.field(entry, key) {
                Some(kind) => certainly(value, kind, table),
                // A key in another case fills the field too.
                None => !entry.by_name.keys().any(|name| olmkit_go::json::names_field(key, name)),
            })
        }
        _ => false,
    }
}

fn custom_fits(value: &Value<'_>, custom: Custom, table: &Structs) -> bool {
    match (custom, value) {
        (Custom::Any(_), _)
        | (Custom::IntOrString, Value::String(_))
        | (Custom::SchemaOrBool(_), Value::Bool(_))
        | (
            Custom::IntOrString | Custom::Quantity | Custom::Time | Custom::SchemaOrList(_) | Custom::SchemaOrNames(_),
            Value::Null,
        ) => true,
        (Custom::IntOrString, Value::Integer(number)) => i32::try_from(*number).is_ok(),
        (Custom::Quantity, Value::String(text)) => olmkit_go::quantity::check(text.trim()).is_ok(),
        (Custom::SchemaOrBool(at) | Custom::SchemaOrList(at) | Custom::SchemaOrNames(at), Value::Mapping(_)) => {
            certainly(value, &Type::Struct(at), table)
        }
        (Custom::SchemaOrList(at), Value::Sequence(items)) => {
            items.iter().all(|item| certainly(item, &Type::Struct(at), table))
        }
        (Custom::SchemaOrNames(_), Value::Sequence(items)) => {
            items.iter().all(|item| matches!(item, Value::String(_) | Value::Null))
        }
        _ => false,
    }
}
