//! Reads a catalog and writes its index, in one pass over the files.
//!
//! An invalid package is omitted and reported in the index. The others are served. The validity of a package does not
//! depend on other packages, so each is checked separately. A truncated file may have contained anything: every package
//! whose name it mentions counts as invalid.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::index::format::{BlobSlot, Broken};
use super::index::{self, Builder, Content, build::check_custom};
use super::record::{self, Prepared};
use olmkit::catalog::model::{Blob, Catalog, Custom, PROPERTY_BUNDLE_OBJECT, PROPERTY_CSV_METADATA};
use olmkit::catalog::text::Value;
use olmkit::catalog::{blob, load, meta, property, validate, walk};

/// Files are read in runs of about this many bytes.
const BATCH: u64 = 32 << 20;

/// Why no index is available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The catalog cannot be read.
    #[error(transparent)]
    Load(#[from] load::Error),
    /// The catalog is invalid. The text is opm's message.
    #[error("{0}")]
    Invalid(String),
    /// The index cannot be built.
    #[error(transparent)]
    Build(#[from] index::BuildError),
    /// The prepared index was to be used and does not fit.
    #[error("cache requires rebuild: {0}; build it with {preparing}, or leave out --cache-enforce-integrity",
        preparing = if matches!(.0, index::OpenError::WithoutBlobs) { "--cache-only --http" } else { "--cache-only" })]
    Enforced(index::OpenError),
}

/// Contents of an index.
#[derive(Debug, Clone, Copy, Default)]
pub struct IndexContents {
    /// Also the source of every blob, which the HTTP API serves.
    pub blobs: bool,
    /// Everything or nothing: an invalid package is an error.
    pub whole: bool,
}

/// Reads the catalog at `root` and writes its index.
///
/// # Errors
/// A file cannot be read, no package is valid, or `whole` is set and a package is invalid.
pub fn build<W: Write>(root: &Path, out: W, fingerprint: &[u8], wanted: IndexContents) -> Result<W, Error> {
    let mut parts = Parts {
        builder: Builder::new(out),
        catalog: Catalog::default(),
        blobs: Vec::new(),
        wrong: Vec::new(),
        unreadable: Vec::new(),
        failure: None,
    };
    let lighten = |blob: Blob, value: &Value<'_>| Ok(BlobSummary::new(blob, value, wanted.blobs));
    for batch in batches(walk::files(root).map_err(load::Error::from)?) {
        match batch.as_slice() {
            [file] => {
                let end = load::each_blob(file, &lighten, &mut |light| parts.take(light));
                parts.end_of_file(end)?;
            }
            files => {
                let read: Vec<(Vec<BlobSummary>, Result<(), load::Error>)> = files
                    .par_iter()
                    .map(|file| {
                        let mut lights = Vec::new();
                        let end = load::each_blob(file, &lighten, &mut |light| lights.push(light));
                        (lights, end)
                    })
                    .collect();
                for (lights, end) in read {
                    lights.into_iter().for_each(|light| parts.take(light));
                    parts.end_of_file(end)?;
                }
            }
        }
    }
    let broken = parts.leave_out_what_is_wrong(wanted.whole)?;
    let left_out: BTreeSet<&str> = broken.iter().map(|broken| broken.package.as_str()).collect();
    let blobs = parts
        .blobs
        .into_iter()
        .filter(|(package, _)| package.is_empty() || !left_out.contains(package.as_str()))
        .map(|(_, slot)| slot);
    Ok(parts.builder.finish(Content {
        blobs: wanted.blobs.then(|| blobs.collect()),
        catalog: parts.catalog,
        fingerprint,
        broken,
    })?)
}

/// Summary of a blob that is kept while the index is built.
struct BlobSummary {
    blob: Blob,
    /// A bundle's messages, or why there are none.
    prepared: Option<Result<Prepared, record::Error>>,
    /// The source, and the keys that find it.
    text: Option<(String, BlobSlot)>,
}

impl BlobSummary {
    /// Removes the large parts from a bundle and converts them to the form of the index.
    fn new(mut blob: Blob, value: &Value<'_>, with_text: bool) -> Self {
        let mut prepared = None;
        if let Blob::Bundle(bundle) = &mut blob {
            // Validation reports why properties are invalid.
            if property::parse(bundle).is_ok() {
                prepared = Some(record::prepare(bundle));
                for property in &mut bundle.properties {
                    if matches!(property.kind.as_str(), PROPERTY_BUNDLE_OBJECT | PROPERTY_CSV_METADATA) {
                        property.value = Some("{}".into());
                    }
                }
            }
        }
        let text = with_text.then(|| {
            let meta = meta::read(value).unwrap_or_default();
            let slot = BlobSlot {
                schema: meta.schema,
                package: meta.package,
                name: meta.name,
                ..BlobSlot::default()
            };
            (blob::json_line(value), slot)
        });
        BlobSummary { blob, prepared, text }
    }
}

/// A catalog on its way into an index.
struct Parts<W> {
    builder: Builder<W>,
    /// Without the large parts of bundles.
    catalog: Catalog,
    /// Package and slot of each blob whose source is stored.
    blobs: Vec<(String, BlobSlot)>,
    /// Packages, and errors that validation does not report.
    wrong: Vec<(String, String)>,
    /// Files that break off.
    unreadable: Vec<load::Error>,
    /// The index cannot be written.
    failure: Option<Error>,
}

impl<W: Write> Parts<W> {
    fn take(&mut self, light: BlobSummary) {
        if self.failure.is_some() {
            return;
        }
        if let Err(error) = self.store(light) {
            self.failure = Some(error);
        }
    }

    fn store(&mut self, BlobSummary { blob, prepared, text }: BlobSummary) -> Result<(), Error> {
        if let Some((text, mut slot)) = text {
            slot.json = self.builder.blob(&text)?;
            self.blobs.push((blob.package().to_owned(), slot));
        }
        match (&blob, prepared) {
            (Blob::Bundle(bundle), Some(Ok(prepared))) => self.builder.prepared(bundle, prepared)?,
            (_, Some(Err(error))) => self.wrong.push((blob.package().to_owned(), error.to_string())),
            (Blob::Custom(custom), _) => {
                if let Err(message) = custom_can_be_served(custom) {
                    self.wrong.push((custom.package.clone(), message));
                }
            }
            _ => {}
        }
        self.catalog.push(blob);
        Ok(())
    }

    /// Notes a file that breaks off. Fails where one cannot be read at all.
    fn end_of_file(&mut self, end: Result<(), load::Error>) -> Result<(), Error> {
        match end {
            Ok(()) => {}
            Err(error @ load::Error::Document { .. }) => self.unreadable.push(error),
            Err(error) => return Err(error.into()),
        }
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Takes packages that are wrong out of the catalog.
    fn leave_out_what_is_wrong(&mut self, whole: bool) -> Result<Vec<Broken>, Error> {
        let verdict = validate::opm_text(&self.catalog);
        if self.unreadable.is_empty() && self.wrong.is_empty() && verdict.is_none() {
            return Ok(Vec::new());
        }
        let first = self.first_error(verdict);
        if whole {
            return Err(first);
        }
        let mut packages = by_package(std::mem::take(&mut self.catalog));
        let mut broken = self.broken_by_files(packages.keys());
        for (package, message) in std::mem::take(&mut self.wrong) {
            broken.entry(package).or_insert(message);
        }
        for (name, catalog) in &packages {
            if !broken.contains_key(name)
                && let Some(message) = validate::opm_text(catalog)
            {
                broken.insert(name.clone(), message);
            }
        }
        packages.retain(|name, _| !broken.contains_key(name));
        self.catalog = Catalog::default();
        for catalog in packages.into_values() {
            self.catalog.extend(catalog);
        }
        if self.catalog.packages.is_empty() {
            return Err(first);
        }
        if broken.is_empty() {
            // Blobs that belong to no package.
            broken.insert(String::new(), first.to_string());
        }
        Ok(broken
            .into_iter()
            .map(|(package, message)| Broken { package, message })
            .collect())
    }

    /// The error for callers that accept no broken package.
    fn first_error(&self, verdict: Option<String>) -> Error {
        let unreadable = self.unreadable.first().map(ToString::to_string);
        let wrong = self.wrong.first().map(|(_, message)| message.clone());
        Error::Invalid(unreadable.or(verdict).or(wrong).unwrap_or_default())
    }

    /// The packages that files which break off mention. A file that mentions none is noted under no name.
    fn broken_by_files<'p>(&self, packages: impl Iterator<Item = &'p String> + Clone) -> BTreeMap<String, String> {
        let mut broken = BTreeMap::new();
        for error in &self.unreadable {
            let load::Error::Document { file, .. } = error else {
                continue;
            };
            let bytes = std::fs::read(file).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            let mut mentioned: Vec<&String> = packages.clone().filter(|name| mentions(&text, name)).collect();
            let nameless = String::new();
            if mentioned.is_empty() {
                mentioned.push(&nameless);
            }
            for name in mentioned {
                broken.entry(name.clone()).or_insert_with(|| error.to_string());
            }
        }
        broken
    }
}

fn custom_can_be_served(custom: &Custom) -> Result<(), String> {
    check_custom(custom).map_err(|error| error.to_string())?;
    record::custom(&custom.json).map(|_| ())
}

/// The catalog's packages, each as a separate catalog. Blobs without a package have the empty name as key.
fn by_package(catalog: Catalog) -> BTreeMap<String, Catalog> {
    let mut packages: BTreeMap<String, Catalog> = BTreeMap::new();
    for blob in olmkit::catalog::order::blobs(catalog) {
        packages.entry(blob.package().to_owned()).or_default().push(blob);
    }
    packages
}

/// Returns true if a text contains a name, separately and not as part of a longer one, an image's for instance.
fn mentions(text: &str, name: &str) -> bool {
    let part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"-_./:@".contains(byte));
    !name.is_empty()
        && memchr::memmem::find_iter(text.as_bytes(), name).any(|at| {
            let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before));
            !part(before) && !part(text.as_bytes().get(at + name.len()))
        })
}

/// Batches of files with some megabytes each. A large file is a batch by itself.
fn batches(files: Vec<PathBuf>) -> Vec<Vec<PathBuf>> {
    let mut batches: Vec<Vec<PathBuf>> = Vec::new();
    let mut room = 0;
    for file in files {
        let length = file.metadata().map(|metadata| metadata.len()).unwrap_or_default();
        match batches.last_mut() {
            Some(batch) if length <= room => {
                room -= length;
                batch.push(file);
            }
            _ => {
                room = BATCH.saturating_sub(length);
                batches.push(vec![file]);
            }
        }
    }
    batches
}
