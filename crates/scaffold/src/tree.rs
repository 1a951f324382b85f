//! Changes of the files of a project, collected in memory and then made all or none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use olmkit::files::{Directory, Stage, WriteError};

use crate::{Error, Report};

/// The files of a project with changes that are not written yet.
#[derive(Debug, Clone)]
pub struct Tree {
    root: PathBuf,
    /// No file that is read is larger, in bytes.
    largest: u64,
    /// `None` removes a file.
    changes: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

/// No file of a project is larger.
const LARGEST: u64 = 16 * 1024 * 1024;

fn fail(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Io {
        action,
        path: path.clone(),
        source,
    }
}

impl Tree {
    /// The files below a directory.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            largest: LARGEST,
            changes: BTreeMap::new(),
        }
    }

    /// Reads files of up to this number of bytes, instead of 16 MiB.
    #[must_use]
    pub fn with_largest(self, largest: u64) -> Self {
        Self { largest, ..self }
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The content of a file, as it will be. `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be read, is not a regular file or larger than the files of this tree may be.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Option<Vec<u8>>, Error> {
        let path = path.as_ref();
        if let Some(change) = self.changes.get(path) {
            return Ok(change.clone());
        }
        let reading = fail("read", &self.root.join(path));
        let is_missing =
            |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        // The project may come from an untrusted author.
        let directory = match Directory::open(&self.root) {
            Err(error) if is_missing(&error) => return Ok(None),
            other => other.map_err(&reading)?,
        };
        let file = match directory.file(path) {
            Err(error) if is_missing(&error) => return Ok(None),
            other => other.map_err(&reading)?,
        };
        let mut content = Vec::new();
        file.take(self.largest + 1)
            .read_to_end(&mut content)
            .map_err(&reading)?;
        if content.len() as u64 > self.largest {
            let problem = format!("larger than {} MiB", self.largest / (1024 * 1024));
            return Err(reading(io::Error::other(problem)));
        }
        Ok(Some(content))
    }

    /// The text of a file that must exist.
    ///
    /// # Errors
    /// When it does not, or is not UTF-8.
    pub fn text(&self, path: impl AsRef<Path>) -> Result<String, Error> {
        let path = path.as_ref();
        let reading = fail("read", &self.root.join(path));
        let bytes = self
            .read(path)?
            .ok_or_else(|| reading(io::ErrorKind::NotFound.into()))?;
        String::from_utf8(bytes).map_err(|error| reading(io::Error::new(io::ErrorKind::InvalidData, error)))
    }

    /// Returns true if a file will be there.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn has(&self, path: impl AsRef<Path>) -> Result<bool, Error> {
        Ok(self.read(path)?.is_some())
    }

    /// Returns true if a file is written or removed by the changes.
    pub(crate) fn changes(&self, path: &Path) -> bool {
        self.changes.contains_key(path)
    }

    /// All changes. `None` removes a file.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Path, Option<&[u8]>)> {
        self.changes
            .iter()
            .map(|(path, content)| (path.as_path(), content.as_deref()))
    }

    /// Writes a file.
    pub fn write(&mut self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) {
        self.changes.insert(path.into(), Some(content.into()));
    }

    /// Writes a file that must not be there, unless `force`.
    ///
    /// # Errors
    /// When it is there with another content.
    pub fn create(&mut self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>, force: bool) -> Result<(), Error> {
        let (path, content) = (path.into(), content.into());
        match self.read(&path)? {
            Some(known) if known != content && !force => Err(Error::Exists { path }),
            _ => {
                self.write(path, content);
                Ok(())
            }
        }
    }

    /// Drops the changes of files that exist, and returns their paths.
    ///
    /// # Errors
    /// When a path cannot be looked up.
    pub(crate) fn keep_existing(&mut self) -> Result<Vec<PathBuf>, Error> {
        let mut kept = Vec::new();
        for path in self.changes.keys() {
            let full = self.root.join(path);
            match fs::symlink_metadata(&full) {
                Ok(_) => kept.push(path.clone()),
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                Err(error) => return Err(fail("read", &full)(error)),
            }
        }
        self.changes.retain(|path, _| !kept.contains(path));
        Ok(kept)
    }

    /// Removes a file.
    pub fn remove(&mut self, path: impl Into<PathBuf>) {
        self.changes.insert(path.into(), None);
    }

    /// The files that would change. Nothing is written.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn report(&self) -> Result<Report, Error> {
        let disk = Self::at(&self.root).with_largest(self.largest);
        let mut report = Report::default();
        for (path, change) in &self.changes {
            match (disk.read(path)?, change) {
                (Some(known), Some(content)) if &known == content => {}
                (Some(_), Some(_)) => report.changed.push(path.clone()),
                (None, Some(_)) => report.created.push(path.clone()),
                (Some(_), None) => report.removed.push(path.clone()),
                (None, None) => {}
            }
        }
        Ok(report)
    }

    /// Makes all changes, or none.
    ///
    /// # Errors
    /// When a file cannot be written. The files are as they were then, unless they cannot be put back.
    pub fn commit(self) -> Result<Report, Error> {
        let report = self.report()?;
        let paths: BTreeSet<&PathBuf> = report
            .created
            .iter()
            .chain(&report.changed)
            .chain(&report.removed)
            .collect();
        if paths.is_empty() {
            return Ok(report);
        }
        for path in &paths {
            self.check(path)?;
        }
        let made_root = !self.root.exists();
        let result = self.write_all(&report);
        if result.is_err() && made_root {
            let _ = fs::remove_dir(&self.root);
        }
        result.map_err(
            |WriteError {
                 path,
                 source,
                 unrestored,
             }| match unrestored {
                None => fail("write", &path)(source),
                Some(unrestored) => Error::Undo {
                    path,
                    source,
                    undo: unrestored.error,
                    kept: unrestored.kept,
                },
            },
        )?;
        Ok(report)
    }

    fn write_all(&self, report: &Report) -> Result<(), WriteError> {
        let stage = Stage::inside(&self.root)?;
        for path in report.created.iter().chain(&report.changed) {
            if let Some(Some(content)) = self.changes.get(path) {
                stage.write(path, content)?;
            }
        }
        stage.merge(&report.removed)
    }

    /// Rejects paths that lead out of the directory, through `..` or a link.
    fn check(&self, path: &Path) -> Result<(), Error> {
        let refuse = |reason: &str| {
            Err(fail("write", &self.root.join(path))(io::Error::other(
                reason.to_owned(),
            )))
        };
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return refuse("the path leads out of the project");
        }
        for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            if self.root.join(folder).is_symlink() {
                return refuse("one of its directories is a symbolic link");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_lists_the_changes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("a/changed"), "old").unwrap();
        fs::write(root.join("a/removed"), "gone").unwrap();
        let mut tree = Tree::at(root);
        tree.write("a/changed", "new");
        tree.write("b/c/created", "fresh");
        tree.remove("a/removed");
        let report = tree.commit().unwrap();
        assert_eq!(report.created, [PathBuf::from("b/c/created")]);
        assert_eq!(report.changed, [PathBuf::from("a/changed")]);
        assert_eq!(report.removed, [PathBuf::from("a/removed")]);
        assert_eq!(fs::read(root.join("b/c/created")).unwrap(), b"fresh");
        assert!(!root.join("a/removed").exists());
        assert_eq!(fs::read_dir(root).unwrap().count(), 2, "the stage is deleted");
    }

    #[test]
    fn a_new_root_is_removed_again() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("new");
        let mut tree = Tree::at(&root);
        tree.write("a", "b");
        tree.write("a/b", "c");
        assert!(tree.commit().is_err() && !root.exists());
    }

    #[test]
    fn paths_that_lead_out_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/tmp", folder.path().join("link")).unwrap();
        for path in ["../x", "link/olmkit-scaffold-x", "/olmkit-scaffold-x"] {
            let mut tree = Tree::at(folder.path());
            tree.write(path, "x");
            assert!(tree.commit().is_err(), "{path}");
        }
    }

    #[test]
    fn links_out_of_the_project_and_pipes_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        fs::create_dir(&root).unwrap();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        fs::write(root.join("file"), "text").unwrap();
        let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, root.join(name)).unwrap();
        link("file", "fine");
        link("../secret", "relative");
        link("/proc/self/environ", "environment");
        link("..", "parent");
        link("nowhere", "missing");
        let made = std::process::Command::new("mkfifo").arg(root.join("pipe")).status();
        assert!(made.unwrap().success());
        let tree = Tree::at(&root);
        assert_eq!(tree.read("fine").unwrap().unwrap(), b"text");
        assert_eq!(tree.read("missing").unwrap(), None);
        for path in ["relative", "environment", "parent/secret", "../secret", "pipe"] {
            assert!(tree.read(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_larger_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "123").unwrap();
        assert!(Tree::at(folder.path()).with_largest(3).has("a").unwrap());
        assert!(Tree::at(folder.path()).with_largest(2).has("a").is_err());
    }

    #[test]
    fn create_refuses_other_content() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "mine").unwrap();
        let mut tree = Tree::at(folder.path());
        assert!(matches!(tree.create("a", "yours", false), Err(Error::Exists { .. })));
        tree.create("a", "mine", false).unwrap();
        tree.create("a", "yours", true).unwrap();
        tree.commit().unwrap();
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"yours");
    }
}
