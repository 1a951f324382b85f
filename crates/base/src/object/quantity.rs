//! Resource quantities (`100m`, `1.5Gi`, `1e3`): parsing and printing as in Kubernetes.

/// Why a string is not a quantity; the messages are those of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// Not a number with a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// A number with a suffix that means nothing.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

const SUFFIXES: [&str; 16] = [
    "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
];

/// Checks that a string is a quantity. Kubernetes does not require the number: `Gi`, `.` and `-` are 0.
///
/// # Errors
/// When it is not a quantity.
pub fn check(text: &str) -> Result<(), QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    let behind_whole = number.trim_start_matches(|c: char| c.is_ascii_digit());
    let suffix = behind_whole.strip_prefix('.').map_or(behind_whole, |fraction| {
        fraction.trim_start_matches(|c: char| c.is_ascii_digit())
    });
    let digits = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    let exponent = suffix
        .strip_prefix(['e', 'E'])
        .is_some_and(|digits| digits.parse::<i64>().is_ok());
    if exponent || SUFFIXES.contains(&suffix) {
        Ok(())
    } else {
        Err(QuantityError::Suffix)
    }
}

/// A quantity in its canonical spelling, as Kubernetes prints it: an integer with the largest suffix that leaves no
/// fraction. `None` if the string is not a quantity, or has more digits than any real one.
///
/// ```
/// use olmkit_base::object::quantity::canonical;
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

/// Returns true if Kubernetes keeps the spelling it read: it does so for numbers that look canonical at a glance, such as `1.500`,
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

/// `value * 10^exponent` with the exponent a multiple of three. Values below a billionth are rounded up.
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
    fn quantities_follow_the_grammar_of_kubernetes() {
        for good in [
            "0", "100m", "1.5Gi", "1e3", "1E-3", "+5", ".5", "1.", "64Mi", "-1k", "1E", "Gi", ".", "+", "e5", "1e1000",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", "abc", "1 Gi", "1.2.3", "true", "1Gib", "..5", "1E5E", "1GI", "1KI"] {
            assert_eq!(check(bad), Err(QuantityError::Format), "{bad}");
        }
        for bad in ["1mm", "1e", "5e+", "1e99999999999999999999"] {
            assert_eq!(check(bad), Err(QuantityError::Suffix), "{bad}");
        }
    }

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
