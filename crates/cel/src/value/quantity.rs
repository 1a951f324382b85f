//! Quantities like `1500m` and `2Gi`.

use crate::budget::Failure;

/// An amount, in billionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    nanos: i128,
    /// The power of ten that apimachinery stores with a 64-bit number; `None` if it calculates with large decimals,
    /// which it never treats as integers.
    scale: Option<i32>,
}

const NANO: i128 = 1_000_000_000;

/// Digits beyond which the result is undecided.
const DIGITS: usize = 18;

enum Suffix {
    Binary(u32),
    Decimal(i32),
}

impl Quantity {
    /// Reads a quantity.
    ///
    /// # Errors
    /// The quantity as apimachinery parses it, or a failure if the amount is beyond our range.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = || {
            Failure::error(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            )
        };
        if text.is_empty() {
            return Err(wrong());
        }
        let is_negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let count = unsigned.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, rest) = unsigned.split_at(count);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            None => ("", rest),
            Some(rest) => rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count()),
        };
        if !suffix
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"eEinumkKMGTP+-".contains(&byte))
        {
            return Err(wrong());
        }
        if count == 0 && fraction.is_empty() {
            // apimachinery reads some strings without digits as 0.
            return Err(Failure::undecided("a quantity without digits"));
        }
        let whole = whole.trim_start_matches('0');
        if whole.len() + fraction.len() > DIGITS {
            return Err(Failure::undecided("a quantity of many digits"));
        }
        let suffix = read_suffix(suffix).ok_or_else(|| Failure::error("unable to parse quantity's suffix"))?;
        Self::build(is_negative, whole, fraction, &suffix).ok_or_else(|| Failure::undecided("a very large quantity"))
    }

    fn build(is_negative: bool, whole: &str, fraction: &str, suffix: &Suffix) -> Option<Self> {
        let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
        let places = i32::try_from(fraction.len()).ok()?;
        let length = i32::try_from(whole.len().max(1) + fraction.len()).ok()?;
        let (amount, power, scale) = match suffix {
            Suffix::Decimal(exponent) => {
                let scale = exponent - places;
                let is_small = length <= 18 && scale >= -9;
                (digits, scale, is_small.then_some(scale))
            }
            Suffix::Binary(bits) => {
                let amount = digits.checked_mul(1_i128.checked_shl(*bits)?)?;
                let precision = 15 - i32::try_from(whole.len().max(1)).ok()? - i32::try_from(bits * 3 / 10).ok()? - 1;
                let is_small = fraction.is_empty() && precision >= 0;
                (amount, -places, is_small.then_some(0))
            }
        };
        let nanos = scaled(amount, power + 9)?;
        if matches!(suffix, Suffix::Binary(_)) && nanos > i128::from(i64::MAX) * NANO {
            return None;
        }
        Some(Self {
            nanos: if is_negative { -nanos } else { nanos },
            scale,
        })
    }

    /// A whole number.
    pub(crate) fn of_int(value: i64) -> Self {
        Self {
            nanos: i128::from(value) * NANO,
            scale: Some(0),
        }
    }

    pub(crate) fn nanos(self) -> i128 {
        self.nanos
    }

    pub(crate) fn sign(self) -> i64 {
        i64::try_from(self.nanos.signum()).unwrap_or(0)
    }

    /// The amount as a 64-bit number, where apimachinery has one.
    pub(crate) fn integer(self) -> Option<i64> {
        self.scale.filter(|scale| *scale >= 0)?;
        i64::try_from(self.nanos / NANO).ok()
    }

    pub(crate) fn float(self) -> f64 {
        #[allow(clippy::cast_precision_loss)]
        let nanos = self.nanos as f64;
        nanos / 1e9
    }

    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        let scale = match (self.scale, other.scale) {
            (Some(left), Some(right)) => Some(left.min(right)),
            _ => None,
        };
        let nanos = self.nanos.checked_add(other.nanos)?;
        // Near the bounds apimachinery changes to large decimals.
        (nanos.abs() < i128::from(i64::MAX) * NANO / 2).then_some(Self { nanos, scale })
    }

    pub(crate) fn negated(self) -> Self {
        Self {
            nanos: -self.nanos,
            ..self
        }
    }
}

/// `amount * 10^power`, rounded up: a little of something is not nothing.
fn scaled(amount: i128, power: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(power.unsigned_abs());
    if power >= 0 {
        return if amount == 0 {
            Some(0)
        } else {
            amount.checked_mul(factor?)
        };
    }
    match factor {
        Some(factor) => Some((amount + factor - 1) / factor),
        None => Some(i128::from(amount != 0)),
    }
}

fn read_suffix(text: &str) -> Option<Suffix> {
    if let Some(exponent) = text.strip_prefix(['e', 'E']).filter(|rest| !rest.is_empty()) {
        return exponent
            .parse()
            .ok()
            .filter(|exponent: &i32| exponent.abs() < 1_000)
            .map(Suffix::Decimal);
    }
    Some(match text {
        "" => Suffix::Decimal(0),
        "n" => Suffix::Decimal(-9),
        "u" => Suffix::Decimal(-6),
        "m" => Suffix::Decimal(-3),
        "k" => Suffix::Decimal(3),
        "M" => Suffix::Decimal(6),
        "G" => Suffix::Decimal(9),
        "T" => Suffix::Decimal(12),
        "P" => Suffix::Decimal(15),
        "E" => Suffix::Decimal(18),
        "Ki" => Suffix::Binary(10),
        "Mi" => Suffix::Binary(20),
        "Gi" => Suffix::Binary(30),
        "Ti" => Suffix::Binary(40),
        "Pi" => Suffix::Binary(50),
        "Ei" => Suffix::Binary(60),
        _ => return None,
    })
}
