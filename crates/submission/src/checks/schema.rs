//! The part of JSON Schema that the pipeline's two schemas use, with the messages of its validator.

use olmkit_yaml::Position;

use crate::python::text::{list, quoted, repr};
use crate::python::{Node, Value};

/// A schema.
#[derive(Debug, Clone, Copy)]
pub(super) enum Schema {
    /// A boolean.
    Boolean,
    /// Text; one of these if there are any.
    Text(&'static [&'static str]),
    /// A list.
    List {
        items: &'static Schema,
        least: usize,
        unique: bool,
    },
    /// A mapping.
    Object {
        open: bool,
        properties: &'static [(&'static str, Schema)],
        required: &'static [&'static str],
    },
}

/// A place where a value does not fit.
pub(super) struct Error {
    pub(super) message: String,
    pub(super) path: String,
    pub(super) at: Position,
}

impl Schema {
    pub(super) const BOOLEAN: Self = Self::Boolean;
    pub(super) const TEXT: Self = Self::Text(&[]);

    pub(super) const fn one_of(values: &'static [&'static str]) -> Self {
        Self::Text(values)
    }

    pub(super) const fn list(items: &'static Schema, least: usize, unique: bool) -> Self {
        Self::List { items, least, unique }
    }

    pub(super) const fn object(
        open: bool,
        properties: &'static [(&'static str, Schema)],
        required: &'static [&'static str],
    ) -> Self {
        Self::Object {
            open,
            properties,
            required,
        }
    }
}

/// What does not fit, in the order of the schema.
pub(super) fn errors(node: &Node, schema: &Schema) -> Vec<Error> {
    let mut found = Vec::new();
    check(node, schema, "", &mut found);
    found
}

fn check(node: &Node, schema: &Schema, path: &str, found: &mut Vec<Error>) {
    let mut error = |message: String| {
        found.push(Error {
            message,
            path: path.to_owned(),
            at: node.start,
        });
    };
    let wrong_type = |name: &str| format!("{} is not of type '{name}'", repr(node));
    match (schema, &node.value) {
        (Schema::Boolean, Value::Bool(_)) => {}
        (Schema::Boolean, _) => error(wrong_type("boolean")),
        (Schema::Text(values), value) => {
            let text = match value {
                Value::Str(text) => Some(text.as_str()),
                _ => None,
            };
            if text.is_none() {
                error(wrong_type("string"));
            }
            if !values.is_empty() && !text.is_some_and(|text| values.contains(&text)) {
                error(format!("{} is not one of {}", repr(node), list(*values)));
            }
        }
        (Schema::List { items, least, unique }, Value::List(nodes)) => {
            if nodes.len() < *least {
                error(format!("{} should be non-empty", repr(node)));
            }
            let is_again = |at: usize, item: &Node| nodes.iter().take(at).any(|other| same(other, item));
            if *unique && nodes.iter().enumerate().any(|(at, item)| is_again(at, item)) {
                error(format!("{} has non-unique elements", repr(node)));
            }
            for (at, item) in nodes.iter().enumerate() {
                check(item, items, &format!("{path}[{at}]"), found);
            }
        }
        (Schema::List { .. }, _) => error(wrong_type("array")),
        (
            Schema::Object {
                open,
                properties,
                required,
            },
            Value::Dict(entries),
        ) => {
            let known = |key: &Node| properties.iter().any(|(name, _)| key.as_str() == Some(name));
            let mut unknown: Vec<&Node> = entries.iter().map(|(key, _)| key).filter(|key| !known(key)).collect();
            if !open && !unknown.is_empty() {
                unknown.sort_by_key(|key| crate::python::text::shown(key));
                let names: Vec<String> = unknown.iter().map(|key| repr(key)).collect();
                let verb = if names.len() == 1 { "was" } else { "were" };
                error(format!(
                    "Additional properties are not allowed ({} {verb} unexpected)",
                    names.join(", ")
                ));
            }
            for name in required.iter().filter(|name| node.get(name).is_none()) {
                error(format!("{} is a required property", quoted(name)));
            }
            for (name, schema) in *properties {
                if let Some(value) = node.get(name) {
                    let path = if path.is_empty() {
                        (*name).to_owned()
                    } else {
                        format!("{path}.{name}")
                    };
                    check(value, schema, &path, found);
                }
            }
        }
        (Schema::Object { .. }, _) => error(wrong_type("object")),
    }
}

/// Equality of JSON: a boolean is not a number.
fn same(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Bool(_), _) | (_, Value::Bool(_)) => false,
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Dict(a), Value::Dict(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, value)| b.iter().any(|(other, its)| key.equals(other) && same(value, its)))
        }
        _ => a.equals(b),
    }
}

/// The schema of `release-config.yaml`.
pub(super) static RELEASE_CONFIG: Schema = Schema::object(
    false,
    &[
        ("merge", Schema::BOOLEAN),
        ("catalog_templates", Schema::list(&TEMPLATE, 1, true)),
    ],
    &["catalog_templates"],
);

static TEMPLATE: Schema = Schema::object(
    true,
    &[
        ("template_name", Schema::TEXT),
        ("channels", Schema::list(&Schema::TEXT, 1, true)),
        ("defaultChannel", Schema::TEXT),
        ("replaces", Schema::TEXT),
        ("skips", Schema::list(&Schema::TEXT, 1, true)),
        ("skipRange", Schema::TEXT),
    ],
    &["template_name", "channels"],
);
