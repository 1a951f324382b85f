//! Lists and maps in brackets, as written by hand or by JSON writers: `["get", list]`, `{app: x}`, `{"a":1}`, `{}`,
//! over one line or several. Strings and words must fit on one line.

use std::borrow::Cow;

use super::scalar::MAX_KEY;
use super::{Build, MAX_DEPTH, Place, Reader, Scalar, Span, Style};

impl<'a, B: Build<'a>> Reader<'a, B> {
    /// Reads the collection at the position and moves after its closing bracket.
    pub(super) fn flow(&mut self, depth: usize) -> Option<B::Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        let start = self.place(self.at);
        if self.byte(self.at) == b'[' {
            self.flow_sequence(depth, start)
        } else {
            self.flow_mapping(depth, start)
        }
    }

    fn flow_sequence(&mut self, depth: usize, start: Place) -> Option<B::Value> {
        let first = self.items.len();
        self.at += 1;
        self.flow_space()?;
        while self.byte(self.at) != b']' {
            let item = self.flow_value(depth)?;
            self.items.push(item);
            self.flow_separator(b']')?;
        }
        self.at += 1;
        self.end = self.place(self.at);
        let items = self.items.drain(first..).collect();
        let span = Span { start, end: self.end };
        Some(self.build.sequence(items, span, Style::Flow))
    }

    fn flow_mapping(&mut self, depth: usize, start: Place) -> Option<B::Value> {
        let first = self.entries.len();
        self.at += 1;
        self.flow_space()?;
        while self.byte(self.at) != b'}' {
            let key_start = self.at;
            let key = self.flow_scalar()?;
            let is_plain = key.style == Style::Plain;
            let key = self.build.key(key)?;
            if self.byte(self.at) != b':' || self.at - key_start > MAX_KEY {
                return None;
            }
            self.at += 1;
            // After a word the colon needs a space. After a quote it does not.
            if is_plain && !matches!(self.byte(self.at), b' ' | b'\n') {
                return None;
            }
            self.flow_space()?;
            let value = self.flow_value(depth)?;
            self.entries.push((key, value));
            self.flow_separator(b'}')?;
        }
        self.at += 1;
        self.end = self.place(self.at);
        let entries = self.entries.drain(first..).collect();
        let span = Span { start, end: self.end };
        self.build.mapping(entries, span, Style::Flow)
    }

    /// Moves to the next item, or to the closing bracket. A comma before the bracket is left to the full reader.
    fn flow_separator(&mut self, close: u8) -> Option<()> {
        self.flow_space()?;
        if self.byte(self.at) == b',' {
            self.at += 1;
            self.flow_space()?;
            return (self.byte(self.at) != close).then_some(());
        }
        (self.byte(self.at) == close).then_some(())
    }

    /// Goes to the next token, over line ends too. Indentation means nothing between brackets.
    fn flow_space(&mut self) -> Option<()> {
        loop {
            self.at = self.skip_spaces(self.at);
            if self.byte(self.at) != b'\n' {
                return Some(());
            }
            self.end_line(self.at);
            if self.at_marker() {
                return None;
            }
        }
    }

    fn flow_value(&mut self, depth: usize) -> Option<B::Value> {
        if matches!(self.byte(self.at), b'[' | b'{') {
            return self.flow(depth + 1);
        }
        let scalar = self.flow_scalar()?;
        self.build.scalar(scalar)
    }

    /// A quoted scalar that ends on this line, or a word of harmless characters.
    fn flow_scalar(&mut self) -> Option<Scalar<'a>> {
        let start = self.place(self.at);
        if let quote @ (b'"' | b'\'') = self.byte(self.at) {
            let (text, style, end) = self.quoted(quote)?;
            let span = Span { start, end };
            return (end.line == start.line).then_some(Scalar { text, style, span });
        }
        let from = self.at;
        while matches!(self.byte(self.at), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'/' | b'_' | b'-' | b'+') {
            self.at += 1;
        }
        let text = self.text.get(from..self.at)?;
        let is_word = match text.as_bytes() {
            [b'-', rest @ ..] => rest.first().is_some_and(u8::is_ascii_digit),
            [] => false,
            _ => true,
        };
        if !is_word || !matches!(self.byte(self.at), b' ' | b'\n' | b',' | b']' | b'}' | b':') {
            return None;
        }
        let end = self.place(self.at);
        let span = Span { start, end };
        Some(Scalar {
            text: Cow::Borrowed(text),
            style: Style::Plain,
            span,
        })
    }
}
