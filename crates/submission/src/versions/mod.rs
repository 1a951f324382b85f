//! Versions and ranges as the libraries of the hosted pipeline parse them.

mod npm;
mod semantic;

pub(crate) use npm::{NpmError, NpmRange};
pub(crate) use semantic::Semantic;

use std::fmt;

/// A version of Kubernetes or OpenShift: `1.25.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Release {
    pub(crate) major: u64,
    pub(crate) minor: u64,
    pub(crate) patch: u64,
}

impl Release {
    /// A version without patch.
    pub(crate) const fn new(major: u64, minor: u64) -> Self {
        Self { major, minor, patch: 0 }
    }

    /// `4.12`.
    pub(crate) fn short(&self) -> String {
        format!("{}.{}", self.major, self.minor)
    }

    /// Parses a semantic version whose minor and patch may be missing. The parts after `-` and `+` are checked and
    /// dropped. The error is the pipeline's message.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        semver(text, true).ok_or_else(|| format!("{text} is not valid SemVer string"))
    }

    /// As [`Self::parse`], of OpenShift: with or without `v`, without the patch.
    pub(crate) fn parse_openshift(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let version = Self::parse(text.strip_prefix('v').unwrap_or(text))?;
        Ok(Self { patch: 0, ..version })
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Returns true if a string is a semantic version (2.0.0).
pub(crate) fn is_semver(text: &str) -> bool {
    semver(text, false).is_some()
}

fn semver(text: &str, may_be_short: bool) -> Option<Release> {
    // Python's `$` also matches before a final line break.
    let text = text.strip_suffix('\n').unwrap_or(text);
    let (text, build) = match text.split_once('+') {
        Some((text, build)) => (text, Some(build)),
        None => (text, None),
    };
    let (numbers, pre_release) = match text.split_once('-') {
        Some((numbers, pre_release)) => (numbers, Some(pre_release)),
        None => (text, None),
    };
    let identifier =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let numeric = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let sound_number = |part: &str| numeric(part) && (part.len() == 1 || !part.starts_with('0'));
    let sound_build = build.is_none_or(|build| build.split('.').all(identifier));
    let sound_pre_release = pre_release.is_none_or(|text| {
        text.split('.')
            .all(|part| identifier(part) && (!numeric(part) || sound_number(part)))
    });
    if !sound_build || !sound_pre_release {
        return None;
    }
    let mut parts = [0; 3];
    let mut count = 0;
    for part in numbers.split('.') {
        if !sound_number(part) {
            return None;
        }
        *parts.get_mut(count)? = part.parse().unwrap_or(u64::MAX);
        count += 1;
    }
    (count == 3 || may_be_short).then_some(Release {
        major: parts[0],
        minor: parts[1],
        patch: parts[2],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_versions_are_for_platforms_only() {
        assert_eq!(Release::parse(" 1.22 "), Ok(Release::new(1, 22)));
        assert_eq!(Release::parse_openshift("v4.9.3"), Ok(Release::new(4, 9)));
        assert_eq!(Release::parse("1.x"), Err("1.x is not valid SemVer string".to_owned()));
        assert!(is_semver("1.0.0-rc.1+x") && !is_semver("1.0") && !is_semver("1.0.0-01") && !is_semver("01.0.0"));
    }
}
