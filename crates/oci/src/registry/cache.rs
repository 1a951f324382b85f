//! Pulled blobs, kept for the next time under their digest.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use olmkit::temporary::{self, Durability};

use crate::digest::{Digest, DigestReader};
use crate::error::Error;
use crate::limits::CACHE_BYTES;

/// A directory of blobs. Everything in it can be deleted at any time.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    limit: u64,
}

impl Cache {
    /// A cache in a directory with at most `limit` bytes. The least recently used blobs are removed first.
    pub fn new(folder: &Path, limit: u64) -> Self {
        Self {
            folder: folder.to_owned(),
            limit,
        }
    }

    /// The user's cache: `olmkit/blobs` in `XDG_CACHE_HOME` or `~/.cache`, at most 4 GiB. `None` without a home.
    pub fn for_user() -> Option<Self> {
        let variable = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let folder = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
        Some(Self::new(&folder.join("olmkit/blobs"), CACHE_BYTES))
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.algorithm_name()).join(digest.hex())
    }

    /// A blob's file, if it is here and still what it should be. A damaged one is deleted.
    pub(super) fn get(&self, digest: &Digest) -> Option<PathBuf> {
        let path = self.path(digest);
        let file = File::open(&path).ok()?;
        let mut reader = DigestReader::new(file, digest.algorithm());
        io::copy(&mut reader, &mut io::sink()).ok()?;
        if reader.finish().0 != *digest {
            let _ = fs::remove_file(&path);
            return None;
        }
        // The time of last use decides the order of removal.
        let _ = File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        Some(path)
    }

    /// Keeps a verified blob. It appears under its name in one step.
    pub(super) fn put(&self, from: &Path, digest: &Digest) -> Result<(), Error> {
        let path = self.path(digest);
        if path.is_file() {
            return Ok(());
        }
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
        let mut temporary =
            temporary::File::within(folder, temporary::PARTIAL).map_err(Error::file("create", folder))?;
        // A copy, not a link: what someone does to the layout must not change the cache.
        let mut source = File::open(from).map_err(Error::file("read", from))?;
        io::copy(&mut source, &mut temporary).map_err(Error::file("write", &path))?;
        // A damaged file is detected when it is used.
        temporary
            .persist(&path, Durability::Unsynced)
            .map_err(Error::file("write", &path))?;
        self.shrink();
        Ok(())
    }

    /// Deletes the blobs used longest ago until the rest fits.
    fn shrink(&self) {
        let mut blobs: Vec<(SystemTime, u64, PathBuf)> = walkdir::WalkDir::new(&self.folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((metadata.modified().ok()?, metadata.len(), entry.into_path()))
            })
            .collect();
        blobs.sort();
        let mut total: u64 = blobs.iter().map(|(_, size, _)| size).sum();
        for (_, size, path) in blobs {
            if total <= self.limit {
                break;
            }
            if fs::remove_file(&path).is_ok() {
                total -= size;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_blobs_are_not_served_and_old_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        let cache = Cache::new(&folder.path().join("cache"), 10);
        let put = |text: &str| {
            fs::write(&source, text).unwrap();
            let digest = crate::digest::sha256(text.as_bytes());
            cache.put(&source, &digest).unwrap();
            digest
        };
        let first = put("first");
        assert!(cache.get(&first).is_some());
        fs::write(cache.path(&first), "other").unwrap();
        assert!(cache.get(&first).is_none());
        assert!(!cache.path(&first).exists());
        let old = put("12345678");
        File::options()
            .append(true)
            .open(cache.path(&old))
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH)
            .unwrap();
        let young = put("abcdefgh");
        assert!(cache.get(&old).is_none() && cache.get(&young).is_some());
    }
}
