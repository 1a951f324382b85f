//! Writes a bundle so that a reader sees the old one or the new one, never half of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use olmkit_base::files::{Stage, holds, list, tidy};
pub use olmkit_base::files::{WriteError, write as file};

/// Treatment of files in the directory that are not among the new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// They are kept, as in operator-sdk.
    Keep,
    /// Those below `manifests/` and `tests/` go: OLM would apply them.
    Remove,
}

/// Writes `files` (paths relative to `directory`) to `directory`, atomically: see [`olmkit_base::files`]. A directory with
/// the same files is not touched.
///
/// Returns the stale files that were removed, sorted.
///
/// # Errors
/// When something cannot be written, or a path leads out of the directory. The directory is as it was then.
pub fn replace(directory: &Path, files: &BTreeMap<PathBuf, Vec<u8>>, stale: Stale) -> Result<Vec<PathBuf>, WriteError> {
    let present = list(directory).map_err(|source| WriteError {
        path: directory.to_owned(),
        source,
        unrestored: None,
    })?;
    let is_stale = |path: &Path| stale == Stale::Remove && (path.starts_with("manifests") || path.starts_with("tests"));
    let (removed, kept): (Vec<PathBuf>, Vec<PathBuf>) = present
        .into_iter()
        .filter(|path| !files.contains_key(path))
        .partition(|path| is_stale(path));
    let equal = removed.is_empty() && files.iter().all(|(path, bytes)| holds(&directory.join(path), bytes));
    if equal {
        tidy(directory);
        return Ok(removed);
    }
    let stage = Stage::beside(directory)?;
    for (path, bytes) in files {
        stage.write(path, bytes)?;
    }
    for path in &kept {
        stage.keep(path)?;
    }
    stage.take_place(&removed)?;
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> BTreeMap<PathBuf, Vec<u8>> {
        list.iter()
            .map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn stale_manifests_go_when_asked_and_other_files_stay() {
        let root = tempfile::tempdir().unwrap();
        let bundle = root.path().join("bundle");
        replace(
            &bundle,
            &files(&[("manifests/a.yaml", "a"), ("manifests/b.yaml", "b"), ("NOTES", "mine")]),
            Stale::Keep,
        )
        .unwrap();
        let kept = replace(&bundle, &files(&[("manifests/a.yaml", "new")]), Stale::Keep).unwrap();
        assert!(kept.is_empty());
        assert!(bundle.join("manifests/b.yaml").exists());
        let removed = replace(&bundle, &files(&[("manifests/a.yaml", "new")]), Stale::Remove).unwrap();
        assert_eq!(removed, [PathBuf::from("manifests/b.yaml")]);
        assert_eq!(
            list(&bundle).unwrap().into_iter().collect::<Vec<_>>(),
            [PathBuf::from("NOTES"), PathBuf::from("manifests/a.yaml")]
        );
        assert_eq!(std::fs::read(bundle.join("manifests/a.yaml")).unwrap(), b"new");
        // No temporary files remain.
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_bundle_that_cannot_be_written_stays_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        let bundle = root.path().join("bundle");
        replace(&bundle, &files(&[("manifests/a.yaml", "old")]), Stale::Keep).unwrap();
        // A file name with a NUL byte cannot be written on any system.
        let error = replace(
            &bundle,
            &files(&[("manifests/a.yaml", "new"), ("manifests/\0", "x")]),
            Stale::Keep,
        );
        assert!(error.is_err());
        assert_eq!(std::fs::read(bundle.join("manifests/a.yaml")).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
    }
}
