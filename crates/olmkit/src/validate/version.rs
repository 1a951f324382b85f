//! Versions and version ranges as the Go library that OLM uses reads them.

use std::cmp::Ordering;

use crate::types::operator_version;

/// A full version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(semver::Version);

impl Version {
    /// Reads a version of three numbers.
    pub fn strict(text: &str) -> Option<Self> {
        semver::Version::parse(text).ok().map(Self)
    }

    /// Reads a version that may have a leading `v`, leading zeros, and only one or two numbers.
    pub fn tolerant(text: &str) -> Option<Self> {
        Self::strict(&operator_version::normalize(text).ok()?)
    }

    /// Major and minor alone.
    pub fn truncated(&self) -> Self {
        Self(semver::Version::new(self.0.major, self.0.minor, 0))
    }

    /// Compares without build metadata.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.0.cmp_precedence(&other.0)
    }

    /// True for this version or a later one.
    pub fn at_least(&self, major: u64, minor: u64) -> bool {
        self.compare(&Self(semver::Version::new(major, minor, 0))) != Ordering::Less
    }

    /// True for 0.0.0, with any build metadata.
    pub fn is_zero(&self) -> bool {
        self.compare(&Self(semver::Version::new(0, 0, 0))) == Ordering::Equal
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

const COMPARATORS: [&str; 9] = ["", "=", "==", "!", "!=", ">", ">=", "<", "<="];

/// True when a text is a range: alternatives with `||`, each of comparators with full versions or `x` for trailing numbers.
pub fn is_range(text: &str) -> bool {
    let parts = tokens(text);
    let bars = |part: Option<&String>| part.is_none_or(|part| part == "||");
    if bars(parts.first()) || bars(parts.last()) {
        return false;
    }
    parts.iter().filter(|part| *part != "||").all(|part| match part.contains('x') {
        true => expand_wildcard(part).is_some_and(|parts| parts.iter().all(|part| is_comparison(part))),
        false => is_comparison(part),
    })
}

/// Cuts at blanks, except behind a comparator. A single character between two blanks is lost, as it is in the library.
fn tokens(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let (mut last, mut last_byte) = (0, 0u8);
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b' ' && !matches!(last_byte, b'=' | b'>' | b'<') {
            if last + 1 < at {
                parts.push((last, at));
            }
            last = at + 1;
        } else if *byte != b' ' {
            last_byte = *byte;
        }
    }
    if last + 1 < bytes.len() {
        parts.push((last, bytes.len()));
    }
    parts.into_iter().filter_map(|(from, to)| text.get(from..to)).map(|part| part.replace(' ', "")).collect()
}

/// Cuts a comparison before its first digit.
fn split_comparison(part: &str) -> Option<(&str, &str)> {
    let digit = part.find(|c: char| c.is_numeric())?;
    let (comparator, version) = part.split_at(digit);
    Some((comparator.trim(), version))
}

fn is_comparison(part: &str) -> bool {
    split_comparison(part).is_some_and(|(comparator, version)| COMPARATORS.contains(&comparator) && Version::strict(version).is_some())
}

/// What a comparison with wildcards stands for. The library counts the parts of the version to see which number is meant, and
/// loses the upper bound when it is neither the second nor the third.
fn expand_wildcard(part: &str) -> Option<Vec<String>> {
    let (comparator, version) = split_comparison(part)?;
    let numbers: Vec<&str> = version.split('.').collect();
    let flat = version.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    let flat = if flat.split('.').count() == 2 { format!("{flat}.0") } else { flat };
    let next = match (numbers.last(), numbers.len()) {
        (Some(&"x"), 2) => increment(&flat, 0),
        (Some(&"x"), 3) => increment(&flat, 1),
        _ => String::new(),
    };
    Some(match comparator {
        ">" => vec![format!(">={next}")],
        "<=" => vec![format!("<{next}")],
        ">=" | "<" => vec![format!("{comparator}{flat}")],
        "" | "=" | "==" => vec![format!(">={flat}"), format!("<{next}")],
        "!" | "!=" => vec![format!("<{flat}"), format!(">={next}")],
        _ => vec![String::new()],
    })
}

fn increment(version: &str, position: usize) -> String {
    let mut numbers: Vec<String> = version.split('.').map(str::to_string).collect();
    let Some(number) = numbers.get_mut(position) else { return String::new() };
    let Ok(value) = number.parse::<u64>() else { return String::new() };
    *number = value.saturating_add(1).to_string();
    numbers.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        for good in [">=1.0.0 <2.0.0", "1.x", "1.2.x", "!1.0.0", "<1.0.0-rc1+b", "1.0.0 - 2.0.0", "1.0.0 || >= 2.0.0"] {
            assert!(is_range(good), "{good}");
        }
        for bad in ["1.0", ">=1.0", "~1.0.0", "^1.0.0", ">=v1.0.0", "*", "x", "|| 1.0.0", "=>1.0.0", "1.0.0, 2.0.0"] {
            assert!(!is_range(bad), "{bad}");
        }
    }

    /// The vectors were made with the Go library.
    #[test]
    fn ranges_of_the_recorded_vectors() {
        let folder = std::env::var("OLMKIT_CORPUS").unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus").to_string());
        let path = format!("{folder}/semver/vectors.jsonl");
        let Ok(text) = std::fs::read_to_string(&path) else {
            println!("skipped: no corpus at {folder}");
            return;
        };
        let mut count = 0;
        for line in text.lines() {
            let vector: serde_json::Value = serde_json::from_str(line).expect("vector");
            if vector["kind"] == "range" {
                let range = vector["range"].as_str().expect("range");
                assert_eq!(is_range(range), vector["ok"].as_bool().expect("ok"), "{range:?}");
                count += 1;
            }
            if vector["kind"] == "version" {
                let input = vector["input"].as_str().expect("input");
                assert_eq!(Version::strict(input).is_some(), vector["strict"]["ok"].as_bool().expect("ok"), "{input:?}");
                let tolerant = &vector["tolerant"];
                match operator_version::normalize(input) {
                    Ok(version) => assert_eq!(Some(version.as_str()), tolerant["canonical"].as_str(), "{input:?}"),
                    Err(reason) => assert_eq!(Some(reason.as_str()), tolerant["error"].as_str(), "{input:?}"),
                }
                count += 1;
            }
        }
        println!("{count} vectors");
        assert!(count > 50);
    }

    #[test]
    fn build_metadata_does_not_count() {
        let version = Version::tolerant("v0.0.0+build").expect("version");
        assert!(version.is_zero());
        assert!(Version::tolerant("1.25").expect("version").at_least(1, 25));
        assert!(!Version::tolerant("1.25.0-rc.1").expect("version").at_least(1, 25));
    }
}
