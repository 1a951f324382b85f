//! Metadata that a bundle has already.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Error, Metadata};
use olmkit_base::files::Directory;
use olmkit_base::limits;

/// The annotations below a bundle's root: those at the usual path, else the first file anywhere that has some.
///
/// # Errors
/// If the file at the usual path, or a directory, cannot be read.
pub fn find(root: &Path) -> Result<Option<BTreeMap<String, String>>, Error> {
    if !root.exists() {
        return Ok(None);
    }
    let fail = |path: &Path| {
        let path = root.join(path);
        move |reason| Error::Io { path, reason }
    };
    let files = Directory::open(root).map_err(fail(Path::new("")))?;
    let usual = Path::new("metadata/annotations.yaml");
    if root.join(usual).exists() {
        let found = read(&files, usual).map_err(|source| Error::Annotations {
            path: root.join(usual),
            source,
        })?;
        if !found.is_empty() {
            return Ok(Some(found));
        }
    }
    let mut open = vec![PathBuf::new()];
    while let Some(directory) = open.pop() {
        for name in files.names(&directory).map_err(fail(&directory))? {
            let path = directory.join(name);
            // Links to directories are not followed: two to a parent would have no end.
            if root.join(&path).symlink_metadata().is_ok_and(|about| about.is_dir()) {
                open.push(path);
            } else if let Some(found) = read(&files, &path).ok().filter(|found| !found.is_empty()) {
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

fn read(files: &Directory, path: &Path) -> Result<BTreeMap<String, String>, Box<dyn std::error::Error + Send + Sync>> {
    let bytes = files.read(path, &limits::SETTINGS_FILE)?;
    let value = olmkit_yaml::parse(&bytes)?.to_json()?;
    match value.get("annotations") {
        Some(annotations) => Ok(serde_json::from_value(annotations.clone())?),
        None => Ok(BTreeMap::new()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_neither_in_circles_nor_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("bundle");
        fs::create_dir_all(root.join("metadata")).unwrap();
        for name in ["a", "b", "metadata/c"] {
            symlink(&root, root.join(name)).unwrap();
        }
        let outside = folder.path().join("outside.yaml");
        fs::write(&outside, "annotations: {secret: hunter2}\n").unwrap();
        symlink(&outside, root.join("link.yaml")).unwrap();
        assert_eq!(find(&root).unwrap(), None);
        fs::write(root.join("metadata/other.yaml"), "annotations: {mine: yes it is}\n").unwrap();
        assert!(find(&root).unwrap().unwrap().contains_key("mine"));
        symlink(&outside, root.join("metadata/annotations.yaml")).unwrap();
        let error = find(&root).unwrap_err();
        assert!(matches!(error, Error::Annotations { .. }), "{error}");
    }
}
