//! The kind that runs the servers.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind that runs the servers.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Workload {
    /// Pods and their names change when servers are replaced.
    #[default]
    Deployment,
    /// Each server has a DNS name that stays.
    StatefulSet,
}

impl Workload {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Deployment => Self::StatefulSet,
            Self::StatefulSet => Self::Deployment,
        }
    }
}
