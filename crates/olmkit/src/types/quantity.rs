//! The grammar of resource quantities (`100m`, `1.5Gi`, `1e3`), as Kubernetes parses them.

use std::sync::LazyLock;

use regex::Regex;

/// Why a text is no quantity; the texts are those of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not a number with a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// A number with a suffix that means nothing.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

static SHAPE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[+-]?[0-9]*(?:\.[0-9]*)?([eEinumkKMGTP]*[-+]?[0-9]*)$").ok());
const SUFFIXES: [&str; 16] = [
    "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
];

/// Checks that a text is a quantity.
///
/// # Errors
/// When it is none.
pub fn check(text: &str) -> Result<(), QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    let captures = SHAPE
        .as_ref()
        .and_then(|shape| shape.captures(text))
        .ok_or(QuantityError::Format)?;
    let suffix = captures.get(1).map_or("", |found| found.as_str());
    let exponent = suffix
        .strip_prefix(['e', 'E'])
        .is_some_and(|digits| digits.parse::<i64>().is_ok());
    if exponent || SUFFIXES.contains(&suffix) {
        Ok(())
    } else {
        Err(QuantityError::Suffix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_follow_the_grammar_of_kubernetes() {
        for good in [
            "0", "100m", "1.5Gi", "1e3", "1E-3", "+5", ".5", "1.", "64Mi", "-1k", "1E",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", "abc", "1 Gi", "1.2.3", "true", "1Gib"] {
            assert_eq!(check(bad), Err(QuantityError::Format), "{bad}");
        }
        for bad in ["1gi".to_uppercase().as_str(), "1KI", "1mm", "1ex"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
