//! The value tree of one blob, and its JSON as the Go tools write it.
//!
//! Catalogs of a hundred megabytes pass through here, so strings borrow from the source where they can. Positions
//! are not kept: to report an error, a caller reads the document again with [`olmkit_yaml`].

use std::borrow::Cow;

use olmkit_go::json::{Html, write_float, write_string};

/// A JSON value. Mappings are sorted by key bytes and contain each key once, as Go writes maps.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// An integer that fits 64 bits with a sign.
    Integer(i64),
    /// An integer above `i64::MAX`.
    Unsigned(u64),
    /// Any other number. Always finite.
    Float(f64),
    /// A string.
    String(Cow<'a, str>),
    /// A list.
    Sequence(Vec<Value<'a>>),
    /// A map, sorted by key.
    Mapping(Vec<(Cow<'a, str>, Value<'a>)>),
}

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Integers keep their digits.
    Keep,
    /// Every number is converted to a 64-bit float, as in opm: above 2^53 digits are lost.
    Float64,
}

impl<'a> Value<'a> {
    /// Makes a mapping from entries in any order: sorts them, and the last of equal keys wins.
    pub fn mapping(mut entries: Vec<(Cow<'a, str>, Value<'a>)>) -> Self {
        if !entries.is_sorted_by(|left, right| left.0 < right.0) {
            // Stable, so that of equal keys the last one remains last.
            entries.sort_by(|left, right| left.0.cmp(&right.0));
            entries.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    std::mem::swap(&mut later.1, &mut earlier.1);
                }
                same
            });
        }
        Value::Mapping(entries)
    }

    /// The value of a key, compared exactly.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        match self {
            Value::Mapping(entries) => {
                let at = entries.binary_search_by(|(name, _)| name.as_ref().cmp(key)).ok()?;
                entries.get(at).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The content, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The items, if this is a list. Else nothing.
    pub fn items(&self) -> &[Value<'a>] {
        match self {
            Value::Sequence(items) => items,
            _ => &[],
        }
    }

    /// The entries, if this is a map. Else nothing.
    pub fn entries(&self) -> &[(Cow<'a, str>, Value<'a>)] {
        match self {
            Value::Mapping(entries) => entries,
            _ => &[],
        }
    }

    /// The name of this kind of value in Go's decoding errors.
    pub fn go_kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Integer(_) | Value::Unsigned(_) | Value::Float(_) => "number",
            Value::String(_) => "string",
            Value::Sequence(_) => "array",
            Value::Mapping(_) => "object",
        }
    }

    /// Copies the borrowed strings.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(value),
            Value::Integer(value) => Value::Integer(value),
            Value::Unsigned(value) => Value::Unsigned(value),
            Value::Float(value) => Value::Float(value),
            Value::String(text) => Value::String(Cow::Owned(text.into_owned())),
            Value::Sequence(items) => Value::Sequence(items.into_iter().map(Value::into_owned).collect()),
            Value::Mapping(entries) => Value::Mapping(
                entries
                    .into_iter()
                    .map(|(key, value)| (Cow::Owned(key.into_owned()), value.into_owned()))
                    .collect(),
            ),
        }
    }

    /// Compact JSON.
    pub fn to_json(&self, numbers: Numbers, html: Html) -> String {
        let mut out = String::new();
        self.write_json(&mut out, numbers, html);
        out
    }

    /// Appends compact JSON.
    pub fn write_json(&self, out: &mut String, numbers: Numbers, html: Html) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Integer(value) => write_integer(out, *value, numbers),
            Value::Unsigned(value) => match numbers {
                Numbers::Keep => out.push_str(&value.to_string()),
                Numbers::Float64 => write_float(out, *value as f64),
            },
            Value::Float(value) => write_float(out, *value),
            Value::String(text) => write_string(out, text, html),
            Value::Sequence(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write_json(out, numbers, html);
                }
                out.push(']');
            }
            Value::Mapping(entries) => {
                out.push('{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write_string(out, key, html);
                    out.push(':');
                    value.write_json(out, numbers, html);
                }
                out.push('}');
            }
        }
    }
}

impl From<serde_json::Value> for Value<'static> {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(value),
            serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Value::Integer(value),
                (None, Some(value)) => Value::Unsigned(value),
                (None, None) => Value::Float(number.as_f64().unwrap_or_default()),
            },
            serde_json::Value::String(text) => Value::String(Cow::Owned(text)),
            serde_json::Value::Array(items) => Value::Sequence(items.into_iter().map(Value::from).collect()),
            serde_json::Value::Object(entries) => Value::mapping(
                entries
                    .into_iter()
                    .map(|(key, value)| (Cow::Owned(key), Value::from(value)))
                    .collect(),
            ),
        }
    }
}

fn write_integer(out: &mut String, value: i64, numbers: Numbers) {
    const EXACT: u64 = 1 << 53;
    if numbers == Numbers::Float64 && value.unsigned_abs() > EXACT {
        write_float(out, value as f64);
    } else {
        out.push_str(&value.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_above_2_53_lose_digits_in_blobs() {
        assert_eq!(
            Value::Integer(9007199254740993).to_json(Numbers::Float64, Html::Plain),
            "9007199254740992"
        );
        assert_eq!(
            Value::Integer(9007199254740993).to_json(Numbers::Keep, Html::Plain),
            "9007199254740993"
        );
    }

    #[test]
    fn the_last_of_equal_keys_wins() {
        let value = Value::mapping(vec![
            ("b".into(), Value::Integer(1)),
            ("a".into(), Value::Integer(2)),
            ("b".into(), Value::Integer(3)),
        ]);
        assert_eq!(value.to_json(Numbers::Keep, Html::Plain), r#"{"a":2,"b":3}"#);
    }
}
