//! The files of a catalog directory.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use olmkit_base::files::{self, Directory};
use olmkit_base::limits::{self, Limit};

/// File of patterns, in gitignore syntax, for files that are not part of the catalog.
pub const IGNORE_FILE: &str = ".indexignore";

/// Why a directory cannot be walked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directory cannot be listed.
    #[error("cannot list {}: {source}", path.display())]
    List {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A symbolic link leads out of the catalog.
    #[error("cannot read {}: {source}", path.display())]
    Link {
        /// The link.
        path: PathBuf,
        /// The path that it may not leave.
        source: std::io::Error,
    },
    /// An ignore file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Ignore {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// All files of the catalog under `root`: depth first, the entries of a directory in byte order of name, without what
/// `.indexignore` files exclude. Links to directories are listed as files, which fails when they are read, as in opm.
///
/// # Errors
/// A directory or ignore file that cannot be read.
pub fn files(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut all = Vec::new();
    let mut ignores = Vec::new();
    let directory = Directory::open(root).map_err(|source| Error::List {
        path: root.to_owned(),
        source,
    })?;
    collect((&directory, root), 0, &mut all, &mut ignores)?;
    all.retain(|file| !ignored(file, &ignores));
    let lengths = all.iter().filter_map(|file| std::fs::metadata(file).ok());
    let bytes = lengths.fold(0u64, |sum, metadata| sum.saturating_add(metadata.len()));
    if bytes > limits::CATALOG_BYTES.get() {
        return Err(too_large(root, &limits::CATALOG_BYTES));
    }
    Ok(all)
}

fn too_large(path: &Path, limit: &Limit) -> Error {
    Error::List {
        path: path.to_owned(),
        source: limit.exceeded(),
    }
}

fn collect(
    (root, directory): (&Directory, &Path),
    depth: usize,
    found: &mut Vec<PathBuf>,
    ignores: &mut Vec<Gitignore>,
) -> Result<(), Error> {
    if depth > limits::CATALOG_DEPTH.count() {
        return Err(too_large(directory, &limits::CATALOG_DEPTH));
    }
    let fail = |source| Error::List {
        path: directory.to_owned(),
        source,
    };
    let mut entries: Vec<_> = std::fs::read_dir(directory)
        .map_err(fail)?
        .collect::<Result<_, _>>()
        .map_err(fail)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        if found.len() + ignores.len() > limits::CATALOG_FILES.count() {
            return Err(too_large(directory, &limits::CATALOG_FILES));
        }
        let path = entry.path();
        let kind = entry.file_type().map_err(fail)?;
        if files::is_stage_in_use(&path) {
            continue;
        }
        if kind.is_symlink() {
            refuse_outside(root, &path)?;
        }
        if kind.is_dir() {
            collect((root, &path), depth + 1, found, ignores)?;
        } else if entry.file_name() == IGNORE_FILE {
            ignores.push(patterns(directory, &path)?);
        } else {
            found.push(path);
        }
    }
    Ok(())
}

/// A link to a file outside of the catalog would publish it. Its reader reports other problems of a link.
fn refuse_outside(root: &Directory, path: &Path) -> Result<(), Error> {
    let relative = path.strip_prefix(root.path()).unwrap_or(path);
    match root.metadata(relative) {
        Err(source) if files::leads_out(&source) => Err(Error::Link {
            path: path.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

fn patterns(directory: &Path, file: &Path) -> Result<Gitignore, Error> {
    let text = limits::read_file(file, &limits::CATALOG_IGNORE)
        .and_then(limits::text)
        .map_err(|source| Error::Ignore {
            path: file.to_owned(),
            source,
        })?;
    let mut builder = GitignoreBuilder::new(directory);
    for line in text.lines() {
        // A pattern that is none ignores nothing, as in opm.
        let _ = builder.add_line(None, line.trim());
    }
    Ok(builder.build().unwrap_or_else(|_| Gitignore::empty()))
}

/// Later patterns win, whichever file they are in.
fn ignored(file: &Path, ignores: &[Gitignore]) -> bool {
    for ignore in ignores.iter().rev() {
        if !file.starts_with(ignore.path()) {
            continue;
        }
        let found = ignore.matched_path_or_any_parents(file, false);
        if !found.is_none() {
            return found.is_ignore();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    fn listed(root: &Path) -> Vec<String> {
        let files = files(root).unwrap();
        files
            .iter()
            .map(|file| file.strip_prefix(root).unwrap().display().to_string())
            .collect()
    }

    #[test]
    fn files_come_in_byte_order_and_depth_first() {
        let root = tree(&[("b.yaml", ""), ("a/z.yaml", ""), ("B.yaml", ""), ("a.yaml", "")]);
        assert_eq!(listed(root.path()), ["B.yaml", "a/z.yaml", "a.yaml", "b.yaml"]);
    }

    #[test]
    fn patterns_that_are_none_ignore_nothing() {
        let root = tree(&[
            (".indexignore", "*.yaml\\ \n[a\nb.yaml\n"),
            ("a.yaml", ""),
            ("b.yaml", ""),
        ]);
        assert_eq!(listed(root.path()), ["a.yaml"]);
    }

    #[test]
    fn ignore_files_apply_below_their_directory_and_later_patterns_win() {
        let root = tree(&[
            (".indexignore", "# talk\n  *.md  \ndocs/\n"),
            ("README.md", ""),
            ("docs/a.yaml", ""),
            ("p/.indexignore", "!keep.md\n/only.yaml\n"),
            ("p/keep.md", ""),
            ("p/only.yaml", ""),
            ("p/q/only.yaml", ""),
        ]);
        assert_eq!(listed(root.path()), ["p/keep.md", "p/q/only.yaml"]);
    }
}
