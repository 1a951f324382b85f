//! The output formats of `olmkit repo check`, and their common parts.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use olmkit::diagnostics::{Finding, Report};

use super::outcome::Outcome;

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Findings with source excerpts. Repeated findings are grouped. With more than ten bundles: one entry per rule
    Text,
    /// Findings with source lines, of any number of bundles
    Full,
    /// All findings with their locations
    Json,
    /// SARIF 2.1.0 for code scanning services
    Sarif,
    /// Workflow commands of GitHub Actions
    Github,
    /// One line per finding: FILE:LINE:COLUMN: SEVERITY[RULE] message
    Concise,
    /// JUnit XML
    Junit,
    /// The result of the hosted pipeline's static tests
    PipelineJson,
    /// The result of preflight for one bundle or image
    PreflightJson,
}

/// All findings, sorted, with the suppressed ones. A whole repository has hundreds of thousands: they are moved, not
/// copied.
pub fn report(outcome: Outcome, repository: &Path) -> Report {
    let found = outcome.found.into_iter();
    let mut report: Report = found
        .map(|checked| in_repository(checked.finding, repository))
        .collect();
    report.suppressed = outcome.suppressed;
    report.sort();
    report
}

fn in_repository(mut finding: Finding, repository: &Path) -> Finding {
    finding.file = file_in(repository, &finding);
    finding
}

/// A finding's file as seen from the working directory.
pub fn file_in(repository: &Path, finding: &Finding) -> Option<PathBuf> {
    let file = finding.file.as_deref()?;
    let is_here = repository == Path::new(".");
    Some(if is_here {
        file.to_owned()
    } else {
        repository.join(file)
    })
}
