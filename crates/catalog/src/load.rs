//! Reads catalog directories.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::blob::{self, MISSING_SCHEMA};
use super::keys;
use super::meta;
use super::model::{Blob, Catalog, Origin};
use super::text::{Value, stream};
use super::walk;
use olmkit_base::limits;
use olmkit_yaml as yaml;

/// Why a catalog cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory cannot be walked.
    #[error(transparent)]
    Walk(#[from] walk::Error),
    /// The path is not a directory.
    #[error("{} is not a directory; a file-based catalog is a directory of YAML or JSON files", .0.display())]
    NotADirectory(PathBuf),
    /// A file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A document of a file is not a blob.
    #[error(
        "{}:{line}{}: {}",
        file.display(),
        if *column > 0 { format!(":{column}") } else { String::new() },
        short(message)
    )]
    Document {
        /// The file.
        file: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// Column, counted from 1; 0 if unknown.
        column: usize,
        /// opm's message.
        message: String,
    },
}

/// opm's message without most of the quoted blob: an icon would add kilobytes of base64.
pub(super) fn short(message: &str) -> Cow<'_, str> {
    /// Characters of the blob that show which one it is.
    const SHOWN: usize = 80;
    let blob = message
        .strip_prefix("object '")
        .and_then(|rest| rest.strip_suffix(MISSING_SCHEMA));
    match blob.and_then(|blob| Some((blob, blob.char_indices().nth(SHOWN)?.0))) {
        Some((blob, end)) => Cow::Owned(format!(
            "object '{}…{MISSING_SCHEMA}",
            blob.get(..end).unwrap_or_default()
        )),
        None => Cow::Borrowed(message),
    }
}

impl Error {
    /// The error in opm's wording, which names no file.
    pub fn opm_text(&self) -> String {
        match self {
            Error::Document { message, .. } => message.clone(),
            Error::Read { file, source } if source.kind() == std::io::ErrorKind::IsADirectory => {
                format!("read {}: is a directory", file.display())
            }
            other => other.to_string(),
        }
    }
}

/// Reads all blobs of a catalog directory, several files at a time. The result is in walk order whatever the number of
/// threads.
///
/// # Errors
/// The first file in walk order that cannot be read or contains something other than blobs.
pub fn directory(root: &Path) -> Result<Catalog, Error> {
    if !root.is_dir() {
        return Err(Error::NotADirectory(root.to_owned()));
    }
    let parts: Vec<Vec<Blob>> = walk::files(root)?
        .into_par_iter()
        .map(|path| file(&path))
        .collect::<Result<_, Error>>()?;
    Ok(parts.into_iter().flatten().collect())
}

/// Reads the blobs of one file, in order.
///
/// # Errors
/// See [`directory`].
pub fn file(path: &Path) -> Result<Vec<Blob>, Error> {
    let mut blobs = Vec::new();
    each_blob(path, &|blob, _| Ok(blob), &mut |blob| blobs.push(blob))?;
    Ok(blobs)
}

/// Reads the blobs of one file, converts each, with its document, on the thread that read it, and returns the results
/// in order, so that only some megabytes of a large file are processed at a time.
///
/// # Errors
/// See [`directory`]. `convert` may reject a blob.
pub fn each_blob<T: Send>(
    path: &Path,
    convert: &(dyn Fn(Blob, &Value<'_>) -> Result<T, String> + Sync),
    sink: &mut dyn FnMut(T),
) -> Result<(), Error> {
    let text = read_text(path)?;
    let name: Arc<Path> = Arc::from(path);
    let read = |document: stream::Document<'_>| {
        let line = document.line;
        let blob = to_blob(&document, Some(name.clone()))?;
        convert(blob, &document.value).map_err(|message| stream::Error {
            message,
            line,
            column: 0,
        })
    };
    match stream::each(&text, read, sink) {
        Some(error) => Err(document_error(path, error)),
        None => Ok(()),
    }
}

/// Reads the blobs of a stream, such as standard input.
///
/// # Errors
/// The first document that is not a blob.
pub fn text(text: &str) -> Result<Vec<Blob>, stream::Error> {
    let (blobs, error) = stream::map(text, |document| to_blob(&document, None));
    error.map_or(Ok(blobs), Err)
}

/// Turns a document into a checked blob.
pub(super) fn to_blob(document: &stream::Document<'_>, file: Option<Arc<Path>>) -> Result<Blob, stream::Error> {
    let stream::Document { value, line, yaml } = document;
    let line = *line;
    let fail = |message| stream::Error {
        message,
        line,
        column: 0,
    };
    // opm reads the common keys while it decodes the document, the rest later.
    let meta = meta::read(value).map_err(|message| {
        fail(if *yaml {
            format!("error unmarshaling JSON: while decoding JSON: {message}")
        } else {
            message
        })
    })?;
    let unknown = keys::unknown(&meta.schema, value);
    let blob = blob::read(value, Origin { file, line, unknown }).map_err(fail)?;
    if let Blob::Bundle(bundle) = &blob {
        blob::check_objects(bundle).map_err(fail)?;
    }
    Ok(blob)
}

fn document_error(path: &Path, error: stream::Error) -> Error {
    let stream::Error { message, line, column } = error;
    Error::Document {
        file: path.to_owned(),
        line,
        column,
        message,
    }
}

/// Reads a file as text. Invalid UTF-8 is an error in YAML and becomes U+FFFD in JSON, as in the Go readers.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let bytes = limits::read_file(path, &limits::CATALOG_FILE).map_err(|source| Error::Read {
        file: path.to_owned(),
        source,
    })?;
    String::from_utf8(bytes).or_else(|error| {
        let bytes = error.into_bytes();
        let text = String::from_utf8_lossy(&bytes);
        if stream::is_json(&text) {
            return Ok(text.into_owned());
        }
        match yaml::parse(&bytes) {
            // The reader accepts UTF-16 with a byte order mark. Catalogs with it do not occur.
            Ok(_) => Ok(text.into_owned()),
            Err(error) => {
                let position = error.position();
                Err(Error::Document {
                    file: path.to_owned(),
                    line: position.map_or(1, |position| position.line as usize),
                    column: position.map_or(0, |position| position.column as usize),
                    message: format!("error converting YAML to JSON: {error}"),
                })
            }
        }
    })
}
