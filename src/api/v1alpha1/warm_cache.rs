//! Changes that a server survives with its items.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change that a server survives with its items.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WarmCache {
    /// A graceful restart of the container, in the same pod.
    WarmRestart,
    /// A change of the memory.
    ResizeInPlace,
}
