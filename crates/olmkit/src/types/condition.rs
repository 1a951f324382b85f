//! A status condition as OLM's kinds and the built-in kinds write it.

use serde::{Deserialize, Serialize};

/// One entry of `status.conditions`. Every field is optional, because OLM's own conditions omit several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition, for example `ResolutionFailed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Machine-readable reason.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// When `status` last changed, RFC 3339.
    pub last_transition_time: Option<String>,
}

impl Condition {
    /// Returns true if the status is `True`.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}
