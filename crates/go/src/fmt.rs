//! Values as Go's `fmt` prints them.

use std::fmt::Write as _;

use serde_json::Value;

use crate::strconv;

/// A value of the types that Go decodes untyped data into.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand<'a> {
    /// `nil`
    Nil,
    /// `bool`
    Bool(bool),
    /// `int64`
    Int(i64),
    /// `uint64`
    Uint(u64),
    /// `float64`
    Float(f64),
    /// `string`
    String(&'a str),
    /// `[]interface{}`
    Slice(Vec<Operand<'a>>),
    /// `map[string]interface{}`, in any order: Go prints maps sorted by key.
    Map(Vec<(&'a str, Operand<'a>)>),
}

impl Operand<'_> {
    /// `%v`: `map[a:1 b:[x y]]`.
    #[must_use]
    pub fn v(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, &|kind, text, out| {
            debug_assert!(!kind.is_empty());
            out.push_str(text);
        });
        out
    }

    /// `%t`, with its error for everything except booleans: `%!t(string=yes)`.
    #[must_use]
    pub fn t(&self) -> String {
        if *self == Operand::Nil {
            return "%!t(<nil>)".to_owned();
        }
        let mut out = String::new();
        self.write(&mut out, &|kind, text, out| {
            // Writing to a String cannot fail.
            let _ = write!(out, "%!t({kind}={text})");
        });
        out
    }

    fn write(&self, out: &mut String, scalar: &impl Fn(&str, &str, &mut String)) {
        match self {
            Operand::Nil => out.push_str("<nil>"),
            Operand::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Operand::Int(value) => scalar("int64", &value.to_string(), out),
            Operand::Uint(value) => scalar("uint64", &value.to_string(), out),
            Operand::Float(value) => scalar("float64", &strconv::format_g(*value), out),
            Operand::String(text) => scalar("string", text, out),
            Operand::Slice(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(' ');
                    }
                    item.write(out, scalar);
                }
                out.push(']');
            }
            Operand::Map(entries) => {
                let mut sorted: Vec<_> = entries.iter().collect();
                sorted.sort_by_key(|(key, _)| *key);
                out.push_str("map[");
                for (at, (key, item)) in sorted.into_iter().enumerate() {
                    if at > 0 {
                        out.push(' ');
                    }
                    scalar("string", key, out);
                    out.push(':');
                    item.write(out, scalar);
                }
                out.push(']');
            }
        }
    }
}

/// Integers remain integers, as in the untyped objects of Kubernetes. Plain `encoding/json` makes floats of them.
impl<'a> From<&'a Value> for Operand<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Operand::Nil,
            Value::Bool(value) => Operand::Bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Operand::Int(value),
                (None, Some(value)) => Operand::Uint(value),
                (None, None) => Operand::Float(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Operand::String(text),
            Value::Array(items) => Operand::Slice(items.iter().map(Operand::from).collect()),
            Value::Object(entries) => Operand::Map(
                entries
                    .iter()
                    .map(|(key, item)| (key.as_str(), Operand::from(item)))
                    .collect(),
            ),
        }
    }
}

/// `%v` of a decoded JSON value.
#[must_use]
pub fn v(value: &Value) -> String {
    Operand::from(value).v()
}
