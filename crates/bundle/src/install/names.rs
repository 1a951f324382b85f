//! Names of objects that OLM creates.

use sha2::{Digest as _, Sha224};

/// The longest name of a Service, which is a DNS label.
const LONGEST: usize = 63;

/// `BASE-SUFFIX`, the base truncated so that the name has at most 63 characters. As in OLM, 63 characters without the
/// hyphen are not truncated, so a name can have 64.
#[must_use]
pub fn object_name(base: &str, suffix: &str) -> String {
    let mut base = base;
    if base.len() + suffix.len() > LONGEST {
        let end = base.floor_char_boundary(LONGEST.saturating_sub(suffix.len() + 1));
        base = base.get(..end).unwrap_or_default();
    }
    format!("{base}-{suffix}")
}

/// OLM's hash of an object: SHA-224 of its JSON, as a number in base 36.
#[must_use]
pub fn hash(json: &str) -> String {
    let mut hasher = Sha224::new();
    hasher.update(json.as_bytes());
    // Go's JSON encoder ends each value with a line feed.
    hasher.update(b"\n");
    base36(&hasher.finalize())
}

/// A big-endian number in base 36.
fn base36(bytes: &[u8]) -> String {
    let mut number = bytes.to_vec();
    let mut digits = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0_u32;
        for byte in &mut number {
            let value = rest * 256 + u32::from(*byte);
            *byte = u8::try_from(value / 36).unwrap_or_default();
            rest = value % 36;
        }
        digits.extend(char::from_digit(rest, 36));
    }
    if digits.is_empty() {
        digits.push('0');
    }
    digits.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_base_36() {
        assert_eq!(base36(&[0, 0]), "0");
        assert_eq!(base36(&[35]), "z");
        assert_eq!(base36(&[1, 0]), "74");
        assert_eq!(base36(&u64::MAX.to_be_bytes()), "3w5e11264sgsf");
    }

    #[test]
    fn bases_are_cut_one_character_late() {
        assert_eq!(object_name(&"a".repeat(55), "service").len(), 63);
        assert_eq!(object_name(&"a".repeat(56), "service").len(), 64);
        assert_eq!(object_name(&"a".repeat(57), "service").len(), 63);
        assert_eq!(object_name("é", &"s".repeat(62)), format!("-{}", "s".repeat(62)));
    }
}
