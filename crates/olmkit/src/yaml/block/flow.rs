//! Lists and maps in brackets, as long as they stay on one line and are simple: `["get", list]`, `{app: x}`, `{}`.

use std::borrow::Cow;

use super::{Build, MAX_DEPTH, Reader, Scalar, Span, Style};

impl<'a, B: Build<'a>> Reader<'a, B> {
    /// Reads the collection at the position and goes behind its closing bracket.
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

    fn flow_sequence(&mut self, depth: usize, start: super::Place) -> Option<B::Value> {
        let first = self.items.len();
        self.at = self.skip_spaces(self.at + 1);
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

    fn flow_mapping(&mut self, depth: usize, start: super::Place) -> Option<B::Value> {
        let first = self.entries.len();
        self.at = self.skip_spaces(self.at + 1);
        while self.byte(self.at) != b'}' {
            let key = self.flow_scalar()?;
            let key = self.build.key(key)?;
            if self.byte(self.at) != b':' || self.byte(self.at + 1) != b' ' {
                return None;
            }
            self.at = self.skip_spaces(self.at + 1);
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

    /// Goes to the next item, or to the closing bracket. A comma in front of the bracket is left to the full reader.
    fn flow_separator(&mut self, close: u8) -> Option<()> {
        self.at = self.skip_spaces(self.at);
        if self.byte(self.at) == b',' {
            self.at = self.skip_spaces(self.at + 1);
            return (self.byte(self.at) != close).then_some(());
        }
        (self.byte(self.at) == close).then_some(())
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
        while matches!(self.byte(self.at), b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'/' | b'_' | b'-') {
            self.at += 1;
        }
        let text = self.text.get(from..self.at)?;
        if text.is_empty() || text.starts_with('-') || !matches!(self.byte(self.at), b' ' | b',' | b']' | b'}' | b':') {
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
