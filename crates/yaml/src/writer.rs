//! Writes values byte for byte as `sigs.k8s.io/yaml`'s `Marshal`.
//!
//! That function converts the value to JSON, reads the JSON with its YAML reader, and writes the result. This has
//! visible effects: some strings cannot be written, U+0085 turns into a space, and floats without a fraction become
//! integers.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::Value as Tree;
use super::emitter::Emitter;
use super::json_text::{First, first_value};
use super::key_order::sort_keys;
use super::resolve::{Scalar, resolve_plain};
use super::{Error, MAX_DEPTH, Node, Position, number};

/// Longest key in characters of its JSON form, quotes included: the reach of a YAML reader's look-ahead.
const LONGEST_KEY: usize = 1024;

/// A value as YAML, byte for byte what `sigs.k8s.io/yaml` prints.
///
/// # Errors
///
/// [`Error::Marshal`] if serde cannot serialize the value. [`Error::Yaml`] for strings that Go cannot write either:
/// control characters, keys over 1022 characters. [`Error::Limit`] beyond [`super::MAX_DEPTH`].
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    let value = serde_json::to_value(value).map_err(|error| Error::Marshal {
        problem: error.to_string(),
    })?;
    value_to_string(&value)
}

/// As [`to_string`], for a value that is JSON already.
///
/// # Errors
///
/// As [`to_string`].
pub fn value_to_string(value: &Value) -> Result<String, Error> {
    check(value, 0)?;
    let mut emitter = Emitter::new();
    emit(&mut emitter, value, false);
    Ok(emitter.finish())
}

/// JSON as YAML, byte for byte what `sigs.k8s.io/yaml`'s `JSONToYAML` prints. It differs from [`value_to_string`] in
/// numbers: `1e15` remains a float if it is spelled so.
///
/// # Errors
///
/// [`Error::Json`] when the text is not JSON. Otherwise as [`to_string`].
pub fn json_to_yaml(json: &str) -> Result<String, Error> {
    match first_value(json, Position { line: 1, column: 1 })? {
        First::Value(node, _) => node_to_string(&node),
        First::End => Ok("null\n".to_owned()),
    }
}

pub(super) fn node_to_string(node: &Node) -> Result<String, Error> {
    check_node(node, 0)?;
    let mut emitter = Emitter::new();
    emit_node(&mut emitter, node, false);
    Ok(emitter.finish())
}

fn emit_node(emitter: &mut Emitter, node: &Node, after_key: bool) {
    match &node.value {
        Tree::Null | Tree::Bool(_) | Tree::Integer(_) | Tree::Unsigned(_) | Tree::Float(_) => {
            emitter.word(&respelled(node));
        }
        Tree::String(text) => emitter.string(&as_reread(text)),
        Tree::Sequence(items) if items.is_empty() => emitter.empty_collection(["[", "]"]),
        Tree::Sequence(items) => emitter.sequence(items, after_key, |emitter, item| emit_node(emitter, item, false)),
        Tree::Mapping(entries) if entries.is_empty() => emitter.empty_collection(["{", "}"]),
        Tree::Mapping(entries) => {
            let named = entries.iter().filter_map(|(key, value)| Some((key.as_str()?, value)));
            let mut entries: Vec<(&str, &Node)> = named.collect();
            sort_keys(&mut entries, &|entry: &(&str, &Node)| entry.0);
            emitter.mapping(&entries, |emitter, value| emit_node(emitter, value, true));
        }
    }
}

/// A JSON number as the YAML reader takes its spelling, and the YAML writer prints that.
fn respelled(node: &Node) -> String {
    let spelling = node.spelling().unwrap_or_default();
    match resolve_plain(spelling).1 {
        Scalar::Value(Tree::Integer(number)) => number.to_string(),
        Scalar::Value(Tree::Unsigned(number)) => number.to_string(),
        Scalar::Value(Tree::Float(number)) => number::yaml_text(number),
        _ => spelling.to_owned(),
    }
}

fn check_node(node: &Node, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    match &node.value {
        Tree::String(text) => check_characters(text),
        Tree::Sequence(items) => items.iter().try_for_each(|item| check_node(item, depth + 1)),
        Tree::Mapping(entries) => entries.iter().try_for_each(|(key, value)| {
            check_key(key.as_str().unwrap_or_default())?;
            check_node(value, depth + 1)
        }),
        _ => Ok(()),
    }
}

fn too_deep() -> Error {
    Error::Limit {
        problem: format!("exceeded max depth of {MAX_DEPTH}"),
        position: None,
    }
}

fn check_key(key: &str) -> Result<(), Error> {
    check_characters(key)?;
    if key.contains('\u{85}') || json_length(key) > LONGEST_KEY {
        return Err(Error::without_line("did not find expected ',' or '}'", None));
    }
    Ok(())
}

fn emit(emitter: &mut Emitter, value: &Value, after_key: bool) {
    match value {
        Value::Null => emitter.word("null"),
        Value::Bool(value) => emitter.word(if *value { "true" } else { "false" }),
        Value::Number(number) => emitter.word(&number_text(number)),
        Value::String(text) => emitter.string(&as_reread(text)),
        Value::Array(items) if items.is_empty() => emitter.empty_collection(["[", "]"]),
        Value::Array(items) => emitter.sequence(items, after_key, |emitter, item| emit(emitter, item, false)),
        Value::Object(map) if map.is_empty() => emitter.empty_collection(["{", "}"]),
        Value::Object(map) => {
            let mut entries: Vec<(&str, &Value)> = map.iter().map(|(key, value)| (key.as_str(), value)).collect();
            sort_keys(&mut entries, &|entry: &(&str, &Value)| entry.0);
            emitter.mapping(&entries, |emitter, value| emit(emitter, value, true));
        }
    }
}

fn number_text(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => match number::as_plain_integer(float) {
            Some(text) => text,
            None => number::yaml_text(float),
        },
        _ => number.to_string(),
    }
}

/// Rejects values that the YAML reader would change.
fn check(value: &Value, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    match value {
        Value::String(text) => check_characters(text),
        Value::Array(items) => items.iter().try_for_each(|item| check(item, depth + 1)),
        Value::Object(map) => map.iter().try_for_each(|(key, value)| {
            check_key(key)?;
            check(value, depth + 1)
        }),
        _ => Ok(()),
    }
}

fn check_characters(text: &str) -> Result<(), Error> {
    let forbidden = |c: char| matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}');
    if text.contains(forbidden) {
        return Err(Error::without_line("control characters are not allowed", None));
    }
    Ok(())
}

/// Characters of a string in Go's JSON, quotes included.
fn json_length(text: &str) -> usize {
    let characters = text.chars().map(|character| match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => 6,
        _ => 1,
    });
    characters.sum::<usize>() + 2
}

/// A string as the YAML reader sees it inside JSON: U+0085 is a line end there, so the reader folds it.
fn as_reread(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{85}') {
        return Cow::Borrowed(text);
    }
    let mut folded = String::with_capacity(text.len());
    let mut lines = text.split('\u{85}');
    folded.push_str(lines.next().unwrap_or_default());
    let mut breaks = 0;
    let mut rest = lines.peekable();
    while let Some(line) = rest.next() {
        if breaks == 0 {
            folded.truncate(folded.trim_end_matches(' ').len());
        }
        breaks += 1;
        let line = line.trim_start_matches(' ');
        if line.is_empty() && rest.peek().is_some() {
            continue;
        }
        if breaks == 1 {
            folded.push(' ')
        } else {
            (1..breaks).for_each(|_| folded.push('\n'))
        }
        folded.push_str(line);
        breaks = 0;
    }
    Cow::Owned(folded)
}
