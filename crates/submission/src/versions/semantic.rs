//! Strict semantic versions, as the Python library `semantic_version` reads and orders them.

use std::cmp::Ordering;

use crate::python::text::quoted;

/// A version. The order ignores the build, equality does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Semantic {
    pub(crate) major: u64,
    pub(crate) minor: u64,
    pub(crate) patch: u64,
    pub(crate) pre_release: Vec<String>,
    pub(crate) build: Vec<String>,
}

impl Semantic {
    /// A version without pre-release and build.
    pub(crate) fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self {
            major,
            minor,
            patch,
            pre_release: Vec::new(),
            build: Vec::new(),
        }
    }

    /// Parses a version. The error is the library's message.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Invalid empty version string: ''".to_owned());
        }
        let invalid = || format!("Invalid version string: {}", quoted(text));
        let bare = text.strip_suffix('\n').unwrap_or(text);
        let (rest, build) = match bare.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (bare, None),
        };
        let (numbers, pre_release) = match rest.split_once('-') {
            Some((numbers, pre_release)) => (numbers, Some(pre_release)),
            None => (rest, None),
        };
        let allowed = |part: Option<&str>| {
            part.is_none_or(|part| {
                !part.is_empty()
                    && part
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
            })
        };
        let numbers: Vec<&str> = numbers.split('.').collect();
        let numeric = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let [major, minor, patch] = numbers.as_slice() else {
            return Err(invalid());
        };
        if !numbers.iter().all(numeric) || !allowed(build) || !allowed(pre_release) {
            return Err(invalid());
        }
        for (part, name) in [(major, "major"), (minor, "minor"), (patch, "patch")] {
            if part.len() > 1 && part.starts_with('0') {
                return Err(format!("Invalid leading zero in {name}: {}", quoted(text)));
            }
        }
        let number = |part: &str| part.parse().unwrap_or(u64::MAX);
        Ok(Self {
            major: number(major),
            minor: number(minor),
            patch: number(patch),
            pre_release: identifiers(pre_release.unwrap_or_default(), false)?,
            build: identifiers(build.unwrap_or_default(), true)?,
        })
    }

    /// Without pre-release and build.
    pub(crate) fn truncated(&self) -> Self {
        Self::new(self.major, self.minor, self.patch)
    }

    /// Without build.
    pub(crate) fn without_build(&self) -> Self {
        Self {
            build: Vec::new(),
            ..self.clone()
        }
    }

    /// The first version after this major one.
    pub(crate) fn next_major(&self) -> Self {
        if !self.pre_release.is_empty() && self.minor == 0 && self.patch == 0 {
            return self.truncated();
        }
        Self::new(self.major.saturating_add(1), 0, 0)
    }

    /// The first version after this minor one.
    pub(crate) fn next_minor(&self) -> Self {
        if !self.pre_release.is_empty() && self.patch == 0 {
            return self.truncated();
        }
        Self::new(self.major, self.minor.saturating_add(1), 0)
    }

    /// The first version after this patch.
    pub(crate) fn next_patch(&self) -> Self {
        if !self.pre_release.is_empty() {
            return self.truncated();
        }
        Self::new(self.major, self.minor, self.patch.saturating_add(1))
    }

    /// The order of versions, which ignores the build.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.pre_release.is_empty(), other.pre_release.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => {
                    let mut parts = self.pre_release.iter().zip(&other.pre_release);
                    parts
                        .find_map(|(a, b)| Some(identifier_order(a, b)).filter(|order| order.is_ne()))
                        .unwrap_or_else(|| self.pre_release.len().cmp(&other.pre_release.len()))
                }
            }
        })
    }
}

fn identifiers(text: &str, may_start_with_zero: bool) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let parts: Vec<&str> = text.split('.').collect();
    for part in &parts {
        if part.is_empty() {
            return Err(format!("Invalid empty identifier '' in {}", quoted(text)));
        }
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && part.len() > 1 && part.starts_with('0') && !may_start_with_zero {
            return Err(format!("Invalid leading zero in identifier {}", quoted(part)));
        }
    }
    Ok(parts.into_iter().map(str::to_owned).collect())
}

fn identifier_order(a: &str, b: &str) -> Ordering {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match (is_number(a), is_number(b)) {
        (true, true) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_precedence() {
        let version = |text| Semantic::parse(text).expect(text);
        let sorted = [
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-10",
            "1.0.0-a",
            "1.0.0-a.1",
            "1.0.0",
            "1.0.1-0",
        ];
        for pair in sorted.windows(2) {
            assert_eq!(version(pair[0]).order(&version(pair[1])), Ordering::Less, "{pair:?}");
        }
        assert_eq!(version("1.0.0+a").order(&version("1.0.0+b")), Ordering::Equal);
        assert_ne!(version("1.0.0+a"), version("1.0.0+b"));
    }

    #[test]
    fn errors_have_the_words_of_the_library() {
        for (text, error) in [
            ("1.0", "Invalid version string: '1.0'"),
            ("01.0.0", "Invalid leading zero in major: '01.0.0'"),
            ("1.0.0-01", "Invalid leading zero in identifier '01'"),
            ("1.0.0-a..b", "Invalid empty identifier '' in 'a..b'"),
        ] {
            assert_eq!(Semantic::parse(text), Err(error.to_owned()));
        }
    }
}
