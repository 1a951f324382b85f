//! From a catalog directory to an index: the one that was prepared, if it fits, else a new one.

use std::fs::File;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use xxhash_rust::xxh3::Xxh3;

use super::index::{self, Builder, Index, Storage};
use super::record::{self, Prepared};
use crate::catalog::model::{Blob, Catalog, PROPERTY_BUNDLE_OBJECT, PROPERTY_CSV_METADATA};
use crate::catalog::{load, property, validate, walk};

/// Name of the index file in a cache directory. The format is part of it, so that versions of this program can share a
/// directory, and opm's own caches are left alone.
pub const INDEX_FILE: &str = "olmkit-1.index";

/// Files are read in runs of about this many bytes.
const BATCH: u64 = 32 << 20;

/// Why there is no index.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The catalog cannot be read.
    #[error(transparent)]
    Load(#[from] load::Error),
    /// The catalog's directory cannot be walked.
    #[error(transparent)]
    Walk(#[from] walk::Error),
    /// The catalog is wrong; opm's text.
    #[error("{0}")]
    Invalid(String),
    /// The index cannot be built.
    #[error(transparent)]
    Build(#[from] index::BuildError),
    /// The prepared index was to be used and does not fit.
    #[error("cache requires rebuild: {0}; build it with --cache-only, or leave out --cache-enforce-integrity")]
    Enforced(index::OpenError),
}

/// How an index came about.
#[derive(Debug)]
pub enum Provenance {
    /// The prepared one fits.
    Prepared,
    /// Built and kept in the cache directory.
    Built,
    /// Built, and gone with the process: why it could not be kept, if it was to be.
    Temporary(Option<String>),
}

/// Opens the index in `cache` if it was made from exactly this catalog, else builds one. A cache that is missing,
/// stale, damaged, foreign or cannot be written is no failure unless `enforce` is set.
///
/// # Errors
/// The catalog cannot be read or is wrong.
pub fn index(root: &Path, cache: Option<&Path>, enforce: bool) -> Result<(Index, Provenance), Error> {
    let fingerprint = fingerprint(root)?;
    if let Some(cache) = cache {
        let opened = File::open(cache.join(INDEX_FILE))
            .map_err(index::OpenError::Read)
            .and_then(|file| Index::open_for(Storage::File(file), &fingerprint));
        match opened {
            Ok(index) => return Ok((index, Provenance::Prepared)),
            Err(error) if enforce => return Err(Error::Enforced(error)),
            Err(_) => {}
        }
    }
    let mut reason = None;
    if let Some(cache) = cache {
        match keep(root, cache, &fingerprint) {
            Ok(index) => return Ok((index, Provenance::Built)),
            Err(Error::Build(index::BuildError::Write(error))) => reason = Some(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    // No place to keep it: an unnamed temporary file, or memory where there is none or it is full.
    if let Ok(file) = tempfile::tempfile() {
        match build(root, BufWriter::new(file), &fingerprint) {
            Ok(out) => {
                if let Ok(file) = out.into_inner() {
                    return Ok((open(Storage::File(file))?, Provenance::Temporary(reason)));
                }
            }
            Err(Error::Build(index::BuildError::Write(_))) => {}
            Err(error) => return Err(error),
        }
    }
    let bytes = build(root, Vec::new(), &fingerprint)?;
    Ok((open(Storage::Memory(bytes))?, Provenance::Temporary(reason)))
}

/// The index of a catalog as bytes, for a catalog image.
///
/// # Errors
/// The catalog cannot be read or is wrong.
pub fn bytes(root: &Path) -> Result<Vec<u8>, Error> {
    build(root, Vec::new(), &fingerprint(root)?)
}

fn open(storage: Storage) -> Result<Index, Error> {
    Index::open(storage).map_err(|error| index::BuildError::Write(std::io::Error::other(error)).into())
}

/// Builds the index in a cache directory: under another name first, so that nobody ever sees half of one.
fn keep(root: &Path, cache: &Path, fingerprint: &[u8]) -> Result<Index, Error> {
    let write = |error: std::io::Error| Error::Build(index::BuildError::Write(error));
    std::fs::create_dir_all(cache).map_err(write)?;
    let file = tempfile::Builder::new()
        .prefix(".index-")
        .tempfile_in(cache)
        .map_err(write)?;
    let mut file = build(root, BufWriter::new(file), fingerprint)?
        .into_inner()
        .map_err(|error| write(error.into_error()))?;
    file.flush().map_err(write)?;
    readable(file.as_file()).map_err(write)?;
    file.as_file().sync_all().map_err(write)?;
    let file = file
        .persist(cache.join(INDEX_FILE))
        .map_err(|error| write(error.error))?;
    open(Storage::File(file))
}

/// Whoever serves later may be another user.
fn readable(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

/// What is kept of a blob while the index is built.
struct Light {
    blob: Blob,
    prepared: Option<Prepared>,
}

fn build<W: std::io::Write>(root: &Path, out: W, fingerprint: &[u8]) -> Result<W, Error> {
    let mut builder = Builder::new(out);
    let mut catalog = Catalog::default();
    let mut failure = None;
    for batch in batches(walk::files(root)?) {
        let mut take = |light: Light| {
            if failure.is_some() {
                return;
            }
            if let (Blob::Bundle(bundle), Some(prepared)) = (&light.blob, light.prepared)
                && let Err(error) = builder.prepared(bundle, prepared)
            {
                failure = Some(error);
            }
            catalog.push(light.blob);
        };
        match batch.as_slice() {
            [file] => load::each_blob(file, &lighten, &mut take)?,
            files => {
                let parts: Vec<Vec<Light>> = files
                    .par_iter()
                    .map(|file| {
                        let mut part = Vec::new();
                        load::each_blob(file, &lighten, &mut |light| part.push(light))?;
                        Ok(part)
                    })
                    .collect::<Result<_, load::Error>>()?;
                parts.into_iter().flatten().for_each(&mut take);
            }
        }
        if let Some(error) = failure.take() {
            return Err(error.into());
        }
    }
    if let Some(error) = validate::catalog_verdict(&catalog).opm_text {
        return Err(Error::Invalid(error));
    }
    Ok(builder.finish(&catalog, fingerprint)?)
}

/// Takes the large parts out of a bundle and puts them into the form of the index.
#[allow(clippy::unnecessary_wraps)]
fn lighten(mut blob: Blob) -> Result<Light, String> {
    let mut prepared = None;
    if let Blob::Bundle(bundle) = &mut blob {
        // What cannot be prepared is wrong, and validation says why.
        let sound = property::parse(bundle).is_ok();
        prepared = record::prepare(bundle).ok();
        if sound {
            for property in &mut bundle.properties {
                if matches!(property.kind.as_str(), PROPERTY_BUNDLE_OBJECT | PROPERTY_CSV_METADATA) {
                    property.value = Some("{}".into());
                }
            }
        }
    }
    Ok(Light { blob, prepared })
}

/// Runs of files of some megabytes; a large file is a run of its own.
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

/// A fingerprint of the catalog's content: the names and bytes of all files that are part of it. Times and modes do
/// not count, since copying changes them.
///
/// # Errors
/// A file cannot be read.
pub fn fingerprint(root: &Path) -> Result<Vec<u8>, Error> {
    if !root.is_dir() {
        return Err(load::Error::NotADirectory(root.to_owned()).into());
    }
    let files = walk::files(root)?;
    let digests: Vec<u128> = files
        .par_iter()
        .map(|file| {
            hash_file(file).map_err(|source| load::Error::Read {
                file: file.clone(),
                source,
            })
        })
        .collect::<Result<_, load::Error>>()?;
    let mut all = Xxh3::new();
    for (file, digest) in files.iter().zip(digests) {
        let name = file.strip_prefix(root).unwrap_or(file);
        all.update(name.as_os_str().as_encoded_bytes());
        all.update(&[0]);
        all.update(&digest.to_le_bytes());
    }
    Ok(all.digest128().to_le_bytes().to_vec())
}

/// What the file system says about the catalog's files: names, lengths, times. It changes when they do, and costs no
/// reading.
pub fn stamp(root: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let mut hasher = Xxh3::new();
    for file in walk::files(root).unwrap_or_default() {
        hasher.update(file.as_os_str().as_encoded_bytes());
        if let Ok(metadata) = file.metadata() {
            for part in [
                metadata.size().cast_signed(),
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.ctime_nsec(),
            ] {
                hasher.update(&part.to_le_bytes());
            }
        }
    }
    hasher.digest()
}

fn hash_file(file: &Path) -> std::io::Result<u128> {
    let mut hasher = Xxh3::new();
    let mut file = File::open(file)?;
    let mut buffer = vec![0; 256 << 10];
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            return Ok(hasher.digest128());
        }
        hasher.update(buffer.get(..length).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &str = "---\nschema: olm.package\nname: p\ndefaultChannel: c\n---\nschema: olm.channel\nname: c\n\
        package: p\nentries:\n- name: p.v1\n---\nschema: olm.bundle\nname: p.v1\npackage: p\nimage: r.io/p:v1\n\
        properties:\n- type: olm.package\n  value:\n    packageName: p\n    version: 1.0.0\n";

    fn catalog() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let (configs, cache) = (root.path().join("configs"), root.path().join("cache"));
        std::fs::create_dir(&configs).unwrap();
        std::fs::write(configs.join("p.yaml"), CATALOG).unwrap();
        (root, configs, cache)
    }

    #[test]
    fn a_prepared_index_is_used_until_the_catalog_changes() {
        let (_root, configs, cache) = catalog();
        assert!(matches!(
            index(&configs, Some(&cache), false).unwrap().1,
            Provenance::Built
        ));
        assert!(matches!(
            index(&configs, Some(&cache), true).unwrap().1,
            Provenance::Prepared
        ));
        std::fs::write(configs.join("p.yaml"), CATALOG.replace("1.0.0", "1.0.1")).unwrap();
        assert!(matches!(
            index(&configs, Some(&cache), true),
            Err(Error::Enforced(index::OpenError::Stale))
        ));
        assert!(matches!(
            index(&configs, Some(&cache), false).unwrap().1,
            Provenance::Built
        ));
    }

    #[test]
    fn truncated_and_foreign_indexes_are_built_anew() {
        let (_root, configs, cache) = catalog();
        index(&configs, Some(&cache), false).unwrap();
        let file = cache.join(INDEX_FILE);
        let whole = std::fs::read(&file).unwrap();
        for length in [0, 5, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&file, &whole[..length]).unwrap();
            let (index, provenance) = index(&configs, Some(&cache), false).unwrap();
            assert!(matches!(provenance, Provenance::Built), "{length}");
            assert_eq!(index.packages().len(), 1);
        }
        let mut damaged = whole.clone();
        damaged[whole.len() - 40] ^= 1;
        std::fs::write(&file, damaged).unwrap();
        assert!(matches!(
            index(&configs, Some(&cache), false).unwrap().1,
            Provenance::Built
        ));
        assert_eq!(
            std::fs::read(&file).unwrap(),
            whole,
            "building twice gives the same bytes"
        );
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_no_failure() {
        let (_root, configs, _) = catalog();
        let occupied = configs.join("p.yaml");
        let (index, provenance) = index(&configs, Some(&occupied), false).unwrap();
        assert!(matches!(provenance, Provenance::Temporary(Some(_))));
        assert_eq!(index.counts(), (1, 1));
    }

    #[test]
    fn wrong_catalogs_give_no_index() {
        let (_root, configs, cache) = catalog();
        std::fs::write(
            configs.join("p.yaml"),
            CATALOG.replace("defaultChannel: c", "defaultChannel: x"),
        )
        .unwrap();
        assert!(matches!(index(&configs, Some(&cache), false), Err(Error::Invalid(_))));
        assert!(!cache.join(INDEX_FILE).exists());
    }
}
