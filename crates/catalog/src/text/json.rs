//! JSON values of a stream, within the limits of a document.

use std::borrow::Cow;
use std::cell::Cell;

use serde::Deserialize;
use serde::de::DeserializeSeed as _;

use super::value::Value;
use olmkit_yaml as yaml;

/// The part of the input that one document may have, and a little more, so that a longer one is detected.
pub(super) fn within_limit(text: &str) -> &str {
    let end = text.floor_char_boundary(yaml::MAX_DOCUMENT_BYTES + 8);
    text.get(..end).unwrap_or(text)
}

/// The consecutive values of a stream.
pub(super) fn json_values(
    text: &str,
) -> serde_json::StreamDeserializer<'_, serde_json::de::StrRead<'_>, JsonValue<'_>> {
    serde_json::Deserializer::from_str(text).into_iter()
}

/// Reads a single JSON value. Strings without escapes are borrowed from the input.
///
/// # Errors
/// The input is not JSON.
pub fn json(text: &str) -> Result<Value<'_>, serde_json::Error> {
    serde_json::from_str::<JsonValue<'_>>(text).map(|value| value.0)
}

/// Builds a [`Value`] that borrows its strings from the JSON. It may have as many values as a YAML document.
pub(super) struct JsonValue<'a>(pub(super) Value<'a>);

impl<'de> Deserialize<'de> for JsonValue<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let room = Cell::new(yaml::MAX_NODES);
        JsonVisitor(&room).deserialize(deserializer).map(JsonValue)
    }
}

/// Reads a value, and counts how many further ones there may be.
#[derive(Clone, Copy)]
struct JsonVisitor<'r>(&'r Cell<usize>);

impl<'de> serde::de::DeserializeSeed<'de> for JsonVisitor<'_> {
    type Value = Value<'de>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value<'de>, D::Error> {
        let Some(room) = self.0.get().checked_sub(1) else {
            let most = yaml::MAX_NODES;
            return Err(serde::de::Error::custom(format_args!(
                "a document has more than {most} values"
            )));
        };
        self.0.set(room);
        deserializer.deserialize_any(self)
    }
}

impl<'de> serde::de::Visitor<'de> for JsonVisitor<'_> {
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
        while let Some(item) = access.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Sequence(items))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut access: A) -> Result<Value<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key::<JsonKey<'de>>()? {
            entries.push((key.0, access.next_value_seed(self)?));
        }
        Ok(Value::mapping(entries))
    }
}

/// A key that borrows when it can. Serde's own `Cow` never does.
struct JsonKey<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for JsonKey<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let room = Cell::new(0);
        match deserializer.deserialize_str(JsonVisitor(&room))? {
            Value::String(text) => Ok(JsonKey(text)),
            _ => Err(serde::de::Error::custom("a key must be a string")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_no_more_values_than_a_document_may() {
        let list = |count: usize| format!("[{}1]", "1,".repeat(count - 1));
        assert!(json(&list(yaml::MAX_NODES - 1)).is_ok());
        let error = json(&list(yaml::MAX_NODES)).unwrap_err().to_string();
        assert!(error.contains("more than 1000000 values"), "{error}");
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(within_limit("short"), "short");
        let long = "ä".repeat(yaml::MAX_DOCUMENT_BYTES);
        let cut = within_limit(&long);
        assert!(cut.len() > yaml::MAX_DOCUMENT_BYTES && cut.len() < yaml::MAX_DOCUMENT_BYTES + 16);
    }
}
