//! Metadata that a bundle has already.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Error, Metadata};
use olmkit_base::limits;

/// The annotations below a bundle's root: those at the usual path, else the first file anywhere that has some.
///
/// # Errors
/// If the file at the usual path, or a directory, cannot be read.
pub fn find(root: &Path) -> Result<Option<BTreeMap<String, String>>, Error> {
    if !root.exists() {
        return Ok(None);
    }
    let usual = root.join("metadata/annotations.yaml");
    if usual.exists() {
        let found = read(&usual).map_err(|source| Error::Annotations {
            path: usual.clone(),
            source,
        })?;
        if !found.is_empty() {
            return Ok(Some(found));
        }
    }
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        let mut paths: Vec<_> = std::fs::read_dir(&directory)
            .map_err(|reason| Error::Io {
                path: directory.clone(),
                reason,
            })?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                open.push(path);
            } else if let Some(found) = read(&path).ok().filter(|found| !found.is_empty()) {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

/// Labels or annotations that users have added.
#[must_use]
pub fn own(present: Option<BTreeMap<String, String>>) -> Vec<(String, String)> {
    present
        .into_iter()
        .flatten()
        .filter(|(key, _)| !Metadata::is_known(key))
        .collect()
}

fn read(path: &Path) -> Result<BTreeMap<String, String>, Box<dyn std::error::Error + Send + Sync>> {
    let bytes = limits::read_file(path, &limits::SETTINGS_FILE)?;
    let value = olmkit_yaml::parse(&bytes)?.to_json()?;
    match value.get("annotations") {
        Some(annotations) => Ok(serde_json::from_value(annotations.clone())?),
        None => Ok(BTreeMap::new()),
    }
}
