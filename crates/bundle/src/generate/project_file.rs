//! The PROJECT file of kubebuilder and operator-sdk: package name and layout.

use std::path::Path;

use serde_json::Value;

use super::Error;
use olmkit_base::limits;

/// The plugin in PROJECT that olmkit's scaffold writes. Its projects have no layout, because operator-sdk rejects
/// unknown layouts.
pub const SCAFFOLD: &str = "rust.olmkit/v1";

impl ProjectFile {
    /// The layout for a bundle: in strict mode that of the scaffold if there is no other.
    #[must_use]
    pub fn layout(&self, strict: bool) -> String {
        if strict && self.is_scaffold && self.layout.is_empty() {
            return SCAFFOLD.to_owned();
        }
        self.layout.clone()
    }
}

/// Data from a PROJECT file for a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProjectFile {
    /// `projectName`.
    pub name: String,
    /// `layout`, its parts joined with commas.
    pub layout: String,
    /// True if olmkit has scaffolded the project.
    pub is_scaffold: bool,
    /// Group, version and kind of each resource.
    pub resources: Vec<(String, String, String)>,
}

impl ProjectFile {
    /// Reads `PROJECT` in a directory, when there is one.
    ///
    /// # Errors
    /// If the file exists but cannot be read.
    pub fn read(directory: &Path) -> Result<Option<Self>, Error> {
        let path = directory.join("PROJECT");
        if !path.exists() {
            return Ok(None);
        }
        let bytes = limits::read_file(&path, &limits::SETTINGS_FILE).map_err(|reason| Error::Io {
            path: path.clone(),
            reason,
        })?;
        let fail = |reason: String| Error::Project {
            path: path.clone(),
            reason,
        };
        let node = olmkit_yaml::parse(&bytes).map_err(|error| fail(error.to_string()))?;
        let value = node.to_json().map_err(|error| fail(error.to_string()))?;
        let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let layout = match value.get("layout") {
            Some(Value::String(layout)) => layout.clone(),
            Some(Value::Array(parts)) => parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
            _ => String::new(),
        };
        let resources = value
            .get("resources")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|resource| {
                let parts = [text(resource, "group"), text(resource, "domain")];
                let group = parts
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<_>>()
                    .join(".");
                (group, text(resource, "version"), text(resource, "kind"))
            })
            .collect();
        Ok(Some(Self {
            name: text(&value, "projectName"),
            layout,
            is_scaffold: value.get("plugins").and_then(|plugins| plugins.get(SCAFFOLD)).is_some(),
            resources,
        }))
    }
}
