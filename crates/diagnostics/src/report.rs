//! Findings of one run, and suppressed ones.

use std::borrow::Cow;

use serde::Serialize;

use super::{Finding, Severity};
use olmkit_base::limits;

/// The findings about one input, in a stable order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
    /// Suppressed findings, which do not affect any result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suppressed: Vec<Suppressed>,
    /// The results of the inputs, if there may be several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Verdict>,
}

/// A suppressed finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suppressed {
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
    /// The suppression.
    #[serde(rename = "suppressed")]
    pub by: Suppression,
}

/// Why a finding is suppressed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "by", content = "reason")]
#[non_exhaustive]
pub enum Suppression {
    /// The rule is ignored, by this pattern.
    Rule(String),
    /// The rule is ignored in files that fit this glob.
    Path(String),
    /// A comment in the source, with this reason.
    Comment(String),
    /// The baseline contains it.
    Baseline,
}

impl Suppression {
    /// Returns true if a baseline did.
    pub fn is_baseline(&self) -> bool {
        *self == Suppression::Baseline
    }

    /// The reason from the user or from a comment in the file.
    fn reason(&self) -> Option<&str> {
        match self {
            Suppression::Rule(text) | Suppression::Path(text) | Suppression::Comment(text) => Some(text),
            Suppression::Baseline => None,
        }
    }

    fn shorten(&mut self) {
        if let Suppression::Rule(text) | Suppression::Path(text) | Suppression::Comment(text) = self {
            *text = limits::message(std::mem::take(text));
        }
    }
}

impl std::fmt::Display for Suppression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Suppression::Rule(pattern) => write!(f, "{pattern} is ignored"),
            Suppression::Path(glob) => write!(f, "ignored in {glob}"),
            Suppression::Comment(reason) => write!(f, "ignored by a comment: {reason}"),
            Suppression::Baseline => f.write_str("in the baseline"),
        }
    }
}

/// Result of one input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// The input as the user named it.
    pub name: String,
    /// True if it passed.
    pub passed: bool,
    /// Number of errors.
    pub errors: usize,
    /// Number of warnings.
    pub warnings: usize,
}

impl Verdict {
    /// The result of an input with these findings.
    pub fn new(name: impl Into<String>, passed: bool, report: &Report) -> Self {
        Self {
            name: name.into(),
            passed,
            errors: report.count(Severity::Error),
            warnings: report.count(Severity::Warning),
        }
    }
}

impl Report {
    /// An empty report.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a finding.
    pub fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Number of findings of one severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    }

    /// Returns true if there is an error.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Takes in what another report has.
    pub fn append(&mut self, other: Report) {
        self.findings.extend(other.findings);
        self.suppressed.extend(other.suppressed);
        self.inputs.extend(other.inputs);
    }

    /// The report for the writers: no string of a finding is longer than a message may be, regardless of its rule.
    pub(super) fn shown(&self) -> Cow<'_, Report> {
        let reasons = self.suppressed.iter().filter_map(|suppressed| suppressed.by.reason());
        let is_short = |finding: &Finding| !finding.is_long();
        if self.all().all(is_short)
            && reasons
                .into_iter()
                .all(|reason| reason.len() <= limits::QUOTED_TEXT.count())
        {
            return Cow::Borrowed(self);
        }
        let mut shown = self.clone();
        shown.findings.iter_mut().for_each(Finding::shorten);
        for suppressed in &mut shown.suppressed {
            suppressed.finding.shorten();
            suppressed.by.shorten();
        }
        Cow::Owned(shown)
    }

    fn all(&self) -> impl Iterator<Item = &Finding> {
        let suppressed = self.suppressed.iter().map(|suppressed| &suppressed.finding);
        self.findings.iter().chain(suppressed)
    }

    /// Sorts by file, position, severity, rule and message, so that the output does not depend on the order of checks.
    pub fn sort(&mut self) {
        self.findings.sort_by(|a, b| {
            let key = |finding: &Finding| (finding.position, finding.severity, finding.rule);
            a.file
                .cmp(&b.file)
                .then_with(|| key(a).cmp(&key(b)))
                .then_with(|| a.message.cmp(&b.message))
                .then_with(|| a.path.cmp(&b.path))
                .then_with(|| a.object.cmp(&b.object))
        });
    }
}

impl FromIterator<Finding> for Report {
    fn from_iter<I: IntoIterator<Item = Finding>>(findings: I) -> Self {
        Self {
            findings: findings.into_iter().collect(),
            ..Self::default()
        }
    }
}

impl Extend<Finding> for Report {
    fn extend<I: IntoIterator<Item = Finding>>(&mut self, findings: I) {
        self.findings.extend(findings);
    }
}
