//! The documents of a file, with the rules of apimachinery's `YAMLOrJSONDecoder` as opm uses it for catalogs.
//!
//! A file whose first non-blank character is `{` is a stream of JSON values; if it breaks off after at most one
//! value, the rest counts as YAML. Everything else is YAML, cut at lines that begin with `---`.

use std::borrow::Cow;

use rayon::prelude::*;
use serde::Deserialize;

use super::block;
use super::value::Value;
use crate::yaml;

/// How far opm looks for the `{` that makes a file JSON, in bytes.
const LOOK_AHEAD: usize = 4096;

/// From this length on, documents of one text are read in parallel.
const PARALLEL: usize = 1 << 17;

/// Bytes of one text that are in work at a time.
const WINDOW: usize = 16 << 20;

/// One document of a stream.
#[derive(Debug)]
pub struct Document<'a> {
    /// What it holds.
    pub value: Value<'a>,
    /// Its first line in the file, counted from 1.
    pub line: usize,
    /// Whether it was read as YAML; else as JSON.
    pub yaml: bool,
}

/// Why a document cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What opm says.
    pub message: String,
    /// Line in the file, counted from 1.
    pub line: usize,
    /// Column, counted from 1; 0 if unknown.
    pub column: usize,
}

/// The documents of a text, in order. An error ends the stream, as it does in opm.
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

/// Reads the documents of a text and turns each into something else at once, several at a time if the text is long.
/// The results are in order and end at the first error, in opm's words.
pub fn map<T: Send>(text: &str, convert: impl Fn(Document<'_>) -> Result<T, Error> + Sync) -> (Vec<T>, Option<Error>) {
    let mut results = Vec::new();
    let error = each(text, convert, &mut |result| results.push(result));
    (results, error)
}

/// As [`map`], handing on the results as they come: of a long text only some megabytes are in work at a time.
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

/// Whether opm reads the text as JSON.
pub fn is_json(text: &str) -> bool {
    let head = text.as_bytes().get(..text.len().min(LOOK_AHEAD)).unwrap_or_default();
    String::from_utf8_lossy(head).trim_start().starts_with('{')
}

fn each_json<T: Send>(
    text: &str,
    convert: &(impl Fn(Document<'_>) -> Result<T, Error> + Sync),
    sink: &mut dyn FnMut(T),
) -> Option<Error> {
    let mut count = 0;
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<JsonValue<'_>>();
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
        let before = stream.byte_offset();
        let rest = text.get(before..).unwrap_or_default();
        match stream.next() {
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
            }
            Some(Err(error)) if count > 1 => {
                // What Go takes and this reader does not is rare: depth, for one.
                let message = olmkit_go::json::check_first(rest)
                    .err()
                    .map_or_else(|| format!("invalid JSON: {error}"), |error| error.message);
                return Some(Error {
                    message,
                    line: error.line(),
                    column: error.column(),
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
    text: Cow<'a, str>,
    line: usize,
}

fn each_yaml<T: Send>(
    text: &str,
    lines_before: usize,
    convert: &(impl Fn(Document<'_>) -> Result<T, Error> + Sync),
    sink: &mut dyn FnMut(T),
) -> Option<Error> {
    let (pieces, split_error) = split(text, lines_before);
    let read = |piece: &Piece<'_>| -> Result<T, Error> {
        let value = match block::read(&piece.text) {
            Some(value) => value,
            None => read_full(&piece.text, piece.line)?,
        };
        convert(Document {
            value,
            line: piece.line,
            yaml: true,
        })
    };
    let mut rest = pieces.as_slice();
    while !rest.is_empty() {
        let mut length = 0;
        let full = rest.iter().position(|piece| {
            length += piece.text.len();
            length > WINDOW
        });
        let (window, behind) = rest.split_at(full.map_or(rest.len(), |full| full + 1));
        rest = behind;
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
    }
    split_error
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

/// Cuts a YAML stream at its separator lines. A separator that follows content ends it and is dropped; one that does
/// not is part of the next document, so that two in a row give an empty document.
fn split(text: &str, lines_before: usize) -> (Vec<Piece<'_>>, Option<Error>) {
    let mut pieces = Vec::new();
    let carriage = text.contains('\r');
    let (mut start, mut start_line) = (0, lines_before + 1);
    let mut line_number = lines_before;
    let mut at = 0;
    let mut error = None;
    while at < text.len() {
        let end = memchr::memchr(b'\n', text.as_bytes().get(at..).unwrap_or_default())
            .map_or(text.len(), |found| at + found + 1);
        line_number += 1;
        let line = text.get(at..end).unwrap_or_default();
        if let Some(behind) = line.strip_prefix("---") {
            let behind = behind.trim();
            if !behind.is_empty() && !behind.starts_with('#') {
                error = Some(Error {
                    message: format!("invalid Yaml document separator: {behind}"),
                    line: line_number,
                    column: 1,
                });
                start = text.len();
                break;
            }
            if at > start {
                if at - start > yaml::MAX_DOCUMENT_BYTES {
                    error = Some(too_large(start_line));
                    start = text.len();
                    break;
                }
                pieces.push(piece(text.get(start..at).unwrap_or_default(), start_line, carriage));
                (start, start_line) = (end, line_number + 1);
            }
        }
        at = end;
    }
    if text.len() - start > yaml::MAX_DOCUMENT_BYTES {
        error = Some(too_large(start_line));
    } else if start < text.len() {
        pieces.push(piece(text.get(start..).unwrap_or_default(), start_line, carriage));
    }
    (pieces, error)
}

/// What the full reader says, before anything of the document is copied.
fn too_large(line: usize) -> Error {
    Error {
        message: format!(
            "error converting YAML to JSON: yaml: document is larger than {} MiB",
            yaml::MAX_DOCUMENT_BYTES >> 20
        ),
        line,
        column: 0,
    }
}

fn piece(text: &str, line: usize, carriage: bool) -> Piece<'_> {
    let text = match (carriage, text.ends_with('\n')) {
        (false, true) => Cow::Borrowed(text),
        (false, false) => Cow::Owned(format!("{text}\n")),
        (true, _) => {
            let mut text = text.replace("\r\n", "\n");
            if !text.ends_with('\n') {
                text.push('\n');
            }
            Cow::Owned(text)
        }
    };
    Piece { text, line }
}

/// Reads a JSON text that is one value; strings without escapes are borrowed from it.
///
/// # Errors
/// The text is not JSON.
pub fn json(text: &str) -> Result<Value<'_>, serde_json::Error> {
    serde_json::from_str::<JsonValue<'_>>(text).map(|value| value.0)
}

/// Builds a [`Value`] that borrows its strings from the JSON text.
struct JsonValue<'a>(Value<'a>);

impl<'de> Deserialize<'de> for JsonValue<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor).map(JsonValue)
    }
}

struct JsonVisitor;

impl<'de> serde::de::Visitor<'de> for JsonVisitor {
    type Value = Value<'de>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value<'de>, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value<'de>, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value<'de>, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value<'de>, E> {
        Ok(i64::try_from(value).map_or(Value::Unsigned(value), Value::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value<'de>, E> {
        Ok(Value::Float(value))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::String(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value<'de>, E> {
        Ok(Value::String(Cow::Owned(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Value<'de>, E> {
        Ok(Value::String(Cow::Owned(value)))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut access: A) -> Result<Value<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(JsonValue(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::Sequence(items))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut access: A) -> Result<Value<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, JsonValue(value))) = access.next_entry::<JsonKey<'de>, JsonValue<'de>>()? {
            entries.push((key.0, value));
        }
        Ok(Value::mapping(entries))
    }
}

/// A key that borrows when it can; serde's own `Cow` never does.
struct JsonKey<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for JsonKey<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_str(JsonVisitor)? {
            Value::String(text) => Ok(JsonKey(text)),
            _ => Err(serde::de::Error::custom("a key must be a string")),
        }
    }
}

/// The first document of a text alone, as Go reads a manifest: what follows is not looked at. `None` if there is none
/// or it does not decode.
pub fn first(text: &str) -> Option<Value<'static>> {
    if is_json(text) {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<JsonValue<'_>>();
        if let Some(Ok(JsonValue(value))) = stream.next() {
            return Some(value.into_owned());
        }
    }
    let (pieces, _) = split(text, 0);
    let piece = pieces.into_iter().next()?;
    match block::read(&piece.text) {
        Some(value) => Some(value.into_owned()),
        None => read_full(&piece.text, piece.line).ok(),
    }
}

/// The text of the document that begins at a line, as [`Document::line`] counts.
pub fn at_line(text: &str, line: usize) -> Option<Cow<'_, str>> {
    let start = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum::<usize>();
    at_offset(text, start)
}

/// The text of the document that begins at an offset.
pub fn at_offset(text: &str, start: usize) -> Option<Cow<'_, str>> {
    let rest = text.get(start..)?;
    if is_json(text) && rest.trim_start().starts_with('{') {
        // A JSON value ends where the next one begins.
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<serde::de::IgnoredAny>();
        if values.next()?.is_ok() {
            return rest.get(..values.byte_offset()).map(Cow::Borrowed);
        }
    }
    // A separator in the first line belongs to the document.
    let own = if rest.starts_with("---") { 3 } else { 0 };
    let end = memchr::memmem::find(rest.as_bytes().get(own..)?, b"\n---").map_or(rest.len(), |end| own + end + 1);
    Some(piece(rest.get(..end)?, 0, rest.contains('\r')).text)
}
