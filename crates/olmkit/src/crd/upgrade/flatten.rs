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
