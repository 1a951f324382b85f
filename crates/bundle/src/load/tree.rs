//! The content of a bundle directory, read once: every later step is a function of this value, never of the disk.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use olmkit_base::files::{Directory, leads_out};
use olmkit_base::limits::{self, Limit};

/// Size limits of a bundle. Real bundles are much smaller: the largest public ones have about 10 MB.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum bytes of all files together.
    pub bytes: u64,
    /// Most files and directories.
    pub entries: usize,
    /// Maximum levels of directories.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: limits::BUNDLE_BYTES.get(),
            entries: limits::BUNDLE_FILES.count(),
            depth: limits::BUNDLE_DEPTH.count(),
        }
    }
}

/// Why a directory could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The directory itself cannot be listed.
    #[error("cannot list {}: {error}", path.display())]
    List {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The directory exceeds the limits of a bundle.
    #[error("{} contains more than {limit}: it is not a bundle directory, or it has unrelated files{way_out}", path.display())]
    TooLarge {
        /// The directory.
        path: PathBuf,
        /// The limit that was reached, as a phrase.
        limit: String,
        /// How to raise it.
        way_out: String,
    },
    /// A symbolic link leads out of the directory, to a file of the machine that is no part of the bundle.
    #[error("cannot read {}: {error}", path.display())]
    Link {
        /// The link.
        path: PathBuf,
        /// The path that it may not leave.
        error: std::io::Error,
    },
}

/// One entry of a directory.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A directory.
    Directory,
    /// A file, or a symbolic link to one, with its bytes.
    File(Vec<u8>),
    /// A symbolic link to a directory, which the reference tools do not follow.
    LinkedDirectory,
    /// An entry that cannot be read as a file: a dangling link, a socket, a file without permission. The string is the
    /// system's error.
    Unreadable(String),
}

/// A directory with everything below it. Paths are relative to its root, with `/` between the parts.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    entries: BTreeMap<Vec<String>, Entry>,
}

impl Tree {
    /// Reads a directory. The root may be a symbolic link. Links below it are followed to files only.
    ///
    /// # Errors
    /// If the directory cannot be listed or exceeds `limits`. A single unreadable file is not an error but an
    /// [`Entry::Unreadable`].
    pub fn from_dir(root: &Path, limits: Limits) -> Result<Self, TreeError> {
        let list = |error| TreeError::List {
            path: root.to_path_buf(),
            error,
        };
        Self::below(&Directory::open(root).map_err(list)?, Path::new(""), limits)
    }

    /// Reads a directory of a larger one, such as a repository. Links may lead to files anywhere in the larger one.
    ///
    /// # Errors
    /// As of [`Self::from_dir`].
    pub fn below(directory: &Directory, path: &Path, limits: Limits) -> Result<Self, TreeError> {
        let mut reader = Reader {
            directory,
            root: &directory.path().join(path),
            limits,
            bytes: 0,
            entries: BTreeMap::new(),
        };
        reader.directory(path, &mut Vec::new())?;
        Ok(Self {
            entries: reader.entries,
        })
    }

    /// Builds a tree from files in memory.
    pub fn from_files<I, P>(files: I) -> Self
    where
        I: IntoIterator<Item = (P, Vec<u8>)>,
        P: AsRef<str>,
    {
        let mut tree = Self::default();
        for (path, bytes) in files {
            tree.insert(path.as_ref(), bytes);
        }
        tree
    }

    /// Adds a file and its parent directories. Replaces an existing file.
    pub fn insert(&mut self, path: &str, bytes: Vec<u8>) {
        let parts = parts(path);
        for end in 1..parts.len() {
            if let Some(parent) = parts.get(..end) {
                self.entries.entry(parent.to_vec()).or_insert(Entry::Directory);
            }
        }
        self.entries.insert(parts, Entry::File(bytes));
    }

    /// The bytes of a file.
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        match self.entries.get(&parts(path)) {
            Some(Entry::File(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// The entry at a path.
    pub fn entry(&self, path: &str) -> Option<&Entry> {
        self.entries.get(&parts(path))
    }

    /// True when the path is a directory. The root (`""` or `"."`) is one.
    pub fn is_directory(&self, path: &str) -> bool {
        let parts = parts(path);
        parts.is_empty() || matches!(self.entries.get(&parts), Some(Entry::Directory))
    }

    /// The entries of one directory with their names, in byte order. Empty for anything else.
    pub fn children<'a>(&'a self, directory: &str) -> impl Iterator<Item = (&'a str, &'a Entry)> + use<'a> {
        let parent = parts(directory);
        let depth = parent.len();
        self.entries
            .range(parent.clone()..)
            .take_while(move |(path, _)| path.starts_with(&parent))
            .filter(move |(path, _)| path.len() == depth + 1)
            .filter_map(|(path, entry)| path.last().map(|name| (name.as_str(), entry)))
    }

    /// Everything below a directory, in the order a depth-first walk with sorted names meets it, as (path, entry).
    pub fn walk<'a>(&'a self, directory: &str) -> impl Iterator<Item = (String, &'a Entry)> + use<'a> {
        let parent = parts(directory);
        let depth = parent.len();
        self.entries
            .range(parent.clone()..)
            .take_while(move |(path, _)| path.starts_with(&parent))
            .filter(move |(path, _)| path.len() > depth)
            .map(|(path, entry)| (path.join("/"), entry))
    }
}

/// The parts of a path without `.` and empty ones.
fn parts(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .map(str::to_string)
        .collect()
}

struct Reader<'a> {
    directory: &'a Directory,
    root: &'a Path,
    limits: Limits,
    bytes: u64,
    entries: BTreeMap<Vec<String>, Entry>,
}

impl Reader<'_> {
    /// Reads a directory. The path is relative to the outer directory.
    fn directory(&mut self, path: &Path, parts: &mut Vec<String>) -> Result<(), TreeError> {
        if parts.len() > self.limits.depth {
            return Err(self.too_large(
                format!("{} levels of directories", self.limits.depth),
                &limits::BUNDLE_DEPTH,
            ));
        }
        let whole = self.directory.path().join(path);
        let listing = match fs::read_dir(&whole) {
            Ok(listing) => listing,
            Err(error) if parts.is_empty() => {
                return Err(TreeError::List { path: whole, error });
            }
            Err(error) => {
                self.entries.insert(parts.clone(), Entry::Unreadable(error.to_string()));
                return Ok(());
            }
        };
        for item in listing.filter_map(Result::ok) {
            if self.entries.len() >= self.limits.entries {
                return Err(self.too_large(format!("{} files", self.limits.entries), &limits::BUNDLE_FILES));
            }
            parts.push(item.file_name().to_string_lossy().into_owned());
            let below = path.join(item.file_name());
            let is_directory = item.file_type().is_ok_and(|kind| kind.is_dir());
            let entry = if is_directory {
                Entry::Directory
            } else {
                self.file(&below)?
            };
            self.entries.insert(parts.clone(), entry);
            if is_directory {
                self.directory(&below, parts)?;
            }
            parts.pop();
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<Entry, TreeError> {
        // Opening a named pipe or a device would hang or never end.
        let size = match self.directory.metadata(path) {
            Err(error) if leads_out(&error) => {
                let path = self.directory.path().join(path);
                return Err(TreeError::Link { path, error });
            }
            Err(error) => return Ok(Entry::Unreadable(error.to_string())),
            Ok(metadata) if metadata.is_dir() => return Ok(Entry::LinkedDirectory),
            Ok(metadata) if !metadata.is_file() => return Ok(Entry::Unreadable("is not a regular file".to_string())),
            Ok(metadata) => metadata.len(),
        };
        let left = self.limits.bytes.saturating_sub(self.bytes);
        // With room for the usual file, reading it takes two calls.
        let mut bytes = Vec::with_capacity(usize::try_from(size.min(left)).unwrap_or_default().min(1 << 20) + 1);
        let read = self
            .directory
            .file(path)
            .and_then(|file| file.take(left + 1).read_to_end(&mut bytes));
        if let Err(error) = read {
            return Ok(Entry::Unreadable(error.to_string()));
        }
        self.bytes += bytes.len() as u64;
        if self.bytes > self.limits.bytes {
            return Err(self.too_large(format!("{} MiB", self.limits.bytes >> 20), &limits::BUNDLE_BYTES));
        }
        Ok(Entry::File(bytes))
    }

    fn too_large(&self, reached: String, limit: &Limit) -> TreeError {
        TreeError::TooLarge {
            path: self.root.to_path_buf(),
            limit: reached,
            way_out: limit.way_out(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_and_walk_are_sorted_and_scoped() {
        let tree = Tree::from_files([
            ("b/z.yaml", vec![1]),
            ("b/a/x", vec![2]),
            ("b.txt", vec![3]),
            ("a", vec![]),
        ]);
        let names: Vec<_> = tree.children("").map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b", "b.txt"]);
        let below: Vec<_> = tree.walk("b").map(|(path, _)| path).collect();
        assert_eq!(below, ["b/a", "b/a/x", "b/z.yaml"]);
        assert!(tree.is_directory("./b/"));
        assert_eq!(tree.file("b/a/x"), Some(&[2u8][..]));
    }

    #[test]
    fn too_many_bytes_are_refused() {
        let dir = tempfile::tempdir().expect("temporary directory");
        std::fs::write(dir.path().join("big"), vec![0u8; 100]).expect("write");
        let limits = Limits {
            bytes: 99,
            ..Limits::default()
        };
        let error = Tree::from_dir(dir.path(), limits).expect_err("too large");
        assert!(error.to_string().contains("contains more than"), "{error}");
    }
}
