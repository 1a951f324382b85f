//! Processes the findings of `olmkit repo check`: applies the policy, prints, and determines the exit code.

use std::path::Path;
use std::process::ExitCode;

use olmkit::diagnostics::Severity;
use olmkit::policy::{Judge, Judged};

use super::format::{self, Format};
use super::outcome::Outcome;
use super::output;
use super::text::Printer;
use crate::policy::Chosen;

/// Output settings.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// Directory of the repository.
    pub root: &'a Path,
    pub format: Format,
    pub short: bool,
    pub strict_compat: bool,
}

/// Receives outcomes one after the other, prints each immediately unless the format is one document, and drops printed
/// ones.
pub struct Results<'a> {
    settings: Settings<'a>,
    chosen: &'a Chosen,
    /// Selects the findings that count. `None` if an original's result is reproduced.
    judge: Option<Judge<'a>>,
    worst: Severity,
    has_failed: bool,
    /// Findings before the first operator.
    before: Option<Outcome>,
    target: Target<'a>,
}

/// Destination of outcomes.
enum Target<'a> {
    Printer(Printer<'a>),
    /// A document or a baseline has them all.
    Whole(Box<Outcome>),
}

impl<'a> Results<'a> {
    /// Starts with the earlier findings. `bundles` is the number of bundles to check.
    pub fn new(settings: Settings<'a>, chosen: &'a Chosen, bundles: usize, before: Outcome) -> Self {
        // Results of the originals are reproduced regardless of the project's settings.
        let is_original =
            settings.strict_compat || matches!(settings.format, Format::PipelineJson | Format::PreflightJson);
        let judge = (!is_original).then(|| chosen.policy.judge());
        let worst = chosen.fails_from(false);
        let printer = Printer::new(settings.format, bundles, settings.root)
            .filter(|_| judge.is_none() || !chosen.writes_baseline())
            .map(|printer| Target::Printer(printer.short(settings.short).worst(worst)));
        Self {
            settings,
            chosen,
            judge,
            worst,
            has_failed: false,
            before: Some(before),
            target: printer.unwrap_or_else(|| Target::Whole(Box::default())),
        }
    }

    /// Adds the findings for an operator or image.
    pub fn add(&mut self, name: &str, outcome: Outcome) -> anyhow::Result<()> {
        let mut outcome = match self.before.take() {
            Some(mut before) => {
                before.append(outcome);
                before
            }
            None => outcome,
        };
        if let Some(judge) = &mut self.judge {
            apply(judge, &mut outcome, self.settings.root);
        }
        self.has_failed |= outcome.fails(self.worst);
        match &mut self.target {
            Target::Printer(printer) => printer.add(name, outcome),
            Target::Whole(whole) => {
                whole.append(outcome);
                Ok(())
            }
        }
    }

    /// Prints the summary, the document or the baseline.
    pub fn end(mut self) -> anyhow::Result<ExitCode> {
        if self.before.is_some() {
            self.add("", Outcome::default())?;
        }
        let Settings { root, format, .. } = self.settings;
        match self.target {
            Target::Printer(printer) => printer.end()?,
            Target::Whole(whole) if self.judge.is_some() && self.chosen.writes_baseline() => {
                self.chosen.write_baseline(&[&format::report(*whole, root)])?;
                return Ok(ExitCode::SUCCESS);
            }
            Target::Whole(whole) => output::print(*whole, root, format)?,
        }
        Ok(if self.has_failed {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// Lets the policy decide which findings count.
fn apply(judge: &mut Judge<'_>, outcome: &mut Outcome, repository: &Path) {
    for mut checked in std::mem::take(&mut outcome.found) {
        let lasting = format::file_in(repository, &checked.finding);
        // The author of a submission must not decide which findings count, so comments in the files do not.
        match judge.one_in(lasting, checked.finding, false) {
            Judged::Kept(finding) => {
                checked.finding = finding;
                outcome.found.push(checked);
            }
            Judged::Suppressed(suppressed) => outcome.suppressed.push(suppressed),
            Judged::Dropped => {}
        }
    }
}
