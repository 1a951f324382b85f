//! Kubernetes' `resource.Quantity`: amounts like `100m`, `1.5Gi` and `1e3`.

use std::cmp::Ordering;
use std::fmt::{Display, Formatter};

/// Why a string is not a quantity. The messages are those of Kubernetes, except for [`QuantityError::Range`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuantityError {
    /// Not a number with a suffix.
    Format,
    /// A suffix without a number, which Kubernetes rejects only if the suffix is large.
    Numeric,
    /// A number with an unknown suffix.
    Suffix,
    /// A valid quantity with more digits than this module computes with. Kubernetes accepts it.
    Range,
}

impl Display for QuantityError {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            Self::Format => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            Self::Numeric => "unable to parse numeric part of quantity",
            Self::Suffix => "unable to parse quantity's suffix",
            Self::Range => "the quantity has too many digits",
        })
    }
}

impl std::error::Error for QuantityError {}

/// The notation in which a quantity is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
    /// `12M`
    DecimalSi,
}

/// An exact amount. Comparisons are by value: `1Gi` equals `1024Mi`, and `0.5` equals `500m`. Like Kubernetes, it rounds
/// amounts up to a billionth.
///
/// ```
/// use olmkit_go::quantity::Quantity;
///
/// let half = Quantity::parse("0.5")?;
/// assert_eq!(half.to_string(), "500m");
/// assert_eq!(half, Quantity::parse("500m")?);
/// assert!(half < Quantity::parse("1Ki")?);
/// # Ok::<(), olmkit_go::quantity::QuantityError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    /// The amount is `digits * 10^exponent`.
    digits: i128,
    exponent: i32,
    notation: Notation,
    /// Kubernetes calculates with large decimals, which it does not convert to integers.
    is_large: bool,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = self.digits.signum();
        let signs = sign.cmp(&other.digits.signum());
        if signs != Ordering::Equal || sign == 0 {
            return signs;
        }
        let (own, others) = (self.digits.unsigned_abs(), other.digits.unsigned_abs());
        let magnitude = |digits: u128, exponent: i32| i64::from(digits.ilog10()) + i64::from(exponent);
        let absolute = magnitude(own, self.exponent)
            .cmp(&magnitude(others, other.exponent))
            .then_with(|| {
                // Equal magnitudes, so the number with the larger exponent has fewer digits. If it does not fit with
                // more of them, it is the larger one.
                let factor = 10_u128.checked_pow(self.exponent.abs_diff(other.exponent));
                let times = |digits: u128| factor.and_then(|factor| digits.checked_mul(factor));
                match self.exponent.cmp(&other.exponent) {
                    Ordering::Equal => own.cmp(&others),
                    Ordering::Greater => times(own).map_or(Ordering::Greater, |own| own.cmp(&others)),
                    Ordering::Less => times(others).map_or(Ordering::Less, |others| own.cmp(&others)),
                }
            });
        if sign > 0 { absolute } else { absolute.reverse() }
    }
}

/// A string, split.
struct Parts<'t> {
    is_negative: bool,
    /// Without leading zeros. `0` if nothing is left.
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
    /// There is a digit or a point.
    has_number: bool,
}

/// The digits at the start, and the rest.
fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    let (all, rest) = split_digits(unsigned);
    let whole = all.trim_start_matches('0');
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    let letters = suffix.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
    let exponent = letters.strip_prefix(['-', '+']).unwrap_or(letters);
    if !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    Ok(Parts {
        is_negative: text.starts_with('-'),
        whole: if whole.is_empty() { "0" } else { whole },
        fraction,
        suffix,
        has_number: !all.is_empty() || !fraction.is_empty(),
    })
}

const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [(&str, i32); 10] = [
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

/// The finest exponent that Kubernetes keeps.
const NANO: i32 = -9;

/// The most decimal digits that Kubernetes reads into a 64-bit integer.
const INTEGER_DIGITS: i64 = 18;

/// The exponent of a suffix: of 2 for `BinarySi`, of 10 for the others.
fn exponent_of(suffix: &str) -> Option<(i32, Notation)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((*exponent, Notation::DecimalSi));
    }
    if let Some(bits) = BINARY
        .iter()
        .zip((10..).step_by(10))
        .find(|(known, _)| **known == suffix)
    {
        return Some((bits.1, Notation::BinarySi));
    }
    let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    // Go converts to 32 bits without a check.
    let [a, b, c, d, ..] = exponent.to_le_bytes();
    Some((i32::from_le_bytes([a, b, c, d]), Notation::DecimalExponent))
}

impl Quantity {
    /// Reads a quantity. Kubernetes does not require a number: `Gi`, `.` and `-` are 0.
    ///
    /// # Errors
    /// The string is not a quantity, or has too many digits.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        read(text).map(|(quantity, _)| quantity)
    }

    /// An integer.
    #[must_use]
    pub fn from_integer(value: i64) -> Self {
        Self {
            digits: value.into(),
            exponent: 0,
            notation: Notation::DecimalSi,
            is_large: false,
        }
    }

    /// -1, 0 or 1.
    #[must_use]
    pub fn sign(self) -> i64 {
        match self.digits.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// The amount as an integer, if Kubernetes (`AsInt64`) converts it: `1.0` is not converted.
    #[must_use]
    pub fn integer(self) -> Option<i64> {
        if self.is_large || self.exponent < 0 {
            return None;
        }
        let digits = if self.digits == 0 {
            0
        } else {
            scaled(self.digits, self.exponent)?
        };
        i64::try_from(digits).ok()
    }

    /// The amount in thousandths, rounded away from zero (`RoundUp`). `None` if it does not fit.
    #[must_use]
    pub fn milli(self) -> Option<i128> {
        if self.exponent >= -3 {
            return if self.digits == 0 {
                Some(0)
            } else {
                scaled(self.digits, self.exponent.checked_add(3)?)
            };
        }
        let unit = 10_i128.checked_pow((-3 - self.exponent).unsigned_abs())?;
        let rest = (self.digits % unit).signum();
        Some(self.digits / unit + rest)
    }

    /// The amount as a float, with the rounding of `AsApproximateFloat64`.
    #[must_use]
    pub fn approximate_float(self) -> f64 {
        #[allow(clippy::cast_precision_loss)]
        let base = self.digits as f64;
        if self.exponent == 0 {
            base
        } else {
            base * power_of_ten(self.exponent)
        }
    }

    /// The sum. `None` if it has too many digits.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        let notation = if self.digits == 0 {
            other.notation
        } else {
            self.notation
        };
        let is_large = self.is_large || other.is_large;
        if !is_large && (self.digits == 0 || other.digits == 0) {
            let summand = if other.digits == 0 { self } else { other };
            return Some(Self { notation, ..summand });
        }
        let exponent = self.exponent.min(other.exponent);
        let at = |summand: Self| match summand.digits {
            0 => Some(0),
            digits => scaled(digits, summand.exponent.checked_sub(exponent)?),
        };
        let (left, right) = (at(self)?, at(other)?);
        let digits = left.checked_add(right)?;
        let fits = [left, right, digits]
            .iter()
            .all(|digits| i64::try_from(*digits).is_ok());
        Some(Self {
            digits,
            exponent,
            notation,
            is_large: is_large || !fits,
        })
    }

    /// The negative amount.
    #[must_use]
    pub fn negated(self) -> Self {
        Self {
            digits: -self.digits,
            ..self
        }
    }
}

/// Checks that Kubernetes accepts a string as a quantity, however many digits it has.
///
/// # Errors
/// The string is not a quantity.
pub fn check(text: &str) -> Result<(), QuantityError> {
    match read(text) {
        Ok(_) | Err(QuantityError::Range) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A quantity as Kubernetes prints it after parsing: an integer with the largest suffix that leaves no fraction, or the
/// given spelling if that looks canonical at a glance, such as `1.500`. `None` if the string is not a quantity, or has too
/// many digits.
///
/// ```
/// use olmkit_go::quantity::canonical;
/// assert_eq!(canonical("0.5").as_deref(), Some("500m"));
/// assert_eq!(canonical("1024Mi").as_deref(), Some("1Gi"));
/// assert_eq!(canonical("1000k").as_deref(), Some("1M"));
/// ```
#[must_use]
pub fn canonical(text: &str) -> Option<String> {
    let (quantity, is_kept) = read(text).ok()?;
    Some(if is_kept { text.to_owned() } else { quantity.to_string() })
}

/// `digits * 10^exponent` for an exponent that is not negative.
fn scaled(digits: i128, exponent: i32) -> Option<i128> {
    digits.checked_mul(10_i128.checked_pow(u32::try_from(exponent).ok()?)?)
}

/// Go's `math.Pow10`, which multiplies two powers from tables.
fn power_of_ten(exponent: i32) -> f64 {
    let table = |exponent: i32| format!("1e{exponent}").parse().unwrap_or(f64::NAN);
    match exponent {
        0..=308 => table(exponent / 32 * 32) * table(exponent % 32),
        -323..0 => table(exponent / 32 * 32) / table(-exponent % 32),
        _ => {
            if exponent < 0 {
                0.0
            } else {
                f64::INFINITY
            }
        }
    }
}

/// A quantity, and whether Kubernetes keeps its spelling.
fn read(text: &str) -> Result<(Quantity, bool), QuantityError> {
    let parts = split(text)?;
    let (exponent, notation) = exponent_of(parts.suffix).ok_or(QuantityError::Suffix)?;
    read_small(&parts, exponent, notation).map_or_else(|| Ok((read_large(&parts, exponent, notation)?, false)), Ok)
}

/// A quantity that Kubernetes stores as a 64-bit integer.
fn read_small(parts: &Parts<'_>, exponent: i32, notation: Notation) -> Option<(Quantity, bool)> {
    let length = |text: &str| i64::try_from(text.len()).ok();
    let (mut scale, mut factor) = (exponent, 1);
    if notation == Notation::BinarySi {
        let spare = 15 - length(parts.whole)? - i64::from(exponent * 3 / 10) - 1;
        if spare < 0 || !parts.fraction.is_empty() {
            return None;
        }
        (scale, factor) = (0, 1_i64.checked_shl(exponent.unsigned_abs())?);
    } else if length(parts.whole)? + length(parts.fraction)? > INTEGER_DIGITS {
        return None;
    }
    scale = scale.wrapping_sub(i32::try_from(parts.fraction.len()).ok()?);
    if scale < NANO {
        return None;
    }
    let digits = format!("{}{}", parts.whole, parts.fraction);
    let value: i64 = digits.parse().ok()?;
    let product = i128::from(value.checked_mul(factor)?);
    let is_kept = match notation {
        Notation::BinarySi => value & 7 != 0,
        _ => scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0'),
    };
    let quantity = Quantity {
        digits: if parts.is_negative { -product } else { product },
        exponent: scale,
        notation,
        is_large: false,
    };
    Some((quantity, is_kept))
}

/// A quantity that Kubernetes stores as a large decimal: rounded up to a billionth, and binary ones limited to 64 bits.
fn read_large(parts: &Parts<'_>, exponent: i32, notation: Notation) -> Result<Quantity, QuantityError> {
    if !parts.has_number {
        return Err(QuantityError::Numeric);
    }
    let digits = format!("{}{}", parts.whole, parts.fraction);
    let places = i32::try_from(parts.fraction.len()).map_err(|_| QuantityError::Range)?;
    let quantity = |digits: i128, exponent: i32, notation: Notation| Quantity {
        digits: if parts.is_negative { -digits } else { digits },
        exponent,
        notation,
        is_large: true,
    };
    if digits.bytes().all(|digit| digit == b'0') {
        return Ok(quantity(0, 0, notation));
    }
    if notation != Notation::BinarySi {
        let scale = exponent.checked_sub(places).ok_or(QuantityError::Range)?;
        return Ok(quantity(
            billionths(&digits, scale).ok_or(QuantityError::Range)?,
            NANO,
            notation,
        ));
    }
    let number: i128 = digits.parse().map_err(|_| QuantityError::Range)?;
    let product = number.checked_mul(1 << exponent).ok_or(QuantityError::Range)?;
    let unit = u32::try_from(places)
        .ok()
        .and_then(|places| 10_i128.checked_pow(places));
    let unit = unit.ok_or(QuantityError::Range)?;
    let most = i128::from(i64::MAX);
    if product / unit > most || product / unit == most && product % unit != 0 {
        return Ok(quantity(most, 0, notation));
    }
    // Below the limit of 64 bits, so billionths fit.
    let remainder = product % unit;
    let fraction = billionths(&format!("{remainder:0width$}", width = parts.fraction.len()), -places);
    let whole = (product / unit).checked_mul(1_000_000_000);
    let digits = whole
        .zip(fraction)
        .and_then(|(whole, fraction)| whole.checked_add(fraction));
    // Kubernetes avoids a rounding of less than one.
    let notation = if product < unit { Notation::DecimalSi } else { notation };
    digits
        .map(|digits| quantity(digits, NANO, notation))
        .ok_or(QuantityError::Range)
}

/// `digits * 10^scale` in billionths, rounded up.
fn billionths(digits: &str, scale: i32) -> Option<i128> {
    let shift = scale.checked_sub(NANO)?;
    if shift >= 0 {
        return scaled(digits.parse().ok()?, shift);
    }
    let dropped = usize::try_from(shift.unsigned_abs()).ok()?;
    let (kept, rest) = digits.split_at(digits.len().saturating_sub(dropped));
    let kept: i128 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
    kept.checked_add(i128::from(rest.bytes().any(|digit| digit != b'0')))
}

impl Display for Quantity {
    /// Prints the canonical form.
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        if self.digits == 0 {
            return to.write_str("0");
        }
        let mut digits = self.digits;
        let mut exponent = i64::from(self.exponent);
        while digits % 10 == 0 {
            digits /= 10;
            exponent += 1;
        }
        // A fraction, or less than one suffix, is shown in decimals, so that nothing is rounded.
        let whole = i32::try_from(exponent)
            .ok()
            .and_then(|exponent| scaled(digits, exponent));
        if let (Notation::BinarySi, Some(mut whole)) = (self.notation, whole.filter(|whole| whole.abs() >= 1024)) {
            let mut power = 0;
            while whole % 1024 == 0 {
                whole /= 1024;
                power += 1;
            }
            let suffix = if power == 0 { None } else { BINARY.get(power - 1) };
            return write!(to, "{whole}{}", suffix.unwrap_or(&""));
        }
        let zeros = exponent.rem_euclid(3);
        exponent -= zeros;
        write!(to, "{digits}")?;
        for _ in 0..zeros {
            to.write_str("0")?;
        }
        match self.notation {
            Notation::DecimalExponent if exponent == 0 => Ok(()),
            Notation::DecimalExponent => write!(to, "e{exponent}"),
            // Kubernetes prints nothing for an exponent without a suffix.
            _ => {
                let suffix = DECIMAL.iter().find(|(_, known)| i64::from(*known) == exponent);
                to.write_str(suffix.map_or("", |(suffix, _)| *suffix))
            }
        }
    }
}

/// Returns true if two strings are quantities of the same value: `1Gi` and `1024Mi`, `0.5` and `500m`.
///
/// ```
/// use olmkit_go::quantity::equal;
/// assert!(equal("1Gi", "1024Mi"));
/// assert!(!equal("1x", "1x"));
/// ```
#[must_use]
pub fn equal(left: &str, right: &str) -> bool {
    matches!((Quantity::parse(left), Quantity::parse(right)), (Ok(left), Ok(right)) if left == right)
}
