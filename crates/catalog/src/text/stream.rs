//! The documents of a file, with the rules of apimachinery's `YAMLOrJSONDecoder` as opm uses it for catalogs.
//!
//! A file whose first character after white space is `{` is a stream of JSON values. If it breaks off after at most one
//! value, the rest counts as YAML. Everything else is YAML, split at lines that begin with `---`.

use std::borrow::Cow;

use rayon::prelude::*;

use super::block;
pub use super::json::json;
use super::json::{JsonValue, json_values, within_limit};
use super::value::Value;
use olmkit_yaml as yaml;

/// Number of bytes in which opm searches for the `{` that makes a file JSON.
const LOOK_AHEAD: usize = 4096;

/// Longer streams are read in parallel.
const PARALLEL: usize = 1 << 17;

/// Bytes of one stream that are processed at a time.
const WINDOW: usize = 16 << 20;

/// Documents of one stream that are processed at a time.
const WINDOW_PIECES: usize = 1 << 16;

/// One document of a stream.
#[derive(Debug)]
pub struct Document<'a> {
    /// Its value.
    pub value: Value<'a>,
    /// Its first line in the file, counted from 1.
    pub line: usize,
    /// True if it was read as YAML. Else as JSON.
    pub yaml: bool,
}

/// Why a document cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// opm's message.
    pub message: String,
    /// Line in the file, counted from 1.
    pub line: usize,
    /// Column, counted from 1; 0 if unknown.
    pub column: usize,
}

/// The documents of a stream, in order. An error ends the stream, as in opm.
pub fn documents(text: &str) -> (Vec<Document<'static>>, Option<Error>) {
    map(text, |document| {
        let Document { value, line, yaml } = document;
        Ok(Document {
            value: value.into_owned(),
            line,
            yaml,
        })
    })
}

/// Reads the documents of a stream and converts each immediately, in parallel if the stream is long. The results are in
/// order and end at the first error, with opm's message.
pub fn map<T: Send>(text: &str, convert: impl Fn(Document<'_>) -> Result<T, Error> + Sync) -> (Vec<T>, Option<Error>) {
    let mut results = Vec::new();
    let error = each(text, convert, &mut |result| results.push(result));
    (results, error)
}

/// As [`map`], but returns each result when it is ready: only some megabytes of a long stream are processed at a time.
pub fn each<T: Send>(
    text: &str,
    convert: impl Fn(Document<'_>) -> Result<T, Error> + Sync,
    sink: &mut dyn FnMut(T),
) -> Option<Error> {
    if is_json(text) {
        each_json(text, &convert, sink)
    } else {
        each_yaml(text, 0, &convert, sink)
    }
}

/// Returns true if opm reads the input as JSON.
pub fn is_json(text: &str) -> bool {
    let head = text.as_bytes().get(..text.len().min(LOOK_AHEAD)).unwrap_or_default();
    String::from_utf8_lossy(head).trim_start().starts_with('{')
}

fn each_json<T: Send>(
    text: &str,
    convert: &(impl Fn(Document<'_>) -> Result<T, Error> + Sync),
    sink: &mut dyn FnMut(T),
) -> Option<Error> {
    let (mut count, mut before) = (0, 0);
    // Lines are counted forward from value to value.
    let (mut line, mut counted) = (1, 0);
    let mut line_at = |offset: usize| {
        line += text
            .as_bytes()
            .get(counted..offset)
            .unwrap_or_default()
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        counted = offset;
        line
    };
    loop {
        let rest = text.get(before..).unwrap_or_default();
        let head = within_limit(rest);
        let is_cut = head.len() < rest.len();
        let mut stream = json_values(head);
        match stream.next() {
            None if is_cut => before += head.len(),
            None => return None,
            Some(Ok(JsonValue(value))) => {
                let start = before + rest.len() - rest.trim_start().len();
                match convert(Document {
                    value,
                    line: line_at(start),
                    yaml: false,
                }) {
                    Ok(result) => sink(result),
                    Err(error) => return Some(error),
                }
                count += 1;
                before += stream.byte_offset();
            }
            Some(Err(error)) if is_cut && error.is_eof() => return Some(too_large("invalid JSON", line_at(before))),
            Some(Err(error)) if count > 1 => {
                // Input that Go accepts and this reader rejects is rare, for example because of its depth.
                let message = olmkit_go::json::check_first(rest)
                    .err()
                    .map_or_else(|| format!("invalid JSON: {error}"), |error| error.message);
                let line_begin = text
                    .get(..before)
                    .and_then(|read| read.rfind('\n'))
                    .map_or(0, |end| end + 1);
                let is_first_line = error.line() == 1;
                return Some(Error {
                    message,
                    line: line_at(before) + error.line().saturating_sub(1),
                    column: error.column() + if is_first_line { before - line_begin } else { 0 },
                });
            }
            Some(Err(_)) => {
                // White space up to the first line feed is skipped, and the rest is YAML.
                let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
                let skipped = if rest.get(blank..).unwrap_or_default().starts_with('\n') {
                    blank + 1
                } else {
                    0
                };
                let start = before + skipped;
                let lines = line_at(start) - 1;
                return each_yaml(text.get(start..).unwrap_or_default(), lines, convert, sink);
            }
        }
    }
}

/// A piece of a YAML stream.
struct Piece<'a> {
    text: &'a str,
    line: usize,
}

fn each_yaml<T: Send>(
    text: &str,
    lines_before: usize,
    convert: &(impl Fn(Document<'_>) -> Result<T, Error> + Sync),
    sink: &mut dyn FnMut(T),
) -> Option<Error> {
    let read = |piece: &Piece<'_>| -> Result<T, Error> {
        // Copied here if at all, so that no more than a window is copied at a time.
        let text = normal(piece.text);
        let value = match block::read(&text) {
            Some(value) => value,
            None => read_full(&text, piece.line)?,
        };
        convert(Document {
            value,
            line: piece.line,
            yaml: true,
        })
    };
    let mut pieces = split(text, lines_before);
    loop {
        let (mut window, mut length, mut split_error) = (Vec::new(), 0, None);
        while length <= WINDOW && window.len() < WINDOW_PIECES {
            match pieces.next() {
                Some(Ok(piece)) => {
                    length += piece.text.len();
                    window.push(piece);
                }
                Some(Err(error)) => {
                    split_error = Some(error);
                    break;
                }
                None => break,
            }
        }
        if window.is_empty() {
            return split_error;
        }
        // Documents do not depend on each other, and a large catalog may be one file.
        let outcomes: Vec<Result<T, Error>> = if length > PARALLEL {
            window.par_iter().map(read).collect()
        } else {
            window.iter().map(read).collect()
        };
        for outcome in outcomes {
            match outcome {
                Ok(result) => sink(result),
                Err(error) => return Some(error),
            }
        }
        if split_error.is_some() {
            return split_error;
        }
    }
}

/// Reads a document with the full reader.
fn read_full(text: &str, line: usize) -> Result<Value<'static>, Error> {
    let fail = |error: yaml::Error| {
        let position = error.position();
        Error {
            message: format!("error converting YAML to JSON: {error}"),
            line: position.map_or(line, |position| line + position.line as usize - 1),
            column: position.map_or(0, |position| position.column as usize),
        }
    };
    let node = yaml::parse(text.as_bytes()).map_err(fail)?;
    Ok(Value::from(node.to_json().map_err(fail)?))
}

/// Splits a YAML stream at its separator lines. A separator after content ends it and is dropped. Another one is part
/// of the next document, so that two in a row form an empty document.
fn split(text: &str, lines_before: usize) -> Pieces<'_> {
    Pieces {
        text,
        at: 0,
        start: 0,
        line: lines_before,
        start_line: lines_before + 1,
    }
}

/// The pieces of a YAML stream, as far as it can be split.
struct Pieces<'a> {
    text: &'a str,
    /// Offset read so far.
    at: usize,
    /// Start of the next piece.
    start: usize,
    /// Lines read.
    line: usize,
    start_line: usize,
}

impl<'a> Pieces<'a> {
    fn fail(&mut self, error: Error) -> Option<Result<Piece<'a>, Error>> {
        (self.at, self.start) = (self.text.len(), self.text.len());
        Some(Err(error))
    }

    /// The piece up to an offset.
    fn cut(&mut self, end: usize) -> Option<Result<Piece<'a>, Error>> {
        if end - self.start > yaml::MAX_DOCUMENT_BYTES {
            let error = too_large("error converting YAML to JSON: yaml", self.start_line);
            return self.fail(error);
        }
        let text = self.text.get(self.start..end).unwrap_or_default();
        Some(Ok(Piece {
            text,
            line: self.start_line,
        }))
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Result<Piece<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.text.len() {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let end = memchr::memchr(b'\n', rest).map_or(self.text.len(), |found| self.at + found + 1);
            let (at, line) = (self.at, self.text.get(self.at..end).unwrap_or_default());
            (self.at, self.line) = (end, self.line + 1);
            let Some(behind) = line.strip_prefix("---") else {
                continue;
            };
            let behind = behind.trim();
            if !behind.is_empty() && !behind.starts_with('#') {
                // The previous part is not a document either: opm's reader drops it with the line.
                let error = Error {
                    message: format!("invalid Yaml document separator: {behind}"),
                    line: self.line,
                    column: 1,
                };
                return self.fail(error);
            }
            if at > self.start {
                let piece = self.cut(at);
                if piece.as_ref().is_some_and(Result::is_ok) {
                    (self.start, self.start_line) = (end, self.line + 1);
                }
                return piece;
            }
        }
        if self.start >= self.text.len() {
            return None;
        }
        let piece = self.cut(self.text.len());
        self.start = self.text.len();
        piece
    }
}

/// The full reader's error, before any of the document is copied.
fn too_large(what: &str, line: usize) -> Error {
    Error {
        message: format!("{what}: document is larger than {} MiB", yaml::MAX_DOCUMENT_BYTES >> 20),
        line,
        column: 0,
    }
}

/// A document in the form that the readers require: lines end with line feeds only, the last one too.
fn normal(text: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\r', text.as_bytes()).is_some() {
        let mut text = text.replace("\r\n", "\n");
        if !text.ends_with('\n') {
            text.push('\n');
        }
        Cow::Owned(text)
    } else if text.ends_with('\n') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{text}\n"))
    }
}

/// Only the first document of a stream, as Go reads a manifest: the rest is ignored. `None` if there is none or it does
/// not decode.
pub fn first(text: &str) -> Option<Value<'static>> {
    if is_json(text)
        && let Some(Ok(JsonValue(value))) = json_values(within_limit(text)).next()
    {
        return Some(value.into_owned());
    }
    let piece = split(text, 0).next()?.ok()?;
    let text = normal(piece.text);
    match block::read(&text) {
        Some(value) => Some(value.into_owned()),
        None => read_full(&text, piece.line).ok(),
    }
}

/// The document that begins at a line, as [`Document::line`] counts.
pub fn at_line(text: &str, line: usize) -> Option<Cow<'_, str>> {
    let start = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum::<usize>();
    at_offset(text, start)
}

/// The document that begins at an offset. `None` if it is too large to be read.
pub fn at_offset(text: &str, start: usize) -> Option<Cow<'_, str>> {
    let rest = text.get(start..)?;
    if is_json(text) && rest.trim_start().starts_with('{') {
        // A JSON value ends where the next one begins.
        let mut values = serde_json::Deserializer::from_str(within_limit(rest)).into_iter::<serde::de::IgnoredAny>();
        if values.next()?.is_ok() {
            return rest.get(..values.byte_offset()).map(Cow::Borrowed);
        }
    }
    // A separator in the first line belongs to the document.
    let own = if rest.starts_with("---") { 3 } else { 0 };
    let end = memchr::memmem::find(rest.as_bytes().get(own..)?, b"\n---").map_or(rest.len(), |end| own + end + 1);
    (end <= yaml::MAX_DOCUMENT_BYTES).then(|| rest.get(..end).map(normal))?
}
