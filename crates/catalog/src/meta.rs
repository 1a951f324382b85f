//! The keys that every blob may have, read before all others, with opm's error messages.

use super::text::{Numbers, Value};
use olmkit_go::fmt::Operand;
use olmkit_go::json::Html;
use olmkit_go::json::{names_field, write_indented};
use olmkit_go::strconv::quote;

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
/// With opm's message: not a map, two keys that differ only in case, a common key that is not a string.
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
            key if names_field(key, "schema") => &mut meta.schema,
            key if names_field(key, "name") => &mut meta.name,
            key if names_field(key, "package") => &mut meta.package,
            _ => continue,
        };
        match value {
            Value::String(text) => *field = text.as_ref().to_owned(),
            other => {
                return Err(format!(
                    "expected value for key {} to be a string, got {}: {}",
                    quote(key),
                    operand(other).t(),
                    operand(other).v()
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

/// opm prints the document with a mark after its first token.
fn not_a_map(value: &Value<'_>) -> String {
    let text = value.to_json(Numbers::Keep, Html::Escape);
    let mut pretty = String::new();
    write_indented(&mut pretty, &text, "    ");
    // The decoder stops after the bracket of a list, after the last byte of anything else.
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

/// The value as opm decodes it: every number is a float.
fn operand<'v>(value: &'v Value<'_>) -> Operand<'v> {
    match value {
        Value::Null => Operand::Nil,
        Value::Bool(value) => Operand::Bool(*value),
        Value::Integer(value) => Operand::Float(*value as f64),
        Value::Unsigned(value) => Operand::Float(*value as f64),
        Value::Float(value) => Operand::Float(*value),
        Value::String(text) => Operand::String(text),
        Value::Sequence(items) => Operand::Slice(items.iter().map(operand).collect()),
        Value::Mapping(entries) => Operand::Map(
            entries
                .iter()
                .map(|(key, value)| (key.as_ref(), operand(value)))
                .collect(),
        ),
    }
}
