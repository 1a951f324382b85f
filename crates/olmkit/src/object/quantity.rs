//! Resource quantities: `100m`, `1.5Gi`, `2e3`.

use std::cmp::Ordering;
use std::fmt;

/// A quantity as Kubernetes reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantity {
    text: String,
    negative: bool,
    /// Digits before and after the point, without leading zeros.
    digits: String,
    /// Power of ten that the digits are multiplied with.
    exponent: i64,
    /// Power of two from a binary suffix.
    shift: u32,
}

/// Why a text is no quantity, in apimachinery's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It does not look like a number with a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// Its number is none.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// Its suffix does not exist.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    /// Reads a quantity.
    ///
    /// # Errors
    ///
    /// [`QuantityError`] with apimachinery's text.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = digits(unsigned);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => digits(rest),
            None => ("", rest),
        };
        if !is_suffix(suffix) {
            return Err(QuantityError::Format);
        }
        let (exponent, shift) = scale(suffix).ok_or(QuantityError::Suffix)?;
        // "." alone, or a suffix without a number: apimachinery finds no number to parse. "+" and "-" alone are 0.
        let nothing = whole.is_empty() && fraction.is_empty();
        if nothing && !(rest.is_empty() && text.len() == 1) {
            return Err(QuantityError::Number);
        }
        let all = format!("{whole}{fraction}");
        let fraction_length = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
        Ok(Self {
            text: text.to_owned(),
            negative,
            digits: all.trim_start_matches('0').to_owned(),
            exponent: exponent.saturating_sub(fraction_length),
            shift,
        })
    }

    /// Whether the quantity is 0.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i32 {
        match (self.is_zero(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    /// The quantity as a float, good enough to compare and to add up.
    pub fn to_f64(&self) -> f64 {
        let magnitude: f64 = format!("0{}e{}", self.digits, self.exponent)
            .parse()
            .unwrap_or(f64::INFINITY);
        let value = magnitude * f64::from(self.shift).exp2();
        if self.negative { -value } else { value }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.to_f64().partial_cmp(&other.to_f64())
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(end)
}

/// `[eEinumkKMGTP]*[-+]?[0-9]*`
fn is_suffix(text: &str) -> bool {
    let text = text.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Powers of ten and of two that a suffix stands for.
fn scale(suffix: &str) -> Option<(i64, u32)> {
    Some(match suffix {
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "" => (0, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        _ => (suffix.strip_prefix(['e', 'E'])?.parse::<i64>().ok()?, 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_with_suffixes() {
        for (text, value) in [
            ("0", 0.0),
            ("100m", 0.1),
            ("1.5Gi", 1_610_612_736.0),
            ("2e3", 2000.0),
            ("-1k", -1000.0),
            ("1E", 1e18),
        ] {
            assert_eq!(
                Quantity::parse(text).map(|quantity| quantity.to_f64()),
                Ok(value),
                "{text}"
            );
        }
    }

    #[test]
    fn names_the_fault() {
        for (text, error) in [
            ("", QuantityError::Format),
            ("abc", QuantityError::Format),
            ("1 Gi", QuantityError::Format),
            ("1Kb", QuantityError::Format),
            ("1KM", QuantityError::Suffix),
            ("Gi", QuantityError::Number),
        ] {
            assert_eq!(Quantity::parse(text), Err(error), "{text}");
        }
    }
}
