//! The findings of `olmkit repo check` for people and line by line, printed operator by operator.

use std::io::Write;
use std::path::Path;

use olmkit::diagnostics::{
    Report, Severity, TextOptions, counted, fold_repeated, write_concise, write_github, write_text,
};
use olmkit::object::UntrustedText;

use super::format::{Format, report};
use super::outcome::{Outcome, Totals};
use crate::many::{MANY, Many};
use crate::terminal;

/// Prints outcomes one after the other. Only counts remain of printed ones.
pub struct Printer<'a> {
    repository: &'a Path,
    form: Form,
    short: bool,
    /// The lowest severity that fails an operator.
    worst: Severity,
    not_checked: Vec<String>,
    totals: Totals,
}

/// Output format of findings.
enum Form {
    /// With source lines, in full or with repeated findings grouped.
    Text { in_full: bool },
    /// Operators that fail, then each rule once.
    Many(Box<Many>),
    /// Workflow commands of GitHub Actions.
    Github,
    /// One line a finding.
    Concise,
}

impl<'a> Printer<'a> {
    /// Prints findings for this number of bundles. `None` if the format is one document.
    pub fn new(format: Format, bundles: usize, repository: &'a Path) -> Option<Self> {
        let form = match format {
            Format::Text if bundles > MANY => Form::Many(Box::default()),
            Format::Text => Form::Text { in_full: false },
            Format::Full => Form::Text { in_full: true },
            Format::Github => Form::Github,
            Format::Concise => Form::Concise,
            Format::Json | Format::Sarif | Format::Junit | Format::PipelineJson | Format::PreflightJson => return None,
        };
        Some(Self {
            repository,
            form,
            short: false,
            worst: Severity::Error,
            not_checked: Vec::new(),
            totals: Totals::default(),
        })
    }

    /// Without source lines.
    pub fn short(mut self, short: bool) -> Self {
        self.short = short;
        self
    }

    /// The lowest severity that fails an operator.
    pub fn worst(mut self, worst: Severity) -> Self {
        self.worst = worst;
        self
    }

    /// Prints the findings of the next operator, or image.
    pub fn add(&mut self, name: &str, mut outcome: Outcome) -> anyhow::Result<()> {
        self.totals.add(&outcome);
        self.not_checked.append(&mut outcome.not_checked);
        let fails = outcome.fails(self.worst);
        let report = report(outcome, self.repository);
        match &mut self.form {
            Form::Text { in_full } => text(self.repository, report, *in_full, self.short),
            Form::Many(many) => many.add(name, &report.findings, fails),
            Form::Github => Ok(write_github(&report, &mut terminal::workflow_commands())?),
            Form::Concise => Ok(write_concise(&report, &mut terminal::data())?),
        }
    }

    /// Prints the summary.
    pub fn end(self) -> anyhow::Result<()> {
        match &self.form {
            Form::Text { .. } => self.summary(),
            Form::Many(many) => {
                many.end("operator", &olmkit_submission::rules())?;
                self.summary()?;
                Ok(writeln!(
                    terminal::styled_output(),
                    "-o full or concise prints each finding"
                )?)
            }
            Form::Github | Form::Concise => Ok(()),
        }
    }

    /// Numbers of waived, suppressed, checked and omitted items.
    fn summary(&self) -> anyhow::Result<()> {
        let out = &mut terminal::styled_output();
        let totals = &self.totals;
        for ((check, operator), count) in &totals.waived {
            writeln!(
                out,
                "waived by config.yaml: {check} of {} ({})",
                UntrustedText::new(operator),
                counted(*count, "finding")
            )?;
        }
        if let Some(text) = totals.set_aside.summary() {
            writeln!(out, "{text}")?;
        }
        let what = if totals.images > 0 {
            counted(totals.images, "image")
        } else {
            format!(
                "{}, {} and {}",
                counted(totals.operators, "operator"),
                counted(totals.bundles, "bundle"),
                counted(totals.catalogs, "catalog")
            )
        };
        writeln!(
            out,
            "{what} checked: {} and {}",
            counted(totals.errors, "error"),
            counted(totals.warnings, "warning")
        )?;
        writeln!(out, "not checked here:")?;
        for name in &self.not_checked {
            writeln!(out, "  {}", UntrustedText::new(name))?;
        }
        Ok(())
    }
}

/// Findings with source lines, in full or with repeated findings grouped.
fn text(repository: &Path, mut report: Report, in_full: bool, short: bool) -> anyhow::Result<()> {
    if !in_full {
        report.findings = fold_repeated(report.findings);
    }
    let root = std::fs::canonicalize(repository).ok();
    for finding in &mut report.findings {
        let real = finding
            .file
            .as_deref()
            .and_then(|file| std::fs::canonicalize(file).ok());
        if real
            .zip(root.as_ref())
            .is_some_and(|(real, root)| !real.starts_with(root))
        {
            // The link leads out of the repository. Without a position, the file is not opened for its source line.
            (finding.position, finding.end) = (None, None);
        }
    }
    let options = TextOptions {
        short,
        color: true,
        width: terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0.into()),
    };
    Ok(write_text(&report, options, &mut terminal::styled_output())?)
}
