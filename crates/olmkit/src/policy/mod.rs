//! A project's policy for findings: rules, severities, and known findings.
//!
//! A [`Policy`] comes from flags and from `olmkit.toml` ([`config`]). It drops findings of rules that are not selected,
//! changes severities, and suppresses ignored findings: by rule, by path, by a comment in the source, or by a baseline.
//! Suppressed findings remain in the [`Report`] with the reason, so that none is lost silently.
//!
//! ```
//! use olmkit::diagnostics::{Finding, Report, Severity};
//! use olmkit::policy::Policy;
//! use olmkit::rules;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = Policy::builder(rules::all()).ignore("RBAC")?.severity("IMG-1", "error")?.build();
//! let finding = |id: &str| rules::find(id).map(|rule| Finding::from_rule(rule, "something"));
//! let report: Report = ["RBAC-1", "IMG-1"].into_iter().filter_map(finding).collect();
//!
//! let judged = policy.apply(report);
//! assert_eq!(judged.findings[0].severity, Severity::Error);
//! assert_eq!(judged.suppressed[0].finding.rule, "RBAC-1");
//! # Ok(())
//! # }
//! ```

pub mod baseline;
mod builder;
mod comments;
pub mod config;
mod pattern;
mod root;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use globset::GlobMatcher;

pub use builder::Builder;
pub use pattern::{Pattern, UnknownRule};

use self::baseline::Baseline;
use self::comments::Comments;
pub(crate) use self::comments::may_have_comments;
use self::root::Root;
use crate::diagnostics::{Finding, Report, Severity, Suppressed, Suppression};

/// A project's policy for findings.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    select: Vec<Pattern>,
    ignore: Vec<Pattern>,
    per_path: Vec<PathIgnore>,
    severities: Vec<(Pattern, Severity)>,
    baseline: Option<Baseline>,
    comments: bool,
    without_notes: bool,
    root: Root,
}

/// Rules that are ignored in some files.
#[derive(Debug, Clone)]
struct PathIgnore {
    glob: GlobMatcher,
    rules: Vec<Pattern>,
}

impl Policy {
    /// Begins a policy for these rules.
    pub fn builder<'r>(rules: &'r [&'static crate::diagnostics::Rule]) -> Builder<'r> {
        Builder::new(rules)
    }

    /// Returns true if a rule is selected by its own name: then it runs even if nothing proves it.
    pub fn selects_by_name(&self, rule: &str) -> bool {
        self.select.iter().any(|pattern| pattern.is_exactly(rule))
    }

    /// Applies the policy to findings, whose files are named as seen from the working directory.
    #[must_use]
    pub fn apply(&self, report: Report) -> Report {
        self.judge().apply(report)
    }

    /// Begins a run over many inputs, which share the baseline.
    pub fn judge(&self) -> Judge<'_> {
        Judge {
            policy: self,
            comments: Comments::new(self.comments),
            known: self.baseline.as_ref().map(Baseline::counts).unwrap_or_default(),
        }
    }

    /// A baseline with all of these findings, and those that an earlier baseline suppressed.
    pub fn new_baseline<'r>(&self, reports: impl IntoIterator<Item = &'r Report>) -> Baseline {
        Baseline::new(reports, &self.root)
    }

    fn is_selected(&self, rule: &str) -> bool {
        self.select.is_empty() || self.select.iter().any(|pattern| pattern.matches(rule))
    }

    /// The severity from the most precise pattern, the last one of equally precise ones.
    fn severity(&self, rule: &str) -> Option<Severity> {
        let fitting = self.severities.iter().filter(|(pattern, _)| pattern.matches(rule));
        fitting
            .max_by_key(|(pattern, _)| pattern.precision())
            .map(|(_, severity)| *severity)
    }
}

/// Applies a policy to the inputs of one run.
pub struct Judge<'p> {
    policy: &'p Policy,
    comments: Comments,
    /// Remaining occurrences of each finding in the baseline.
    known: BTreeMap<baseline::Entry, usize>,
}

/// Result for a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// It counts, maybe with another severity.
    Kept(Finding),
    /// It is suppressed.
    Suppressed(Suppressed),
    /// Its rule is not selected.
    Dropped,
}

impl Judge<'_> {
    /// Applies the policy to findings, whose files are named as seen from the working directory.
    #[must_use]
    pub fn apply(&mut self, report: Report) -> Report {
        let mut judged = Report {
            suppressed: report.suppressed,
            inputs: report.inputs,
            ..Report::new()
        };
        for finding in report.findings {
            match self.one(finding, true) {
                Judged::Kept(finding) => judged.findings.push(finding),
                Judged::Suppressed(suppressed) => judged.suppressed.push(suppressed),
                Judged::Dropped => {}
            }
        }
        judged
    }

    /// As [`Self::one`], for a finding whose file has another name afterwards: `lasting`, which ignored paths and baselines go by.
    /// A finding that counts keeps its own.
    pub fn one_in(&mut self, lasting: Option<PathBuf>, mut finding: Finding, with_comments: bool) -> Judged {
        let file = std::mem::replace(&mut finding.file, lasting);
        match self.one(finding, with_comments) {
            Judged::Kept(mut finding) => {
                finding.file = file;
                Judged::Kept(finding)
            }
            other => other,
        }
    }

    /// Applies the policy to one finding. In untrusted files, such as those of an image, comments do not count.
    pub fn one(&mut self, mut finding: Finding, with_comments: bool) -> Judged {
        if !self.policy.is_selected(finding.rule) {
            return Judged::Dropped;
        }
        if let Some(severity) = self.policy.severity(finding.rule) {
            finding.severity = severity;
        }
        if self.policy.without_notes && finding.severity == Severity::Info {
            return Judged::Dropped;
        }
        match self.suppression(&finding, with_comments) {
            Some(by) => Judged::Suppressed(Suppressed { finding, by }),
            None => Judged::Kept(finding),
        }
    }

    fn suppression(&mut self, finding: &Finding, with_comments: bool) -> Option<Suppression> {
        let policy = self.policy;
        if let Some(pattern) = policy.ignore.iter().find(|pattern| pattern.matches(finding.rule)) {
            return Some(Suppression::Rule(pattern.to_string()));
        }
        let name = OnceCell::new();
        let file = || name.get_or_init(|| policy.root.name(finding.file.as_deref().unwrap_or(Path::new(""))));
        let of_path = policy.per_path.iter().find(|ignored| {
            ignored.rules.iter().any(|pattern| pattern.matches(finding.rule)) && ignored.glob.is_match(file())
        });
        if let Some(ignored) = of_path {
            return Some(Suppression::Path(ignored.glob.glob().glob().to_owned()));
        }
        if with_comments && let Some(reason) = self.comments.reason(finding) {
            return Some(Suppression::Comment(reason));
        }
        if self.known.is_empty() {
            return None;
        }
        let entry = baseline::Entry::new(finding, file().clone());
        let count = self.known.get_mut(&entry).filter(|count| **count > 0)?;
        *count -= 1;
        Some(Suppression::Baseline)
    }
}

#[cfg(test)]
mod tests;
