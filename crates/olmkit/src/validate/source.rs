//! Where a bundle comes from: a directory, or an image that is unpacked first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::bundle::load::{self, Limits, Reading, Tree, TreeError, paths};

/// A bundle directory with the name it has in texts.
#[derive(Debug, Clone)]
pub struct Source {
    /// The directory.
    pub directory: PathBuf,
    /// Its name in operator-sdk's texts: the path relative to the working directory.
    pub shown: String,
    /// The image that the directory was unpacked from, as the user named it.
    pub image: Option<String>,
    /// The labels of that image.
    pub image_labels: Option<BTreeMap<String, String>>,
}

impl Source {
    /// A directory as the user named it.
    pub fn directory(path: &Path) -> Self {
        Self {
            directory: path.to_path_buf(),
            shown: paths::relative_to_working_directory(path),
            image: None,
            image_labels: None,
        }
    }

    /// The directory that an image with these labels was unpacked to.
    pub fn image(image: &str, path: &Path, labels: BTreeMap<String, String>) -> Self {
        Self {
            image: Some(image.to_string()),
            image_labels: Some(labels),
            ..Self::directory(path)
        }
    }

    /// Reads the directory.
    ///
    /// # Errors
    /// When it cannot be listed, or holds more than a bundle may.
    pub fn read(&self) -> Result<Reading, TreeError> {
        Ok(load::read(
            Tree::from_dir(&self.directory, Limits::default())?,
            &self.shown,
        ))
    }
}

/// All bundles below a directory: directories that have a `manifests` and a `metadata` directory. Nothing is looked for inside
/// a bundle, nor in hidden directories.
///
/// # Errors
/// When a directory cannot be listed.
pub fn find_bundles(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let is_bundle = |path: &Path| path.join("manifests").is_dir() && path.join("metadata").is_dir();
    let mut found = Vec::new();
    let mut walk = walkdir::WalkDir::new(root)
        .max_depth(32)
        .sort_by_file_name()
        .into_iter();
    while let Some(entry) = walk.next() {
        let entry = entry?;
        if !entry.file_type().is_dir() {
            continue;
        }
        if is_bundle(entry.path()) {
            found.push(entry.path().to_path_buf());
            walk.skip_current_dir();
        } else if entry.depth() > 0 && entry.file_name().to_string_lossy().starts_with('.') {
            walk.skip_current_dir();
        }
    }
    Ok(found)
}
