//! Objects as expressions see them.

use std::collections::BTreeMap;
use std::rc::Rc;

use olmkit_cel::value::time::Timestamp;
use olmkit_cel::value::{Key, List, ListKind, Map};
use olmkit_cel::{Budget, Failure, Value as Cel, escape};
use serde_json::Value;

use super::{flag, is_embedded, object_field, text};

/// Approximate bytes of a value without its string.
const SIZE: usize = 96;

/// Data of a schema as a value.
///
/// # Errors
/// [`Failure::Exhausted`] when the data is larger than the budget allows.
pub(in crate::crd) fn convert(
    schema: &Value,
    json: &Value,
    is_object: bool,
    budget: &mut Budget,
) -> Result<Cel, Failure> {
    budget.allocate(SIZE)?;
    let wrong = |wanted: &str| Cel::broken(Failure::Error(format!("invalid data, expected {wanted}")));
    if json.is_null() {
        return Ok(if flag(schema, "nullable") {
            Cel::Null
        } else {
            wrong("a value, got null for schema with nullable=false")
        });
    }
    if flag(schema, "x-kubernetes-int-or-string") {
        return match json {
            Value::String(own) => string(own, budget),
            Value::Number(number) if number.is_i64() => Ok(number.as_i64().map_or(Cel::Null, Cel::Int)),
            _ => Ok(wrong("XIntOrString value to be either a string or integer")),
        };
    }
    Ok(match (text(schema, "type"), json) {
        ("object", Value::Object(fields)) => return object(schema, fields, is_object, budget),
        ("array", Value::Array(items)) => return array(schema, items, budget),
        ("string", Value::String(own)) => return formatted(text(schema, "format"), own, budget),
        ("number", Value::Number(number)) => number.as_f64().map_or_else(|| wrong("float"), Cel::Double),
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(number) => Cel::Int(number),
            None => Cel::broken(Failure::Undecided(
                "an integer that is written with a fraction".to_owned(),
            )),
        },
        ("boolean", Value::Bool(own)) => Cel::Bool(*own),
        ("", other) => {
            budget.allocate(other.to_string().len())?;
            Cel::Preserved(Rc::new(other.clone()))
        }
        (wanted, _) => wrong(wanted),
    })
}

fn string(own: &str, budget: &mut Budget) -> Result<Cel, Failure> {
    budget.allocate(own.len())?;
    Ok(Cel::string(own))
}

fn formatted(format: &str, own: &str, budget: &mut Budget) -> Result<Cel, Failure> {
    // The API server's parsers of these formats accept more than the standards.
    let unclear = || Cel::broken(Failure::Undecided(format!("a {format} in an unusual form")));
    Ok(match format {
        "duration" => olmkit_go::time::parse_duration(own).map_or_else(|_| unclear(), Cel::Duration),
        "date" => Timestamp::parse_date(own).map_or_else(unclear, Cel::Timestamp),
        "date-time" => Timestamp::parse(own).map_or_else(unclear, Cel::Timestamp),
        "byte" => match olmkit_go::base64::decode(own) {
            Ok(bytes) => {
                budget.allocate(bytes.len())?;
                Cel::Bytes(Rc::from(bytes))
            }
            Err(_) => unclear(),
        },
        _ => return string(own, budget),
    })
}

fn array(schema: &Value, items: &[Value], budget: &mut Budget) -> Result<Cel, Failure> {
    let Some(own) = schema.get("items") else {
        return Ok(Cel::broken(Failure::Error(
            "invalid array type, expected Items with a non-empty Schema".to_owned(),
        )));
    };
    let items = items
        .iter()
        .map(|item| convert(own, item, is_embedded(own), budget))
        .collect::<Result<_, _>>()?;
    let kind = match text(schema, "x-kubernetes-list-type") {
        "set" => ListKind::Set,
        "map" => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let names = keys.into_iter().flatten().filter_map(Value::as_str);
            ListKind::Map(
                names
                    .map(|name| escape(name).unwrap_or_else(|| name.to_owned()))
                    .collect(),
            )
        }
        _ => ListKind::Atomic,
    };
    Ok(Cel::List(Rc::new(List { items, kind })))
}

fn object(
    schema: &Value,
    fields: &serde_json::Map<String, Value>,
    is_object: bool,
    budget: &mut Budget,
) -> Result<Cel, Failure> {
    let mut entries = BTreeMap::new();
    let mut others = BTreeMap::new();
    let properties = schema.get("properties").and_then(Value::as_object);
    let values = schema.get("additionalProperties").filter(|values| values.is_object());
    for (name, json) in fields {
        budget.allocate(name.len())?;
        let always = if is_object { object_field(schema, name) } else { None };
        let own = always
            .as_ref()
            .or_else(|| properties.and_then(|properties| properties.get(name)));
        let key = match (own, values) {
            // A field that is null counts as absent.
            (Some(_), _) if json.is_null() => None,
            (Some(own), _) => escape(name).map(|escaped| (escaped, own)),
            (None, Some(values)) if properties.is_none() => Some((name.clone(), values)),
            (None, _) => None,
        };
        match key {
            Some((key, own)) => {
                let value = convert(own, json, is_embedded(own), budget)?;
                entries.insert(Key::String(Rc::from(key)), value);
            }
            None => {
                budget.allocate(json.to_string().len())?;
                others.insert(name.clone(), json.clone());
            }
        }
    }
    let is_object = values.is_none() || properties.is_some();
    Ok(Cel::Map(Rc::new(Map {
        entries,
        is_object,
        others,
    })))
}
