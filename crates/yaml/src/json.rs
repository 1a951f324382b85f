//! From the tree to JSON values, as `sigs.k8s.io/yaml` converts them.

use serde_json::{Map, Number};

use super::{Error, Node, Value, number};

impl Node {
    /// The node as a JSON value. Keys become strings (`y` becomes `true`, `1.0` becomes `1`), and floats without a
    /// fraction become integers, as when Go writes them as JSON and reads them back.
    ///
    /// # Errors
    ///
    /// [`Error::NotJson`] for `.nan`, `.inf` and null keys.
    pub fn to_json(&self) -> Result<serde_json::Value, Error> {
        Ok(match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => serde_json::Value::Bool(*value),
            Value::Integer(value) => serde_json::Value::from(*value),
            Value::Unsigned(value) => serde_json::Value::from(*value),
            Value::Float(value) => self.float(*value)?,
            Value::String(text) => serde_json::Value::String(text.clone()),
            Value::Sequence(items) => {
                serde_json::Value::Array(items.iter().map(Node::to_json).collect::<Result<_, _>>()?)
            }
            Value::Mapping(entries) => {
                let mut map = Map::with_capacity(entries.len());
                for (key, value) in entries {
                    let name = key.key().ok_or_else(|| unsupported_key(key, value))?;
                    map.insert(name.into_owned(), value.to_json()?);
                }
                serde_json::Value::Object(map)
            }
        })
    }

    /// Returns true if [`Node::to_json`] will succeed. The error is the one it would give.
    ///
    /// # Errors
    ///
    /// As [`Node::to_json`].
    pub fn check_json(&self) -> Result<(), Error> {
        match &self.value {
            Value::Float(value) => self.float(*value).map(|_| ()),
            Value::Sequence(items) => items.iter().try_for_each(Node::check_json),
            Value::Mapping(entries) => entries.iter().try_for_each(|(key, value)| {
                if key.is_null() {
                    return Err(unsupported_key(key, value));
                }
                value.check_json()
            }),
            _ => Ok(()),
        }
    }

    /// Returns true if all keys can be written as JSON. The error is the one [`Node::to_json`] would give.
    pub(super) fn check_keys(&self) -> Result<(), Error> {
        match &self.value {
            Value::Sequence(items) => items.iter().try_for_each(Node::check_keys),
            Value::Mapping(entries) => entries.iter().try_for_each(|(key, value)| {
                if key.is_null() {
                    return Err(unsupported_key(key, value));
                }
                value.check_keys()
            }),
            _ => Ok(()),
        }
    }

    fn float(&self, value: f64) -> Result<serde_json::Value, Error> {
        if let Some(whole) = number::as_integer(value) {
            return Ok(serde_json::Value::from(whole));
        }
        Number::from_f64(value)
            .map(serde_json::Value::Number)
            .ok_or_else(|| Error::NotJson {
                problem: format!("json: unsupported value: {}", olmkit_go::strconv::format_g(value)),
                position: Some(self.start),
            })
    }
}

fn unsupported_key(key: &Node, value: &Node) -> Error {
    Error::NotJson {
        problem: format!(
            "unsupported map key of type: %!s(<nil>), key: <nil>, value: {}",
            go_syntax(value)
        ),
        position: Some(key.start),
    }
}

/// A value as Go's `%#v` prints it, for errors that quote it. Long collections are cut.
pub(super) fn go_syntax(node: &Node) -> String {
    const SHOWN: usize = 8;
    match &node.value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Unsigned(value) => format!("{value:#x}"),
        Value::Float(value) => olmkit_go::strconv::format_g(*value),
        Value::String(text) => olmkit_go::strconv::quote(text),
        Value::Sequence(items) => {
            let shown: Vec<String> = items.iter().take(SHOWN).map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", shown.join(", "))
        }
        Value::Mapping(entries) => {
            let pair = |(key, value): &(Node, Node)| format!("{}:{}", go_syntax(key), go_syntax(value));
            let shown: Vec<String> = entries.iter().take(SHOWN).map(pair).collect();
            format!("map[interface {{}}]interface {{}}{{{}}}", shown.join(", "))
        }
    }
}
