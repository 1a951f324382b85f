//! The forms in which `olmkit repo check` prints its findings.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use olmkit::diagnostics::{
    Finding, Report, Rule, Severity, TextOptions, counted, write_concise, write_github, write_json, write_junit,
    write_sarif, write_text,
};
use olmkit::object::UntrustedText;
use olmkit_submission::Checked;
use serde::Serialize;

use super::check::Outcome;
use crate::policy::summary_of_suppressed;
use crate::terminal;

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Findings with source lines
    Text,
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
        let out = &mut terminal::output();
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
        Format::Text => text(&report, &outcome, short),
        Format::Sarif => {
            let rules: Vec<&Rule> = olmkit_submission::rules();
            Ok(write_sarif(&report, &rules, &mut terminal::output())?)
        }
        Format::Github => Ok(write_github(&report, &mut terminal::workflow_commands())?),
        Format::Concise => Ok(write_concise(&report, &mut terminal::output())?),
        Format::Junit => Ok(write_junit(&report, "olmkit repo check", &mut terminal::output())?),
        _ => Ok(write_json(&report, &mut terminal::output())?),
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
    let out = &mut terminal::output();
    serde_json::to_writer(&mut *out, &result)?;
    writeln!(out)?;
    Ok(())
}

fn text(report: &Report, outcome: &Outcome, short: bool) -> anyhow::Result<()> {
    let out = &mut terminal::styled_output();
    let options = TextOptions {
        short,
        color: true,
        width: terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into()),
    };
    write_text(report, options, out)?;
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
        counted(report.count(Severity::Error), "error"),
        counted(report.count(Severity::Warning), "warning")
    )?;
    writeln!(out, "not checked here:")?;
    for name in &outcome.not_checked {
        writeln!(out, "  {name}")?;
    }
    Ok(())
}
