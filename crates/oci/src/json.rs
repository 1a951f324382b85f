//! JSON as Go programs read it. They write most of these documents, and accept more than they write: field names in any case,
//! repeated fields, of which the last one counts, `null` instead of a missing field, and strings that are not Unicode.

use std::borrow::Cow;

use olmkit::go::json::names_field;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a document whose fields may be repeated.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_value(serde_json::from_slice(&repair(bytes))?)
}

/// A document with U+FFFD in place of bytes that are not UTF-8 and of escaped halves of surrogate pairs.
pub(crate) fn repair(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut repaired = match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(_) => Cow::Borrowed(bytes),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    for at in lone_surrogates(&repaired) {
        if let Some(digits) = repaired.to_mut().get_mut(at + 2..at + 6) {
            digits.copy_from_slice(b"fffd");
        }
    }
    repaired
}

/// The positions of `\uXXXX` that are half of a surrogate pair without the other half.
fn lone_surrogates(bytes: &[u8]) -> Vec<usize> {
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut lone = Vec::new();
    let mut at = 0;
    while let Some(next) = bytes
        .get(at..)
        .and_then(|rest| rest.iter().position(|byte| *byte == b'\\'))
    {
        at += next;
        let (first, second) = (unit(at), unit(at + 6));
        at += match (first, second) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                lone.push(at);
                6
            }
            // An escape of one character, such as an escaped backslash.
            _ => 2,
        };
    }
    lone
}

/// Renames the fields of an object that differ from `names` only in case, and removes those that are `null`. If a field has several
/// spellings, the one in `names` counts.
pub(crate) fn spell(object: &mut Value, names: &[&str]) {
    let Value::Object(fields) = object else { return };
    for name in names {
        let others: Vec<String> = fields
            .keys()
            .filter(|key| key != name && names_field(key, name))
            .cloned()
            .collect();
        for other in others {
            if let Some(value) = fields.remove(&other) {
                fields.entry(*name).or_insert(value);
            }
        }
        if fields.get(*name).is_some_and(Value::is_null) {
            fields.remove(*name);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_read_in_any_case() {
        let mut value = json!({"Config": 1, "LAYERS": 2, "layers": 3, "os": null, "other": null, "\u{17f}ize": 4});
        spell(&mut value, &["config", "layers", "os", "size"]);
        assert_eq!(value, json!({"config": 1, "layers": 3, "other": null, "size": 4}));
        spell(&mut Value::Null, &["a"]);
    }

    #[test]
    fn strings_that_are_not_unicode_are_repaired() {
        for (text, expected) in [
            (&br#"["a\ud83d\ude00\u00e9"]"#[..], "a\u{1f600}\u{e9}"),
            (br#"["\ud83dx"]"#, "\u{fffd}x"),
            (br#"["\ude00\ud83d"]"#, "\u{fffd}\u{fffd}"),
            (br#"["\ud83d\ud83d\ude00"]"#, "\u{fffd}\u{1f600}"),
            (br#"["\\ud83d"]"#, "\\ud83d"),
            (b"[\"\xff\"]", "\u{fffd}"),
        ] {
            assert_eq!(parse::<Vec<String>>(text).unwrap(), [expected]);
        }
        for text in [&br#"["\u+d80"]"#[..], br#"["\ud8"]"#, br#"["\"#] {
            assert!(parse::<Vec<String>>(text).is_err());
        }
        assert!(matches!(repair(b"{}"), Cow::Borrowed(_)));
    }

    #[test]
    fn the_last_of_repeated_fields_counts() {
        #[derive(serde::Deserialize)]
        struct Document {
            a: u32,
        }
        assert_eq!(parse::<Document>(br#"{"a":1,"a":2}"#).unwrap().a, 2);
    }
}
