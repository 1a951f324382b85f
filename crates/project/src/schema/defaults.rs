//! Converts defaults from serde to the form that the API server accepts.

use serde_json::{Map, Value};

/// Serde defaults are copied with every unset option as null. The server rejects null if nullable is not set, and
/// defaults with fields that the schema does not have.
pub(super) fn normalise(node: &mut Map<String, Value>) {
    let Some(mut value) = node.remove("default") else {
        return;
    };
    if value.is_null() {
        return;
    }
    prune(&mut value, node);
    // An empty object as default of an object with required fields would be rejected.
    let missing = node.get("required").and_then(Value::as_array).is_some_and(|required| {
        value.as_object().is_some_and(|map| {
            required.iter().filter_map(Value::as_str).any(|name| {
                !map.contains_key(name)
                    && node
                        .get("properties")
                        .and_then(|all| all.get(name))
                        .is_none_or(|own| own.get("default").is_none())
            })
        })
    });
    if !missing {
        node.insert("default".into(), value);
    }
}

fn prune(value: &mut Value, schema: &Map<String, Value>) {
    match value {
        Value::Object(map) => {
            map.retain(|_, member| !member.is_null());
            let open = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
            let properties = schema.get("properties").and_then(Value::as_object);
            let extra = schema.get("additionalProperties").and_then(Value::as_object);
            if !open && extra.is_none() {
                map.retain(|name, _| properties.is_some_and(|properties| properties.contains_key(name)));
            }
            for (name, member) in map {
                if let Some(own) = properties
                    .and_then(|all| all.get(name))
                    .and_then(Value::as_object)
                    .or(extra)
                {
                    prune(member, own);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = schema.get("items").and_then(Value::as_object) {
                for member in list {
                    prune(member, items);
                }
            }
        }
        Value::Number(number) if schema.get("type").and_then(Value::as_str) == Some("integer") => {
            if let Some(whole) = number
                .as_f64()
                .filter(|_| number.is_f64())
                .filter(|number| number.fract() == 0.0)
            {
                #[allow(clippy::cast_possible_truncation)]
                {
                    *value = Value::from(whole as i64);
                }
            }
        }
        _ => {}
    }
}
