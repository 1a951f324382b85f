//! Inputs and findings of `repo check`.

use std::collections::BTreeMap;

use olmkit::diagnostics::{Severity, Suppressed};
use olmkit_submission::{Checked, PreflightResults};

use crate::policy::SetAside;

/// Inputs and findings of one run.
#[derive(Default)]
pub struct Outcome {
    pub operators: usize,
    pub bundles: usize,
    pub catalogs: usize,
    pub images: usize,
    /// Names of checks that were not run.
    pub not_checked: Vec<String>,
    /// The result in preflight's shape, if it is wanted.
    pub preflight: Option<PreflightResults>,
    pub found: Vec<Checked>,
    /// Findings that the policy sets aside.
    pub suppressed: Vec<Suppressed>,
    /// Findings that config.yaml waives, with their operators.
    pub waived: Vec<(String, Checked)>,
}

impl Outcome {
    /// Appends a later outcome.
    pub fn append(&mut self, other: Outcome) {
        self.not_checked.extend(other.not_checked);
        self.preflight = self.preflight.take().or(other.preflight);
        self.operators += other.operators;
        self.bundles += other.bundles;
        self.catalogs += other.catalogs;
        self.images += other.images;
        self.found.extend(other.found);
        self.suppressed.extend(other.suppressed);
        self.waived.extend(other.waived);
    }

    /// Returns true if a finding is at least as severe.
    pub fn fails(&self, from: Severity) -> bool {
        self.found.iter().any(|checked| checked.finding.severity <= from)
    }
}

/// Totals that remain after the findings are printed.
#[derive(Default)]
pub struct Totals {
    pub operators: usize,
    pub bundles: usize,
    pub catalogs: usize,
    pub images: usize,
    pub errors: usize,
    pub warnings: usize,
    pub set_aside: SetAside,
    /// Number of findings that config.yaml waives, by check and operator.
    pub waived: BTreeMap<(&'static str, String), usize>,
}

impl Totals {
    /// Counts an outcome.
    pub fn add(&mut self, outcome: &Outcome) {
        self.operators += outcome.operators;
        self.bundles += outcome.bundles;
        self.catalogs += outcome.catalogs;
        self.images += outcome.images;
        for checked in &outcome.found {
            self.errors += usize::from(checked.finding.severity == Severity::Error);
            self.warnings += usize::from(checked.finding.severity == Severity::Warning);
        }
        self.set_aside.add(&outcome.suppressed);
        for (operator, checked) in &outcome.waived {
            *self.waived.entry((checked.check, operator.clone())).or_default() += 1;
        }
    }
}
