//! Builds Python's values from YAML.
//!
//! The quick reader of `olmkit-yaml` reads typical input. Its event reader handles anchors, tags, merges, tabs and
//! errors.

use std::collections::{HashMap, HashSet};

use olmkit_yaml::block::{self, Build, Place, Positions, Scalar, Span};
use olmkit_yaml::{Event, EventKind, MAX_DEPTH, MAX_NODES, Position, Style, events};

use super::{Equality, Node, Raise, Table, Value, scalar};

/// The documents of a stream.
pub(crate) fn parse(text: &str) -> Result<Vec<Node>, Raise> {
    match quick(text) {
        Some(documents) => Ok(documents),
        None => full(text),
    }
}

/// Splits at the separators and reads each part. `None` if the full reader is needed.
fn quick(text: &str) -> Option<Vec<Node>> {
    let mut documents = Vec::new();
    let (mut start, mut first_line) = (0, 0_u32);
    let mut at = 0;
    let mut explicit = false;
    let mut flush = |part: &str, first_line: u32, explicit: bool| -> Option<()> {
        if part.lines().all(|line| {
            let line = line.trim_matches(' ');
            line.is_empty() || line.starts_with('#')
        }) {
            if explicit {
                let start = Position {
                    line: first_line + 1,
                    column: 1,
                };
                documents.push(Node {
                    value: Value::None,
                    start,
                });
            }
            return Some(());
        }
        let build = Nodes {
            positions: Positions::new(part, first_line),
            count: 0,
        };
        documents.push(block::read(part, build)?);
        Some(())
    };
    for (line, one) in (0_u32..).zip(text.split_inclusive('\n')) {
        if one.starts_with("---") || one.starts_with("...") || one.starts_with('%') {
            if one.trim_end() != "---" {
                return None;
            }
            flush(text.get(start..at)?, first_line, explicit)?;
            (start, first_line, explicit) = (at + one.len(), line + 1, true);
        }
        at += one.len();
    }
    flush(text.get(start..)?, first_line, explicit)?;
    Some(documents)
}

/// Makes nodes for the quick reader.
struct Nodes<'a> {
    positions: Positions<'a>,
    count: usize,
}

impl Nodes<'_> {
    fn node(&mut self, value: Value, at: Place) -> Node {
        self.count += 1;
        Node {
            value,
            start: self.positions.of(at),
        }
    }
}

impl<'a> Build<'a> for Nodes<'a> {
    type Key = Node;
    type Value = Node;

    fn key(&mut self, scalar: Scalar<'a>) -> Option<Node> {
        if scalar.style == Style::Plain && matches!(&*scalar.text, "<<" | "=") {
            return None;
        }
        self.scalar(scalar)
    }

    fn scalar(&mut self, scalar: Scalar<'a>) -> Option<Node> {
        let Scalar { text, style, span } = scalar;
        if self.count >= MAX_NODES {
            return None;
        }
        let value = if style == Style::Plain && !scalar::is_text(&text) {
            scalar::plain(&text).ok()?
        } else {
            Value::Str(text.into_owned())
        };
        Some(self.node(value, span.start))
    }

    fn nothing(&mut self, at: Place) -> Node {
        self.node(Value::None, at)
    }

    fn sequence(&mut self, items: Vec<Node>, span: Span, _style: Style) -> Node {
        self.node(Value::List(items), span.start)
    }

    fn mapping(&mut self, entries: Vec<(Node, Node)>, span: Span, _style: Style) -> Option<Node> {
        let value = Value::Dict(last_of_each_key(entries));
        Some(self.node(value, span.start))
    }
}

/// The last value of a key, at the position of the first.
fn last_of_each_key(entries: Vec<(Node, Node)>) -> Vec<(Node, Node)> {
    // Nearly all mappings.
    let texts = entries.iter().filter(|(key, _)| key.as_str().is_some()).count();
    let distinct = if entries.len() <= 12 {
        entries
            .iter()
            .enumerate()
            .all(|(at, (key, _))| entries.iter().take(at).all(|(other, _)| !key.equals(other)))
    } else {
        let mut seen = HashSet::with_capacity(entries.len());
        texts == entries.len() && entries.iter().all(|(key, _)| seen.insert(key.as_str()))
    };
    if distinct {
        return entries;
    }
    let mut kept = Table::new(Equality::Python);
    for (key, value) in entries {
        kept.insert(key, value);
    }
    kept.into_entries()
}

/// Reads with the event reader, which supports all of YAML.
fn full(text: &str) -> Result<Vec<Node>, Raise> {
    let events = events(text.as_bytes()).map_err(|error| {
        let problem = error.to_string();
        let problem = problem.strip_prefix("yaml: ").unwrap_or(&problem);
        let mut raise = Raise::other(format!("not a valid YAML document: {problem}"));
        raise.position = error.position();
        raise
    })?;
    if let Some(position) = stray_tab(text, &events) {
        return Err(
            Raise::other("found a tab character that cannot start any token: indent and separate with spaces")
                .at(position),
        );
    }
    let mut documents = Vec::new();
    let mut reader = Reader {
        events: events.into_iter().peekable(),
        anchors: HashMap::new(),
        count: 0,
        copied: 0,
    };
    while let Some(event) = reader.events.next() {
        if event.data != EventKind::DocumentStart {
            continue;
        }
        reader.anchors.clear();
        reader.count = 0;
        let Some(event) = reader.events.next() else { break };
        documents.push(reader.node(event, 0)?.0);
    }
    Ok(documents)
}

/// The first tab that PyYAML rejects: one outside quotes, block scalars and comments.
fn stray_tab(text: &str, events: &[Event]) -> Option<Position> {
    let is_marked = |event: &&Event| matches!(&event.data, EventKind::Scalar { style, .. } if *style != Style::Plain);
    let marked: Vec<_> = events.iter().filter(is_marked).map(|event| &event.source).collect();
    let is_inside = |at: usize| {
        let after = marked.partition_point(|source| source.start <= at);
        let source = after.checked_sub(1).and_then(|last| marked.get(last));
        source.is_some_and(|source| source.contains(&at))
    };
    let mut offset = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let starts_comment = |hash: usize| hash == 0 || line.as_bytes().get(hash - 1) == Some(&b' ');
        let comment = || {
            line.match_indices('#')
                .map(|(hash, _)| hash)
                .find(|hash| starts_comment(*hash))
        };
        let end = if line.contains('\t') {
            comment().unwrap_or(line.len())
        } else {
            0
        };
        let before_comment = line.get(..end).unwrap_or_default();
        let stray = before_comment
            .match_indices('\t')
            .find(|(column, _)| !is_inside(offset + column));
        if let Some((column, _)) = stray {
            let before = line.get(..column).unwrap_or_default();
            return Some(Position {
                line: u32::try_from(number + 1).unwrap_or(u32::MAX),
                column: u32::try_from(before.chars().count() + 1).unwrap_or(u32::MAX),
            });
        }
        offset += line.len();
    }
    None
}

struct Reader {
    events: std::iter::Peekable<std::vec::IntoIter<Event>>,
    /// The target of an anchor. `None` while it is still being read.
    anchors: HashMap<String, Option<Anchor>>,
    count: usize,
    /// Bytes that anchors and aliases copy: Python shares values, our tree does not.
    copied: usize,
}

struct Anchor {
    node: Node,
    /// Number of nodes in it.
    nodes: usize,
    /// Size of a copy.
    bytes: usize,
}

/// Kinds of mapping keys: entries and `<<`.
enum Key {
    Merge,
    Node(Node),
}

impl Reader {
    /// A node and how many nodes are in it.
    fn node(&mut self, event: Event, depth: usize) -> Result<(Node, usize), Raise> {
        let start = event.start;
        self.count(1, start)?;
        if depth > MAX_DEPTH {
            return Err(Raise::other(format!("deeper than {MAX_DEPTH} levels")).at(start));
        }
        match event.data {
            EventKind::Alias(name) => match self.anchors.get(&name) {
                Some(Some(anchor)) => {
                    self.copied = copied(self.copied, anchor.bytes, start)?;
                    let (node, nodes) = (anchor.node.clone(), anchor.nodes);
                    self.count(nodes, start)?;
                    Ok((node, nodes))
                }
                Some(None) => Err(Raise::other(format!("the anchor {name} contains itself")).at(start)),
                None => Err(Raise::other(format!("found undefined alias '{name}'")).at(start)),
            },
            EventKind::Scalar {
                anchor,
                tag,
                text,
                style,
            } => {
                let value = match tag.as_deref() {
                    None | Some("!") if style == Style::Plain => scalar::plain(&text),
                    None => Ok(Value::Str(text)),
                    Some("!") => Ok(Value::Str(text)),
                    Some(tag) => scalar::tagged(tag, &text),
                };
                let node = Node {
                    value: value.map_err(|raise| raise.at(start))?,
                    start,
                };
                self.open(anchor.as_deref(), start)?;
                self.keep(anchor, &node, 1)?;
                Ok((node, 1))
            }
            EventKind::Start { mapping, anchor, tag } => {
                self.open(anchor.as_deref(), start)?;
                let before = self.count;
                let value = if mapping {
                    let entries = self.mapping(depth)?;
                    match tag.as_deref() {
                        None | Some("!" | "tag:yaml.org,2002:map") => Value::Dict(last_of_each_key(entries)),
                        Some("tag:yaml.org,2002:set") => Value::Other("set"),
                        Some(tag) => return Err(scalar::unknown_tag(tag).at(start)),
                    }
                } else {
                    let items = self.sequence(depth)?;
                    match tag.as_deref() {
                        None | Some("!" | "tag:yaml.org,2002:seq") => Value::List(items),
                        Some("tag:yaml.org,2002:omap" | "tag:yaml.org,2002:pairs") => Value::Other("list"),
                        Some(tag) => return Err(scalar::unknown_tag(tag).at(start)),
                    }
                };
                let node = Node { value, start };
                let size = self.count - before + 1;
                self.keep(anchor, &node, size)?;
                Ok((node, size))
            }
            EventKind::DocumentStart | EventKind::DocumentEnd | EventKind::End => Ok((
                Node {
                    value: Value::None,
                    start,
                },
                1,
            )),
        }
    }

    fn count(&mut self, nodes: usize, start: Position) -> Result<(), Raise> {
        self.count = self.count.saturating_add(nodes);
        if self.count > MAX_NODES {
            return Err(Raise::other(format!("more than {MAX_NODES} values")).at(start));
        }
        Ok(())
    }

    fn open(&mut self, anchor: Option<&str>, start: Position) -> Result<(), Raise> {
        let Some(name) = anchor else { return Ok(()) };
        if self.anchors.insert(name.to_owned(), None).is_some() {
            return Err(Raise::other(format!("found duplicate anchor '{name}'")).at(start));
        }
        Ok(())
    }

    fn keep(&mut self, anchor: Option<String>, node: &Node, nodes: usize) -> Result<(), Raise> {
        let Some(name) = anchor else { return Ok(()) };
        let bytes = node.bytes();
        self.copied = copied(self.copied, bytes, node.start)?;
        let node = node.clone();
        self.anchors.insert(name, Some(Anchor { node, nodes, bytes }));
        Ok(())
    }

    fn sequence(&mut self, depth: usize) -> Result<Vec<Node>, Raise> {
        let mut items = Vec::new();
        while let Some(event) = self.events.next() {
            if event.data == EventKind::End {
                break;
            }
            items.push(self.node(event, depth + 1)?.0);
        }
        Ok(items)
    }

    /// The entries. Merged ones come first, so that explicit ones override them.
    fn mapping(&mut self, depth: usize) -> Result<Vec<(Node, Node)>, Raise> {
        let (mut merged, mut entries) = (Vec::new(), Vec::new());
        while let Some(event) = self.events.next() {
            if event.data == EventKind::End {
                break;
            }
            let key = self.key(event, depth)?;
            let Some(event) = self.events.next() else { break };
            let (value, _) = self.node(event, depth + 1)?;
            match key {
                Key::Node(key) if key.is_hashable() => entries.push((key, value)),
                Key::Node(key) => return Err(Raise::other("found unhashable key").at(key.start)),
                Key::Merge => merge(value, &mut merged)?,
            }
        }
        merged.append(&mut entries);
        Ok(merged)
    }

    fn key(&mut self, event: Event, depth: usize) -> Result<Key, Raise> {
        if let EventKind::Scalar { tag: Some(tag), .. } = &event.data
            && tag == "tag:yaml.org,2002:merge"
        {
            return Ok(Key::Merge);
        }
        if let EventKind::Scalar {
            anchor: None,
            tag: None,
            text,
            style: Style::Plain,
        } = &event.data
        {
            if text == "<<" {
                return Ok(Key::Merge);
            }
            if text == "=" {
                return Ok(Key::Node(Node {
                    value: Value::Str("=".to_owned()),
                    start: event.start,
                }));
            }
        }
        Ok(Key::Node(self.node(event, depth + 1)?.0))
    }
}

/// The bytes that are copied once these are too.
fn copied(before: usize, bytes: usize, start: Position) -> Result<usize, Raise> {
    const MOST: usize = 128 << 20;
    let sum = before.saturating_add(bytes);
    if sum > MOST {
        return Err(Raise::other(format!("anchors and aliases repeat more than {} MiB", MOST >> 20)).at(start));
    }
    Ok(sum)
}

/// Adds what `<<` names; of a list the first mapping wins.
fn merge(value: Node, into: &mut Vec<(Node, Node)>) -> Result<(), Raise> {
    let not_mergeable = |node: &Node| {
        Raise::other(format!(
            "`<<` needs a mapping or a list of mappings, found {}",
            node.kind()
        ))
        .at(node.start)
    };
    match value.value {
        Value::Dict(entries) => into.extend(entries),
        Value::List(items) => {
            for item in items.into_iter().rev() {
                match item.value {
                    Value::Dict(entries) => into.extend(entries),
                    _ => return Err(not_mergeable(&item)),
                }
            }
        }
        _ => return Err(not_mergeable(&value)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::text::repr;

    fn read(text: &str) -> String {
        let documents = parse(text).unwrap_or_else(|raise| panic!("{text:?}: {raise:?}"));
        documents.iter().map(repr).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn texts_are_read_as_pyyaml_reads_them() {
        for (text, wanted) in [
            ("a: y\nb: on\n", "{'a': 'y', 'b': True}"),
            ("a: 1\na: 2\n", "{'a': 2}"),
            (
                "a: &x {k: 1, l: 2}\nb: {l: 3, <<: *x}\n",
                "{'a': {'k': 1, 'l': 2}, 'b': {'k': 1, 'l': 3}}",
            ),
            (
                "a: &x {k: 1}\nb: {!!merge <<: *x, l: 2}\n",
                "{'a': {'k': 1}, 'b': {'k': 1, 'l': 2}}",
            ),
            ("a: !!str 5\n", "{'a': '5'}"),
            ("", ""),
            ("# only\n", ""),
            ("---\n", "None"),
            ("a: 1\n---\nb: 2\n---\n", "{'a': 1} | {'b': 2} | None"),
            ("a: |\n  x\n", "{'a': 'x\\n'}"),
            ("a: |\n  x", "{'a': 'x'}"),
            ("{\"a\": [1, 2.5, null]}", "{'a': [1, 2.5, None]}"),
            ("=: 1\n", "{'=': 1}"),
        ] {
            assert_eq!(read(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn many_keys_that_are_not_texts_take_no_longer_than_texts() {
        let text: String = (0..200_000).map(|number| format!("{number}: a\n")).collect();
        let documents = parse(&text).unwrap();
        assert!(matches!(&documents[0].value, Value::Dict(entries) if entries.len() == 200_000));
        assert_eq!(
            read("1: a\n1.0: b\ntrue: c\n0: d\nfalse: e\n-0.0: f\n"),
            "{1: 'c', 0: 'f'}"
        );
    }

    #[test]
    fn repetitions_by_anchors_and_aliases_are_bounded() {
        let long = "x".repeat(4 << 20);
        let nested = || (0..100).map(|at| format!("&a{at} [")).collect::<String>();
        for text in [
            format!("a: &a {long}\nb: [{}]\n", "*a, ".repeat(900)),
            format!("a: {}{long}{}\n", nested(), "]".repeat(100)),
            format!("a: {}{}{}\n", nested(), "x, ".repeat(100_000), "]".repeat(100)),
        ] {
            assert!(parse(&text).is_err(), "{}", &text[..40]);
        }
        assert!(parse(&format!("a: &a {long}\nb: [*a, *a]\n")).is_ok());
    }

    #[test]
    fn documents_that_pyyaml_rejects_raise_with_their_position() {
        for (text, line) in [
            ("a: b: c\n", 1),
            ("a: 1\nb: =\n", 2),
            ("a: !x 1\n", 1),
            ("a:\t1\n", 1),
            ("[a]: 1\n", 1),
            ("a: 1\nb: *x\n", 2),
            ("a: 1\nb: 2024-02-30\n", 2),
            ("a: &x 1\nb: &x 2\n", 2),
        ] {
            let raise = parse(text).expect_err(text);
            assert_eq!(raise.position.map(|at| at.line), Some(line), "{text:?}: {raise:?}");
        }
        assert!(parse("a: 'x\ty' # a\tb\nb: |\n  c\td\n").is_ok());
    }
}
