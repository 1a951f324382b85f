//! Changes a YAML file in place: unrelated lines keep their comments and their order.
//!
//! Each change is verified: the new file, parsed again, must contain the old value with that change, and the same
//! comments. Parts that cannot be changed this way (further documents, JSON, aliases) are not changed.

use serde_json::Value;

use super::comments::comments;
use super::pointer_part;
use super::scalars::each_scalar;
use olmkit_yaml::{self as yaml, Node, Style};

/// One YAML file that is changed in place. The methods that change it return `None`, and leave it unchanged, if they
/// cannot.
#[derive(Debug, Clone)]
pub struct Document {
    text: String,
    node: Node,
    value: Value,
}

/// The file from its first `---`, if only comments precede that line. The splitter treats them as a document.
fn without_head_comment(text: &str) -> &str {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("---") {
            return text.get(at..).unwrap_or(text);
        }
        if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
            break;
        }
        at += line.len();
    }
    text
}

impl Document {
    /// Reads a file. `None` for anything but one document of block-style YAML.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        Self::try_read(bytes).ok()
    }

    /// As [`Self::read`], with the reason why the file cannot be changed in place.
    ///
    /// # Errors
    /// The reason, as the end of a sentence about the file.
    pub fn try_read(bytes: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?.to_owned();
        if text.trim_start().starts_with(['{', '[']) {
            return Err("it is JSON");
        }
        if text.starts_with('\u{FEFF}') || text.trim_start().starts_with('%') {
            return Err("it starts with a byte order mark or a directive");
        }
        // A carriage return in the middle of a line ends it for YAML, not for this editor.
        if text
            .replace("\r\n", "\n")
            .contains(['\r', '\u{85}', '\u{2028}', '\u{2029}'])
        {
            return Err("it has unusual line ends");
        }
        match yaml::documents(without_head_comment(&text).as_bytes()).count() {
            0 => return Err("it is empty"),
            1 => {}
            _ => return Err("it contains several YAML documents"),
        }
        let document = yaml::parse_document(bytes).map_err(|_| "it is not valid YAML")?;
        if !document.duplicates.is_empty() {
            return Err("it contains a key twice");
        }
        let value = document.root.to_json().map_err(|_| "it has no equivalent in JSON")?;
        let node = document.root;
        Ok(Self { text, node, value })
    }

    /// The content.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The current value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Accepts a new source if it has the expected value.
    fn accept(&mut self, text: String, expected: &Value) -> Option<()> {
        let new = Self::read(text.as_bytes())?;
        let same = new.value == *expected && new.comments() == self.comments();
        same.then(|| *self = new)
    }

    /// Its comments in their order.
    fn comments(&self) -> Vec<&str> {
        let found = comments(&self.text, std::slice::from_ref(&self.node)).into_iter();
        found.map(|(_, comment)| comment).collect()
    }

    fn lines(&self) -> Vec<String> {
        self.text.split_inclusive('\n').map(str::to_owned).collect()
    }

    /// Inserts lines after line `at` (counted from 1; 0 is the start of the file).
    fn insert(&self, at: usize, indent: usize, block: &str) -> String {
        let mut lines = self.lines();
        let end = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        if let Some(last) = lines.get_mut(at.wrapping_sub(1)).filter(|line| !line.ends_with('\n')) {
            last.push_str(end);
        }
        let fresh = block.lines().map(|line| match line {
            "" => end.to_owned(),
            line => format!("{}{line}{end}", " ".repeat(indent)),
        });
        let at = at.min(lines.len());
        lines.splice(at..at, fresh);
        lines.concat()
    }

    /// Adds a key to a map. A map with sorted keys remains sorted.
    pub fn add(&mut self, pointer: &str, key: &str, value: &Value) -> Option<()> {
        let map = self.node.pointer(pointer)?;
        let mut expected = self.value.clone();
        let previous = expected
            .pointer_mut(pointer)?
            .as_object_mut()?
            .insert(key.to_owned(), value.clone());
        if previous.is_some() {
            return None;
        }
        let entries = map.entries();
        if map.style == Style::Flow || entries.is_empty() {
            let separator = if entries.is_empty() { "" } else { ", " };
            let entry = format!("{separator}{}: {value}", Value::from(key));
            return self.accept(self.with_flow_entry(map, &entry)?, &expected);
        }
        let (first, _) = entries.first()?;
        let indent = column(first.start.column);
        let names: Vec<_> = entries.iter().filter_map(|(key, _)| key.key()).collect();
        let is_sorted = names.is_sorted() && names.len() == entries.len();
        let behind = match entries
            .iter()
            .rposition(|(name, _)| name.key().is_some_and(|name| *name < *key))
        {
            // A first entry may follow a dash.
            at if is_sorted => entries.get(at.unwrap_or(0))?,
            _ => entries.last()?,
        };
        let at = self.last_line(&behind.1, behind.0.start.line as usize, indent);
        let block = yaml::to_string(&serde_json::json!({ key: value })).ok()?;
        self.accept(self.insert(at, indent, &block), &expected)
    }

    /// Takes a key out of a map of several, with the lines of its value and the comments on these lines.
    pub fn remove(&mut self, pointer: &str, key: &str) -> Option<()> {
        let map = self.node.pointer(pointer)?;
        let (name, value) = map.entry(key)?;
        let mut expected = self.value.clone();
        expected.pointer_mut(pointer)?.as_object_mut()?.remove(key)?;
        let (first, indent) = (name.start.line as usize, column(name.start.column));
        let mut lines = self.lines();
        let is_alone = lines.get(first.checked_sub(1)?)?.chars().take(indent).all(|c| c == ' ');
        if map.style == Style::Flow || map.entries().len() < 2 || !is_alone {
            return None;
        }
        lines.drain(first - 1..self.last_line(value, first, indent));
        let new = Self::read(lines.concat().as_bytes())?;
        // Every remaining comment existed before, in this order.
        let old = self.comments();
        let mut old = old.iter();
        let kept = new.comments();
        let is_same = new.value == expected && kept.iter().all(|comment| old.any(|known| known == comment));
        is_same.then(|| *self = new)
    }

    /// Adds items to a list of a map, which is created if it does not exist.
    pub fn append(&mut self, pointer: &str, key: &str, items: &[Value]) -> Option<()> {
        let list = format!("{pointer}/{}", pointer_part(key));
        if self.value.pointer(&list).is_none() {
            return self.add(pointer, key, &Value::from(items.to_vec()));
        }
        items.iter().try_for_each(|item| self.push(&list, item))
    }

    fn push(&mut self, pointer: &str, item: &Value) -> Option<()> {
        let list = self.node.pointer(pointer)?;
        let mut expected = self.value.clone();
        expected.pointer_mut(pointer)?.as_array_mut()?.push(item.clone());
        let Some(last) = list.items().last().filter(|_| list.style != Style::Flow) else {
            let separator = if list.items().is_empty() { "" } else { ", " };
            return self.accept(self.with_flow_entry(list, &format!("{separator}{item}"))?, &expected);
        };
        let lines = self.lines();
        let line = lines.get(last.start.line as usize - 1)?;
        let indent = line.len() - line.trim_start_matches(' ').len();
        if !line.trim_start().starts_with('-') {
            return None;
        }
        let at = self.last_line(last, last.start.line as usize, indent);
        let block = yaml::to_string(&serde_json::json!([item])).ok()?;
        self.accept(self.insert(at, indent, &block), &expected)
    }

    /// Inserts text before the end of a collection in brackets.
    fn with_flow_entry(&self, node: &Node, entry: &str) -> Option<String> {
        if node.style != Style::Flow {
            return None;
        }
        let at = self
            .offset(node.end.line as usize, column(node.end.column))?
            .checked_sub(1)?;
        let (head, tail) = self.text.split_at_checked(at)?;
        let head = head.trim_end_matches(' ');
        Some(format!("{head}{entry}{tail}"))
    }

    /// Replaces a string. It keeps its quotes if it is on one line. Otherwise it becomes a literal block.
    pub fn replace(&mut self, pointer: &str, text: &str) -> Option<()> {
        let node = self.node.pointer(pointer)?;
        let mut expected = self.value.clone();
        *expected.pointer_mut(pointer)? = Value::from(text);
        let is_short = node.start.line == node.end.line && !text.contains('\n');
        let from = self.offset(node.start.line as usize, column(node.start.column))?;
        let (parent, _) = pointer.rsplit_once('/')?;
        let indent = column(self.node.pointer(parent)?.entries().first()?.0.start.column);
        let (written, to) = if is_short {
            let written = match node.style {
                Style::SingleQuoted => format!("'{}'", text.replace('\'', "''")),
                Style::DoubleQuoted => Value::from(text).to_string(),
                _ => yaml::to_string(text).ok()?.trim_end().to_owned(),
            };
            (written, self.offset(node.end.line as usize, column(node.end.column))?)
        } else {
            let body: String = text
                .lines()
                .map(|line| format!("\n{}{line}", " ".repeat(indent + 2)))
                .collect();
            let last = self.last_line(node, node.start.line as usize, indent);
            let end: usize = self.lines().iter().take(last).map(String::len).sum();
            let end = end - usize::from(self.text.get(..end)?.ends_with('\n'));
            (format!("|-{body}"), end)
        };
        let (head, tail) = (self.text.get(..from)?, self.text.get(to..)?);
        self.accept(format!("{head}{written}{tail}"), &expected)
    }

    /// Removes trailing spaces and adds a line end at the end of the file, except in strings that would change.
    pub fn strip_blanks(&mut self) -> Option<()> {
        let literals = literals(&self.node);
        let mut lines = Vec::new();
        for (at, line) in self.text.split_inclusive('\n').enumerate() {
            let in_literal = literals.iter().any(|(from, to)| (*from..*to).contains(&(at + 1)));
            lines.push(if in_literal {
                line.to_owned()
            } else {
                format!("{}\n", line.trim_end_matches(['\r', '\n', ' ', '\t']))
            });
        }
        let text = lines.concat();
        if text == self.text {
            return None;
        }
        let expected = self.value.clone();
        let whole = self.text.trim_end_matches(['\n', '\r']).len();
        if self.clone().accept(text.clone(), &expected).is_none() && !self.text.ends_with('\n') {
            // The file ends inside a string, which a line end would change.
            let same_end = self.text.get(whole..)?;
            let text = format!("{}{same_end}", text.trim_end_matches('\n'));
            return (text != self.text).then(|| self.accept(text, &expected))?;
        }
        self.accept(text, &expected)
    }

    /// The byte at a line and a column: the line counted from 1, the column in characters from 0.
    fn offset(&self, line: usize, column: usize) -> Option<usize> {
        let before: usize = self
            .text
            .split_inclusive('\n')
            .take(line.checked_sub(1)?)
            .map(str::len)
            .sum();
        let rest = self.text.get(before..)?;
        let within = rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at);
        Some(before + within)
    }

    /// The last line of a value, counted from 1. Its key or dash is on the line `first`, indented by `indent`.
    fn last_line(&self, node: &Node, first: usize, indent: usize) -> usize {
        let lines: Vec<&str> = self.text.lines().collect();
        match (&node.value, node.style) {
            (yaml::Value::Mapping(entries), Style::Plain) if !entries.is_empty() => {
                let end = |(key, value): &(Node, Node)| {
                    self.last_line(value, key.start.line as usize, column(key.start.column))
                };
                entries.iter().map(end).max().unwrap_or(first)
            }
            (yaml::Value::Sequence(items), Style::Plain) if !items.is_empty() => {
                let end = |item: &Node| {
                    let line = item.start.line as usize;
                    let text = lines.get(line.wrapping_sub(1)).copied().unwrap_or_default();
                    self.last_line(item, line, text.len() - text.trim_start_matches(' ').len())
                };
                items.iter().map(end).max().unwrap_or(first)
            }
            (yaml::Value::Null, _) => first,
            (_, Style::Literal | Style::Folded) => {
                let mut last = node.start.line as usize;
                for (at, line) in lines.iter().enumerate().skip(node.start.line as usize) {
                    if line.trim().is_empty() {
                        continue;
                    }
                    if line.len() - line.trim_start_matches(' ').len() <= indent {
                        break;
                    }
                    last = at + 1;
                }
                last
            }
            _ => (node.end.line as usize).max(first),
        }
    }
}

fn column(column: u32) -> usize {
    column.saturating_sub(1) as usize
}

/// The line ranges of block scalars, after their headers: the first line and the one after the last.
fn literals(node: &Node) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    each_scalar(node, &mut |scalar| {
        if matches!(scalar.style, Style::Literal | Style::Folded) {
            found.push((scalar.start.line as usize + 1, scalar.end.line as usize + 1));
        }
    });
    found
}
