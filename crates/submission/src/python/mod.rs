//! Values as the hosted pipeline reads them: YAML by Python's PyYAML, and Python's string forms of values.
//!
//! The pipeline is written in Python. The checks that fail on unusual input, and their messages, depend on the Python
//! value of a scalar (`y` is a string, `12:30` a number, a date a date), on Python's operators, and on its print
//! format.

mod date;
mod document;
mod iso_8601;
mod reader;
mod scalar;
mod table;
pub(crate) mod text;
mod view;

use date::DateTime;
pub(crate) use document::{Document, bytes, read_document, read_stream};
pub(crate) use iso_8601::is_iso_8601;
pub(crate) use table::{Equality, Table};
pub(crate) use view::{EMPTY, EMPTY_LIST, NONE, View};
#[cfg(test)]
pub(crate) use {reader::parse, table::counted::comparisons};

use olmkit_yaml::Position;

/// A value with its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// The value.
    pub(crate) value: Value,
    /// Where it starts.
    pub(crate) start: Position,
}

/// The Python value of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// `None`.
    None,
    /// `bool`.
    Bool(bool),
    /// `int`. Those that do not fit are kept as their digits.
    Int(i64),
    /// An `int` outside of 64 bits, as its decimal digits.
    BigInt(String),
    /// `float`.
    Float(f64),
    /// `str`.
    Str(String),
    /// `datetime.date` or `datetime.datetime`.
    Date(DateTime),
    /// `list`.
    List(Vec<Node>),
    /// `dict`: the last value of a key, at the position of the first.
    Dict(Vec<(Node, Node)>),
    /// Anything else: `bytes`, `set`, … by the name of its type.
    Other(&'static str),
}

impl Node {
    /// A value without a position.
    pub(crate) const fn new(value: Value) -> Self {
        let start = Position { line: 1, column: 1 };
        Self { value, start }
    }

    /// The memory that it takes.
    fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.value {
                Value::Str(text) | Value::BigInt(text) => text.len(),
                Value::List(items) => items.iter().map(Self::bytes).sum(),
                Value::Dict(entries) => entries.iter().map(|(key, value)| key.bytes() + value.bytes()).sum(),
                _ => 0,
            }
    }

    /// The value if it is a string.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a string key in a dictionary.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Dict(entries) => entries
                .iter()
                .find(|(name, _)| name.as_str() == Some(key))
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// The items of a list. Empty for anything else.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// Python's truth of a value.
    pub(crate) fn is_true(&self) -> bool {
        match &self.value {
            Value::None => false,
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Str(text) => !text.is_empty(),
            Value::List(items) => !items.is_empty(),
            Value::Dict(entries) => !entries.is_empty(),
            Value::BigInt(_) | Value::Date(_) | Value::Other(_) => true,
        }
    }

    /// The common name of the type.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::None => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) | Value::BigInt(_) | Value::Float(_) => "a number",
            Value::Str(_) => "text",
            Value::Date(_) => "a date",
            Value::List(_) => "a list",
            Value::Dict(_) => "a mapping",
            Value::Other(name) => name,
        }
    }

    /// Returns true if Python accepts the value as a key or in a set.
    pub(crate) fn is_hashable(&self) -> bool {
        !matches!(
            self.value,
            Value::List(_) | Value::Dict(_) | Value::Other("set" | "list")
        )
    }

    /// Python's `==`: 1, 1.0 and True are equal.
    pub(crate) fn equals(&self, other: &Node) -> bool {
        Equality::Python.holds(self, other)
    }
}

/// Python exceptions that a check raises, as far as callers distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RaiseKind {
    /// `ValueError` and its subclasses.
    Value,
    /// `NotImplementedError`.
    NotImplemented,
    /// `FileNotFoundError`.
    FileNotFound,
    /// Any other.
    Other,
}

/// End of a check with a traceback in the original: the error and the input.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Raise {
    pub(crate) kind: RaiseKind,
    /// The error. For [`RaiseKind::Value`] and [`RaiseKind::NotImplemented`] the message that the original may print.
    pub(crate) text: String,
    /// The file, relative to the repository.
    pub(crate) file: Option<String>,
    pub(crate) position: Option<Position>,
}

impl Raise {
    pub(crate) fn new(kind: RaiseKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            file: None,
            position: None,
        }
    }

    pub(crate) fn other(text: impl Into<String>) -> Self {
        Self::new(RaiseKind::Other, text)
    }

    pub(crate) fn value(text: impl Into<String>) -> Self {
        Self::new(RaiseKind::Value, text)
    }

    #[must_use]
    pub(crate) fn in_file(mut self, file: &str) -> Self {
        self.file.get_or_insert_with(|| file.to_owned());
        self
    }

    #[must_use]
    pub(crate) fn at(mut self, position: Position) -> Self {
        self.position.get_or_insert(position);
        self
    }
}
