//! JSON as Go's `encoding/json` writes and rejects it.

mod scanner;

pub use scanner::{SyntaxError, check, check_first};

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Number, Value};

/// True if `<`, `>` and `&` in strings are written as `\u003c`, `\u003e`, `\u0026`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Html {
    /// `json.Marshal`
    Escape,
    /// An encoder with `SetEscapeHTML(false)`.
    Plain,
}

/// One part of a JSON pointer (RFC 6901) for a key.
pub fn pointer_part(key: &str) -> Cow<'_, str> {
    // Called for each key of large schemas, few of which need escapes.
    if memchr::memchr2(b'~', b'/', key.as_bytes()).is_none() {
        return Cow::Borrowed(key);
    }
    Cow::Owned(key.replace('~', "~0").replace('/', "~1"))
}

/// `json.Marshal`: compact, keys sorted, HTML escaped.
#[must_use]
pub fn marshal(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

/// The number of bytes that [`marshal`] prints.
#[must_use]
pub fn marshal_len(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(value) => 5 - usize::from(*value),
        Value::Number(value) => number(value).len(),
        Value::String(text) => string_len(text),
        Value::Array(items) => 1 + items.len().max(1) + items.iter().map(marshal_len).sum::<usize>(),
        Value::Object(entries) => {
            let inside: usize = entries
                .iter()
                .map(|(key, item)| string_len(key) + 1 + marshal_len(item))
                .sum();
            1 + entries.len().max(1) + inside
        }
    }
}

/// The number of bytes of [`string`].
fn string_len(text: &str) -> usize {
    let longer: usize = text.bytes().map(added_by_escape).sum();
    // U+2028 and U+2029 have three bytes, and six as `\u2028`.
    let separators = if text.is_ascii() {
        0
    } else {
        text.matches(['\u{2028}', '\u{2029}']).count()
    };
    text.len() + 2 + longer + 3 * separators
}

/// Number of additional bytes when a byte is escaped.
fn added_by_escape(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        b'<' | b'>' | b'&' | 0..=0x1f => 5,
        _ => 0,
    }
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) => out.push_str(&number(value)),
        Value::String(text) => write_string(out, text, Html::Escape),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            // The map's own order depends on a feature of serde_json that any crate can turn on.
            let mut sorted: Vec<_> = entries.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (at, (key, item)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_string(out, key, Html::Escape);
                out.push(':');
                write_value(out, item);
            }
            out.push('}');
        }
    }
}

/// A string with its quotes, HTML escaped.
#[must_use]
pub fn string(text: &str) -> String {
    let mut out = String::new();
    write_string(&mut out, text, Html::Escape);
    out
}

/// Appends a string with its quotes.
pub fn write_string(out: &mut String, text: &str, html: Html) {
    out.reserve(text.len() + 2);
    out.push('"');
    let bytes = text.as_bytes();
    let mut start = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..=0x1f => "",
            b'<' if html == Html::Escape => "\\u003c",
            b'>' if html == Html::Escape => "\\u003e",
            b'&' if html == Html::Escape => "\\u0026",
            // U+2028 and U+2029 are E2 80 A8 and E2 80 A9.
            0xe2 if bytes.get(index + 1) == Some(&0x80) => match bytes.get(index + 2) {
                Some(0xa8) => "\\u2028",
                Some(0xa9) => "\\u2029",
                _ => continue,
            },
            _ => continue,
        };
        out.push_str(text.get(start..index).unwrap_or_default());
        if escape.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            out.push_str(escape);
        }
        start = index + if byte == 0xe2 { 3 } else { 1 };
    }
    out.push_str(text.get(start..).unwrap_or_default());
    out.push('"');
}

/// A number: floats as [`float`], integers with all their digits.
#[must_use]
pub fn number(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => float(value),
        _ => number.to_string(),
    }
}

/// A float. Not for infinities and NaN, which JSON does not have.
#[must_use]
pub fn float(value: f64) -> String {
    let mut out = String::new();
    write_float(&mut out, value);
    out
}

/// Appends a float: the shortest digits that read back equal, in plain notation between 1e-6 and 1e21, else with an
/// exponent that has a sign and no leading zero.
pub fn write_float(out: &mut String, value: f64) {
    let size = value.abs();
    // Writing to a String cannot fail.
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                let _ = write!(out, "{digits}e+{exponent}");
            }
            _ => out.push_str(&text),
        }
    } else {
        let _ = write!(out, "{value}");
    }
}

/// Appends compact JSON as `json.Indent` with an empty prefix does: one step of `indent` for each level, empty lists
/// and maps on one line. The input must be valid JSON without white space between tokens.
pub fn write_indented(out: &mut String, compact: &str, indent: &str) {
    let bytes = compact.as_bytes();
    out.reserve(bytes.len() + bytes.len() / 4);
    let mut depth = 0usize;
    let mut start = 0;
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        match byte {
            b'"' => {
                index = end_of_string(bytes, index);
                continue;
            }
            b'{' | b'[' => {
                let closes = matches!(bytes.get(index + 1), Some(b'}' | b']'));
                if closes {
                    index += 2;
                    continue;
                }
                depth += 1;
                out.push_str(compact.get(start..=index).unwrap_or_default());
                line(out, indent, depth);
                start = index + 1;
            }
            b',' => {
                out.push_str(compact.get(start..=index).unwrap_or_default());
                line(out, indent, depth);
                start = index + 1;
            }
            b':' => {
                out.push_str(compact.get(start..=index).unwrap_or_default());
                out.push(' ');
                start = index + 1;
            }
            b'}' | b']' => {
                out.push_str(compact.get(start..index).unwrap_or_default());
                depth = depth.saturating_sub(1);
                line(out, indent, depth);
                start = index;
            }
            _ => {}
        }
        index += 1;
    }
    out.push_str(compact.get(start..).unwrap_or_default());
}

fn line(out: &mut String, indent: &str, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str(indent);
    }
}

/// The index after the closing quote of the string that starts at `index`.
fn end_of_string(bytes: &[u8], index: usize) -> usize {
    let mut at = index + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// The name of a value's kind in decoding errors: `string`, `number`, `bool`, `array`, `object`, `null`.
#[must_use]
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The error of a value that does not fit its type. `place` is `value`, or `struct field` with the struct and the path.
#[must_use]
pub fn mismatch(found: &str, place: &str, wanted: &str) -> String {
    format!("json: cannot unmarshal {found} into Go {place} of type {wanted}")
}

/// Returns true if a JSON key addresses a field with an ASCII name: equal up to case, with Unicode's folding.
#[must_use]
pub fn names_field(key: &str, field: &str) -> bool {
    if key.is_ascii() {
        return key.eq_ignore_ascii_case(field);
    }
    // The only characters outside ASCII that fold into it: the long s and the Kelvin sign.
    key.chars()
        .map(|character| match character {
            '\u{17f}' => 's',
            '\u{212a}' => 'k',
            other => other.to_ascii_lowercase(),
        })
        .eq(field.chars().map(|character| character.to_ascii_lowercase()))
}
