//! What an unquoted scalar means: the resolution of go-yaml v2 (YAML 1.1).

use std::borrow::Cow;

use super::value::Value;

/// Resolves an unquoted scalar. `None` means a value that JSON cannot hold (`.inf`, `.nan`) or that this quick way
/// leaves to the full reader.
pub fn resolve(text: &str) -> Option<Value<'_>> {
    let string = || Some(Value::String(Cow::Borrowed(text)));
    match text.as_bytes().first() {
        None | Some(b'~') if text.len() <= 1 => Some(Value::Null),
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O') if text.len() <= 5 => match text {
            "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
                Some(Value::Bool(true))
            }
            "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
                Some(Value::Bool(false))
            }
            "null" | "Null" | "NULL" => Some(Value::Null),
            _ => string(),
        },
        Some(b'<' | b'=') if text.len() <= 2 => None,
        Some(b'.') => match text {
            ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN" => None,
            _ => number(text).or_else(string),
        },
        Some(b'0'..=b'9' | b'+' | b'-') => match text {
            "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" => None,
            _ => number(text).or_else(string),
        },
        _ => string(),
    }
}

/// The number that go-yaml reads in a text that begins like one; `None` if it is none.
fn number(text: &str) -> Option<Value<'static>> {
    // The longest number is a 64-digit binary with a sign; floats may be longer but then have only float characters.
    if !text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_'))
    {
        return None;
    }
    let plain: Cow<'_, str> = if text.contains('_') {
        Cow::Owned(text.replace('_', ""))
    } else {
        Cow::Borrowed(text)
    };
    integer(&plain).or_else(|| float(&plain))
}

/// `strconv.ParseInt` with base 0, then `ParseUint`.
fn integer(text: &str) -> Option<Value<'static>> {
    let (negative, signed, digits) = match text.as_bytes().first()? {
        b'-' => (true, true, text.get(1..)?),
        b'+' => (false, true, text.get(1..)?),
        _ => (false, false, text),
    };
    let (base, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    // from_str_radix takes a sign of its own; after ours that would be a second one.
    if !digits.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return None;
    }
    let size = u64::from_str_radix(digits, base).ok()?;
    match (negative, i64::try_from(size)) {
        (false, Ok(value)) => Some(Value::Integer(value)),
        (false, Err(_)) if !signed => Some(Value::Unsigned(size)),
        (true, Ok(value)) => Some(Value::Integer(-value)),
        (true, Err(_)) if size == 1 << 63 => Some(Value::Integer(i64::MIN)),
        _ => None,
    }
}

/// A decimal float: `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn float(text: &str) -> Option<Value<'static>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (unsigned.get(..at)?, Some(unsigned.get(at + 1..)?)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let well_formed = digits(whole)
        && fraction.is_none_or(digits)
        && !(whole.is_empty() && fraction.unwrap_or_default().is_empty())
        && exponent.is_none_or(|exponent| {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !exponent.is_empty() && digits(exponent)
        });
    if !well_formed {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Value::Float(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_as_go_yaml_does() {
        let cases = [
            ("", Some(Value::Null)),
            ("~", Some(Value::Null)),
            ("yes", Some(Value::Bool(true))),
            ("y", Some(Value::Bool(true))),
            ("Off", Some(Value::Bool(false))),
            ("1.14.0", Some(Value::String("1.14.0".into()))),
            ("0644", Some(Value::Integer(420))),
            ("08", Some(Value::Float(8.0))),
            ("1_000", Some(Value::Integer(1000))),
            ("0x1F", Some(Value::Integer(31))),
            ("-0b11", Some(Value::Integer(-3))),
            ("1e3", Some(Value::Float(1000.0))),
            ("1.", Some(Value::Float(1.0))),
            (".5", Some(Value::Float(0.5))),
            (".", Some(Value::String(".".into()))),
            ("-", Some(Value::String("-".into()))),
            ("1e400", Some(Value::String("1e400".into()))),
            ("18446744073709551615", Some(Value::Unsigned(u64::MAX))),
            ("18446744073709551616", Some(Value::Float(18446744073709551616.0))),
            ("2024-01-01", Some(Value::String("2024-01-01".into()))),
            ("12:30:45", Some(Value::String("12:30:45".into()))),
            (".inf", None),
            ("<<", None),
        ];
        for (text, expected) in cases {
            assert_eq!(resolve(text), expected, "{text:?}");
        }
    }
}
