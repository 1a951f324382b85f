//! Writes a bundle so that a reader sees the old one or the new one, never half of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file or directory that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}; the bundle on disk is unchanged", path = path.display())]
pub struct WriteError {
    /// The path.
    pub path: PathBuf,
    /// What the system says.
    pub source: std::io::Error,
}

/// What happens to files in the directory that are not among the new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// They stay, as in operator-sdk.
    Keep,
    /// Those below `manifests/` and `tests/` go: OLM would apply them.
    Remove,
}

/// Writes `files` (paths relative to `directory`) into `directory`.
///
/// Everything is written to a folder beside it first and takes its place by renaming. Where the directory cannot be renamed
/// (the working directory, a mount point) each file is renamed into it instead. A directory that holds the files already is
/// not touched.
///
/// Returns the stale files that were removed, sorted.
///
/// # Errors
/// When something cannot be written. The directory is as it was then.
pub fn replace(directory: &Path, files: &BTreeMap<PathBuf, Vec<u8>>, stale: Stale) -> Result<Vec<PathBuf>, WriteError> {
    let present = list(directory).map_err(at(directory))?;
    let removed: Vec<PathBuf> = present
        .iter()
        .filter(|path| {
            stale == Stale::Remove
                && (path.starts_with("manifests") || path.starts_with("tests"))
                && !files.contains_key(*path)
        })
        .cloned()
        .collect();
    let equal = removed.is_empty()
        && files
            .iter()
            .all(|(path, bytes)| std::fs::read(directory.join(path)).is_ok_and(|own| own == *bytes));
    if equal {
        return Ok(removed);
    }
    let parent = match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(parent).map_err(at(parent))?;
    let stage = tempfile::Builder::new()
        .prefix(".olmkit-")
        .tempdir_in(parent)
        .map_err(at(parent))?;
    let fresh = stage.path().join("new");
    fill(&fresh, directory, files, &present, &removed)?;
    // A path such as `.` or `a/..` has no name of its own that could be renamed.
    let nameable = directory.file_name().is_some();
    if nameable && swap(directory, &fresh, &stage.path().join("old")).is_ok() {
        return Ok(removed);
    }
    for path in files.keys() {
        let to = directory.join(path);
        make_parent(&to)?;
        std::fs::rename(fresh.join(path), &to).map_err(at(&to))?;
    }
    for path in &removed {
        let path = directory.join(path);
        std::fs::remove_file(&path).map_err(at(&path))?;
    }
    Ok(removed)
}

/// Writes one file by renaming a temporary one into its place; a file with this content is left alone.
///
/// # Errors
/// When it cannot be written.
pub fn file(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    if std::fs::read(path).is_ok_and(|own| own == bytes) {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(parent).map_err(at(parent))?;
    let stage = tempfile::Builder::new()
        .prefix(".olmkit-")
        .tempdir_in(parent)
        .map_err(at(parent))?;
    let fresh = stage.path().join("new");
    std::fs::write(&fresh, bytes).map_err(at(&fresh))?;
    std::fs::rename(&fresh, path).map_err(at(path))
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> WriteError + '_ {
    move |source| WriteError {
        path: path.to_owned(),
        source,
    }
}

fn make_parent(path: &Path) -> Result<(), WriteError> {
    match path.parent() {
        Some(parent) => std::fs::create_dir_all(parent).map_err(at(parent)),
        None => Ok(()),
    }
}

/// The new directory: what stays of the old one, and the new files.
fn fill(
    fresh: &Path,
    directory: &Path,
    files: &BTreeMap<PathBuf, Vec<u8>>,
    present: &[PathBuf],
    removed: &[PathBuf],
) -> Result<(), WriteError> {
    std::fs::create_dir_all(fresh).map_err(at(fresh))?;
    for path in present
        .iter()
        .filter(|path| !removed.contains(path) && !files.contains_key(*path))
    {
        let to = fresh.join(path);
        make_parent(&to)?;
        std::fs::copy(directory.join(path), &to).map_err(at(&to))?;
    }
    for (path, bytes) in files {
        let to = fresh.join(path);
        make_parent(&to)?;
        std::fs::write(&to, bytes).map_err(at(&to))?;
    }
    Ok(())
}

fn swap(directory: &Path, fresh: &Path, old: &Path) -> std::io::Result<()> {
    if !directory.exists() {
        return std::fs::rename(fresh, directory);
    }
    // A link would be replaced instead of what it leads to.
    if directory.is_symlink() {
        return Err(std::io::Error::other("the directory is a link"));
    }
    std::fs::rename(directory, old)?;
    std::fs::rename(fresh, directory).inspect_err(|_| {
        let _ = std::fs::rename(old, directory);
    })
}

/// Paths of all files below a directory, relative to it, sorted; empty when it does not exist.
fn list(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(relative) = open.pop() {
        let path = directory.join(&relative);
        if !path.exists() {
            continue;
        }
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let relative = relative.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                open.push(relative);
            } else {
                found.push(relative);
            }
        }
    }
    found.sort();
    Ok(found)
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
            list(&bundle).unwrap(),
            [PathBuf::from("NOTES"), PathBuf::from("manifests/a.yaml")]
        );
        assert_eq!(std::fs::read(bundle.join("manifests/a.yaml")).unwrap(), b"new");
        // Nothing of the work is left behind.
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
