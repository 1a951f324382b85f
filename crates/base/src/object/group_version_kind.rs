//! Group, version and kind of an object.

use std::fmt;

use olmkit_yaml::Node;

/// Group, version and kind of an object. The core group is the empty string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupVersionKind {
    /// `apps`, `operators.coreos.com`, or empty for the core group.
    pub group: String,
    /// `v1`, `v1alpha1`, …
    pub version: String,
    /// `Deployment`, …
    pub kind: String,
}

impl GroupVersionKind {
    /// Makes one from its parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        }
    }

    /// Reads `apiVersion` and `kind` of an object. As in apimachinery, fields that are not strings count as absent, and
    /// an `apiVersion` with more than one slash gives an empty result.
    pub fn from_node(node: &Node) -> Self {
        let text = |field: &str| node.get(field).and_then(Node::as_str).unwrap_or_default();
        match split_api_version(text("apiVersion")) {
            Some((group, version)) => Self::new(group, version, text("kind")),
            None => Self::default(),
        }
    }

    /// `group/version`, or only the version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

impl fmt::Display for GroupVersionKind {
    /// As apimachinery prints it: `apps/v1, Kind=Deployment`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// Splits an `apiVersion` into group and version. `None` when it has more than one slash.
///
/// ```
/// use olmkit_base::object::split_api_version;
///
/// assert_eq!(split_api_version("apps/v1"), Some(("apps", "v1")));
/// assert_eq!(split_api_version("v1"), Some(("", "v1")));
/// assert_eq!(split_api_version("a/b/c"), None);
/// ```
pub fn split_api_version(text: &str) -> Option<(&str, &str)> {
    match text.split_once('/') {
        None => Some(("", text)),
        Some((_, version)) if version.contains('/') => None,
        Some(parts) => Some(parts),
    }
}
