//! Findings of `diagnose`.

use serde::Serialize;

use super::cause::Cause;

/// The findings for one package.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Finding {
    /// The package.
    pub package: String,
    /// The namespace.
    pub namespace: String,
    /// True if the package is healthy.
    pub healthy: bool,
    /// The milestones reached, in order.
    pub reached: Vec<String>,
    /// The causes found.
    pub causes: Vec<Cause>,
}
