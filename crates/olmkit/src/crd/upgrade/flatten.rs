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

/// Number of properties in a schema, and the bytes of their paths and pointers.
pub(super) fn size(schema: &Value) -> (u64, u64) {
    let mut size = (0, 0);
    if schema.is_object() {
        // `/spec/versions/0/schema/openAPIV3Schema`
        add_size(schema, 48, &mut size);
    }
    size
}

/// `path` is the length of the path and the pointer of the schema.
fn add_size(schema: &Value, path: u64, size: &mut (u64, u64)) {
    size.0 = size.0.saturating_add(1);
    size.1 = size.1.saturating_add(path);
    for (key, value) in schema.as_object().into_iter().flatten() {
        let below = path.saturating_add(2 * key.len() as u64 + 4);
        match (key.as_str(), value) {
            ("items" | "allOf" | "anyOf" | "oneOf", Value::Array(items)) => {
                items.iter().for_each(|item| add_size(item, below, size));
            }
            ("items" | "not" | "additionalProperties" | "additionalItems", Value::Object(_)) => {
                add_size(value, below, size);
            }
            ("properties" | "patternProperties" | "definitions" | "dependencies", Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    add_size(schema, below.saturating_add(2 * name.len() as u64), size);
                }
            }
            _ => {}
        }
    }
}

impl<'v> Flat<'v> {
    pub(super) fn of(schema: &'v Value, pointer: String) -> Self {
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
