//! Version ranges by the rules of blang/semver v4: `>=1.0.0 <2.0.0 || 3.x`.

use std::borrow::Borrow;
use std::ops::Range;

use super::{Version, VersionError};
use crate::strconv::quote;

/// A set of versions: alternatives separated by `||`, each a list of comparisons that must all be true.
///
/// Operators are `<`, `<=`, `>`, `>=`, `=`, `==`, `!`, `!=` or none for equality. `x` matches any minor or patch
/// number. Pre-releases are ordinary versions here: `<1.0.0` contains `1.0.0-rc1`.
///
/// ```
/// use olmkit_go::semver::{Version, VersionRange};
///
/// let range = VersionRange::parse(">=1.0.0 <1.2.0 || 2.x")?;
/// assert!(range.contains(&Version::new(2, 5, 1)));
/// assert!(!range.contains(&Version::new(1, 2, 0)));
/// # Ok::<(), olmkit_go::semver::RangeError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRange {
    alternatives: Vec<Vec<Comparison>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Comparison {
    operator: Operator,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// Why a string is not a range, with blang/semver's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// The range starts with `||`.
    #[error("First element in range is '||'")]
    StartsWithOr,
    /// The range ends with `||`, is empty, or has one character only, which blang/semver drops.
    #[error("Last element in range is '||'")]
    EndsWithOr,
    /// A comparison contains no digit.
    #[error("Could not get version from string: {}", quote(.0))]
    NoVersion(String),
    /// A comparison has an operator that does not exist.
    #[error("Could not parse Range {}: Could not parse comparator {} in {}", quote(.comparison), quote(.operator), quote(.comparison))]
    Operator {
        /// The whole comparison.
        comparison: String,
        /// The operator.
        operator: String,
    },
    /// A comparison has an invalid version.
    #[error("Could not parse Range {}: Could not parse version {} in {}: {source}", quote(.comparison), quote(.version), quote(.comparison))]
    Version {
        /// The whole comparison.
        comparison: String,
        /// The version.
        version: String,
        /// The error.
        source: VersionError,
    },
}

impl VersionRange {
    /// Reads a range.
    ///
    /// # Errors
    ///
    /// [`RangeError`] with blang/semver's message.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let pieces = split(text);
        let alternatives = alternatives(&pieces)?;
        let expanded: Vec<Vec<String>> = alternatives
            .iter()
            .map(|parts| expand(parts))
            .collect::<Result<_, RangeError>>()?;
        let parsed = expanded
            .iter()
            .map(|parts| parts.iter().map(|part| Comparison::parse(part)).collect());
        Ok(Self {
            alternatives: parsed.collect::<Result<_, _>>()?,
        })
    }

    /// Returns true if the range contains a version. An alternative without comparisons (`1.0.0 || || 2.0.0`), on which
    /// blang/semver crashes, contains nothing.
    pub fn contains(&self, version: &Version) -> bool {
        self.alternatives
            .iter()
            .any(|all| !all.is_empty() && all.iter().all(|one| one.holds(version)))
    }

    /// Index ranges of the versions in the range among ascending distinct versions, in order and without overlap. Uses
    /// binary search for each comparison instead of testing every version.
    pub fn within<V: Borrow<Version>>(&self, ascending: &[V]) -> Vec<Range<usize>> {
        let mut stretches: Vec<Range<usize>> = Vec::new();
        for all in self.alternatives.iter().filter(|all| !all.is_empty()) {
            let (mut first, mut end) = (0, ascending.len());
            let mut holes = Vec::new();
            for one in all {
                let equal = one.extent(ascending);
                if one.operator == Operator::NotEqual {
                    holes.push(equal);
                } else {
                    (first, end) = (first.max(equal.start), end.min(equal.end));
                }
            }
            holes.sort_unstable_by_key(|hole| hole.start);
            for hole in holes {
                stretches.push(first..end.min(hole.start));
                first = first.max(hole.end);
            }
            stretches.push(first..end);
        }
        stretches.retain(|stretch| !stretch.is_empty());
        stretches.sort_unstable_by_key(|stretch| stretch.start);
        stretches.dedup_by(|next, before| {
            let touches = next.start <= before.end;
            if touches {
                before.end = before.end.max(next.end);
            }
            touches
        });
        stretches
    }
}

impl Comparison {
    fn parse(text: &str) -> Result<Self, RangeError> {
        let (operator, version) = split_operator(text)?;
        let operator = match operator.trim() {
            "" | "=" | "==" => Operator::Equal,
            "!" | "!=" => Operator::NotEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            other => {
                return Err(RangeError::Operator {
                    comparison: text.to_owned(),
                    operator: other.to_owned(),
                });
            }
        };
        let parsed = Version::parse(version).map_err(|source| RangeError::Version {
            comparison: text.to_owned(),
            version: version.to_owned(),
            source,
        })?;
        Ok(Self {
            operator,
            version: parsed,
        })
    }

    /// Index range of the versions that match, among ascending ones; for inequality, of those that do not.
    fn extent<V: Borrow<Version>>(&self, ascending: &[V]) -> Range<usize> {
        let below = || ascending.partition_point(|version| version.borrow() < &self.version);
        let up_to = || ascending.partition_point(|version| version.borrow() <= &self.version);
        match self.operator {
            Operator::Equal | Operator::NotEqual => below()..up_to(),
            Operator::Greater => up_to()..ascending.len(),
            Operator::GreaterOrEqual => below()..ascending.len(),
            Operator::Less => 0..below(),
            Operator::LessOrEqual => 0..up_to(),
        }
    }

    fn holds(&self, version: &Version) -> bool {
        match self.operator {
            Operator::Equal => version == &self.version,
            Operator::NotEqual => version != &self.version,
            Operator::Greater => version > &self.version,
            Operator::GreaterOrEqual => version >= &self.version,
            Operator::Less => version < &self.version,
            Operator::LessOrEqual => version <= &self.version,
        }
    }
}

/// Splits at spaces, but not after an operator. Pieces of one character are dropped, as in blang/semver.
fn split(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let (mut start, mut previous) = (0, b'\0');
    for (at, byte) in text.bytes().enumerate() {
        if byte != b' ' {
            previous = byte;
        } else if !matches!(previous, b'>' | b'<' | b'=') {
            pieces.push((start, at));
            start = at + 1;
        }
    }
    pieces.push((start, text.len()));
    let long_enough = pieces.into_iter().filter(|(start, end)| end.saturating_sub(*start) > 1);
    long_enough
        .filter_map(|(start, end)| Some(text.get(start..end)?.replace(' ', "")))
        .collect()
}

fn alternatives(pieces: &[String]) -> Result<Vec<&[String]>, RangeError> {
    if pieces.first().is_some_and(|piece| piece == "||") {
        return Err(RangeError::StartsWithOr);
    }
    if pieces.last().is_none_or(|piece| piece == "||") {
        return Err(RangeError::EndsWithOr);
    }
    Ok(pieces.split(|piece| piece == "||").collect())
}

fn split_operator(text: &str) -> Result<(&str, &str), RangeError> {
    let at = text
        .find(char::is_numeric)
        .ok_or_else(|| RangeError::NoVersion(text.to_owned()))?;
    Ok(text.split_at(at))
}

/// Replaces comparisons with `x` by comparisons with numbers: `1.x` becomes `>=1.0.0` and `<2.0.0`.
fn expand(pieces: &[String]) -> Result<Vec<String>, RangeError> {
    let mut expanded = Vec::new();
    for piece in pieces {
        if !piece.contains('x') {
            expanded.push(piece.clone());
            continue;
        }
        let (operator, version) = split_operator(piece)?;
        let lowest = lowest_of(version);
        let next = next_after(version, &lowest);
        match operator.trim() {
            ">" => expanded.push(format!(">={next}")),
            ">=" => expanded.push(format!(">={lowest}")),
            "<" => expanded.push(format!("<{lowest}")),
            "<=" => expanded.push(format!("<{next}")),
            "" | "=" | "==" => expanded.extend([format!(">={lowest}"), format!("<{next}")]),
            "!" | "!=" => expanded.extend([format!("<{lowest}"), format!(">={next}")]),
            _ => expanded.push(lowest),
        }
    }
    Ok(expanded)
}

/// `1.x` and `1.x.x` become `1.0.0`, `1.2.x` becomes `1.2.0`.
fn lowest_of(version: &str) -> String {
    let flat = version.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    if flat.split('.').count() == 2 {
        format!("{flat}.0")
    } else {
        flat
    }
}

/// The first version after all those that a version ending in `x` matches. Empty when `x` is elsewhere.
fn next_after(version: &str, lowest: &str) -> String {
    let parts: Vec<&str> = version.split('.').collect();
    let counted = match (parts.last(), parts.len()) {
        (Some(&"x"), 2) => 0,
        (Some(&"x"), 3) => 1,
        _ => return String::new(),
    };
    let mut numbers: Vec<String> = lowest.split('.').map(str::to_owned).collect();
    if let Some(number) = numbers.get_mut(counted) {
        match number.parse::<i64>() {
            Ok(value) => *number = value.wrapping_add(1).to_string(),
            Err(_) => return String::new(),
        }
    }
    numbers.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_up_is_the_same_as_comparing_with_each() {
        let versions: Vec<Version> = ["0.9.0", "1.0.0-rc1", "1.0.0", "1.1.0", "1.2.0", "2.0.0", "3.0.0"]
            .map(|text| Version::parse(text).unwrap())
            .into();
        let ranges = [
            ">=1.0.0 <1.2.0",
            "<1.0.0",
            "<=1.0.0",
            ">3.0.0",
            ">=3.0.0",
            "1.1.0",
            "!=1.1.0",
            ">1.0.0 <2.0.0 !=1.1.0",
            ">1.0.0 <2.0.0 !=1.1.0 !=1.2.0",
            ">2.0.0 <1.0.0 || =2.0.0",
            "1.x",
            "4.x || >=0.1.0 <0.2.0",
            "1.5.0",
            ">=1.0.0 || !=1.0.0",
            ">=1.1.0 <3.0.0 || >1.0.0 <2.0.0 || <1.0.0",
        ];
        for text in ranges {
            let range = VersionRange::parse(text).unwrap();
            for first in 0..versions.len() {
                for end in first..=versions.len() {
                    let some: Vec<&Version> = versions[first..end].iter().collect();
                    let each: Vec<usize> = (0..some.len()).filter(|at| range.contains(some[*at])).collect();
                    let stretches = range.within(&some);
                    let looked_up: Vec<usize> = stretches.iter().cloned().flatten().collect();
                    assert_eq!(looked_up, each, "{text}: {first}..{end}");
                    assert!(
                        stretches.windows(2).all(|two| two[0].end < two[1].start),
                        "{stretches:?}"
                    );
                }
            }
        }
    }
}
