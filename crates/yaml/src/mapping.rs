//! Collects the entries of one mapping: duplicate keys, merges.

use std::collections::HashMap;

use super::{Error, Node, Position, Value};

/// Up to this many entries a search through the list is quicker than a table.
const LIST_LIMIT: usize = 12;

/// A key that a mapping has twice. Go programs silently take the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// The key as the JSON string it becomes.
    pub key: String,
    /// Where it occurs first.
    pub first: Position,
    /// Where it occurs again.
    pub second: Position,
    /// True if the second one came in through a merge (`<<`), which is often meant so.
    pub merged: bool,
}

/// A mapping while it is read.
#[derive(Default)]
pub(super) struct MappingBuilder {
    entries: Vec<(Node, Node)>,
    /// Entry number of each key, once there are more than [`LIST_LIMIT`].
    table: HashMap<Box<str>, usize>,
    /// The key whose value comes next.
    key: Option<Key>,
}

enum Key {
    Node(Node),
    Merge,
}

impl MappingBuilder {
    /// Returns true if the next node is a value.
    pub(super) fn awaits_value(&self) -> bool {
        self.key.is_some()
    }

    /// Takes a key.
    pub(super) fn key(&mut self, key: Node) {
        self.key = Some(Key::Node(key));
    }

    /// Takes the merge key `<<`.
    pub(super) fn merge_key(&mut self) {
        self.key = Some(Key::Merge);
    }

    /// Takes the value of the key that was taken last. `aliased` is set when the value was written as an alias.
    pub(super) fn value(&mut self, value: Node, aliased: bool, notes: &mut Vec<Duplicate>) -> Result<(), Error> {
        match self.key.take() {
            Some(Key::Node(key)) => self.set(key, value, false, notes),
            Some(Key::Merge) => return self.merge(value, aliased, notes),
            None => {}
        }
        Ok(())
    }

    /// The entries in source order.
    pub(super) fn finish(mut self) -> Vec<(Node, Node)> {
        // Schemas have thousands of mappings with one or two entries. A new vector has room for four.
        self.entries.shrink_to_fit();
        self.entries
    }

    /// Sets an entry. The last one of a key wins, as in a Go map.
    fn set(&mut self, key: Node, value: Node, merged: bool, notes: &mut Vec<Duplicate>) {
        let found = self.find(&key);
        match found.and_then(|at| self.entries.get_mut(at)) {
            Some(entry) => {
                let name = key.key().map(|name| name.into_owned()).unwrap_or_default();
                notes.push(Duplicate {
                    key: name,
                    first: entry.0.start,
                    second: key.start,
                    merged,
                });
                *entry = (key, value);
            }
            None => self.push(key, value),
        }
    }

    fn find(&self, key: &Node) -> Option<usize> {
        let name = key.key();
        if self.table.is_empty() {
            return self.entries.iter().position(|(own, _)| match (&own.value, &name) {
                (Value::String(own), Some(name)) => own == name,
                _ => own.key() == name,
            });
        }
        self.table.get(name.as_deref().unwrap_or_default()).copied()
    }

    fn push(&mut self, key: Node, value: Node) {
        let number = self.entries.len();
        if number == LIST_LIMIT {
            let known = self.entries.iter().enumerate();
            self.table = known
                .filter_map(|(at, (key, _))| Some((key.key()?.into(), at)))
                .collect();
        }
        if number >= LIST_LIMIT
            && let Some(name) = key.key()
        {
            self.table.insert(name.into(), number);
        }
        self.entries.push((key, value));
    }

    /// Merges a mapping, or a list of mappings of which the first takes precedence. go-yaml merges where `<<` is,
    /// so merged values replace those of keys written before it.
    fn merge(&mut self, value: Node, aliased: bool, notes: &mut Vec<Duplicate>) -> Result<(), Error> {
        let place = value.start;
        match value.value {
            Value::Mapping(entries) => self.merge_entries(entries, notes),
            Value::Sequence(items) if !aliased => {
                for item in items.into_iter().rev() {
                    let Value::Mapping(entries) = item.value else {
                        return Err(not_mergeable(item.start));
                    };
                    self.merge_entries(entries, notes);
                }
            }
            _ => return Err(not_mergeable(place)),
        }
        Ok(())
    }

    fn merge_entries(&mut self, entries: Vec<(Node, Node)>, notes: &mut Vec<Duplicate>) {
        for (key, value) in entries {
            self.set(key, value, true, notes);
        }
    }
}

fn not_mergeable(place: Position) -> Error {
    Error::without_line("map merge requires map or sequence of maps as the value", Some(place))
}
