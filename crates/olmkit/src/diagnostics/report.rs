//! Findings of one run.

use serde::Serialize;

use super::{Finding, Severity};

/// The findings about one input, in a stable order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
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

    /// Whether there is an error.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Sorts by file, place, severity, rule and message, so that the output does not depend on the order of checks.
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
        }
    }
}

impl Extend<Finding> for Report {
    fn extend<I: IntoIterator<Item = Finding>>(&mut self, findings: I) {
        self.findings.extend(findings);
    }
}
