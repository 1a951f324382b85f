//! The forms of `olmkit bundle validate` for programs, and its table of optional validators.

use std::io::Write;
use std::process::ExitCode;

use clap::ValueEnum;
use comfy_table::{Table, presets};
use olmkit::diagnostics::{Report, write_concise, write_github, write_json, write_junit, write_sarif};
use olmkit::go::{json, strconv};
use olmkit::validate::optional::Validator;
use olmkit::validate::source::Validated;

use crate::terminal;

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Findings with source excerpts. Repeated findings are grouped. With more than ten bundles: one entry per rule
    Text,
    /// Every finding with its source excerpt
    Full,
    /// One line per finding: FILE:LINE:COLUMN: SEVERITY[RULE] message
    Concise,
    /// operator-sdk's JSON with operator-sdk's findings
    #[value(name = "json-alpha1")]
    JsonAlpha1,
    /// All findings with their locations
    Json,
    /// SARIF 2.1.0 for code scanning services
    Sarif,
    /// Workflow commands of GitHub Actions
    Github,
    /// JUnit XML
    Junit,
}

/// `--fail-on`
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Errors only.
    Error,
    /// Warnings too.
    Warning,
}

/// Prints an error as operator-sdk logs it before it exits.
pub fn fatal(message: &str) -> ExitCode {
    eprintln!("level=fatal msg={}", strconv::quote(message));
    ExitCode::FAILURE
}

/// The table of optional validators.
pub fn optional_validators(validators: &[Validator]) -> anyhow::Result<()> {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["NAME", "LABELS", "DESCRIPTION"]);
    for validator in validators {
        let labels: Vec<String> = validator
            .labels()
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        table.add_row([
            validator.name.to_string(),
            labels.join("\n"),
            validator.description.to_string(),
        ]);
    }
    writeln!(terminal::output(), "{}", table.trim_fmt())?;
    Ok(())
}

/// Prints all findings in a machine-readable format.
pub fn machine(all: &[Validated], format: Format, strict: bool) -> anyhow::Result<()> {
    let out = &mut terminal::data();
    if format == Format::JsonAlpha1 {
        return all.iter().try_for_each(|validated| json_alpha1(validated, strict, out));
    }
    let mut report = Report::new();
    all.iter().for_each(|validated| report.append(validated.report()));
    match format {
        Format::Sarif => write_sarif(&report, olmkit::rules::all(), out)?,
        Format::Github => write_github(&report, &mut terminal::workflow_commands())?,
        Format::Concise => write_concise(&report, out)?,
        Format::Junit => write_junit(&report, "olmkit bundle validate", out)?,
        _ => write_json(&report, out)?,
    }
    Ok(())
}

fn json_alpha1(validated: &Validated, strict: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    if let Some(message) = &validated.outcome.fatal {
        fatal(message);
        return Ok(());
    }
    let mut outputs = validated.outcome.outputs();
    if strict {
        for checked in validated
            .outcome
            .checked
            .iter()
            .filter(|checked| checked.reference.is_none())
        {
            let finding = &checked.finding;
            let message = format!("{}: {}", finding.rule, finding.message);
            outputs.push(olmkit::validate::Output {
                level: finding.severity.as_str(),
                message,
            });
        }
    }
    let passed = validated.outcome.passed();
    if outputs.is_empty() {
        writeln!(out, "{{\n    \"passed\": {passed},\n    \"outputs\": null\n}}")?;
        return Ok(());
    }
    writeln!(out, "{{\n    \"passed\": {passed},\n    \"outputs\": [")?;
    for (at, output) in outputs.iter().enumerate() {
        let comma = if at + 1 < outputs.len() { "," } else { "" };
        let message = json::string(&output.message);
        writeln!(
            out,
            "        {{\n            \"type\": \"{}\",\n            \"message\": {message}\n        }}{comma}",
            output.level
        )?;
    }
    writeln!(out, "    ]\n}}")?;
    if passed {
        note!("All validation tests have completed successfully");
    }
    Ok(())
}
