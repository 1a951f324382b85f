//! Resource quantities in the spelling that Kubernetes prints.

use super::quantity::check;

/// A quantity in its canonical spelling, as Kubernetes prints it: an integer with the largest suffix that leaves no
/// fraction. `None` when the text is no quantity, or one with more digits than any real one has.
///
/// ```
/// use olmkit::types::canonical_quantity::canonical;
/// assert_eq!(canonical("0.5").as_deref(), Some("500m"));
/// assert_eq!(canonical("1024Mi").as_deref(), Some("1Gi"));
/// assert_eq!(canonical("1000k").as_deref(), Some("1M"));
/// ```
pub fn canonical(text: &str) -> Option<String> {
    check(text).ok()?;
    let (negative, rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let split = rest
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(split);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
        .iter()
        .position(|known| *known == suffix);
    if is_kept(whole.trim_start_matches('0'), fraction, suffix, binary) {
        return Some(text.to_owned());
    }
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    let mut value: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let mut places = i32::try_from(fraction.len()).ok()?;
    if value == 0 {
        return Some("0".to_owned());
    }
    let sign = if negative { "-" } else { "" };
    if let Some(at) = binary {
        value = value.checked_mul(1i128 << (10 * (at + 1)))?;
        while places > 0 && value % 10 == 0 {
            value /= 10;
            places -= 1;
        }
        // A fraction of a byte, or less than one suffix: shown in decimals, so that nothing is rounded.
        if places == 0 && value >= 1024 {
            let mut at = 0;
            while value % 1024 == 0 {
                value /= 1024;
                at += 1;
            }
            let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(at)?;
            return Some(format!("{sign}{value}{suffix}"));
        }
        return decimal(value, -places, false).map(|text| format!("{sign}{text}"));
    }
    let (exponent, scientific) = match DECIMALS.iter().find(|(known, _)| *known == suffix) {
        Some((_, exponent)) => (*exponent, false),
        None => (suffix.get(1..)?.parse::<i32>().ok()?, true),
    };
    decimal(value, exponent.checked_sub(places)?, scientific).map(|text| format!("{sign}{text}"))
}

/// Whether Kubernetes keeps the spelling it read: it does so for numbers that look canonical at a glance, such as `1.500`,
/// without trying harder.
fn is_kept(whole: &str, fraction: &str, suffix: &str, binary: Option<usize>) -> bool {
    let whole = if whole.is_empty() { "0" } else { whole };
    let shifted = format!("{whole}{fraction}");
    let length = i32::try_from(shifted.len()).unwrap_or(i32::MAX);
    if let Some(at) = binary {
        let power = 10 * (i32::try_from(at).unwrap_or(0) + 1);
        let fits = 15 - length - power * 3 / 10 > 0;
        return fraction.is_empty() && fits && shifted.parse::<i64>().is_ok_and(|value| value & 7 != 0);
    }
    let exponent = match DECIMALS.iter().find(|(known, _)| *known == suffix) {
        Some((_, exponent)) => *exponent,
        None => suffix.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or(0),
    };
    let scale = exponent.saturating_sub(i32::try_from(fraction.len()).unwrap_or(i32::MAX));
    length <= 18 && scale >= -9 && scale % 3 == 0 && !shifted.ends_with("000") && !shifted.starts_with('0')
}

const DECIMALS: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

/// `value * 10^exponent` with the exponent a multiple of three. What is smaller than a billionth is rounded up.
fn decimal(mut value: i128, mut exponent: i32, scientific: bool) -> Option<String> {
    while exponent < -9 {
        value = value / 10 + i128::from(value % 10 != 0);
        exponent += 1;
    }
    while value % 10 == 0 {
        value /= 10;
        exponent += 1;
    }
    while exponent % 3 != 0 {
        value = value.checked_mul(10)?;
        exponent -= 1;
    }
    if scientific {
        return Some(if exponent == 0 {
            value.to_string()
        } else {
            format!("{value}e{exponent}")
        });
    }
    let suffix = DECIMALS
        .iter()
        .find(|(_, own)| *own == exponent)
        .map_or("", |(suffix, _)| suffix);
    Some(format!("{value}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_one_spelling() {
        for (given, canonical_form) in [
            ("0", "0"),
            ("0.0", "0"),
            ("1", "1"),
            ("1.5", "1500m"),
            ("0.1", "100m"),
            ("1000m", "1"),
            ("64Mi", "64Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("1E", "1E"),
            ("12e6", "12e6"),
            ("1000", "1k"),
            ("100", "100"),
            ("+5", "+5"),
            ("1.500", "1.500"),
            ("1.50", "1500m"),
            ("0.500", "500m"),
            ("01", "01"),
            ("-1024Ki", "-1Mi"),
            (".5", "500m"),
            ("1.", "1."),
            ("2048", "2048"),
            ("0.0000000001", "1n"),
            ("1e1", "10"),
        ] {
            assert_eq!(canonical(given).as_deref(), Some(canonical_form), "{given}");
        }
    }
}
