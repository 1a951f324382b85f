//! Semantic versions by the rules of blang/semver v4, which OLM and the Go tools use. They are stricter and looser in
//! other places than the `semver` crate: numbers fit 64 bits, build metadata is ignored in comparison, and a tolerant
//! form reads `v1.2` as `1.2.0`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::strconv::{parse_uint, quote};

/// A version: `MAJOR.MINOR.PATCH[-pre.release][+build.metadata]`.
///
/// Versions that differ in build metadata only are equal.
#[derive(Debug, Clone, Default)]
pub struct Version {
    /// Major number.
    pub major: u64,
    /// Minor number.
    pub minor: u64,
    /// Patch number.
    pub patch: u64,
    /// Pre-release identifiers.
    pub pre_release: Vec<PreRelease>,
    /// Build metadata.
    pub build: Vec<String>,
}

/// One pre-release identifier. Numbers sort before words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PreRelease {
    /// Digits only.
    Number(u64),
    /// Anything else of `[0-9A-Za-z-]`.
    Word(String),
}

/// Why a string is not a version, with blang/semver's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct VersionError(String);

impl Version {
    /// Makes a version without pre-release and build metadata.
    pub fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self {
            major,
            minor,
            patch,
            ..Self::default()
        }
    }

    /// Reads a version strictly: all three numbers, no leading zeros, no `v`.
    ///
    /// # Errors
    ///
    /// [`VersionError`] with blang/semver's message.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        if text.is_empty() {
            return Err(VersionError("Version string empty".to_owned()));
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(VersionError("No Major.Minor.Patch elements found".to_owned()));
        };
        let (major, minor) = (number("Major", major)?, number("Minor", minor)?);
        let (rest, build) = split(rest, '+');
        let (patch, pre_release) = split(rest, '-');
        Ok(Self {
            major,
            minor,
            patch: number("Patch", patch)?,
            pre_release: identifiers(pre_release)
                .map(PreRelease::parse)
                .collect::<Result<_, _>>()?,
            build: identifiers(build).map(build_identifier).collect::<Result<_, _>>()?,
        })
    }

    /// Parses a version as OLM parses a ClusterServiceVersion's `spec.version`: surrounding spaces, one leading `v` and
    /// leading zeros are dropped, missing numbers are 0 (but not together with a pre-release or build metadata).
    ///
    /// # Errors
    ///
    /// [`VersionError`] with blang/semver's message.
    ///
    /// ```
    /// use olmkit_go::semver::Version;
    ///
    /// assert_eq!(Version::parse_tolerant(" v1.02 ")?.to_string(), "1.2.0");
    /// # Ok::<(), olmkit_go::semver::VersionError>(())
    /// ```
    pub fn parse_tolerant(text: &str) -> Result<Self, VersionError> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_leading_zeros).collect();
        if parts.len() < 3 && parts.last().is_some_and(|part| part.contains(['+', '-'])) {
            return Err(VersionError(
                "Short version cannot contain PreRelease/Build meta data".to_owned(),
            ));
        }
        while parts.len() < 3 {
            parts.push("0".to_owned());
        }
        Self::parse(&parts.join("."))
    }
}

impl PreRelease {
    /// One part of a pre-release.
    ///
    /// # Errors
    /// If it is empty, has a character that semver does not allow, or is a number with a leading zero.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        if text.is_empty() {
            return Err(VersionError("Prerelease is empty".to_owned()));
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            if has_leading_zeros(text) {
                let text = quote(text);
                return Err(VersionError(format!(
                    "Numeric PreRelease version must not contain leading zeroes {text}"
                )));
            }
            return parse_u64(text).map(PreRelease::Number);
        }
        if is_identifier(text) {
            return Ok(PreRelease::Word(text.to_owned()));
        }
        Err(VersionError(format!(
            "Invalid character(s) found in prerelease {}",
            quote(text)
        )))
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (at, part) in self.pre_release.iter().enumerate() {
            write!(f, "{}{part}", if at == 0 { '-' } else { '.' })?;
        }
        for (at, part) in self.build.iter().enumerate() {
            write!(f, "{}{part}", if at == 0 { '+' } else { '.' })?;
        }
        Ok(())
    }
}

impl fmt::Display for PreRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PreRelease::Number(number) => number.fmt(f),
            PreRelease::Word(word) => word.fmt(f),
        }
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.pre_release.is_empty(), other.pre_release.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.pre_release.cmp(&other.pre_release),
            }
        })
    }
}

impl serde::Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at)
        .map_or((text, None), |(head, tail)| (head, Some(tail)))
}

fn identifiers(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.into_iter().flat_map(|text| text.split('.'))
}

fn build_identifier(text: &str) -> Result<String, VersionError> {
    if text.is_empty() {
        return Err(VersionError("Build meta data is empty".to_owned()));
    }
    if !is_identifier(text) {
        return Err(VersionError(format!(
            "Invalid character(s) found in build meta data {}",
            quote(text)
        )));
    }
    Ok(text.to_owned())
}

fn number(name: &str, text: &str) -> Result<u64, VersionError> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let (name, text) = (name.to_ascii_lowercase(), quote(text));
        return Err(VersionError(format!(
            "Invalid character(s) found in {name} number {text}"
        )));
    }
    if has_leading_zeros(text) {
        return Err(VersionError(format!(
            "{name} number must not contain leading zeroes {}",
            quote(text)
        )));
    }
    parse_u64(text)
}

fn parse_u64(text: &str) -> Result<u64, VersionError> {
    parse_uint(text, 10).map_err(|error| VersionError(error.to_string()))
}

fn has_leading_zeros(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn is_identifier(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn without_leading_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|first: char| first.is_ascii_digit()) {
        rest.to_owned()
    } else {
        format!("0{rest}")
    }
}
