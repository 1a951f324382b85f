//! Metadata that a bundle has already.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use olmkit::bundle::generate::Metadata;

/// The annotations below a bundle's root: those at the usual place, else the first file anywhere that has some.
pub fn find(root: &Path) -> anyhow::Result<Option<BTreeMap<String, String>>> {
    if !root.exists() {
        return Ok(None);
    }
    let usual = root.join("metadata/annotations.yaml");
    if usual.exists() {
        let found = read(&usual).with_context(|| format!("{}: no annotations can be read", usual.display()))?;
        if !found.is_empty() {
            return Ok(Some(found));
        }
    }
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        let mut paths: Vec<_> = std::fs::read_dir(&directory)?
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

/// What people added themselves.
pub fn own(present: Option<BTreeMap<String, String>>) -> Vec<(String, String)> {
    present
        .into_iter()
        .flatten()
        .filter(|(key, _)| !Metadata::is_known(key))
        .collect()
}

fn read(path: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let bytes = std::fs::read(path)?;
    let value = olmkit::yaml::parse(&bytes)?.to_json()?;
    match value.get("annotations") {
        Some(annotations) => Ok(serde_json::from_value(annotations.clone())?),
        None => Ok(BTreeMap::new()),
    }
}
