//! A quick reader for block-style YAML.
//!
//! Supports the YAML that tools and most people write: block mappings and lists, plain, quoted and block scalars, lists
//! and maps in brackets on one line, comments. On anything else (anchors, tags, complex keys, tabs between tokens,
//! directives, syntax errors) it returns `None`, and the full reader parses the document. So it never has to report an
//! error. It must never accept a document that the full reader rejects, or read it differently. A property test checks
//! this.
//!
//! A [`Build`] receives the values: trees with positions for manifests ([`nodes`]), bare values that borrow from the
//! input for catalogs.

mod flow;
mod line;
pub(super) mod nodes;
mod positions;
mod quoted;
mod scalar;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::Style;
use line::only_known_characters;
pub use positions::Positions;

/// The full reader handles deeper documents and their limits.
const MAX_DEPTH: usize = 64;

/// Builds values from the reader's events. `None` makes the reader stop.
pub trait Build<'a> {
    /// A key of a mapping.
    type Key;
    /// A value.
    type Value;
    /// A key.
    fn key(&mut self, scalar: Scalar<'a>) -> Option<Self::Key>;
    /// A scalar value. One without quotes ([`Style::Plain`]) is still to be resolved.
    fn scalar(&mut self, scalar: Scalar<'a>) -> Option<Self::Value>;
    /// A missing value.
    fn nothing(&mut self, at: Place) -> Self::Value;
    /// A list.
    fn sequence(&mut self, items: Vec<Self::Value>, span: Span, style: Style) -> Self::Value;
    /// A mapping with its entries in source order, equal keys included.
    fn mapping(&mut self, entries: Vec<(Self::Key, Self::Value)>, span: Span, style: Style) -> Option<Self::Value>;
}

/// A scalar with resolved escapes and folding.
pub struct Scalar<'a> {
    /// The content.
    pub text: Cow<'a, str>,
    /// How it is written.
    pub style: Style,
    /// Where it is.
    pub span: Span,
}

/// From the first character to the end, exclusive.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// The first character.
    pub start: Place,
    /// End, exclusive.
    pub end: Place,
}

/// A position in the document.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Line, counted from 0.
    pub line: u32,
    /// Offset in bytes of the start of the line.
    pub line_start: usize,
    /// Offset in bytes.
    pub offset: usize,
}

/// Reads a single document, or returns `None`.
pub fn read<'a, B: Build<'a>>(text: &'a str, build: B) -> Option<B::Value> {
    if !text.ends_with('\n') || !only_known_characters(text) {
        return None;
    }
    let mut reader = Reader::new(text, build);
    // The splitter keeps the separator line at the top of a document.
    if text.starts_with("---") {
        let end = reader.line_end();
        if !text.get(3..end)?.trim_end_matches(' ').is_empty() {
            return None;
        }
        reader.end_line(end);
    }
    let line = reader.next_line()??;
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

struct Reader<'a, B: Build<'a>> {
    text: &'a str,
    /// Offset of the next byte to read.
    at: usize,
    /// The line of that offset, counted from 0, and where it starts.
    line: u32,
    line_start: usize,
    /// The end of the node that was read last.
    end: Place,
    build: B,
    /// Items and entries of the collections that are being read, the innermost last: each collection gets a vector of
    /// just its size in the end.
    items: Vec<B::Value>,
    entries: Vec<(B::Key, B::Value)>,
}

impl<'a, B: Build<'a>> Reader<'a, B> {
    fn new(text: &'a str, build: B) -> Self {
        Self {
            text,
            at: 0,
            line: 0,
            line_start: 0,
            end: Place {
                line: 0,
                line_start: 0,
                offset: 0,
            },
            build,
            items: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// The position of an offset in the current line.
    fn place(&self, offset: usize) -> Place {
        Place {
            line: self.line,
            line_start: self.line_start,
            offset,
        }
    }

    /// Reads the block node whose first token is at the position, in column `column`. `parent` is the column of its
    /// parent collection. Moves to the start of the line after it.
    fn block(&mut self, column: usize, parent: Option<usize>, depth: usize) -> Option<B::Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        if self.at_dash() {
            self.sequence(column, depth)
        } else if let Some(key) = self.find_key()? {
            self.mapping(key, column, depth)
        } else {
            self.value(parent, depth)
        }
    }

    /// Returns true if a list item begins at the position.
    fn at_dash(&self) -> bool {
        self.byte(self.at) == b'-' && matches!(self.byte(self.at + 1), b' ' | b'\n')
    }

    fn sequence(&mut self, column: usize, depth: usize) -> Option<B::Value> {
        let start = self.place(self.at);
        let first = self.items.len();
        loop {
            // The item's content, on this line or below.
            let dash = self.at;
            let content = self.skip_spaces(dash + 1);
            let item = match self.byte(content) {
                b'\n' | b'#' => {
                    let behind = self.place(dash + 1);
                    self.at = content;
                    self.finish_line()?;
                    match self.next_line()? {
                        Some(line) if line.indent > column => {
                            self.at = line.start;
                            self.block(line.indent, Some(column), depth + 1)?
                        }
                        _ => self.nothing(behind),
                    }
                }
                _ => {
                    self.at = content;
                    self.block(column + content - dash, Some(column), depth + 1)?
                }
            };
            self.items.push(item);
            match self.next_line()? {
                Some(line) if line.indent == column => {
                    self.at = line.start;
                    if !self.at_dash() {
                        self.at = self.line_start;
                        break;
                    }
                }
                Some(line) if line.indent > column => return None,
                _ => break,
            }
        }
        let items = self.items.drain(first..).collect();
        let span = Span { start, end: self.end };
        Some(self.build.sequence(items, span, Style::Plain))
    }

    fn mapping(&mut self, first_key: FoundKey<'a>, column: usize, depth: usize) -> Option<B::Value> {
        let start = self.place(self.at);
        let first = self.entries.len();
        let mut found = first_key;
        loop {
            let colon = found.colon;
            self.end = found.scalar.span.end;
            let key = self.build.key(found.scalar)?;
            self.at = self.skip_spaces(colon + 1);
            let value = match self.byte(self.at) {
                b'\n' | b'#' => {
                    let behind = self.place(colon + 1);
                    self.finish_line()?;
                    self.below(behind, column, depth)?
                }
                // A list cannot begin on its key's line.
                _ if self.at_dash() => return None,
                _ => self.value(Some(column), depth + 1)?,
            };
            self.entries.push((key, value));
            match self.next_line()? {
                Some(line) if line.indent == column => {
                    self.at = line.start;
                    if self.at_dash() {
                        return None;
                    }
                    found = self.find_key()??;
                }
                Some(line) if line.indent > column => return None,
                _ => break,
            }
        }
        let entries = self.entries.drain(first..).collect();
        let span = Span { start, end: self.end };
        self.build.mapping(entries, span, Style::Plain)
    }

    /// The value of a key without a value on its own line. `behind` is the position after its colon.
    fn below(&mut self, behind: Place, column: usize, depth: usize) -> Option<B::Value> {
        let Some(line) = self.next_line()?.filter(|line| line.indent >= column) else {
            return Some(self.nothing(behind));
        };
        self.at = line.start;
        if line.indent > column {
            return self.block(line.indent, Some(column), depth + 1);
        }
        if self.at_dash() {
            return self.sequence(column, depth + 1);
        }
        self.at = self.line_start;
        Some(self.nothing(behind))
    }

    /// A missing value.
    fn nothing(&mut self, at: Place) -> B::Value {
        self.end = at;
        self.build.nothing(at)
    }

    /// Reads the scalar or the collection in brackets at the position. `parent` is the column of its parent collection,
    /// which continuation lines must exceed. Moves to the start of the line after it.
    fn value(&mut self, parent: Option<usize>, depth: usize) -> Option<B::Value> {
        if matches!(self.byte(self.at), b'[' | b'{') {
            let value = self.flow(depth)?;
            self.finish_line()?;
            return Some(value);
        }
        let scalar = self.scalar(parent)?;
        self.end = scalar.span.end;
        self.build.scalar(scalar)
    }
}

/// A key and its colon.
struct FoundKey<'a> {
    scalar: Scalar<'a>,
    /// Offset of the colon.
    colon: usize,
}
