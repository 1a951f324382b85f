//! What `repo check` looked at and found.

use olmkit::diagnostics::Suppressed;
use olmkit_submission::{Checked, PreflightResults};

/// What one run looked at and found.
#[derive(Default)]
pub struct Outcome {
    pub operators: usize,
    pub bundles: usize,
    pub catalogs: usize,
    pub images: usize,
    /// What was not checked, by name.
    pub not_checked: Vec<String>,
    /// The result in preflight's shape, if it is wanted.
    pub preflight: Option<PreflightResults>,
    pub found: Vec<Checked>,
    /// Findings that the policy sets aside.
    pub suppressed: Vec<Suppressed>,
    /// Findings that config.yaml waives, with their operators.
    pub waived: Vec<(String, Checked)>,
}
