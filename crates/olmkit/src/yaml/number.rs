//! Numbers in Go's spelling.

/// Go's `strconv.FormatFloat(value, 'g', -1, 64)`: shortest digits, exponent form below 1e-4 and from 1e+06 on.
pub(crate) fn format_g64(value: f64) -> String {
    if let Some(special) = special(value) {
        return special.to_owned();
    }
    format_g(&format!("{value:e}"))
}

/// Go's `strconv.FormatFloat(value, 'g', -1, 32)`: the number is first rounded to 32 bits.
pub(crate) fn format_g32(value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "Go rounds to 32 bits here, and we must print what it prints"
    )]
    let narrow = value as f32;
    if let Some(special) = special(f64::from(narrow)) {
        return special.to_owned();
    }
    format_g(&format!("{narrow:e}"))
}

/// What a float becomes as an object key.
pub(crate) fn key_text(value: f64) -> String {
    yaml_special(format_g32(value))
}

/// A float as go-yaml writes it.
pub(crate) fn yaml_text(value: f64) -> String {
    yaml_special(format_g64(value))
}

/// A float as Go's encoding/json writes it: plain digits between 1e-6 and 1e21, else an exponent without padding.
/// Not for infinities and NaN, which JSON does not have.
pub(crate) fn json_text(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
            _ => text,
        };
    }
    format!("{value}")
}

/// The integer that a float is once Go has written it as JSON and read it back into an untyped object.
pub(crate) fn as_integer(value: f64) -> Option<i64> {
    // 2^63 itself does not fit; every float below it that has no fraction does.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    (value.fract() == 0.0 && (-LIMIT..LIMIT).contains(&value)).then_some(value as i64)
}

fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        None
    }
}

fn yaml_special(text: String) -> String {
    match text.as_str() {
        "+Inf" => ".inf".to_owned(),
        "-Inf" => "-.inf".to_owned(),
        "NaN" => ".nan".to_owned(),
        _ => text,
    }
}

/// Turns Rust's shortest exponent form (`1.5e-7`) into Go's `%g`.
fn format_g(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    // For the shortest form Go takes a precision of 6 to choose between the two layouts.
    if !(-4..6).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}e{exponent_sign}{:02}", exponent.abs());
    }
    plain(sign, &digits, exponent)
}

fn plain(sign: &str, digits: &str, exponent: i32) -> String {
    let before_point = exponent + 1;
    let Ok(before_point) = usize::try_from(before_point) else {
        let zeros = "0".repeat(before_point.unsigned_abs() as usize);
        return format!("{sign}0.{zeros}{digits}");
    };
    if before_point == 0 {
        return format!("{sign}0.{digits}");
    }
    match digits.split_at_checked(before_point) {
        Some((whole, "")) => format!("{sign}{whole}"),
        Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
        None => format!("{sign}{digits}{}", "0".repeat(before_point - digits.len())),
    }
}

/// A float's JSON text where a YAML reader takes it for an integer: no fraction, no exponent, within 64 bits.
pub(crate) fn as_plain_integer(value: f64) -> Option<String> {
    // 2^64; whole numbers from there on are floats to a YAML reader.
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    const LOWEST: f64 = -9_223_372_036_854_775_808.0;
    if value.fract() != 0.0 || !(LOWEST..LIMIT).contains(&value) {
        return None;
    }
    let text = json_text(value);
    Some(if text == "-0" { "0".to_owned() } else { text })
}
