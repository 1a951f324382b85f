//! The part of JSON Schema that the pipeline's two schemas use, with the messages of its validator.

use olmkit_yaml::Position;

use crate::python::text::{list, quoted, repr};
use crate::python::{Equality, Node, Table, Value};

/// A schema.
#[derive(Debug, Clone, Copy)]
pub(super) enum Schema {
    /// A boolean.
    Boolean,
    /// Text. One of these if there are any.
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

/// The position of a value that does not match.
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

/// Violations, in the order of the schema.
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
            if *unique && has_twins(nodes) {
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

/// Returns true if a list contains a value twice.
fn has_twins(nodes: &[Node]) -> bool {
    let mut seen = Table::new(Equality::Json);
    nodes.iter().any(|node| seen.insert(node, ()).is_some())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::{comparisons, parse};

    fn node(text: &str) -> Node {
        parse(text).expect("the text is YAML").pop().expect("it holds a value")
    }

    fn is_unique(text: &str) -> bool {
        let list = Schema::list(&Schema::BOOLEAN, 0, true);
        let found = errors(&node(text), &list);
        !found.iter().any(|error| error.message.ends_with("non-unique elements"))
    }

    #[test]
    fn elements_are_equal_as_in_json() {
        for (text, unique) in [
            ("[1, true, '1', 2]", true),
            ("[1, 1.0]", false),
            ("[{a: 1, b: 2}, {b: 2, a: 1}]", false),
            ("[{a: 1}, {a: true}]", true),
            ("[[1], [true], [1, 1]]", true),
            ("[.nan, .nan]", true),
        ] {
            assert_eq!(is_unique(text), unique, "{text}");
        }
    }

    #[test]
    fn the_elements_of_a_hostile_list_are_not_compared_with_each_other() {
        let texts = (0..5_000).map(|number| format!("- t{number}\n")).collect();
        let mappings = (0..5_000).map(|number| format!("- {{a: {number}}}\n")).collect();
        let booleans = (0..4_096).map(|number| {
            let bits: Vec<&str> = (0..12)
                .map(|bit| if number >> bit & 1 == 0 { "1" } else { "true" })
                .collect();
            format!("- [{}]\n", bits.join(", "))
        });
        let lists: [String; 4] = [texts, mappings, booleans.collect(), "- .nan\n".repeat(5_000)];
        for text in lists {
            let list = node(&text);
            let count = comparisons(|| assert!(!has_twins(list.items())));
            assert!(count < 50_000, "{count}: {}", text.lines().next().unwrap_or_default());
        }
    }
}
