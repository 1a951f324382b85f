//! The type that a schema declares.

use std::collections::BTreeMap;
use std::sync::Arc;

use olmkit_cel::{ObjectType, Type, escape};
use serde_json::Value;

use super::{OBJECT_FIELDS, flag, is_embedded, object_field, text};

/// The type of values of a schema. `None` when expressions cannot see them. `name` distinguishes objects: two fields of the same
/// form have different types.
pub(in crate::crd) fn declare(schema: &Value, is_object: bool, name: &str) -> Option<Type> {
    if flag(schema, "x-kubernetes-int-or-string") {
        return Some(Type::Dyn);
    }
    Some(match text(schema, "type") {
        "array" => {
            let items = schema.get("items")?;
            Type::list(declare(items, is_embedded(items), &format!("{name}.@items"))?)
        }
        "object" => return object(schema, is_object, name),
        "string" => match text(schema, "format") {
            "byte" => Type::Bytes,
            "duration" => Type::Duration,
            "date" | "date-time" => Type::Timestamp,
            _ => Type::String,
        },
        "boolean" => Type::Bool,
        "number" => Type::Double,
        "integer" => Type::Int,
        _ => return None,
    })
}

fn object(schema: &Value, is_object: bool, name: &str) -> Option<Type> {
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        let value = declare(values, is_embedded(values), &format!("{name}.@values"))?;
        return Some(Type::map(Type::String, value));
    }
    let mut fields = BTreeMap::new();
    for (field, own) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let inner = format!("{name}.{field}");
        if let (Some(of), Some(escaped)) = (declare(own, is_embedded(own), &inner), escape(field)) {
            fields.insert(escaped, of);
        }
    }
    for field in OBJECT_FIELDS.into_iter().filter(|_| is_object) {
        let own = object_field(schema, field);
        if let Some(of) = own.and_then(|own| declare(&own, false, &format!("{name}.{field}"))) {
            fields.insert(field.to_owned(), of);
        }
    }
    let name = name.to_owned();
    Some(Type::Object(Arc::new(ObjectType { name, fields })))
}
