//! What `olmkit bundle validate` prints.

use std::io::Write;
use std::process::ExitCode;

use comfy_table::{Cell, Table, presets};
use olmkit::diagnostics::{Finding, Report, Severity, TextOptions, write_github, write_json, write_sarif, write_text};
use olmkit::types::{go_json, go_text};
use olmkit::validate::optional::Validator;

use super::validate::{Format, Validated};

/// Prints a text in the form of operator-sdk's last words.
pub fn fatal(message: &str) -> ExitCode {
    eprintln!("level=fatal msg={}", go_text::quote(message));
    ExitCode::FAILURE
}

/// True when a bundle has findings that fail the run.
pub fn failed(validated: &Validated, from: Severity) -> bool {
    let count = |severity| {
        validated
            .outcome
            .findings()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    !validated.outcome.passed()
        || count(Severity::Error) > 0
        || (from == Severity::Warning && count(Severity::Warning) > 0)
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
    writeln!(std::io::stdout().lock(), "{}", table.trim_fmt())?;
    Ok(())
}

/// Prints the results of all bundles.
pub fn print(all: &[Validated], format: Format, short: bool, strict: bool) -> anyhow::Result<()> {
    let out = &mut std::io::stdout().lock();
    match format {
        Format::JsonAlpha1 => {
            for validated in all {
                json_alpha1(validated, strict, out)?;
            }
        }
        Format::Text => {
            let stream = &mut anstream::AutoStream::auto(out);
            for validated in all {
                text(validated, short, stream)?;
            }
            if all.len() > 1 {
                summary(all, stream)?;
            }
        }
        Format::Json | Format::Sarif | Format::Github => {
            let report: Report = all.iter().flat_map(findings_for_machines).collect();
            machine(&report, format, out)?;
        }
    }
    Ok(())
}

/// The findings with file names as seen from the working directory.
fn findings(validated: &Validated) -> Vec<Finding> {
    let mut report: Report = validated.outcome.findings().cloned().collect();
    for finding in &mut report.findings {
        let file = finding.file.take().unwrap_or_default();
        finding.file = Some(validated.directory.join(file));
    }
    report.sort();
    report.findings
}

/// As [`findings`]; files of an image have the names that they have in it, because the folder it was unpacked to is gone afterwards.
fn findings_for_machines(validated: &Validated) -> Vec<Finding> {
    let mut findings = findings(validated);
    for finding in findings.iter_mut().filter(|_| validated.is_image) {
        let inside = finding
            .file
            .as_deref()
            .map(|file| file.strip_prefix(&validated.directory));
        if let Some(Ok(inside)) = inside {
            finding.file = Some(inside.to_path_buf());
        }
    }
    findings
}

fn machine(report: &Report, format: Format, out: &mut dyn Write) -> anyhow::Result<()> {
    match format {
        Format::Sarif => write_sarif(report, &olmkit::validate::rules::descriptions(), out)?,
        Format::Github => write_github(report, out)?,
        _ => write_json(report, out)?,
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
        let message = go_json::string(&output.message);
        writeln!(
            out,
            "        {{\n            \"type\": \"{}\",\n            \"message\": {message}\n        }}{comma}",
            output.level
        )?;
    }
    writeln!(out, "    ]\n}}")?;
    if passed {
        eprintln!("All validation tests have completed successfully");
    }
    Ok(())
}

fn text(validated: &Validated, short: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let report = Report {
        findings: findings(validated),
    };
    let options = TextOptions {
        short,
        color: true,
        width: terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into()),
    };
    let mut text = Vec::new();
    write_text(&report, options, &mut text)?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if validated.is_image {
        text = text.replace(&*validated.directory.to_string_lossy(), &validated.name);
    }
    out.write_all(text.as_bytes())?;
    // Findings tell the same with the place.
    if let Some(message) = validated
        .outcome
        .fatal
        .as_ref()
        .filter(|_| report.count(Severity::Error) == 0)
    {
        out.flush()?;
        fatal(message);
    }
    let (errors, warnings) = (report.count(Severity::Error), report.count(Severity::Warning));
    if errors + warnings > 0 {
        writeln!(
            out,
            "{}: {} and {}",
            validated.name,
            number(errors, "error"),
            number(warnings, "warning")
        )?;
    } else if validated.outcome.passed() {
        eprintln!("{}: all validation tests have completed successfully", validated.name);
    }
    Ok(())
}

fn number(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn summary(all: &[Validated], out: &mut dyn Write) -> anyhow::Result<()> {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["BUNDLE", "VERDICT", "ERRORS", "WARNINGS"]);
    let mut failures = 0;
    for validated in all {
        let count = |severity| {
            validated
                .outcome
                .findings()
                .filter(|finding| finding.severity == severity)
                .count()
        };
        let verdict = match (&validated.outcome.fatal, validated.outcome.passed()) {
            (Some(_), _) => "not loaded",
            (None, true) => "passed",
            (None, false) => "failed",
        };
        failures += usize::from(verdict != "passed");
        let errors = count(Severity::Error);
        table.add_row([
            Cell::new(&validated.name),
            Cell::new(verdict),
            Cell::new(errors),
            Cell::new(count(Severity::Warning)),
        ]);
    }
    writeln!(
        out,
        "{}\n{} bundles, {} passed, {failures} failed",
        table.trim_fmt(),
        all.len(),
        all.len() - failures
    )?;
    Ok(())
}
