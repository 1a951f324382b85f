//! The value of a scalar in PyYAML's safe loader.

use super::date::{self, Timestamp};
use super::{Raise, Value};

/// Prefix of the tags that YAML itself defines.
const YAML_TAG: &str = "tag:yaml.org,2002:";

/// Resolves a plain scalar without a tag.
pub(super) fn plain(text: &str) -> Result<Value, Raise> {
    let Some(first) = text.bytes().next() else {
        return Ok(Value::None);
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => {
            Ok(word(text).unwrap_or_else(|| Value::Str(text.to_owned())))
        }
        b'=' if text == "=" => Err(no_constructor("value")),
        b'<' if text == "<<" => Err(no_constructor("merge")),
        b'+' | b'-' | b'.' | b'0'..=b'9' => number_or_date(text),
        _ => Ok(Value::Str(text.to_owned())),
    }
}

/// Returns true if a plain scalar is certainly a string, regardless of its content.
pub(super) fn is_text(text: &str) -> bool {
    match text.bytes().next() {
        None | Some(b'+' | b'-' | b'.' | b'0'..=b'9' | b'~' | b'=' | b'<') => false,
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O') => {
            text.len() > 5 || word(text).is_none()
        }
        Some(_) => true,
    }
}

fn word(text: &str) -> Option<Value> {
    Some(match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Value::Bool(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Value::Bool(false),
        "~" | "null" | "Null" | "NULL" => Value::None,
        _ => return None,
    })
}

fn number_or_date(text: &str) -> Result<Value, Raise> {
    if is_float(text) {
        return float(text);
    }
    if is_int(text) {
        return int(text);
    }
    match date::timestamp(text) {
        Timestamp::No => Ok(Value::Str(text.to_owned())),
        Timestamp::Invalid(problem) => Err(Raise::value(problem)),
        Timestamp::Date(date) => Ok(Value::Date(date)),
    }
}

/// Resolves a scalar with a tag.
pub(super) fn tagged(tag: &str, text: &str) -> Result<Value, Raise> {
    match tag.strip_prefix(YAML_TAG) {
        Some("str") => Ok(Value::Str(text.to_owned())),
        Some("null") => Ok(Value::None),
        Some("bool") => match text.to_lowercase().as_str() {
            "yes" | "true" | "on" => Ok(Value::Bool(true)),
            "no" | "false" | "off" => Ok(Value::Bool(false)),
            _ => Err(Raise::other(format!("{text:?} is not a boolean"))),
        },
        Some("int") => int(text),
        Some("float") => float(text),
        Some("timestamp") => match date::timestamp(text) {
            Timestamp::No => Err(Raise::other(format!("{text:?} is not a timestamp"))),
            Timestamp::Invalid(problem) => Err(Raise::value(problem)),
            Timestamp::Date(date) => Ok(Value::Date(date)),
        },
        Some("binary") => Ok(Value::Other("bytes")),
        _ => Err(unknown_tag(tag)),
    }
}

fn no_constructor(name: &str) -> Raise {
    unknown_tag(&format!("{YAML_TAG}{name}"))
}

pub(super) fn unknown_tag(tag: &str) -> Raise {
    let problem = format!("could not determine a constructor for the tag '{tag}'");
    Raise::other(match tag.strip_prefix(YAML_TAG) {
        Some("value") => format!("{problem}: quote the `=`"),
        Some("merge") => format!("{problem}: quote the `<<`"),
        _ => problem,
    })
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

/// `[-+]?(0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(:[0-5]?[0-9])+)`
fn is_int(text: &str) -> bool {
    let text = unsigned(text);
    let all = |rest: &str, allowed: fn(u8) -> bool| {
        !rest.is_empty() && rest.bytes().all(|byte| byte == b'_' || allowed(byte))
    };
    if let Some(rest) = text.strip_prefix("0b") {
        return all(rest, |byte| matches!(byte, b'0' | b'1'));
    }
    if let Some(rest) = text.strip_prefix("0x") {
        return all(rest, |byte| byte.is_ascii_hexdigit());
    }
    if let Some(rest) = text.strip_prefix('0') {
        return rest.is_empty() || all(rest, |byte| matches!(byte, b'0'..=b'7'));
    }
    let mut parts = text.split(':');
    let whole = parts.next().unwrap_or_default();
    starts_with_digit(whole) && digits(whole) && parts.all(is_sixtieth)
}

/// `[0-5]?[0-9]`
fn is_sixtieth(part: &str) -> bool {
    match part.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => matches!(ten, b'0'..=b'5') && one.is_ascii_digit(),
        _ => false,
    }
}

fn is_float(text: &str) -> bool {
    let bare = unsigned(text);
    if matches!(bare, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let Some((whole, fraction)) = bare.split_once('.') else {
        return false;
    };
    if whole.is_empty() {
        return text == bare && starts_with_digit(fraction) && digits_and_exponent(fraction);
    }
    if !starts_with_digit(whole) {
        return false;
    }
    match whole.split_once(':') {
        Some((first, rest)) => digits(first) && rest.split(':').all(is_sixtieth) && digits(fraction),
        None => digits(whole) && digits_and_exponent(fraction),
    }
}

/// `[0-9_]*([eE][-+][0-9]+)?`
fn digits_and_exponent(text: &str) -> bool {
    match text.split_once(['e', 'E']) {
        Some((fraction, exponent)) => {
            let power = unsigned(exponent);
            digits(fraction) && power.len() < exponent.len() && !power.is_empty() && {
                power.bytes().all(|byte| byte.is_ascii_digit())
            }
        }
        None => digits(text),
    }
}

fn int(text: &str) -> Result<Value, Raise> {
    let plain = text.replace('_', "");
    let negative = plain.starts_with('-');
    let bare = unsigned(&plain);
    let (radix, digits) = match bare {
        "0" => return Ok(Value::Int(0)),
        _ if bare.starts_with("0b") => (2, bare.get(2..).unwrap_or_default()),
        _ if bare.starts_with("0x") => (16, bare.get(2..).unwrap_or_default()),
        _ if bare.starts_with('0') => (8, bare),
        _ if bare.contains(':') => {
            let mut parts = bare.split(':').map(|part| part.parse::<i64>().ok());
            let sum = parts.try_fold(0_i64, |sum, part| sum.checked_mul(60)?.checked_add(part?));
            return Ok(match sum {
                Some(sum) => Value::Int(if negative { -sum } else { sum }),
                None => Value::BigInt(bare.to_owned()),
            });
        }
        _ => (10, bare),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(Raise::value(format!(
            "invalid literal for int() with base {radix}: {}",
            super::text::quoted(digits)
        )));
    }
    let sign = if negative { "-" } else { "" };
    Ok(match i64::from_str_radix(&format!("{sign}{digits}"), radix) {
        Ok(value) => Value::Int(value),
        Err(_) => Value::BigInt(format!("{sign}{digits}")),
    })
}

fn float(text: &str) -> Result<Value, Raise> {
    let plain = text.replace('_', "").to_lowercase();
    let bare = unsigned(&plain);
    let value = match bare {
        ".inf" => f64::INFINITY,
        ".nan" => f64::NAN,
        _ if bare.contains(':') => {
            let parts = bare.split(':').map(|part| part.parse::<f64>().unwrap_or(f64::NAN));
            parts.fold(0.0, |sum, part| sum * 60.0 + part)
        }
        _ => bare.parse::<f64>().map_err(|_| {
            Raise::value(format!(
                "could not convert string to float: {}",
                super::text::quoted(bare)
            ))
        })?,
    };
    Ok(Value::Float(if plain.starts_with('-') { -value } else { value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_what_pyyaml_makes_of_them() {
        for (text, wanted) in [
            ("y", Value::Str("y".into())),
            ("on", Value::Bool(true)),
            ("NO", Value::Bool(false)),
            ("~", Value::None),
            ("010", Value::Int(8)),
            ("08", Value::Str("08".into())),
            ("1_000", Value::Int(1000)),
            ("-0x1F", Value::Int(-31)),
            ("0o17", Value::Str("0o17".into())),
            ("12:30", Value::Int(750)),
            ("1.0", Value::Float(1.0)),
            ("1.", Value::Float(1.0)),
            (".5", Value::Float(0.5)),
            ("-.5", Value::Str("-.5".into())),
            ("1e3", Value::Str("1e3".into())),
            ("1.0e3", Value::Str("1.0e3".into())),
            ("1.0e+3", Value::Float(1000.0)),
            ("1.2.3", Value::Str("1.2.3".into())),
            ("4.12", Value::Float(4.12)),
            ("-", Value::Str("-".into())),
        ] {
            assert_eq!(plain(text), Ok(wanted), "{text}");
        }
        assert!(plain("=").is_err());
        assert!(plain("0x_").is_err());
        assert!(plain("2024-13-01").is_err());
    }
}
