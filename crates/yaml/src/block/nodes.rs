//! Trees with positions from the quick reader.

use std::collections::HashSet;

use super::{Build, Place, Positions, Scalar, Span};
use crate::resolve::{Scalar as Resolved, resolve_plain};
use crate::{MAX_NODES, Node, Style, Value};

/// Up to this many entries a search through the list is quicker than a table.
const LIST_LIMIT: usize = 16;

/// Reads a document that starts `lines_before` lines into its file, or returns `None`, also for a duplicate key: the
/// full reader records those.
pub(crate) fn read(text: &str, lines_before: u32) -> Option<Node> {
    let build = Nodes {
        positions: Positions::new(text, lines_before),
        count: 0,
    };
    super::read(text, build)
}

struct Nodes<'a> {
    positions: Positions<'a>,
    count: usize,
}

impl Nodes<'_> {
    fn node(&mut self, value: Value, span: Span, style: Style) -> Node {
        self.count += 1;
        let (start, end) = (self.positions.of(span.start), self.positions.of(span.end));
        Node::new(value, start, end, style)
    }
}

impl<'a> Build<'a> for Nodes<'a> {
    type Key = Node;
    type Value = Node;

    fn key(&mut self, scalar: Scalar<'a>) -> Option<Node> {
        // A merge.
        if scalar.text == "<<" {
            return None;
        }
        self.scalar(scalar)
    }

    fn scalar(&mut self, scalar: Scalar<'a>) -> Option<Node> {
        let Scalar { text, style, span } = scalar;
        if self.count >= MAX_NODES {
            return None;
        }
        if style == Style::Plain
            && let Resolved::Value(value) = resolve_plain(&text).1
        {
            return Some(self.node(value, span, style).spelled(&text));
        }
        Some(self.node(Value::String(text.into_owned()), span, style))
    }

    fn nothing(&mut self, at: Place) -> Node {
        self.node(Value::Null, Span { start: at, end: at }, Style::Plain)
    }

    fn sequence(&mut self, items: Vec<Node>, span: Span, style: Style) -> Node {
        self.node(Value::Sequence(items), span, style)
    }

    fn mapping(&mut self, entries: Vec<(Node, Node)>, span: Span, style: Style) -> Option<Node> {
        let distinct = if entries.len() <= LIST_LIMIT {
            let mut before = entries.as_slice();
            loop {
                let Some(((last, _), rest)) = before.split_last() else {
                    break true;
                };
                if rest.iter().any(|(key, _)| same_key(key, last)) {
                    break false;
                }
                before = rest;
            }
        } else {
            let mut seen = HashSet::with_capacity(entries.len());
            entries.iter().all(|(key, _)| seen.insert(key.key()))
        };
        let sound = distinct && entries.iter().all(|(key, _)| !key.is_null());
        sound.then(|| self.node(Value::Mapping(entries), span, style))
    }
}

fn same_key(a: &Node, b: &Node) -> bool {
    match (&a.value, &b.value) {
        (Value::String(a), Value::String(b)) => a == b,
        _ => a.key() == b.key(),
    }
}
