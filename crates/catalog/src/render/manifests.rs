//! The manifests of a bundle directory as `opm render` sees them.

use std::path::Path;

use super::Error;
use crate::text::{Numbers, Value, stream};
use olmkit_base::limits;
use olmkit_go::json::Html;

/// A manifest that decodes and has a kind.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Its kind.
    pub kind: String,
    /// The object.
    pub value: Value<'static>,
}

impl Manifest {
    /// The compact JSON for `olm.bundle.object`: keys sorted, HTML characters escaped.
    pub fn json(&self) -> String {
        self.value.to_json(Numbers::Keep, Html::Escape)
    }

    /// Returns true if this is the ClusterServiceVersion.
    pub fn is_csv(&self) -> bool {
        self.kind == "ClusterServiceVersion"
    }
}

/// Reads `manifests/`: files in byte order of name, the first document of each. Subdirectories, hidden files, files
/// that do not decode or have no kind, and every ClusterServiceVersion after the first are silently omitted, as opm
/// does. `bundle validate` reports them.
///
/// # Errors
/// The directory cannot be read.
pub fn read(directory: &Path) -> Result<Vec<Manifest>, Error> {
    let mut manifests: Vec<Manifest> = Vec::new();
    for name in file_names(directory)? {
        if name.starts_with('.') {
            continue;
        }
        let Some(manifest) = read_file(&directory.join(&name)) else {
            continue;
        };
        if manifest.is_csv() && manifests.iter().any(Manifest::is_csv) {
            continue;
        }
        manifests.push(manifest);
    }
    Ok(manifests)
}

/// The names of a directory's files in byte order.
///
/// # Errors
/// The directory cannot be read.
pub fn file_names(directory: &Path) -> Result<Vec<String>, Error> {
    let fail = |source| Error::Read {
        path: directory.to_owned(),
        source,
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if !entry.file_type().map_err(fail)?.is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn read_file(path: &Path) -> Option<Manifest> {
    let value = first_document(&limits::read_file(path, &limits::BUNDLE_BYTES).ok()?)?;
    let version = value.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    olmkit_base::object::split_api_version(version)?;
    let kind = value.get("kind")?.as_str().filter(|kind| !kind.is_empty())?.to_owned();
    Some(Manifest { kind, value })
}

/// The first document of a manifest or metadata file. `None` if it does not decode.
pub fn first_document(bytes: &[u8]) -> Option<Value<'static>> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => std::borrow::Cow::Borrowed(text),
        Err(_) => {
            let text = String::from_utf8_lossy(bytes);
            // Go's JSON reader replaces invalid bytes, its YAML reader rejects them.
            if !stream::is_json(&text) {
                return None;
            }
            text
        }
    };
    stream::first(&text)
}
