//! Descriptions of owned CRDs from the Go types of an operator and their `+operator-sdk:csv` markers, as operator-sdk writes them
//! into the base of a ClusterServiceVersion.
//!
//! The sources are parsed with tree-sitter's Go grammar. Neither a Go toolchain nor the modules of the project are needed.

mod comments;
mod describe;
mod marker;
mod package;
mod plural;
mod source;

use std::path::{Path, PathBuf};

use olmkit::object::GroupVersionKind;
use serde_json::Value;

/// The reason why no descriptions can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory that cannot be read.
    #[error("cannot read {path}: {reason}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: std::io::Error,
    },
    /// A file that is not Go.
    #[error("{path}:{line}: the file is not valid Go; run `gofmt -l` on it", path = path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line of the first error.
        line: usize,
    },
    /// A marker with wrong arguments.
    #[error("{path}:{line}: {marker}: {reason}", path = path.display())]
    Marker {
        /// The file.
        path: PathBuf,
        /// The line of the marker.
        line: usize,
        /// The marker.
        marker: String,
        /// The problem.
        reason: String,
    },
    /// More sources than an operator has.
    #[error("{path} has too many Go files, or types that are nested too deeply", path = path.display())]
    TooMuch {
        /// The directory.
        path: PathBuf,
    },
}

/// A described kind: the entry of `customresourcedefinitions.owned`, and its place in that list.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// Group, version and kind.
    pub kind: GroupVersionKind,
    /// The `order` of the marker. Without one the kind comes last.
    pub order: i64,
    /// The entry.
    pub entry: Value,
}

/// Describes those of some kinds that have a Go type below a directory. The order is the one of the entries.
///
/// # Errors
/// A source or a marker is invalid.
pub fn describe(directory: &Path, kinds: &[GroupVersionKind]) -> Result<Vec<Description>, Error> {
    let packages = package::load(directory)?;
    describe::all(&packages, kinds)
}
