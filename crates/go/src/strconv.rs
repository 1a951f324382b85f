//! Quoting and numbers as in Go's `strconv`.

use std::fmt::Write as _;

use crate::unicode::is_print;

/// `strconv.Quote`, which `%q` prints.
///
/// ```
/// assert_eq!(olmkit_go::strconv::quote("a\t\u{feff}é"), r#""a\t\ufeffé""#);
/// ```
#[must_use]
pub fn quote(text: &str) -> String {
    quote_with(text.as_bytes(), is_print)
}

/// `strconv.QuoteToASCII`, which `%+q` prints.
#[must_use]
pub fn quote_to_ascii(text: &str) -> String {
    quote_with(text.as_bytes(), |character| matches!(character, ' '..='~'))
}

/// `strconv.Quote` of a Go string that need not be UTF-8.
#[must_use]
pub fn quote_bytes(bytes: &[u8]) -> String {
    quote_with(bytes, is_print)
}

/// `strconv.QuoteRune`, which `%q` prints for a character.
#[must_use]
pub fn quote_rune(character: char) -> String {
    let mut out = String::from("'");
    push_escaped(&mut out, character, '\'', &is_print);
    out.push('\'');
    out
}

fn quote_with(bytes: &[u8], plain: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            push_escaped(&mut out, character, '"', &plain);
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}

fn push_escaped(out: &mut String, character: char, quote: char, plain: &impl Fn(char) -> bool) {
    match character {
        '\\' => out.push_str("\\\\"),
        same if same == quote => out.extend(['\\', same]),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\u{b}' => out.push_str("\\v"),
        '\u{c}' => out.push_str("\\f"),
        '\r' => out.push_str("\\r"),
        visible if plain(visible) => out.push(visible),
        // Writing to a String cannot fail.
        '\0'..='\u{1f}' | '\u{7f}' => {
            let _ = write!(out, "\\x{:02x}", u32::from(character));
        }
        '\0'..='\u{ffff}' => {
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        }
        _ => {
            let _ = write!(out, "\\U{:08x}", u32::from(character));
        }
    }
}

/// `strconv.FormatFloat(value, 'g', -1, 64)`: the shortest digits that read back equal, with an exponent below 1e-4 and
/// from 1e+06 on. `%v` prints the same.
#[must_use]
pub fn format_g(value: f64) -> String {
    special(value).map_or_else(|| general(&format!("{value:e}"), || format!("{value}")), str::to_owned)
}

/// `strconv.FormatFloat(value, 'g', -1, 32)`: the number is first rounded to 32 bits.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "rounding to 32 bits is the point")]
pub fn format_g32(value: f64) -> String {
    let narrow = value as f32;
    special(f64::from(narrow)).map_or_else(
        || general(&format!("{narrow:e}"), || format!("{narrow}")),
        str::to_owned,
    )
}

fn special(value: f64) -> Option<&'static str> {
    match value {
        _ if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("+Inf"),
        f64::NEG_INFINITY => Some("-Inf"),
        _ => None,
    }
}

/// Chooses between the two layouts, given the output of `{:e}`. Shortest digits count as six for that choice.
fn general(scientific: &str, plain: impl Fn() -> String) -> String {
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return plain();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// `strconv.NumError`, the error for a string that is not a number. Prints Go's message and does not allocate before, for callers that
/// only test for a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumError<'t> {
    function: &'static str,
    text: &'t str,
    reason: &'static str,
}

impl std::fmt::Display for NumError<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "strconv.{}: parsing {}: {}",
            self.function,
            quote(self.text),
            self.reason
        )
    }
}

impl std::error::Error for NumError<'_> {}

/// `strconv.ParseInt(text, base, 64)`. Base 0 reads the base from the prefix (`0x`, `0o`, `0b`, `0`) and allows `_`
/// between digits.
///
/// # Errors
/// The string is not a number in that base, or the number does not fit.
///
/// ```
/// use olmkit_go::strconv::parse_int;
///
/// assert_eq!(parse_int("-0x1f", 0), Ok(-31));
/// let error = parse_int("1.5", 10).unwrap_err();
/// assert_eq!(error.to_string(), r#"strconv.ParseInt: parsing "1.5": invalid syntax"#);
/// ```
pub fn parse_int(text: &str, base: u32) -> Result<i64, NumError<'_>> {
    let fault = |reason| NumError {
        function: "ParseInt",
        text,
        reason,
    };
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let magnitude = magnitude(unsigned, base).map_err(fault)?;
    let value = if negative {
        0i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    };
    value.ok_or_else(|| fault(OUT_OF_RANGE))
}

/// `strconv.ParseUint(text, base, 64)`.
///
/// # Errors
/// As of [`parse_int`]. A sign is an error too.
pub fn parse_uint(text: &str, base: u32) -> Result<u64, NumError<'_>> {
    magnitude(text, base).map_err(|reason| NumError {
        function: "ParseUint",
        text,
        reason,
    })
}

const INVALID: &str = "invalid syntax";
const OUT_OF_RANGE: &str = "value out of range";

fn magnitude(text: &str, base: u32) -> Result<u64, &'static str> {
    if text.is_empty() {
        return Err(INVALID);
    }
    let (base, digits, underscores) = match base {
        0 => {
            let (base, digits) = prefixed(text);
            (base, digits, true)
        }
        base => (base, text, false),
    };
    let mut value = Some(0u64);
    for character in digits.chars() {
        if underscores && character == '_' {
            continue;
        }
        let digit = character.to_digit(base).ok_or(INVALID)?;
        value = value
            .and_then(|value| value.checked_mul(base.into()))
            .and_then(|value| value.checked_add(digit.into()));
        if value.is_none() {
            // The rest is ignored.
            return Err(OUT_OF_RANGE);
        }
    }
    if underscores && text.contains('_') && !underscores_separate(text) {
        return Err(INVALID);
    }
    value.ok_or(OUT_OF_RANGE)
}

/// Splits off the prefix of a base. A single leading zero is octal too.
fn prefixed(text: &str) -> (u32, &str) {
    let rest = |from: usize| text.get(from..).unwrap_or_default();
    match text.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, rest(2)),
        [b'0', b'o' | b'O', _, ..] => (8, rest(2)),
        [b'0', b'b' | b'B', _, ..] => (2, rest(2)),
        [b'0', ..] => (8, rest(1)),
        _ => (10, text),
    }
}

/// Each `_` must be between digits, or between the prefix and a digit.
fn underscores_separate(text: &str) -> bool {
    let (digits, mut before) = match text.as_bytes() {
        [b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B', rest @ ..] => (rest, true),
        all => (all, false),
    };
    let mut bytes = digits.iter().peekable();
    while let Some(byte) = bytes.next() {
        let digit = byte.is_ascii_alphanumeric();
        if *byte == b'_' && !(before && bytes.peek().is_some_and(|next| next.is_ascii_alphanumeric())) {
            return false;
        }
        before = digit;
    }
    true
}
