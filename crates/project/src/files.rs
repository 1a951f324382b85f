//! Rendered files, in memory until they are written.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::Error;
use olmkit_base::files;

/// Files by their path below the output directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files(BTreeMap<PathBuf, String>);

impl Files {
    /// Adds a file of one or more YAML documents.
    ///
    /// # Errors
    /// When the path leads out of the output directory, or a value does not print, which cannot happen for JSON values.
    pub fn add(&mut self, path: impl Into<PathBuf>, documents: &[Value]) -> Result<(), Error> {
        let path = path.into();
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            let source = std::io::Error::other("the path leads out of the output directory");
            return Err(Error::Io { path, source });
        }
        let mut text = String::new();
        for (at, document) in documents.iter().enumerate() {
            if at > 0 {
                text.push_str("---\n");
            }
            text.push_str(&olmkit_yaml::to_string(document)?);
        }
        self.0.insert(path, text);
        Ok(())
    }

    /// The content of one file.
    #[must_use]
    pub fn text(&self, path: impl AsRef<Path>) -> Option<&str> {
        self.0.get(path.as_ref()).map(String::as_str)
    }

    /// All files, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.0.iter().map(|(path, text)| (path.as_path(), text.as_str()))
    }

    /// Writes the files below `root`. A file that already has the content is not touched, so that build tools see no
    /// change. Other files are not touched either.
    ///
    /// # Errors
    /// When a directory or file cannot be written.
    pub fn write(&self, root: &Path) -> Result<(), Error> {
        for (path, text) in &self.0 {
            files::write(&root.join(path), text.as_bytes()).map_err(|error| Error::Io {
                path: error.path,
                source: error.source,
            })?;
        }
        Ok(())
    }
}
