use std::io;
use std::path::PathBuf;

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A flag or name that the API server, Cargo or Rust would refuse.
    #[error("{what} {value:?}: {reason}")]
    Name {
        /// `--kind`, `--group`.
        what: &'static str,
        /// The given value.
        value: String,
        /// The problem and the accepted values.
        reason: String,
    },
    /// Flags that do not go together, or not with the project.
    #[error("{0}")]
    Usage(String),
    /// A project that lacks what the command needs, or has what it would write.
    #[error("{0}")]
    Unsuitable(String),
    /// The directory for a new project contains more than a fresh clone.
    #[error("{directory} is not empty: it contains {entry}; start in an empty directory or a fresh clone (hidden files, *.md, LICENSE)", directory = directory.display())]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
        /// One of its entries.
        entry: String,
    },
    /// The directory is not a project.
    #[error("{directory} contains no file PROJECT; run this in a project, or start one with olmkit init", directory = directory.display())]
    NoProject {
        /// The directory.
        directory: PathBuf,
    },
    /// The file PROJECT has unexpected content.
    #[error("PROJECT: {0}")]
    Project(String),
    /// A file that would be overwritten.
    #[error("{path} exists; --force overwrites it", path = path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A Rust file that does not parse.
    #[error("{path}:{line}:{column}: cannot edit this file: {reason}; correct the syntax and run the command again", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The parser's error.
        reason: String,
    },
    /// A Rust file that lacks the place to change.
    #[error("{path}: cannot find {place}; restore it, so that the command can insert this code:\n{text}", path = path.display())]
    Place {
        /// The file.
        path: PathBuf,
        /// The missing item.
        place: String,
        /// The text to add there.
        text: String,
    },
    /// A template of this crate. A bug.
    #[error("template {0}")]
    Template(#[from] minijinja::Error),
    /// `config/` cannot be rendered: `package.yaml` is wrong, for example.
    #[error(transparent)]
    Render(#[from] olmkit::project::Error),
    /// A file that cannot be read or written.
    #[error("cannot {action} {path}: {source}; nothing was changed", path = path.display())]
    Io {
        /// read, write
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Writing failed, and so did putting back what was there.
    #[error(
        "cannot write {path}: {source}; and what was there cannot be put back: {undo}. The former files are in {kept}",
        path = path.display(), kept = kept.display()
    )]
    Undo {
        /// The file that could not be written.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// Why the former state cannot be restored.
        undo: io::Error,
        /// Where the former files are.
        kept: PathBuf,
    },
}
