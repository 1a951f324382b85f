//! The tree that the reader yields.

use std::borrow::Cow;
use std::fmt;

use super::number;

/// A place in a file: line and column count from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Position {
    /// Line, the first is 1.
    pub line: u32,
    /// Column in characters, the first is 1.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The spelling of a node in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// A scalar without quotes, or a block collection.
    #[default]
    Plain,
    /// A scalar in single quotes.
    SingleQuoted,
    /// A scalar in double quotes.
    DoubleQuoted,
    /// A scalar after `|`.
    Literal,
    /// A scalar after `>`.
    Folded,
    /// A collection in `[]` or `{}`.
    Flow,
}

/// The value of a node under the YAML 1.1 rules of go-yaml v2.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`, `~` or nothing.
    Null,
    /// `true`, `yes`, `on`, `y`, … or their opposites.
    Bool(bool),
    /// A number that fits `i64`.
    Integer(i64),
    /// A whole number above `i64::MAX`.
    Unsigned(u64),
    /// Any other number, also `.inf` and `.nan`.
    Float(f64),
    /// Text. Timestamps are text too.
    String(String),
    /// A list.
    Sequence(Vec<Node>),
    /// Keys and values in source order. Of a key given twice only the last value is here.
    Mapping(Vec<(Node, Node)>),
}

/// A value with its place in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The resolved value.
    pub value: Value,
    /// Where it starts.
    pub start: Position,
    /// Where it ends (the first character after it).
    pub end: Position,
    /// Its spelling in the source.
    pub style: Style,
    /// The source spelling of a scalar that is not a string: `0x1F`, `yes`, `~`. Strings are their own spelling.
    spelling: Option<Box<str>>,
}

impl Node {
    /// Makes a node.
    pub fn new(value: Value, start: Position, end: Position, style: Style) -> Self {
        Self {
            value,
            start,
            end,
            style,
            spelling: None,
        }
    }

    /// Adds the source spelling of a scalar that is not a string.
    pub(super) fn spelled(mut self, spelling: &str) -> Self {
        self.spelling = Some(spelling.into());
        self
    }

    /// The bytes of all strings in the node, which a copy of it allocates.
    pub(super) fn text_bytes(&self) -> usize {
        let own = self.spelling.as_deref().map_or(0, str::len);
        own + match &self.value {
            Value::String(text) => text.len(),
            Value::Sequence(items) => items.iter().map(Self::text_bytes).sum(),
            Value::Mapping(entries) => entries
                .iter()
                .map(|(key, value)| key.text_bytes() + value.text_bytes())
                .sum(),
            _ => 0,
        }
    }

    /// The source spelling of a scalar (without quotes and folding). `None` for collections.
    pub fn spelling(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            Value::Sequence(_) | Value::Mapping(_) => None,
            _ => Some(self.spelling.as_deref().unwrap_or("")),
        }
    }

    /// The value of `key` in a mapping. Keys compare as the JSON strings they become, so key `y` is found as `true`.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, value)| value)
    }

    /// Key node and value node of `key` in a mapping.
    pub fn entry(&self, key: &str) -> Option<(&Node, &Node)> {
        self.entries()
            .iter()
            .find(|(name, _)| name.is_key(key))
            .map(|(name, value)| (name, value))
    }

    /// The entries of a mapping in source order. Empty for anything else.
    pub fn entries(&self) -> &[(Node, Node)] {
        match &self.value {
            Value::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a sequence. Empty for anything else.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            Value::Sequence(items) => items,
            _ => &[],
        }
    }

    /// The node at a JSON pointer (RFC 6901): `/spec/versions/0/name`. The empty pointer is the node itself.
    pub fn pointer(&self, pointer: &str) -> Option<&Node> {
        if pointer.is_empty() {
            return Some(self);
        }
        let mut node = self;
        for token in pointer.strip_prefix('/')?.split('/') {
            let token = unescape_pointer(token);
            node = match &node.value {
                Value::Mapping(_) => node.get(&token)?,
                Value::Sequence(items) => items.get(token.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(node)
    }

    /// The text if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The truth value if this is a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The number if this is an integer that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self.value {
            Value::Integer(value) => Some(value),
            _ => None,
        }
    }

    /// Returns true if this is null.
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// Returns true if this is a mapping.
    pub fn is_mapping(&self) -> bool {
        matches!(self.value, Value::Mapping(_))
    }

    /// Returns true if this is a sequence.
    pub fn is_sequence(&self) -> bool {
        matches!(self.value, Value::Sequence(_))
    }

    /// The object key that this node becomes in JSON. `None` for null and collections, which Go rejects as keys.
    pub fn key(&self) -> Option<Cow<'_, str>> {
        match &self.value {
            Value::String(text) => Some(Cow::Borrowed(text)),
            Value::Bool(true) => Some(Cow::Borrowed("true")),
            Value::Bool(false) => Some(Cow::Borrowed("false")),
            Value::Integer(number) => Some(Cow::Owned(number.to_string())),
            Value::Unsigned(number) => Some(Cow::Owned(number.to_string())),
            Value::Float(number) => Some(Cow::Owned(number::key_text(*number))),
            Value::Null | Value::Sequence(_) | Value::Mapping(_) => None,
        }
    }

    fn is_key(&self, key: &str) -> bool {
        match &self.value {
            Value::String(text) => text == key,
            _ => self.key().is_some_and(|own| own == key),
        }
    }

    /// The name of this value's kind in Go's JSON errors: `string`, `number`, `bool`, `array`, `object`, `null`.
    pub fn json_kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Integer(_) | Value::Unsigned(_) | Value::Float(_) => "number",
            Value::String(_) => "string",
            Value::Sequence(_) => "array",
            Value::Mapping(_) => "object",
        }
    }
}

fn unescape_pointer(token: &str) -> Cow<'_, str> {
    if token.contains('~') {
        Cow::Owned(token.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(token)
    }
}
