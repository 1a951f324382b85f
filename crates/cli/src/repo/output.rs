//! The forms in which `olmkit repo check` prints its findings.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use olmkit::diagnostics::{
    Finding, Report, Rule, Severity, TextOptions, counted, fold_repeated, write_concise, write_github, write_grouped,
    write_json, write_junit, write_sarif, write_text,
};
use olmkit::object::UntrustedText;
use olmkit_submission::Checked;
use serde::Serialize;

use super::outcome::Outcome;
use crate::bundle::text::MANY;
use crate::policy::summary_of_suppressed;
use crate::terminal;

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Findings with source lines, what repeats once; of more than ten bundles each rule once, with a few places
    Text,
    /// Findings with source lines, of any number of bundles
    Full,
    /// All findings with their places
    Json,
    /// SARIF 2.1.0 for code scanning services
    Sarif,
    /// Workflow commands of GitHub Actions
    Github,
    /// One line a finding: FILE:LINE:COLUMN: RULE message
    Concise,
    /// JUnit XML
    Junit,
    /// The result of the hosted pipeline's static tests
    PipelineJson,
    /// The result of preflight for one bundle or image
    PreflightJson,
}

/// The result of the static tests, in the shape of the original.
#[derive(Serialize)]
struct PipelineResult<'a> {
    passed: bool,
    outputs: Vec<PipelineOutput<'a>>,
}

#[derive(Serialize)]
struct PipelineOutput<'a> {
    #[serde(rename = "type")]
    level: &'a str,
    message: &'a str,
    test_suite: String,
    check: &'a str,
}

/// Prints the outcome.
pub fn print(mut outcome: Outcome, repository: &Path, format: Format, short: bool) -> anyhow::Result<()> {
    if format == Format::PipelineJson {
        return pipeline_json(&outcome.found);
    }
    if let Some(results) = &outcome.preflight {
        let out = &mut terminal::data();
        serde_json::to_writer_pretty(&mut *out, results)?;
        writeln!(out)?;
        return Ok(());
    }
    // A whole repository has findings by the hundred thousand: they are moved, not copied.
    let found = std::mem::take(&mut outcome.found);
    let mut report: Report = found
        .into_iter()
        .map(|checked| in_repository(checked.finding, repository))
        .collect();
    report.suppressed = std::mem::take(&mut outcome.suppressed);
    report.sort();
    match format {
        Format::Text if outcome.bundles > MANY => grouped(report, &outcome),
        Format::Text | Format::Full => text(&report, &outcome, format, short),
        Format::Sarif => {
            let rules: Vec<&Rule> = olmkit_submission::rules();
            Ok(write_sarif(&report, &rules, &mut terminal::data())?)
        }
        Format::Github => Ok(write_github(&report, &mut terminal::workflow_commands())?),
        Format::Concise => Ok(write_concise(&report, &mut terminal::data())?),
        Format::Junit => Ok(write_junit(&report, "olmkit repo check", &mut terminal::data())?),
        _ => Ok(write_json(&report, &mut terminal::data())?),
    }
}

/// All findings, with what was set aside.
pub fn report(outcome: &Outcome, repository: &Path) -> Report {
    let found = outcome.found.iter();
    let mut report: Report = found
        .map(|checked| in_repository(checked.finding.clone(), repository))
        .collect();
    report.suppressed.clone_from(&outcome.suppressed);
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

fn pipeline_json(found: &[Checked]) -> anyhow::Result<()> {
    let outputs = found.iter().map(|checked| PipelineOutput {
        level: match checked.finding.severity {
            Severity::Error => "error",
            _ => "warning",
        },
        message: &checked.finding.message,
        test_suite: format!("operatorcert.static_tests.{}", checked.suite),
        check: checked.check,
    });
    let result = PipelineResult {
        passed: !found.iter().any(|checked| checked.finding.severity == Severity::Error),
        outputs: outputs.collect(),
    };
    let out = &mut terminal::data();
    serde_json::to_writer(&mut *out, &result)?;
    writeln!(out)?;
    Ok(())
}

/// Findings with source lines, in full or what repeats once.
fn text(report: &Report, outcome: &Outcome, format: Format, short: bool) -> anyhow::Result<()> {
    let out = &mut terminal::styled_output();
    let options = TextOptions {
        short,
        color: true,
        width: terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into()),
    };
    match format {
        Format::Full => write_text(report, options, out)?,
        _ => {
            let folded: Report = fold_repeated(report.findings.clone()).into_iter().collect();
            write_text(&folded, options, out)?;
        }
    }
    let counts = (report.count(Severity::Error), report.count(Severity::Warning));
    summary(report, outcome, counts, out)
}

/// Prints each broken rule once with a few places, and the operators that fail.
fn grouped(report: Report, outcome: &Outcome) -> anyhow::Result<()> {
    let out = &mut terminal::styled_output();
    let mut by_operator: BTreeMap<String, Report> = BTreeMap::new();
    let rest = Report {
        suppressed: report.suppressed,
        ..Report::new()
    };
    let (mut errors, mut warnings) = (0, 0);
    for finding in report.findings {
        errors += usize::from(finding.severity == Severity::Error);
        warnings += usize::from(finding.severity == Severity::Warning);
        by_operator.entry(operator_of(&finding)).or_default().push(finding);
    }
    let failed: Vec<String> = by_operator
        .iter()
        .filter(|(_, report)| report.has_errors())
        .map(|(operator, report)| {
            let (errors, warnings) = (report.count(Severity::Error), report.count(Severity::Warning));
            let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
            format!("  {} ({errors}, {warnings})", UntrustedText::new(operator))
        })
        .collect();
    let inputs: Vec<(&str, Report)> = by_operator
        .iter_mut()
        .map(|(operator, report)| (operator.as_str(), std::mem::take(report)))
        .collect();
    write_grouped(&inputs, "operator", &olmkit_submission::rules(), out)?;
    if !failed.is_empty() {
        writeln!(out, "\nFailed:\n{}\n", failed.join("\n"))?;
    }
    summary(&rest, outcome, (errors, warnings), out)?;
    Ok(writeln!(out, "-o full or concise prints each finding")?)
}

/// The operator that a finding is about, by the place of its file: `operators/NAME/…` or `catalogs/VERSION/NAME/…`.
fn operator_of(finding: &Finding) -> String {
    let file = finding.file.as_deref().unwrap_or(Path::new(""));
    let parts: Vec<_> = file.iter().map(|part| part.to_string_lossy()).collect();
    let below = |folder: &str, at: usize| {
        let start = parts.iter().rposition(|part| part == folder)?;
        parts.get(start + at)
    };
    let name = below("operators", 1).or_else(|| below("catalogs", 2));
    name.map_or_else(|| file.to_string_lossy().into_owned(), |name| name.clone().into_owned())
}

/// What was waived, set aside, checked and not checked.
fn summary(
    report: &Report,
    outcome: &Outcome,
    (errors, warnings): (usize, usize),
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut waived: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (operator, checked) in &outcome.waived {
        *waived.entry((checked.check, operator)).or_default() += 1;
    }
    for ((check, operator), count) in waived {
        writeln!(
            out,
            "waived by config.yaml: {check} of {} ({})",
            UntrustedText::new(operator),
            counted(count, "finding")
        )?;
    }
    if let Some(text) = summary_of_suppressed(report) {
        writeln!(out, "{text}")?;
    }
    let what = if outcome.images > 0 {
        counted(outcome.images, "image")
    } else {
        format!(
            "{}, {} and {}",
            counted(outcome.operators, "operator"),
            counted(outcome.bundles, "bundle"),
            counted(outcome.catalogs, "catalog")
        )
    };
    writeln!(
        out,
        "{what} checked: {} and {}",
        counted(errors, "error"),
        counted(warnings, "warning")
    )?;
    writeln!(out, "not checked here:")?;
    for name in &outcome.not_checked {
        writeln!(out, "  {}", UntrustedText::new(name))?;
    }
    Ok(())
}
