//! Makes a policy from flags and settings.

use std::path::Path;

use globset::Glob;

use super::baseline::Baseline;
use super::root::Root;
use super::{PathIgnore, Pattern, Policy, UnknownRule};
use crate::diagnostics::{Rule, Severity};

/// Bytes of a glob: it becomes a regular expression.
const MOST_GLOB: usize = 4096;

/// Collects the settings of a policy. Later settings add to earlier ones.
#[derive(Debug)]
pub struct Builder<'r> {
    rules: &'r [&'static Rule],
    policy: Policy,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSetting {
    /// It names no rule.
    #[error(transparent)]
    Rule(#[from] UnknownRule),
    /// Not a severity.
    #[error("{0:?} is not a severity; use error, warning or info")]
    Severity(String),
    /// It is longer than any path.
    #[error("a glob of more than {MOST_GLOB} bytes")]
    LongGlob,
    /// Not a glob.
    #[error("{0}")]
    Glob(#[from] globset::Error),
}

impl<'r> Builder<'r> {
    pub(super) fn new(rules: &'r [&'static Rule]) -> Self {
        Self {
            rules,
            policy: Policy {
                comments: true,
                ..Policy::default()
            },
        }
    }

    /// Reports only these rules, and others that are selected.
    ///
    /// # Errors
    /// When the pattern means no rule.
    pub fn select(mut self, pattern: &str) -> Result<Self, InvalidSetting> {
        self.policy.select.push(Pattern::parse(pattern, self.rules)?);
        Ok(self)
    }

    /// Ignores these rules.
    ///
    /// # Errors
    /// When the pattern means no rule.
    pub fn ignore(mut self, pattern: &str) -> Result<Self, InvalidSetting> {
        self.policy.ignore.push(Pattern::parse(pattern, self.rules)?);
        Ok(self)
    }

    /// Ignores these rules in files whose path, as seen from the root, fits a glob.
    ///
    /// # Errors
    /// When a pattern means no rule, or the glob cannot be read.
    pub fn ignore_in(mut self, glob: &str, patterns: &[String]) -> Result<Self, InvalidSetting> {
        let parse = |pattern: &String| Pattern::parse(pattern, self.rules);
        let rules = patterns.iter().map(parse).collect::<Result<_, _>>()?;
        if glob.len() > MOST_GLOB {
            return Err(InvalidSetting::LongGlob);
        }
        let glob = Glob::new(glob)?.compile_matcher();
        self.policy.per_path.push(PathIgnore { glob, rules });
        Ok(self)
    }

    /// Gives these rules another severity. An id counts more than a family, a later setting more than an earlier one.
    ///
    /// # Errors
    /// When the pattern matches no rule, or the severity is unknown.
    pub fn severity(mut self, pattern: &str, severity: &str) -> Result<Self, InvalidSetting> {
        let severity = match severity.trim() {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            "info" => Severity::Info,
            other => return Err(InvalidSetting::Severity(other.to_owned())),
        };
        let pattern = Pattern::parse(pattern, self.rules)?;
        self.policy.severities.push((pattern, severity));
        Ok(self)
    }

    /// The directory to which globs and baselines are relative, such as that of the settings.
    #[must_use]
    pub fn root(mut self, folder: &Path) -> Self {
        self.policy.root = Root::new(folder);
        self
    }

    /// Ignores the findings in a baseline.
    #[must_use]
    pub fn baseline(mut self, baseline: Baseline) -> Self {
        self.policy.baseline = Some(baseline);
        self
    }

    /// Returns true if findings that need no action are reported, which is the default.
    #[must_use]
    pub fn notes(mut self, reported: bool) -> Self {
        self.policy.without_notes = !reported;
        self
    }

    /// Returns true if `# olmkit: ignore` comments count, which is the default.
    #[must_use]
    pub fn comments(mut self, count: bool) -> Self {
        self.policy.comments = count;
        self
    }

    /// The policy.
    pub fn build(self) -> Policy {
        self.policy
    }
}
