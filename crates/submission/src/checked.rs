//! Result of a check.

use olmkit::diagnostics::Finding;

/// A finding with the suite of its check.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Checked {
    /// The suite.
    pub suite: &'static str,
    /// The name of the check.
    pub check: &'static str,
    /// The finding. Its file is relative to the repository.
    pub finding: Finding,
    /// True if the hosted pipeline prints a Python traceback here.
    pub is_traceback: bool,
}
