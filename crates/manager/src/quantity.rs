//! Compares Kubernetes quantities by value.

/// Returns true if two quantities have the same value: `1Gi` and `1024Mi`, `0.5` and `500m`. Invalid
/// quantities are never equal.
pub fn equal(left: &str, right: &str) -> bool {
    match (nanos(left), nanos(right)) {
        (Some(left), Some(right)) => left == right,
        _ => false,
    }
}

/// The value in billionths, which is the finest that Kubernetes keeps; anything finer is rounded up, as there.
fn nanos(text: &str) -> Option<i128> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at_checked(end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let (base, exponent) = suffix_power(suffix)?;
    // digits * base^exponent * 10^9 / 10^(digits after the point)
    let decimals = u32::try_from(fraction.len()).ok()?;
    let (mut numerator, mut denominator) = (digits.checked_mul(1_000_000_000)?, 10i128.checked_pow(decimals)?);
    let power = i128::from(base).checked_pow(exponent.unsigned_abs())?;
    if exponent < 0 {
        denominator = denominator.checked_mul(power)?;
    } else {
        numerator = numerator.checked_mul(power)?;
    }
    let rounded_up = numerator.checked_add(denominator - 1)? / denominator;
    Some(if negative { -rounded_up } else { rounded_up })
}

/// Base and exponent of a suffix.
fn suffix_power(suffix: &str) -> Option<(i64, i32)> {
    Some(match suffix {
        "" => (10, 0),
        "n" => (10, -9),
        "u" => (10, -6),
        "m" => (10, -3),
        "k" => (10, 3),
        "M" => (10, 6),
        "G" => (10, 9),
        "T" => (10, 12),
        "P" => (10, 15),
        "E" => (10, 18),
        "Ki" => (1024, 1),
        "Mi" => (1024, 2),
        "Gi" => (1024, 3),
        "Ti" => (1024, 4),
        "Pi" => (1024, 5),
        "Ei" => (1024, 6),
        _ => (10, suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_in_different_notations() {
        for (left, right) in [
            ("1Gi", "1024Mi"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.", "1"),
            ("128974848", "129e6"),
            ("1k", "1e3"),
            ("1E3", "1000"),
            ("+1", "1"),
            ("-1", "-1000m"),
            ("0", "0Mi"),
            ("1.5Gi", "1536Mi"),
        ] {
            let expected = left != "128974848";
            assert_eq!(equal(left, right), expected, "{left} {right}");
        }
    }

    #[test]
    fn invalid_quantities_are_never_equal() {
        for text in [
            "",
            "Mi",
            "1x",
            "1.2.3",
            "-",
            "e3",
            "99999999999999999999999999999999999999E",
        ] {
            assert!(!equal(text, text), "{text}");
        }
    }
}
