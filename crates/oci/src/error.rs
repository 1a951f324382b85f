//! Errors of images on this machine. Errors of registries are in [`super::registry::Error`].

use std::io;
use std::path::{Path, PathBuf};

use super::InvalidReference;
use super::digest::Digest;

/// Failure of an operation on an image, a layout or an archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{action} {}: {source}", path.display())]
    File {
        /// The attempted action: `read`, `write`, `create`.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A JSON document of an image cannot be understood.
    #[error("{what} is not a valid document: {source}")]
    Document {
        /// The document and its image.
        what: String,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// Content differs from what its digest or size promises.
    #[error("{what} is corrupt: expected digest {expected}, got {actual}; fetch or build the image again")]
    Mismatch {
        /// The content.
        what: String,
        /// The digest that named it.
        expected: Digest,
        /// The digest it has.
        actual: Digest,
    },
    /// The size of the content differs from its descriptor.
    #[error("{what} is corrupt: expected {expected} bytes, got {actual}; fetch or build the image again")]
    Size {
        /// The content.
        what: String,
        /// The promised size in bytes.
        expected: u64,
        /// The size in bytes as far as it was read.
        actual: u64,
    },
    /// Untrusted content exceeds a limit.
    #[error("{what} is refused: {reason}")]
    Refused {
        /// The content.
        what: String,
        /// The limit or rule that it breaks.
        reason: String,
    },
    /// Something does not exist.
    #[error("{what} is not in {place}{hint}")]
    Missing {
        /// The missing content.
        what: String,
        /// Where.
        place: String,
        /// The content found instead, or the fix. Starts with punctuation.
        hint: String,
    },
    /// The requested image cannot be built.
    #[error("{0}")]
    Input(String),
    /// A reference is malformed or short.
    #[error(transparent)]
    Reference(#[from] InvalidReference),
    /// A registry or the way to it failed.
    #[error(transparent)]
    Registry(#[from] Box<super::registry::error::Error>),
}

impl From<super::registry::error::Error> for Error {
    fn from(error: super::registry::error::Error) -> Self {
        Self::Registry(Box::new(error))
    }
}

impl Error {
    /// For `map_err` on file operations.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }

    /// For `map_err` on JSON operations.
    pub(crate) fn document(what: impl Into<String>) -> impl FnOnce(serde_json::Error) -> Self {
        let what = what.into();
        move |source| Self::Document { what, source }
    }
}
