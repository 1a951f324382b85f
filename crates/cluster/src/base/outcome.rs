//! Results of operations.

use serde::Serialize;

use super::cause::{Cause, sorted};
use super::reporter::{ProgressLog, Step};

/// The result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// The CSV has Succeeded.
    Succeeded,
    /// It had already. Nothing was done.
    AlreadyInstalled,
    /// Only checks were requested, and they passed.
    Checked,
    /// Nothing was done because a check failed.
    Rejected,
    /// The operation failed.
    Failed,
}

/// Result of an operation.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Outcome {
    /// The result.
    pub result: Conclusion,
    /// The package.
    pub package: String,
    /// The CSV.
    #[serde(rename = "clusterServiceVersion")]
    pub csv: String,
    /// The namespace.
    pub namespace: String,
    /// The causes found, including warnings.
    pub causes: Vec<Cause>,
    /// The steps done, with their times.
    pub steps: Vec<Step>,
    /// Total seconds.
    pub seconds: f64,
}

impl Outcome {
    /// The result for a CSV of a package in a namespace.
    pub(crate) fn new(
        result: Conclusion,
        package: &str,
        csv: &str,
        namespace: &str,
        causes: Vec<Cause>,
        progress: ProgressLog<'_>,
    ) -> Self {
        Outcome {
            result,
            package: package.to_owned(),
            csv: csv.to_owned(),
            namespace: namespace.to_owned(),
            causes: sorted(causes),
            seconds: (progress.elapsed().as_secs_f64() * 10.0).round() / 10.0,
            steps: progress.steps,
        }
    }

    /// Returns true if the operation succeeded.
    pub fn is_fine(&self) -> bool {
        !matches!(self.result, Conclusion::Rejected | Conclusion::Failed)
    }
}
