//! The findings of `olmkit repo check` as one document.

use std::io::Write as _;
use std::path::Path;

use olmkit::diagnostics::{Severity, write_json, write_junit, write_sarif};
use olmkit_submission::Checked;
use serde::Serialize;

use super::format::{Format, report};
use super::outcome::Outcome;
use crate::terminal;

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

/// Prints all findings as one document, in a format without a [`Printer`](super::text::Printer).
pub fn print(outcome: Outcome, repository: &Path, format: Format) -> anyhow::Result<()> {
    if format == Format::PipelineJson {
        return pipeline_json(&outcome.found);
    }
    let out = &mut terminal::data();
    if let Some(results) = &outcome.preflight {
        serde_json::to_writer_pretty(&mut *out, results)?;
        return Ok(writeln!(out)?);
    }
    let report = report(outcome, repository);
    match format {
        Format::Sarif => write_sarif(&report, &olmkit_submission::rules(), out)?,
        Format::Junit => write_junit(&report, "olmkit repo check", out)?,
        _ => write_json(&report, out)?,
    }
    Ok(())
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
