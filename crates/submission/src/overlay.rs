//! A repository with unwritten changes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use crate::files::{Files, is_directory, join, list};

/// Files to write, by their path in the repository. `None` removes a file.
pub type Changes = BTreeMap<String, Option<Vec<u8>>>;

/// The files of a repository as they will be with some changes.
pub struct Overlay {
    base: Arc<dyn Files>,
    written: BTreeMap<String, Vec<u8>>,
    removed: BTreeSet<String>,
}

impl Overlay {
    /// Lays changes over files.
    pub fn new(base: Arc<dyn Files>, changes: Changes) -> Self {
        let mut overlay = Self {
            base,
            written: BTreeMap::new(),
            removed: BTreeSet::new(),
        };
        for (path, content) in changes {
            match content {
                Some(content) => drop(overlay.written.insert(path, content)),
                None => drop(overlay.removed.insert(path)),
            }
        }
        overlay
    }

    fn is_removed(&self, path: &str) -> bool {
        self.removed.contains(path) && !self.written.contains_key(path)
    }
}

impl Files for Overlay {
    fn is_file(&self, path: &str) -> bool {
        self.written.contains_key(path) || (!self.is_removed(path) && self.base.is_file(path))
    }

    fn is_directory(&self, path: &str) -> bool {
        is_directory(&self.written, path) || self.base.is_directory(path)
    }

    fn list(&self, path: &str) -> Vec<String> {
        let mut names = self.base.list(path);
        names.retain(|name| !self.is_removed(&join(path, name)));
        names.extend(list(&self.written, path));
        names.sort();
        names.dedup();
        names
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.written.get(path) {
            Some(content) => Ok(content.clone()),
            None if self.is_removed(path) => Err(io::ErrorKind::NotFound.into()),
            None => self.base.read(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    fn changes_hide_what_was_there() {
        let base: Memory = [("a/1", "old"), ("a/2", "old"), ("b", "old")].into_iter().collect();
        let changes = [("a/1", Some("new")), ("a/2", None), ("c/d", Some("new"))];
        let changes = changes.map(|(path, content)| (path.to_owned(), content.map(Into::into)));
        let files = Overlay::new(Arc::new(base), changes.into());
        assert_eq!(files.list(""), ["a", "b", "c"]);
        assert_eq!(
            (files.list("a"), files.list("c")),
            (vec!["1".to_owned()], vec!["d".to_owned()])
        );
        assert_eq!(files.read("a/1").unwrap(), b"new");
        assert!(files.read("a/2").is_err() && !files.is_file("a/2"));
        assert!(files.is_file("b") && files.is_directory("c"));
    }
}
