//! Blobs, and the documents among them, with size and digest checked.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;

use serde::de::DeserializeOwned;

use super::index::choose_platform;
use super::{Image, Layout};
use crate::digest::Hasher;
use crate::error::Error;
use crate::json;
use crate::limits::{DOCUMENT_BYTES, INDEX_DEPTH};
use crate::spec::{Descriptor, ImageConfig, Index, Manifest, Platform, check_unambiguous, is_index, is_manifest};

impl Layout {
    /// Compares a blob with its descriptor. Only the size counts for a blob that this process has verified.
    pub(crate) fn check(&self, descriptor: &Descriptor) -> Result<(), Error> {
        self.open_blob(descriptor)?.verify()
    }

    /// Reads a document with its digest and size checked.
    pub fn read_document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, Error> {
        let what = format!("{} {}", descriptor.media_type, descriptor.digest);
        if descriptor.size > DOCUMENT_BYTES {
            let reason = format!("it has {} bytes, at most {DOCUMENT_BYTES} are read", descriptor.size);
            return Err(Error::Refused { what, reason });
        }
        self.read_blob(descriptor)
    }

    /// Reads a blob into memory with its digest and size checked.
    pub(crate) fn read_blob(&self, descriptor: &Descriptor) -> Result<Vec<u8>, Error> {
        let mut reader = self.open_blob(descriptor)?;
        let mut bytes = Vec::new();
        reader
            .read_to_end(&mut bytes)
            .map_err(Error::file("read", &self.blob_path(&descriptor.digest)))?;
        reader.verify()?;
        Ok(bytes)
    }

    /// Compares the size of a blob's file with the descriptor, without reading the file.
    pub(crate) fn check_size(&self, descriptor: &Descriptor) -> Result<(), Error> {
        let reader = self.open_blob(descriptor)?;
        if reader.file_size != descriptor.size {
            return Err(Error::Size {
                what: format!("blob {}", descriptor.digest),
                expected: descriptor.size,
                actual: reader.file_size,
            });
        }
        Ok(())
    }

    /// Opens a blob for reading. [`BlobReader::verify`] after the last byte checks size and digest.
    pub fn open_blob(&self, descriptor: &Descriptor) -> Result<BlobReader, Error> {
        let path = self.blob_path(&descriptor.digest);
        let file = match olmkit::limits::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(actual) = self.written().damaged.get(&descriptor.digest) {
                    return Err(Error::Mismatch {
                        what: format!("blob {} of {}", descriptor.digest, self.place()),
                        expected: descriptor.digest.clone(),
                        actual: actual.clone(),
                    });
                }
                return Err(Error::Missing {
                    what: format!("blob {}", descriptor.digest),
                    place: self.place(),
                    hint: ": the layout is incomplete, build or fetch the image again".to_owned(),
                });
            }
            result => result.map_err(Error::file("read", &path))?,
        };
        let file_size = file.metadata().map_err(Error::file("read", &path))?.len();
        let is_verified = self.written().verified.contains(&descriptor.digest);
        Ok(BlobReader {
            // One byte more than promised is enough to notice that there is more.
            reader: BufReader::new(file).take(descriptor.size.saturating_add(1)),
            hasher: (!is_verified).then(|| Hasher::new(descriptor.digest.algorithm())),
            size: 0,
            file_size,
            descriptor: descriptor.clone(),
        })
    }

    fn document<T: DeserializeOwned>(&self, descriptor: &Descriptor) -> Result<T, Error> {
        let what = format!("{} {}", descriptor.media_type, descriptor.digest);
        let bytes = self.read_document(descriptor)?;
        if let Err(reason) = check_unambiguous(&bytes, &descriptor.media_type) {
            return Err(Error::Refused { what, reason });
        }
        json::parse(&bytes).map_err(Error::document(what))
    }

    /// The index that a descriptor points at.
    pub fn read_index(&self, descriptor: &Descriptor) -> Result<Index, Error> {
        let mut index: Index = self.document(descriptor)?;
        self.add_media_types(&mut index.manifests);
        Ok(index)
    }

    /// The manifest that a descriptor points at.
    pub fn read_manifest(&self, descriptor: &Descriptor) -> Result<Manifest, Error> {
        self.document(descriptor)
    }

    /// The manifest and configuration of the image a descriptor points at; of an index, the one for a platform.
    pub fn image(&self, descriptor: &Descriptor, platform: &Platform) -> Result<Image, Error> {
        let descriptor = self.choose(descriptor, platform, 0)?;
        let manifest = self.read_manifest(&descriptor)?;
        let config = ImageConfig::parse(&self.read_document(&manifest.config)?).map_err(Error::document(format!(
            "{} {}",
            manifest.config.media_type, manifest.config.digest
        )))?;
        Ok(Image {
            descriptor,
            manifest,
            config,
        })
    }

    fn choose(&self, descriptor: &Descriptor, platform: &Platform, depth: usize) -> Result<Descriptor, Error> {
        if is_manifest(&descriptor.media_type) {
            return Ok(descriptor.clone());
        }
        if !is_index(&descriptor.media_type) || depth >= INDEX_DEPTH {
            return Err(refused_manifest(descriptor, depth));
        }
        let chosen = choose_platform(&self.read_index(descriptor)?, platform, &descriptor.digest)?;
        self.choose(&chosen, platform, depth + 1)
    }
}

pub(crate) fn refused_manifest(descriptor: &Descriptor, depth: usize) -> Error {
    let reason = if depth >= INDEX_DEPTH {
        format!("indexes are nested more than {INDEX_DEPTH} deep")
    } else if descriptor
        .media_type
        .starts_with("application/vnd.docker.distribution.manifest.v1")
    {
        "Docker's manifest schema 1 was retired in 2016; push the image again with a current tool".to_owned()
    } else {
        format!("media type {:?} is not an image", descriptor.media_type)
    };
    Error::Refused {
        what: format!("manifest {}", descriptor.digest),
        reason,
    }
}

/// Reads a blob and checks it against its descriptor.
pub struct BlobReader {
    reader: io::Take<BufReader<File>>,
    /// `None` for a blob that this process has verified.
    hasher: Option<Hasher>,
    /// Bytes that were read.
    size: u64,
    file_size: u64,
    descriptor: Descriptor,
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(buffer.get(..count).unwrap_or_default());
        }
        self.size += count as u64;
        Ok(count)
    }
}

impl BlobReader {
    /// Reads what is left and compares size and digest with the descriptor.
    pub fn verify(mut self) -> Result<(), Error> {
        let what = format!("blob {}", self.descriptor.digest);
        let size = if self.hasher.is_some() {
            io::copy(&mut self, &mut io::sink()).map_err(|source| Error::File {
                action: "read",
                path: PathBuf::from(&what),
                source,
            })?;
            self.size
        } else {
            self.file_size
        };
        if size != self.descriptor.size {
            return Err(Error::Size {
                what,
                expected: self.descriptor.size,
                actual: size,
            });
        }
        match self.hasher.map(Hasher::finish) {
            Some(digest) if digest != self.descriptor.digest => Err(Error::Mismatch {
                what,
                expected: self.descriptor.digest,
                actual: digest,
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_corrupt_blob_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        let descriptor = layout.write_blob("text/plain", b"memcached").unwrap();
        assert_eq!(layout.read_document(&descriptor).unwrap(), b"memcached");
        fs::write(layout.blob_path(&descriptor.digest), b"memcachee").unwrap();
        assert!(matches!(layout.read_document(&descriptor), Err(Error::Mismatch { .. })));
        fs::write(layout.blob_path(&descriptor.digest), b"memcached and more").unwrap();
        assert!(matches!(layout.read_document(&descriptor), Err(Error::Size { .. })));
    }

    #[test]
    fn only_blobs_verified_by_this_process_are_not_hashed_again() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let (own, shared) = (place("own"), place("shared"));
        for folder in [&own, &shared] {
            fs::create_dir(folder).unwrap();
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        }
        // Another user may have written it.
        fs::write(shared.join("file"), "").unwrap();
        let own = Layout::create_temporary(&own).unwrap();
        let synced = Layout::create(&place("synced")).unwrap();
        let shared = Layout::create_temporary(&shared).unwrap();
        let adopted = Layout::create_temporary(&place("adopted")).unwrap();
        let blob = own.write_blob("text/plain", b"memcached").unwrap();
        for other in [&synced, &shared] {
            other.write_blob("text/plain", b"memcached").unwrap();
        }
        adopted.adopt(&synced.blob_path(&blob.digest), &blob.digest).unwrap();
        let reopened = Layout::open(own.root()).unwrap();
        let all = [&own, &reopened, &synced, &shared, &adopted];
        for layout in all {
            layout.check(&blob).unwrap();
        }
        for layout in all {
            fs::write(layout.blob_path(&blob.digest), b"memcachee").unwrap();
        }
        let accepted = all.map(|layout| layout.check(&blob).is_ok());
        assert_eq!(accepted, [true, false, false, false, false]);
        // The size is always compared.
        let longer = Descriptor {
            size: blob.size + 1,
            ..blob.clone()
        };
        assert!(matches!(own.check(&longer), Err(Error::Size { .. })));
        fs::write(own.blob_path(&blob.digest), b"memcached and more").unwrap();
        assert!(matches!(own.check(&blob), Err(Error::Size { .. })));
    }
}
