//! Numbers as Go prints them, where its spelling reaches a value or a message.

use serde_json::Number;

/// A number as Go's encoding/json writes it.
pub fn json(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => json_float(float),
        _ => number.to_string(),
    }
}

fn json_float(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        let (digits, exponent) = scientific(&text);
        return format!("{digits}e{}{}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    }
    format!("{value}")
}

/// A float as `strconv.FormatFloat(value, 'g', -1, 64)`, which is also what `%v` prints.
pub fn general(value: f64) -> String {
    general_from(&format!("{value:e}"), || format!("{value}"))
}

/// A float as `strconv.FormatFloat(value, 'g', -1, 32)`: the YAML reader of the Go tools turns floats into strings this way.
#[expect(clippy::cast_possible_truncation, reason = "rounding to 32 bits is the point")]
pub fn general_32(value: f64) -> String {
    let short = value as f32;
    general_from(&format!("{short:e}"), || format!("{short}"))
}

fn general_from(shortest: &str, plain: impl Fn() -> String) -> String {
    let (digits, exponent) = scientific(shortest);
    if (-4..6).contains(&exponent) {
        return plain();
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// Splits what `{:e}` prints into digits and exponent.
fn scientific(text: &str) -> (&str, i32) {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    (digits, exponent.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_spelled_as_go_spells_them() {
        // Value, 64-bit %g, 32-bit %g, JSON: printed by Go.
        let vectors = [
            (1.0, "1", "1", "1"),
            (100_000.0, "100000", "100000", "100000"),
            (1_234_567.5, "1.2345675e+06", "1.2345675e+06", "1234567.5"),
            (1e20, "1e+20", "1e+20", "100000000000000000000"),
            (1e21, "1e+21", "1e+21", "1e+21"),
            (0.0001, "0.0001", "0.0001", "0.0001"),
            (0.00001, "1e-05", "1e-05", "0.00001"),
            (1e-7, "1e-07", "1e-07", "1e-7"),
            (4.10, "4.1", "4.1", "4.1"),
            (123_456_789_012.0, "1.23456789012e+11", "1.2345679e+11", "123456789012"),
            (-2.5e-9, "-2.5e-09", "-2.5e-09", "-2.5e-9"),
        ];
        for (value, wide, short, text) in vectors {
            assert_eq!(general(value), wide);
            assert_eq!(general_32(value), short);
            assert_eq!(json_float(value), text);
        }
    }
}
