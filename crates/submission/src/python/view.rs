//! A value in its file, with Python's operators: unsupported operations become a [`Raise`] with the position.

use std::borrow::Cow;

use olmkit_yaml::Position;

use super::{Node, Raise, RaiseKind, Value, text};

/// `None`.
pub(crate) static NONE: Node = Node::new(Value::None);
/// `{}`.
pub(crate) static EMPTY: Node = Node::new(Value::Dict(Vec::new()));
/// `[]`.
pub(crate) static EMPTY_LIST: Node = Node::new(Value::List(Vec::new()));

/// A value in its file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) file: &'a str,
    pub(crate) node: &'a Node,
    /// The position to report: the value's own, or that of the mapping which lacks it.
    pub(crate) at: Position,
}

impl<'a> View<'a> {
    fn with(self, node: &'a Node) -> Self {
        Self {
            node,
            at: node.start,
            ..self
        }
    }

    /// The position in a [`Raise`].
    pub(crate) fn raise(&self, text: impl Into<String>) -> Raise {
        Raise::new(RaiseKind::Other, text).in_file(self.file).at(self.at)
    }

    fn or_default(self, found: Option<&'a Node>, default: &'static Node) -> Self {
        match found {
            Some(node) => self.with(node),
            None => Self { node: default, ..self },
        }
    }

    /// `value.get(key, default)`.
    pub(crate) fn get_or(self, key: &str, default: &'static Node) -> Result<Self, Raise> {
        match &self.node.value {
            Value::Dict(_) => Ok(self.or_default(self.node.get(key), default)),
            _ => Err(self.raise(format!(
                "{key} is looked up in {}, but a mapping is required",
                self.node.kind()
            ))),
        }
    }

    /// `value.get(key)`.
    pub(crate) fn get(self, key: &str) -> Result<Self, Raise> {
        self.get_or(key, &NONE)
    }

    /// `value[key]`.
    pub(crate) fn item(self, key: &str) -> Result<Self, Raise> {
        match &self.node.value {
            Value::Dict(_) => match self.node.get(key) {
                Some(node) => Ok(self.with(node)),
                None => Err(self.raise(format!("{key} is missing"))),
            },
            _ => Err(self.raise(format!(
                "{key} is looked up in {}, but a mapping is required",
                self.node.kind()
            ))),
        }
    }

    /// `path` in nested values, as the pipeline looks it up: `None` where a key is missing.
    pub(crate) fn lookup(self, path: &str) -> Result<Self, Raise> {
        let mut value = self;
        for key in path.split('.') {
            let found = match &value.node.value {
                Value::Dict(_) => match value.node.get(key) {
                    Some(node) => {
                        value = value.with(node);
                        continue;
                    }
                    None => false,
                },
                Value::Str(text) => text.contains(key),
                Value::List(items) => items.iter().any(|item| item.as_str() == Some(key)),
                _ => true,
            };
            if found {
                let problem = format!("{key} is looked up in {}, but a mapping is required", value.node.kind());
                return Err(value.raise(problem));
            }
            return Ok(Self { node: &NONE, ..value });
        }
        Ok(value)
    }

    /// `for item in value`: characters of a string, keys of a mapping.
    pub(crate) fn iterate(self) -> Result<Vec<Cow<'a, Node>>, Raise> {
        match &self.node.value {
            Value::List(items) => Ok(items.iter().map(Cow::Borrowed).collect()),
            Value::Dict(entries) => Ok(entries.iter().map(|(key, _)| Cow::Borrowed(key)).collect()),
            Value::Str(text) => Ok(text
                .chars()
                .map(|character| {
                    Cow::Owned(Node {
                        value: Value::Str(character.to_string()),
                        start: self.at,
                    })
                })
                .collect()),
            _ => Err(self.raise(format!("a list is needed, found {}", self.node.kind()))),
        }
    }

    /// An item of this list.
    pub(crate) fn inside<'b>(&'b self, node: &'b Node) -> View<'b> {
        View {
            file: self.file,
            node,
            at: node.start,
        }
    }

    /// The string. Any other value raises.
    pub(crate) fn text(self) -> Result<&'a str, Raise> {
        self.node.as_str().ok_or_else(|| {
            self.raise(format!(
                "text is needed, found {}: {}",
                self.node.kind(),
                text::repr(self.node)
            ))
        })
    }

    /// Python's truth.
    pub(crate) fn is_true(self) -> bool {
        self.node.is_true()
    }

    /// Returns true if it is `None`.
    pub(crate) fn is_none(self) -> bool {
        self.node.value == Value::None
    }
}
