//! Resolves scalars by the YAML 1.1 rules of go-yaml v2.

use olmkit_go::strconv::{parse_int, parse_uint};

use super::{Value, timestamp};

/// Prefix of the tags that YAML itself defines (`!!int` is short for `tag:yaml.org,2002:int`).
const YAML_TAG: &str = "tag:yaml.org,2002:";

/// The kind a scalar resolves to, as go-yaml names it in errors and as the writer needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `!!null`.
    Null,
    /// `!!bool`.
    Bool,
    /// `!!int`.
    Int,
    /// `!!float`.
    Float,
    /// `!!timestamp`.
    Timestamp,
    /// `!!str`.
    Str,
}

impl Kind {
    fn tag(self) -> &'static str {
        match self {
            Kind::Null => "!!null",
            Kind::Bool => "!!bool",
            Kind::Int => "!!int",
            Kind::Float => "!!float",
            Kind::Timestamp => "!!timestamp",
            Kind::Str => "!!str",
        }
    }
}

/// A resolved scalar. The string is not copied: [`Scalar::Text`] means the scalar's own spelling.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// The scalar is its own text.
    Text,
    /// Any other value, also text that was decoded from base64.
    Value(Value),
}

/// Resolves a plain scalar without a tag.
pub fn resolve_plain(text: &str) -> (Kind, Scalar) {
    resolve_hinted(text, true)
}

/// Resolves a scalar that has a tag, quoted or not. The error is go-yaml's text.
pub(super) fn resolve_tagged(tag: &str, text: &str) -> Result<Scalar, String> {
    let wanted = match tag.strip_prefix(YAML_TAG) {
        Some("str") => return Ok(Scalar::Text),
        Some("binary") => return decode_binary(text),
        Some("bool") => Kind::Bool,
        Some("int") => Kind::Int,
        Some("float") => Kind::Float,
        Some("null") => Kind::Null,
        Some("timestamp") => Kind::Timestamp,
        // go-yaml keeps a scalar with an unknown tag as a string.
        _ => return Ok(Scalar::Text),
    };
    let (kind, scalar) = resolve_hinted(text, wanted == Kind::Timestamp);
    match (wanted, kind, &scalar) {
        _ if wanted == kind => Ok(scalar),
        #[expect(clippy::cast_precision_loss, reason = "as go-yaml does")]
        (Kind::Float, Kind::Int, Scalar::Value(Value::Integer(number))) => {
            Ok(Scalar::Value(Value::Float(*number as f64)))
        }
        _ => Err(format!("cannot decode {} `{text}` as a {}", kind.tag(), wanted.tag())),
    }
}

fn decode_binary(text: &str) -> Result<Scalar, String> {
    let bytes =
        olmkit_go::base64::decode(text).map_err(|_| "!!binary value contains invalid base64 data".to_owned())?;
    Ok(Scalar::Value(Value::String(
        String::from_utf8_lossy(&bytes).into_owned(),
    )))
}

/// The first byte limits the possible types of a scalar, and decides most of them.
fn resolve_hinted(text: &str, may_be_timestamp: bool) -> (Kind, Scalar) {
    let Some(first) = text.bytes().next() else {
        return (Kind::Null, Scalar::Value(Value::Null));
    };
    let found = match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        b'.' => word(text).or_else(|| dotted_float(text).map(|number| (Kind::Float, Value::Float(number)))),
        b'+' | b'-' | b'0'..=b'9' => {
            if may_be_timestamp && timestamp::is_timestamp(text) {
                return (Kind::Timestamp, Scalar::Text);
            }
            word(text).or_else(|| number(text))
        }
        _ => None,
    };
    match found {
        Some((kind, value)) => (kind, Scalar::Value(value)),
        None => (Kind::Str, Scalar::Text),
    }
}

/// The YAML 1.1 words that are not strings.
fn word(text: &str) -> Option<(Kind, Value)> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            (Kind::Bool, Value::Bool(true))
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            (Kind::Bool, Value::Bool(false))
        }
        "~" | "null" | "Null" | "NULL" => (Kind::Null, Value::Null),
        ".nan" | ".NaN" | ".NAN" => (Kind::Float, Value::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => (Kind::Float, Value::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => (Kind::Float, Value::Float(f64::NEG_INFINITY)),
        _ => return None,
    })
}

/// A float that starts with its point. Here go-yaml leaves `_` to Go's own number syntax: only between digits.
fn dotted_float(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let between_digits = |at: usize| {
        let digit = |place: Option<usize>| place.and_then(|place| bytes.get(place)).is_some_and(u8::is_ascii_digit);
        digit(at.checked_sub(1)) && digit(Some(at + 1))
    };
    if bytes
        .iter()
        .enumerate()
        .any(|(at, byte)| *byte == b'_' && !between_digits(at))
    {
        return None;
    }
    float(&text.replace('_', ""))
}

/// Integers in any base that Go supports, and floats. `_` may appear anywhere except at the start.
fn number(text: &str) -> Option<(Kind, Value)> {
    let cleaned;
    let plain = if text.contains('_') {
        cleaned = text.replace('_', "");
        cleaned.as_str()
    } else {
        text
    };
    if let Some(value) = integer(plain) {
        return Some((Kind::Int, value));
    }
    if let Some(value) = float(plain) {
        return Some((Kind::Float, Value::Float(value)));
    }
    let binary = if let Some(digits) = plain.strip_prefix("0b") {
        signed(digits, 2)
    } else {
        plain
            .strip_prefix("-0b")
            .filter(|digits| !digits.starts_with(['+', '-']))
            .and_then(|digits| i64::from_str_radix(&format!("-{digits}"), 2).ok())
    };
    binary.map(|value| (Kind::Int, Value::Integer(value)))
}

/// Go's `ParseInt(text, 0, 64)`, then `ParseUint(text, 0, 64)`.
fn integer(text: &str) -> Option<Value> {
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-')) {
        return None;
    }
    match parse_int(text, 0) {
        Ok(number) => Some(Value::Integer(number)),
        Err(_) => parse_uint(text, 0).ok().map(Value::Unsigned),
    }
}

fn signed(digits: &str, radix: u32) -> Option<i64> {
    i64::from_str_radix(digits, radix).ok()
}

/// Floats: `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`. Too large a number is text, as in go-yaml.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (unsigned.get(..at)?, unsigned.get(at + 1..)),
        None => (unsigned, None),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(exponent) = exponent {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits.is_empty() || !all_digits(digits) {
            return None;
        }
    }
    let well_formed = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && all_digits(fraction),
        Some((whole, fraction)) => all_digits(whole) && all_digits(fraction),
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    if !well_formed {
        return None;
    }
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        match resolve_plain(text).1 {
            Scalar::Text => Value::String(text.to_owned()),
            Scalar::Value(value) => value,
        }
    }

    #[test]
    fn numbers_follow_yaml_1_1() {
        for (text, wanted) in [
            ("0644", Value::Integer(420)),
            ("0o17", Value::Integer(15)),
            ("0x1F", Value::Integer(31)),
            ("-0b11", Value::Integer(-3)),
            ("1_000", Value::Integer(1000)),
            ("08", Value::Float(8.0)),
            ("18446744073709551615", Value::Unsigned(u64::MAX)),
            ("18446744073709551616", Value::Float(18_446_744_073_709_551_616.0)),
            ("1e3", Value::Float(1000.0)),
            (".5", Value::Float(0.5)),
            ("1.", Value::Float(1.0)),
            ("+5", Value::Integer(5)),
        ] {
            assert_eq!(value(text), wanted, "{text}");
        }
    }

    #[test]
    fn near_numbers_are_strings() {
        for text in [
            "1e400", "0x", "0xg", "1.2.3", "-", "+", "._5", "12:30", "0b12", "1e", "--1", "+-1",
        ] {
            assert_eq!(value(text), Value::String(text.to_owned()), "{text}");
        }
    }
}
