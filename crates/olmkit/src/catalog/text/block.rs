//! A quick reader for block-style YAML.
//!
//! It knows what tools write and people mostly write: block mappings and lists, plain, quoted and literal scalars.
//! Anything else (anchors, tags, flow collections, folded block scalars, complex keys, tabs between tokens, directives,
//! syntax errors) makes it give up, and [`crate::yaml`] reads the document. So it never has to report an error, and it
//! must never accept what the full reader would refuse or read in another way; a property test holds it to that.

use std::borrow::Cow;

use super::plain;
use super::scalar;
use super::value::Value;

/// Deeper documents are left to the full reader and its limits.
const MAX_DEPTH: usize = 64;

/// Reads one document, or gives up. The text must hold LF line ends only.
pub fn read(text: &str) -> Option<Value<'_>> {
    if !scalar::only_known_characters(text) {
        return None;
    }
    let mut reader = Reader { text, at: 0 };
    // The splitter leaves the separator line at the top of a document.
    if text.starts_with("---") {
        let end = reader.line_end();
        if !text.get(3..end)?.trim_end_matches(' ').is_empty() {
            return None;
        }
        reader.at = end + 1;
    }
    let Some(line) = reader.next_line()? else {
        return Some(Value::Null);
    };
    if text.as_bytes().get(line.start) == Some(&b'%') {
        return None;
    }
    reader.at = line.start;
    let value = reader.block(line.indent, None, 0)?;
    reader.next_line()?.is_none().then_some(value)
}

/// A line with content.
struct Line {
    /// Spaces before the content.
    indent: usize,
    /// Offset of the content.
    start: usize,
}

pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    /// Offset of what is read next.
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    /// The byte at an offset; 0 at the end, which occurs nowhere in the text.
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or_default()
    }

    /// The end of the current line: offset of its line feed, or of the end of the text.
    pub(super) fn line_end(&self) -> usize {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at + memchr::memchr(b'\n', rest).unwrap_or(rest.len())
    }

    /// The next line with content, from a position at the start of a line. Skips blank lines and comments, and leaves
    /// the position at the start of the line found.
    fn next_line(&mut self) -> Option<Option<Line>> {
        loop {
            if self.at >= self.text.len() {
                return Some(None);
            }
            let mut start = self.at;
            while self.byte(start) == b' ' {
                start += 1;
            }
            match self.byte(start) {
                b'\n' => self.at = start + 1,
                b'#' => {
                    let end = self.line_end();
                    self.at = end + 1;
                }
                0 if start >= self.text.len() => self.at = start,
                b'\t' => return None,
                b'.' if start == self.at && self.text.get(start..)?.starts_with("...") => return None,
                _ => {
                    return Some(Some(Line {
                        indent: start - self.at,
                        start,
                    }));
                }
            }
        }
    }

    /// Reads the block node whose first token is at the position, in column `column`. `parent` is the column of the
    /// collection it belongs to. Leaves the position at the start of the line behind it.
    fn block(&mut self, column: usize, parent: Option<usize>, depth: usize) -> Option<Value<'a>> {
        if depth > MAX_DEPTH {
            return None;
        }
        if self.at_dash() {
            self.sequence(column, depth)
        } else if scalar::key(self)?.is_some() {
            self.mapping(column, depth)
        } else {
            scalar::read(self, parent)
        }
    }

    /// Whether a list item begins at the position.
    fn at_dash(&self) -> bool {
        self.byte(self.at) == b'-' && matches!(self.byte(self.at + 1), b' ' | b'\n' | 0)
    }

    fn sequence(&mut self, column: usize, depth: usize) -> Option<Value<'a>> {
        let mut items = Vec::new();
        loop {
            // The item's content, on this line or below.
            let dash = self.at;
            let mut start = dash + 1;
            while self.byte(start) == b' ' {
                start += 1;
            }
            if matches!(self.byte(start), b'\n' | 0) {
                self.at = start + 1;
                items.push(match self.next_line()? {
                    Some(line) if line.indent > column => {
                        self.at = line.start;
                        self.block(line.indent, Some(column), depth + 1)?
                    }
                    _ => Value::Null,
                });
            } else {
                self.at = start;
                items.push(self.block(column + start - dash, Some(column), depth + 1)?);
            }
            match self.next_line()? {
                Some(line) if line.indent == column => {
                    self.at = line.start;
                    if !self.at_dash() {
                        self.at -= line.indent;
                        break;
                    }
                }
                Some(line) if line.indent > column => return None,
                _ => break,
            }
        }
        Some(Value::Sequence(items))
    }

    fn mapping(&mut self, column: usize, depth: usize) -> Option<Value<'a>> {
        let mut entries = Vec::new();
        loop {
            let (key, end) = scalar::key(self)??;
            self.at = end;
            while self.byte(self.at) == b' ' {
                self.at += 1;
            }
            let value = match self.byte(self.at) {
                b'\n' | 0 => {
                    self.at += 1;
                    self.below(column, depth)?
                }
                // A list cannot begin on its key's line.
                _ if self.at_dash() => return None,
                _ => scalar::read(self, Some(column))?,
            };
            entries.push((key, value));
            match self.next_line()? {
                Some(line) if line.indent == column => {
                    self.at = line.start;
                    if self.at_dash() {
                        return None;
                    }
                }
                Some(line) if line.indent > column => return None,
                _ => break,
            }
        }
        Some(Value::mapping(entries))
    }

    /// The value of a key that has nothing on its own line.
    fn below(&mut self, column: usize, depth: usize) -> Option<Value<'a>> {
        let Some(line) = self.next_line()? else {
            return Some(Value::Null);
        };
        if line.indent < column {
            return Some(Value::Null);
        }
        let start = self.at;
        self.at = line.start;
        if line.indent > column {
            return self.block(line.indent, Some(column), depth + 1);
        }
        if self.at_dash() {
            return self.sequence(column, depth + 1);
        }
        self.at = start;
        Some(Value::Null)
    }
}

/// A key and the offset behind its colon.
pub(super) type Key<'a> = (Cow<'a, str>, usize);

/// The text of a plain key, if it stays a string: `on`, `1` and `<<` as keys are left to the full reader.
pub(super) fn plain_key(text: &str) -> Option<Cow<'_, str>> {
    match plain::resolve(text)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}
