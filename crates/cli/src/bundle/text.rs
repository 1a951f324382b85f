//! The findings of `olmkit bundle validate` for people.

use std::io::Write as _;

use comfy_table::{Cell, Table, presets};
use olmkit::diagnostics::{Report, Severity, TextOptions, counted, fold_repeated, write_text};
use olmkit::object::UntrustedText;
use olmkit::rules;
use olmkit::validate::source::Validated;

use super::output;
use crate::many::Many;
use crate::policy::{SetAside, summary_of_suppressed};
use crate::terminal;

/// Data of a bundle that is kept after its findings are printed.
pub struct Row {
    name: String,
    verdict: &'static str,
    errors: usize,
    warnings: usize,
    pub fails: bool,
}

impl Row {
    /// The kept data of this bundle. `worst` is the lowest severity that fails it.
    pub fn new(validated: &Validated, worst: Severity) -> Self {
        Self {
            name: validated.name.clone(),
            verdict: match (&validated.outcome.fatal, validated.outcome.passed()) {
                (Some(_), _) => "not loaded",
                (None, true) => "passed",
                (None, false) => "failed",
            },
            errors: validated.count(Severity::Error),
            warnings: validated.count(Severity::Warning),
            fails: validated.fails(worst),
        }
    }
}

/// Output for many bundles: each failing bundle immediately after its validation, then each broken rule once with a few
/// positions, and totals.
#[derive(Default)]
pub struct Bundles {
    many: Many,
    set_aside: SetAside,
}

impl Bundles {
    /// Names the next one if it fails.
    pub fn add(&mut self, validated: &Validated, row: &Row) -> anyhow::Result<()> {
        self.set_aside.add(&validated.suppressed);
        self.many.add(&row.name, &validated.findings_for_machines(), row.fails)
    }

    /// Prints the rules and the totals of all rows.
    pub fn end(&self, rows: &[Row]) -> anyhow::Result<()> {
        self.many.end("bundle", rules::all())?;
        let out = &mut terminal::styled_output();
        if let Some(text) = self.set_aside.summary() {
            writeln!(out, "{text}")?;
        }
        let failed = rows.iter().filter(|row| row.fails).count();
        writeln!(
            out,
            "{} bundles: {} passed, {failed} failed; {}, {}\n-o full or concise prints each finding",
            rows.len(),
            rows.len() - failed,
            counted(rows.iter().map(|row| row.errors).sum(), "error"),
            counted(rows.iter().map(|row| row.warnings).sum(), "warning")
        )?;
        Ok(())
    }
}

/// Prints the findings of one bundle with source lines, in full or with repeated findings grouped.
pub fn print(validated: &Validated, short: bool, in_full: bool) -> anyhow::Result<()> {
    let out = &mut terminal::styled_output();
    let report = Report {
        findings: validated.findings(),
        suppressed: validated.suppressed.clone(),
        ..Report::new()
    };
    let options = TextOptions {
        short,
        color: true,
        width: terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into()),
    };
    let shown = if in_full {
        report.clone()
    } else {
        Report {
            findings: fold_repeated(report.findings.clone()),
            ..Report::new()
        }
    };
    let mut text = Vec::new();
    write_text(&shown, options, &mut text)?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if validated.is_image {
        text = text.replace(
            &*validated.directory.to_string_lossy(),
            &UntrustedText::new(&validated.name).to_string(),
        );
    }
    out.write_all(text.as_bytes())?;
    // A finding has the same message, with its position.
    if let Some(message) = validated
        .outcome
        .fatal
        .as_ref()
        .filter(|_| report.count(Severity::Error) == 0)
    {
        out.flush()?;
        output::fatal(message);
    }
    let (errors, warnings) = (report.count(Severity::Error), report.count(Severity::Warning));
    let suppressed = summary_of_suppressed(&report)
        .map(|text| format!("; {text}"))
        .unwrap_or_default();
    if errors + warnings > 0 || !suppressed.is_empty() {
        writeln!(
            out,
            "{}: {} and {}{suppressed}",
            UntrustedText::new(&validated.name),
            counted(errors, "error"),
            counted(warnings, "warning")
        )?;
    } else if validated.outcome.passed() {
        note!(
            "{}: all validation tests have completed successfully",
            UntrustedText::new(&validated.name)
        );
    }
    Ok(())
}

/// The result table for several bundles.
pub fn summary(rows: &[Row]) -> anyhow::Result<()> {
    let out = &mut terminal::styled_output();
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["BUNDLE", "VERDICT", "ERRORS", "WARNINGS"]);
    for row in rows {
        table.add_row([
            Cell::new(UntrustedText::new(&row.name)),
            Cell::new(row.verdict),
            Cell::new(row.errors),
            Cell::new(row.warnings),
        ]);
    }
    let failures = rows.iter().filter(|row| row.verdict != "passed").count();
    writeln!(
        out,
        "{}\n{} bundles, {} passed, {failures} failed",
        table.trim_fmt(),
        rows.len(),
        rows.len() - failures
    )?;
    Ok(())
}
