//! A schema as a list of its properties, each by its path.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::object::pointer_part;

/// A property of a schema.
#[derive(Debug, Clone)]
pub(super) struct Place<'v> {
    pub schema: &'v Value,
    /// JSON pointer into the definition.
    pub pointer: String,
}

/// All properties of a schema by their paths: `^`, `^.spec`, `^.spec.ports.items`.
#[derive(Debug, Clone)]
pub(super) struct Flat<'v> {
    pub properties: BTreeMap<String, Place<'v>>,
}

/// The amount of work and memory for a schema.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    /// The values of each property without those of nested properties and items, and 64 bytes of text as another value.
    pub values: u64,
    /// Bytes of the properties' paths and pointers.
    pub paths: u64,
}

/// The size of a schema with all its properties.
pub(super) fn size(schema: &Value) -> Size {
    let mut size = Size::default();
    if schema.is_object() {
        // `/spec/versions/0/schema/openAPIV3Schema`
        add_size(schema, 48, &mut size);
    }
    size
}

/// `path` is the length of the path and the pointer of the schema. Returns its values, with those of all schemas in it.
fn add_size(schema: &Value, path: u64, size: &mut Size) -> u64 {
    size.paths = size.paths.saturating_add(path);
    let (mut own, mut compared_separately) = (1, 0);
    for (key, value) in schema.as_object().into_iter().flatten() {
        let below = path.saturating_add(2 * key.len() as u64 + 4);
        let values = match (key.as_str(), value) {
            ("items" | "allOf" | "anyOf" | "oneOf", Value::Array(items)) => {
                items.iter().map(|item| add_size(item, below, size)).sum()
            }
            ("items" | "not" | "additionalProperties" | "additionalItems", Value::Object(_)) => {
                add_size(value, below, size)
            }
            ("properties" | "patternProperties" | "definitions" | "dependencies", Value::Object(schemas)) => schemas
                .iter()
                .map(|(name, schema)| {
                    let values = add_size(schema, below.saturating_add(2 * name.len() as u64), size);
                    values.saturating_add(units(name))
                })
                .sum(),
            _ => values(value),
        };
        match key.as_str() {
            "properties" | "items" => compared_separately += values,
            _ => own += values,
        }
    }
    size.values = size.values.saturating_add(own);
    own.saturating_add(compared_separately)
}

fn units(text: &str) -> u64 {
    text.len() as u64 / 64
}

/// Number of values in a value, and 64 bytes of text as another one.
fn values(value: &Value) -> u64 {
    let below: u64 = match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(entries) => entries.iter().map(|(key, value)| units(key) + values(value)).sum(),
        Value::String(text) => units(text),
        _ => 0,
    };
    1 + below
}

impl<'v> Flat<'v> {
    pub(super) fn new(schema: &'v Value, pointer: String) -> Self {
        let mut flat = Self {
            properties: BTreeMap::new(),
        };
        if schema.is_object() {
            flat.add(schema, "^".to_owned(), pointer);
        }
        flat
    }

    fn add(&mut self, schema: &'v Value, path: String, pointer: String) {
        for (key, value) in schema.as_object().into_iter().flatten() {
            let below = format!("{pointer}/{key}");
            match (key.as_str(), value) {
                ("items", Value::Array(items)) => self.list(items, &format!("{path}.items"), &below),
                ("allOf" | "anyOf" | "oneOf", Value::Array(items)) => {
                    self.list(items, &format!("{path}.{key}"), &below);
                }
                ("items" | "not" | "additionalProperties" | "additionalItems", Value::Object(_)) => {
                    self.add(value, format!("{path}.{key}"), below);
                }
                ("properties", Value::Object(schemas)) => {
                    for (name, schema) in schemas {
                        self.add(
                            schema,
                            format!("{path}.{name}"),
                            format!("{below}/{}", pointer_part(name)),
                        );
                    }
                }
                ("patternProperties" | "definitions" | "dependencies", Value::Object(schemas)) => {
                    for (name, schema) in schemas.iter().filter(|(_, schema)| schema.is_object()) {
                        let path = format!("{path}.{key}[{name}]");
                        self.add(schema, path, format!("{below}/{}", pointer_part(name)));
                    }
                }
                _ => {}
            }
        }
        self.properties.insert(path, Place { schema, pointer });
    }

    fn list(&mut self, items: &'v [Value], path: &str, pointer: &str) {
        for (at, item) in items.iter().enumerate() {
            self.add(item, format!("{path}[{at}]"), format!("{pointer}/{at}"));
        }
    }
}
