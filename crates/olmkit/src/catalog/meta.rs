//! The keys that every blob may have, read before anything else of it, with opm's error texts.

use super::decode::names;
use super::text::value::{write_float, write_indented};
use super::text::{Html, Numbers, Value};
use crate::object::quoted;

/// The keys that every blob may have.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// `schema`
    pub schema: String,
    /// `name`
    pub name: String,
    /// `package`
    pub package: String,
}

/// Reads the common keys of a blob.
///
/// # Errors
/// In opm's words: not a map, two keys that differ in case only, a common key that is no string.
pub fn read(value: &Value<'_>) -> Result<Meta, String> {
    let mut meta = Meta::default();
    let entries = match value {
        Value::Null => return Ok(meta),
        Value::Mapping(entries) => entries,
        other => return Err(not_a_map(other)),
    };
    duplicate_keys(entries.iter().map(|(key, _)| key.as_ref()))?;
    for (key, value) in entries {
        let field = match key {
            key if names(key, "schema") => &mut meta.schema,
            key if names(key, "name") => &mut meta.name,
            key if names(key, "package") => &mut meta.package,
            _ => continue,
        };
        match value {
            Value::String(text) => *field = text.as_ref().to_owned(),
            other => {
                return Err(format!(
                    "expected value for key {} to be a string, got {}: {}",
                    quoted(key),
                    go_format(other, true),
                    go_format(other, false)
                ));
            }
        }
    }
    Ok(meta)
}

fn duplicate_keys<'k>(keys: impl Iterator<Item = &'k str>) -> Result<(), String> {
    let mut folded: Vec<(String, &str)> = keys.map(|key| (key.to_lowercase(), key)).collect();
    folded.sort();
    let mut errors = Vec::new();
    for group in folded.chunk_by(|left, right| left.0 == right.0) {
        if let [(fold, _), _, ..] = group {
            let keys: Vec<&str> = group.iter().map(|(_, key)| *key).collect();
            errors.push(format!("duplicate keys for key \"{fold}\": [{}]", keys.join(" ")));
        }
    }
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

/// opm shows the document with a mark behind its first token.
fn not_a_map(value: &Value<'_>) -> String {
    let text = value.to_json(Numbers::Keep, Html::Escape);
    let mut pretty = String::new();
    write_indented(&mut pretty, &text, "    ");
    // The decoder stops behind the bracket of a list, behind the last byte of anything else.
    let offset = if matches!(value, Value::Sequence(_)) {
        1
    } else {
        text.len()
    };
    let (head, tail) = pretty.split_at_checked(offset).unwrap_or((&pretty, ""));
    let kind = value.go_kind();
    format!(
        "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}} at offset {offset} \
         (indicated by <==)\n{head} <== {tail}"
    )
    .trim_end()
    .to_owned()
}

/// Go's `%v`, or `%t` with its complaint about everything that is no boolean.
fn go_format(value: &Value<'_>, as_bool: bool) -> String {
    let wrap = |kind: &str, text: String| if as_bool { format!("%!t({kind}={text})") } else { text };
    match value {
        Value::Null => if as_bool { "%!t(<nil>)" } else { "<nil>" }.into(),
        Value::Bool(value) => value.to_string(),
        Value::Integer(value) => wrap("float64", go_number(*value as f64)),
        Value::Unsigned(value) => wrap("float64", go_number(*value as f64)),
        Value::Float(value) => wrap("float64", go_number(*value)),
        Value::String(text) => wrap("string", text.as_ref().to_owned()),
        Value::Sequence(items) => {
            let items: Vec<String> = items.iter().map(|item| go_format(item, as_bool)).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Mapping(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{}:{}", wrap("string", key.to_string()), go_format(value, as_bool)))
                .collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

/// Go's `%v` of a float: an exponent of two digits below 1e-4 and from 1e6 on, else plain.
fn go_number(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value != 0.0 && !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let mut out = String::new();
    write_float(&mut out, value);
    out
}
