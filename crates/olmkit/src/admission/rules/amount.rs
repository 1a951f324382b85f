//! Quantities as numbers.

use serde_json::Value;

use crate::object::quantity;

/// A quantity in billionths. `None` if it is none, or too large to compare.
pub(in crate::admission) fn amount(value: &Value) -> Option<i128> {
    let given = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => olmkit_go::json::number(number),
        _ => return None,
    };
    quantity::check(&given).ok()?;
    let (sign, rest) = match given.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, given.strip_prefix('+').unwrap_or(&given)),
    };
    let split = rest
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(rest.len());
    let (digits, suffix) = rest.split_at(split);
    scaled(digits, suffix).map(|value| sign * value)
}

fn scaled(digits: &str, suffix: &str) -> Option<i128> {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let all = format!("{whole}{fraction}");
    let mantissa: i128 = if all.is_empty() { 0 } else { all.parse().ok()? };
    let places = u32::try_from(fraction.len()).ok()?;
    let exponent: i32 = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        binary if BINARY.contains(&binary) => {
            let power = BINARY.iter().position(|known| *known == binary)? + 1;
            let value = mantissa
                .checked_mul(1i128 << (10 * power))?
                .checked_mul(1_000_000_000)?;
            return value.checked_div(10i128.checked_pow(places)?);
        }
        scientific => scientific.get(1..)?.parse().ok()?,
    };
    let shift = exponent.checked_add(9)?.checked_sub(i32::try_from(places).ok()?)?;
    let power = 10i128.checked_pow(shift.unsigned_abs())?;
    if shift >= 0 {
        mantissa.checked_mul(power)
    } else {
        // The API server rounds up.
        Some(mantissa / power + i128::from(mantissa % power != 0))
    }
}
