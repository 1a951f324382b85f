//! Splits a stream into documents as apimachinery's `YAMLOrJSONDecoder` does.

use std::borrow::Cow;

use super::json_text::{First, first_value};
use super::{Document, Error, Node, Position, compose};

/// Number of bytes that opm reads to detect JSON.
const LOOKAHEAD: usize = 4096;

/// The documents of a stream of YAML or JSON. A line that starts with `---` separates. Several of them in a row form no
/// empty documents, but anything between them does, even a comment. Such a document is null.
///
/// JSON values may follow each other without separators. After the first error the iterator ends.
pub fn documents(bytes: &[u8]) -> Documents<'_> {
    documents_with_lookahead(bytes, LOOKAHEAD)
}

/// As [`documents`], but only the first `lookahead` bytes decide whether the stream is JSON. The peers use different
/// values: 4096 for catalogs, 30 or 10 for manifests.
pub fn documents_with_lookahead(bytes: &[u8], lookahead: usize) -> Documents<'_> {
    let head = bytes.get(..lookahead.min(bytes.len())).unwrap_or_default();
    let mode = if is_json(head) { Mode::Json } else { Mode::Yaml };
    let text = if mode == Mode::Json {
        std::str::from_utf8(bytes).ok()
    } else {
        None
    };
    Documents {
        bytes,
        text,
        at: 0,
        line: 1,
        column: 1,
        mode,
        json_values: 0,
    }
}

/// Iterator over the documents of a stream, see [`documents`].
#[derive(Debug)]
pub struct Documents<'a> {
    bytes: &'a [u8],
    /// The same as a string, if the stream is JSON in valid UTF-8. Checked once, not for every value.
    text: Option<&'a str>,
    at: usize,
    line: u32,
    column: u32,
    mode: Mode,
    /// JSON values read so far. While there is at most one, the stream may still turn out to be YAML.
    json_values: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Json,
    Yaml,
    Ended,
}

impl Iterator for Documents<'_> {
    type Item = Result<Node, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_document()?.map(|document| document.root))
    }
}

impl<'a> Documents<'a> {
    /// The next document with its duplicate keys. `next` returns only the tree.
    pub fn next_document(&mut self) -> Option<Result<Document, Error>> {
        let item = match self.mode {
            Mode::Json => self.next_json(),
            Mode::Yaml => self.next_yaml(),
            Mode::Ended => None,
        };
        if !matches!(item, Some(Ok(_))) {
            self.mode = Mode::Ended;
        }
        item
    }

    fn next_json(&mut self) -> Option<Result<Document, Error>> {
        let rest = self.rest();
        let text = match self.text.and_then(|text| text.get(self.at..)) {
            Some(text) => Cow::Borrowed(text),
            None => String::from_utf8_lossy(rest),
        };
        match first_value(
            &text,
            Position {
                line: self.line,
                column: self.column,
            },
        ) {
            Ok(First::End) => None,
            Ok(First::Value(root, end)) => {
                // Lossy conversion makes the string longer than its bytes. Streams with invalid UTF-8 end after one
                // value.
                let end = if matches!(text, Cow::Borrowed(_)) {
                    end
                } else {
                    rest.len()
                };
                self.advance(end);
                self.json_values += 1;
                Some(Ok(Document {
                    root,
                    duplicates: Vec::new(),
                }))
            }
            Err(error) if self.json_values > 1 || matches!(error, Error::Limit { .. }) => Some(Err(error)),
            Err(error) => self.turn_to_yaml(error),
        }
    }

    /// A stream that began with at most one JSON value may continue as YAML after the rest of that line.
    fn turn_to_yaml(&mut self, json_error: Error) -> Option<Result<Document, Error>> {
        if self.skip_blanks_of_line().is_none() {
            return Some(Err(json_error));
        }
        self.mode = Mode::Yaml;
        self.next_yaml().map(|item| item.map_err(|_| json_error))
    }

    /// Skips white space up to and including the first line end. The decoder reads four bytes at a time here and stops
    /// if fewer are left.
    fn skip_blanks_of_line(&mut self) -> Option<()> {
        loop {
            let head = self.rest().get(..4)?;
            let character = match std::str::from_utf8(head) {
                Ok(text) => text.chars().next()?,
                Err(error) => std::str::from_utf8(head.get(..error.valid_up_to())?)
                    .ok()?
                    .chars()
                    .next()?,
            };
            if !character.is_whitespace() {
                return Some(());
            }
            self.advance(character.len_utf8());
            if character == '\n' {
                return Some(());
            }
        }
    }

    fn next_yaml(&mut self) -> Option<Result<Document, Error>> {
        let (chunk, line) = match self.next_chunk()? {
            Ok(found) => found,
            Err(error) => return Some(Err(error)),
        };
        let document = compose::parse_part(&with_last_line_end(chunk), line.saturating_sub(1))
            .and_then(|document| document.root.check_json().map(|()| document));
        Some(document.map_err(|error| Error::Convert(Box::new(error))))
    }

    /// The next document's bytes and the line it starts on.
    fn next_chunk(&mut self) -> Option<Result<(&'a [u8], u32), Error>> {
        let (start, first_line) = (self.at, self.line);
        loop {
            let line_start = self.at;
            let line = self.take_line();
            let Some(line) = line else {
                return (line_start > start).then(|| Ok((self.slice(start, line_start), first_line)));
            };
            let Some(after) = line.strip_prefix(b"---") else {
                continue;
            };
            if let Some(text) = not_a_comment(after) {
                let position = Position {
                    line: self.line - 1,
                    column: 1,
                };
                return Some(Err(Error::Separator { text, position }));
            }
            // A separator at the very start belongs to the document, any other one ends it.
            if line_start > start {
                return Some(Ok((self.slice(start, line_start), first_line)));
            }
        }
    }

    /// The next line with its end. `None` at the end of the stream.
    fn take_line(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        self.at += length;
        self.line = self.line.saturating_add(1);
        self.column = 1;
        rest.get(..length)
    }

    fn advance(&mut self, length: usize) {
        let passed = self.slice(self.at, self.at + length);
        let lines = memchr::memchr_iter(b'\n', passed).count();
        let tail = memchr::memrchr(b'\n', passed).map_or(passed, |at| passed.get(at + 1..).unwrap_or_default());
        let columns = u32::try_from(String::from_utf8_lossy(tail).chars().count()).unwrap_or(u32::MAX);
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.column = if lines > 0 { 1 } else { self.column }.saturating_add(columns);
        self.at += length;
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn slice(&self, from: usize, to: usize) -> &'a [u8] {
        self.bytes.get(from..to.min(self.bytes.len())).unwrap_or_default()
    }
}

/// The decoder ends every line, also a last one that has no end. A block scalar there keeps it.
fn with_last_line_end(chunk: &[u8]) -> Cow<'_, [u8]> {
    if chunk.ends_with(b"\n") {
        return Cow::Borrowed(chunk);
    }
    Cow::Owned([chunk, b"\n"].concat())
}

/// The rest of a separator line after the dashes, if it is more than spaces and a comment.
fn not_a_comment(after: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(after);
    let text = text.trim();
    (!text.is_empty() && !text.starts_with('#')).then(|| text.to_owned())
}

/// Returns true if the first thing that is not white space is an opening brace.
fn is_json(head: &[u8]) -> bool {
    String::from_utf8_lossy(head).trim_start().starts_with('{')
}
