//! Numbers in the spelling of the Go tools.

use olmkit_go::json;
use olmkit_go::strconv::{format_g, format_g32};

/// The object key of a float.
pub(crate) fn key_text(value: f64) -> String {
    yaml_special(format_g32(value))
}

/// A float as go-yaml writes it.
pub(crate) fn yaml_text(value: f64) -> String {
    yaml_special(format_g(value))
}

/// The integer that a float is once Go has written it as JSON and read it back into an untyped object.
pub(crate) fn as_integer(value: f64) -> Option<i64> {
    // 2^63 itself does not fit. Every float below it that has no fraction does.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    (value.fract() == 0.0 && (-LIMIT..LIMIT).contains(&value)).then_some(value as i64)
}

fn yaml_special(text: String) -> String {
    match text.as_str() {
        "+Inf" => ".inf".to_owned(),
        "-Inf" => "-.inf".to_owned(),
        "NaN" => ".nan".to_owned(),
        _ => text,
    }
}

/// A float's JSON form if a YAML reader reads it as an integer: no fraction, no exponent, within 64 bits.
pub(crate) fn as_plain_integer(value: f64) -> Option<String> {
    // 2^64. Whole numbers from there on are floats to a YAML reader.
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    const LOWEST: f64 = -9_223_372_036_854_775_808.0;
    if value.fract() != 0.0 || !(LOWEST..LIMIT).contains(&value) {
        return None;
    }
    let text = json::float(value);
    Some(if text == "-0" { "0".to_owned() } else { text })
}
