//! Whether a catalog's files are still the same.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rayon::prelude::*;
use xxhash_rust::xxh3::Xxh3;

use crate::catalog::{load, walk};

/// Why there is no fingerprint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error(transparent)]
    Load(#[from] load::Error),
    /// The catalog's directory cannot be walked.
    #[error(transparent)]
    Walk(#[from] walk::Error),
}

/// A fingerprint of the catalog's content: the names and bytes of all files that are part of it. Times and modes do
/// not count, since copying changes them.
///
/// # Errors
/// A file cannot be read.
pub fn of(root: &Path) -> Result<Vec<u8>, Error> {
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
