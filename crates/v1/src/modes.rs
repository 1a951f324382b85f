//! Install modes: which namespaces an operator can watch.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// A way of watching namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstallMode {
    /// All namespaces.
    AllNamespaces,
    /// Some namespaces, which OLM v1 does not offer.
    MultiNamespace,
    /// The operator's own namespace.
    OwnNamespace,
    /// One other namespace.
    SingleNamespace,
}

impl InstallMode {
    /// As a ClusterServiceVersion spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AllNamespaces => "AllNamespaces",
            Self::MultiNamespace => "MultiNamespace",
            Self::OwnNamespace => "OwnNamespace",
            Self::SingleNamespace => "SingleNamespace",
        }
    }
}

impl fmt::Display for InstallMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The install modes that an operator supports. A mode that is named twice counts if one entry supports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallModes {
    names: BTreeSet<String>,
}

impl InstallModes {
    /// Those of a ClusterServiceVersion.
    #[must_use]
    pub fn from_csv(csv: &Value) -> Self {
        let modes = csv.pointer("/spec/installModes").and_then(Value::as_array);
        let supported = modes
            .into_iter()
            .flatten()
            .filter(|mode| mode.get("supported") == Some(&Value::Bool(true)));
        Self {
            names: supported
                .map(|mode| mode.get("type").and_then(Value::as_str).unwrap_or_default().to_owned())
                .collect(),
        }
    }

    /// Returns true if a mode is supported.
    #[must_use]
    pub fn has(&self, mode: InstallMode) -> bool {
        self.names.contains(mode.name())
    }

    /// Returns true if all namespaces is the only supported mode.
    #[must_use]
    pub fn is_all_namespaces_alone(&self) -> bool {
        self.names.len() == 1 && self.has(InstallMode::AllNamespaces)
    }

    /// Returns true if a user can name a namespace to watch.
    #[must_use]
    pub fn is_watch_configurable(&self) -> bool {
        self.has(InstallMode::OwnNamespace) || self.has(InstallMode::SingleNamespace)
    }
}

impl fmt::Display for InstallModes {
    /// A sorted list of strings in Go's format.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        write!(formatter, "[{}]", names.join(" "))
    }
}
