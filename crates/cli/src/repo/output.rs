//! The forms in which `olmkit repo check` prints its findings.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use clap::ValueEnum;
use olmkit::diagnostics::{
    Finding, Report, Rule, Severity, TextOptions, write_github, write_json, write_sarif, write_text,
};
use olmkit::object::UntrustedText;
use olmkit_submission::Checked;
use serde::Serialize;

use super::check::Outcome;
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
    /// The result of the hosted pipeline's static tests
    PipelineJson,
}

/// What the hosted pipeline does with services that are not asked here.
const NOT_CHECKED: &[&str] = &[
    "operator-name-reservation (is the package name reserved for somebody else)",
    "certification-project-status (certified operators)",
    "certified-image-references (are all images certified)",
    "github-permissions (may the author change this operator)",
    "bundle-image-build and index-image (builds on the platforms)",
    "preflight DeployableByOLM (installs the operator on a cluster)",
];

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
    // A whole repository has findings by the hundred thousand: they are moved, not copied.
    let found = std::mem::take(&mut outcome.found);
    let mut report: Report = found
        .into_iter()
        .map(|checked| in_repository(checked.finding, repository))
        .collect();
    report.sort();
    match format {
        Format::Text => text(&report, &outcome, short),
        Format::Sarif => {
            let rules: Vec<&Rule> = olmkit_submission::rules();
            Ok(write_sarif(&report, &rules, &mut terminal::output())?)
        }
        Format::Github => Ok(write_github(&report, &mut terminal::workflow_commands())?),
        _ => Ok(write_json(&report, &mut terminal::output())?),
    }
}

/// A finding with its file as seen from the working directory.
fn in_repository(mut finding: Finding, repository: &Path) -> Finding {
    if let Some(file) = finding.file.take() {
        finding.file = Some(if repository == Path::new(".") {
            file
        } else {
            repository.join(file)
        });
    }
    finding
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
            number(count, "finding")
        )?;
    }
    writeln!(
        out,
        "{}, {} and {} checked: {} and {}",
        number(outcome.operators, "operator"),
        number(outcome.bundles, "bundle"),
        number(outcome.catalogs, "catalog"),
        number(report.count(Severity::Error), "error"),
        number(report.count(Severity::Warning), "warning")
    )?;
    writeln!(out, "not checked, since hosted services answer it:")?;
    for name in NOT_CHECKED {
        writeln!(out, "  {name}")?;
    }
    Ok(())
}

fn number(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}
