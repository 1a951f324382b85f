//! OCI image layout directories: `oci-layout`, `index.json`, `blobs/<algorithm>/<hex>`.
//!
//! Blobs appear under their name only when they are complete and verified, and `index.json` is replaced in one step, so
//! an interrupted run leaves nothing half-written behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use olmkit::temporary::{self, Durability};
use serde::de::DeserializeOwned;

use super::digest::{Algorithm, Digest, DigestReader, DigestWriter};
use super::error::Error;
use super::limits::{DOCUMENT_BYTES, INDEX_DEPTH};
use super::read::read_limited;
use super::spec::{Descriptor, ImageConfig, Index, Manifest, Platform, is_index, is_manifest, media_type};

/// The annotation of `index.json` entries that holds an image's name.
pub const REFERENCE_NAME: &str = "org.opencontainers.image.ref.name";

/// A layout directory.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
    durability: Durability,
}

/// A manifest of a layout with the documents it points at.
#[derive(Debug, Clone)]
pub struct Image {
    /// Points at the manifest.
    pub descriptor: Descriptor,
    /// The manifest.
    pub manifest: Manifest,
    /// The configuration.
    pub config: ImageConfig,
}

impl Layout {
    /// Opens a layout, or creates an empty one where the directory is missing or empty.
    pub fn create(root: &Path) -> Result<Self, Error> {
        Self::create_with(root, Durability::Synced)
    }

    /// As [`Layout::create`], for a layout that goes away soon: nothing waits until it is on disk.
    pub fn create_temporary(root: &Path) -> Result<Self, Error> {
        Self::create_with(root, Durability::Unsynced)
    }

    fn create_with(root: &Path, durability: Durability) -> Result<Self, Error> {
        fs::create_dir_all(root.join("blobs/sha256")).map_err(Error::file("create", root))?;
        let layout = Self {
            root: root.to_owned(),
            durability,
        };
        if !root.join("index.json").exists() {
            layout.write_index(&empty_index())?;
        }
        // Written last: a directory is a layout only when it has everything.
        if !root.join("oci-layout").exists() {
            layout.replace("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        }
        Ok(Self {
            durability,
            ..Self::open(root)?
        })
    }

    /// Opens an existing layout.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let marker = root.join("oci-layout");
        if !marker.exists() {
            return Err(Error::Input(format!(
                "{} is not an OCI image layout: it has no file oci-layout",
                root.display()
            )));
        }
        let text = read_limited(&marker, DOCUMENT_BYTES)?;
        let document: serde_json::Value = serde_json::from_slice(&text).map_err(Error::document(display(&marker)))?;
        match document.get("imageLayoutVersion").and_then(serde_json::Value::as_str) {
            Some(version) if version.starts_with("1.") => Ok(Self {
                root: root.to_owned(),
                durability: Durability::Synced,
            }),
            other => Err(Error::Refused {
                what: display(&marker),
                reason: format!("layout version {other:?} is not supported, only 1.x is"),
            }),
        }
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The layout's index of named images.
    pub fn index(&self) -> Result<Index, Error> {
        let path = self.root.join("index.json");
        serde_json::from_slice(&read_limited(&path, DOCUMENT_BYTES)?).map_err(Error::document(display(&path)))
    }

    /// The path of a blob, existing or not.
    pub fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs").join(digest.algorithm_name()).join(digest.hex())
    }

    /// Returns true if a blob exists.
    pub fn has_blob(&self, digest: &Digest) -> bool {
        self.blob_path(digest).is_file()
    }

    /// Stores a document or other small blob.
    pub fn write_blob(&self, media_type: &str, bytes: &[u8]) -> Result<Descriptor, Error> {
        let mut blob = self.blob_writer()?;
        blob.write_all(bytes).map_err(Error::file("write", &self.root))?;
        let (digest, size) = self.store(blob)?;
        Ok(Descriptor::new(media_type, digest, size))
    }

    /// A blob to be written piece by piece; it gets its name in [`Self::store`].
    pub fn blob_writer(&self) -> Result<DigestWriter<temporary::File>, Error> {
        Ok(DigestWriter::new(self.temporary()?))
    }

    /// Gives a finished blob its name.
    pub fn store(&self, blob: DigestWriter<temporary::File>) -> Result<(Digest, u64), Error> {
        let (file, digest, size) = blob.finish();
        self.persist(file, &digest)?;
        Ok((digest, size))
    }

    /// An unnamed file in the layout, on the same file system as the blobs.
    pub(crate) fn temporary(&self) -> Result<temporary::File, Error> {
        let folder = self.root.join("blobs");
        temporary::File::within(&folder, temporary::PARTIAL).map_err(Error::file("create", &folder))
    }

    /// Moves a verified file to its blob name.
    pub(crate) fn persist(&self, file: temporary::File, digest: &Digest) -> Result<(), Error> {
        let path = self.blob_path(digest);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
        }
        file.persist(&path, self.durability)
            .map_err(Error::file("write", &path))?;
        Ok(())
    }

    /// Copies a verified blob from another layout: by hard link where possible, else by copy.
    pub(crate) fn adopt(&self, from: &Path, digest: &Digest) -> Result<(), Error> {
        let path = self.blob_path(digest);
        if path.is_file() {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
        }
        if fs::hard_link(from, &path).is_ok() || path.is_file() {
            return self.sync(&path);
        }
        let mut temporary = self.temporary()?;
        let mut source = olmkit::limits::open(from).map_err(Error::file("read", from))?;
        io::copy(&mut source, &mut temporary).map_err(Error::file("write", &path))?;
        self.persist(temporary, digest)
    }

    /// Writes a file that got its name without being written here to disk.
    fn sync(&self, path: &Path) -> Result<(), Error> {
        if self.durability == Durability::Synced {
            let synced = File::open(path).and_then(|file| file.sync_all());
            synced
                .and_then(|()| temporary::sync_directory(path.parent().unwrap_or(&self.root)))
                .map_err(Error::file("write", path))?;
        }
        Ok(())
    }

    /// Reads a document with its digest and size checked.
    pub fn read_document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, Error> {
        let what = format!("{} {}", descriptor.media_type, descriptor.digest);
        if descriptor.size > DOCUMENT_BYTES {
            let reason = format!("it has {} bytes, at most {DOCUMENT_BYTES} are read", descriptor.size);
            return Err(Error::Refused { what, reason });
        }
        let mut reader = self.open_blob(descriptor)?;
        let mut bytes = Vec::new();
        reader
            .read_to_end(&mut bytes)
            .map_err(Error::file("read", &self.blob_path(&descriptor.digest)))?;
        reader.verify()?;
        Ok(bytes)
    }

    /// Opens a blob for reading; [`BlobReader::verify`] after the last byte checks size and digest.
    pub fn open_blob(&self, descriptor: &Descriptor) -> Result<BlobReader, Error> {
        let path = self.blob_path(&descriptor.digest);
        let file = match olmkit::limits::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Missing {
                    what: format!("blob {}", descriptor.digest),
                    place: display(&self.root),
                    hint: ": the layout is incomplete, build or fetch the image again".to_owned(),
                });
            }
            result => result.map_err(Error::file("read", &path))?,
        };
        // One byte more than promised is enough to notice that there is more.
        let reader = BufReader::new(file).take(descriptor.size.saturating_add(1));
        let reader = DigestReader::new(reader, descriptor.digest.algorithm());
        Ok(BlobReader {
            reader,
            descriptor: descriptor.clone(),
        })
    }

    fn document<T: DeserializeOwned>(&self, descriptor: &Descriptor) -> Result<T, Error> {
        let what = format!("{} {}", descriptor.media_type, descriptor.digest);
        serde_json::from_slice(&self.read_document(descriptor)?).map_err(Error::document(what))
    }

    /// The index that a descriptor points at.
    pub fn read_index(&self, descriptor: &Descriptor) -> Result<Index, Error> {
        self.document(descriptor)
    }

    /// The manifest that a descriptor points at.
    pub fn read_manifest(&self, descriptor: &Descriptor) -> Result<Manifest, Error> {
        self.document(descriptor)
    }

    /// The manifest and configuration of the image a descriptor points at; of an index, the one for a platform.
    pub fn image(&self, descriptor: &Descriptor, platform: &Platform) -> Result<Image, Error> {
        let descriptor = self.choose(descriptor, platform, 0)?;
        let manifest = self.read_manifest(&descriptor)?;
        let config = self.document(&manifest.config)?;
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

    /// The entry of an image by name. Without a name, the only image of the layout.
    pub fn find(&self, name: Option<&str>) -> Result<Descriptor, Error> {
        let index = self.index()?;
        let named = |entry: &Descriptor| entry.annotations.get(REFERENCE_NAME).cloned();
        let found = match name {
            None => match index.manifests.as_slice() {
                [only] => Some(only),
                _ => None,
            },
            Some(name) => index.manifests.iter().find(|entry| {
                named(entry)
                    .is_some_and(|have| have == name || have.rsplit_once(':').is_some_and(|(_, tag)| tag == name))
            }),
        };
        found.cloned().ok_or_else(|| {
            let names: Vec<String> = index.manifests.iter().filter_map(named).collect();
            Error::Missing {
                what: name.map_or_else(|| "a single image".to_owned(), |name| format!("image {name}")),
                place: display(&self.root),
                hint: if names.is_empty() {
                    String::new()
                } else {
                    format!(" (it holds: {})", names.join(", "))
                },
            }
        })
    }

    /// Names an image. An entry of the same name is replaced.
    pub fn set(&self, name: &str, descriptor: &Descriptor) -> Result<(), Error> {
        self.set_all(&[(name.to_owned(), descriptor.clone())])
    }

    /// Names several images in one step. Entries of the same names are replaced; of equal names the last counts.
    pub fn set_all(&self, images: &[(String, Descriptor)]) -> Result<(), Error> {
        let images: BTreeMap<&str, &Descriptor> = images.iter().map(|(name, image)| (name.as_str(), image)).collect();
        let mut index = self.index()?;
        let name = |entry: &Descriptor| entry.annotations.get(REFERENCE_NAME).cloned().unwrap_or_default();
        index
            .manifests
            .retain(|entry| !images.contains_key(name(entry).as_str()));
        index
            .manifests
            .extend(images.into_iter().map(|(name, image)| Descriptor {
                annotations: BTreeMap::from([(REFERENCE_NAME.to_owned(), name.to_owned())]),
                ..image.clone()
            }));
        index.manifests.sort_by(|one, two| {
            one.annotations
                .get(REFERENCE_NAME)
                .cmp(&two.annotations.get(REFERENCE_NAME))
        });
        self.write_index(&index)
    }

    /// Removes a name; `false` if it does not exist.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        let mut index = self.index()?;
        let before = index.manifests.len();
        index
            .manifests
            .retain(|entry| entry.annotations.get(REFERENCE_NAME).map(String::as_str) != Some(name));
        self.write_index(&index)?;
        Ok(index.manifests.len() < before)
    }

    fn write_index(&self, index: &Index) -> Result<(), Error> {
        self.replace(
            "index.json",
            &serde_json::to_vec(index).map_err(Error::document("index.json"))?,
        )
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.root.join(name);
        let mut file =
            temporary::File::within(&self.root, temporary::PARTIAL).map_err(Error::file("create", &self.root))?;
        file.write_all(bytes).map_err(Error::file("write", &path))?;
        file.persist(&path, self.durability)
            .map_err(Error::file("write", &path))?;
        Ok(())
    }

    /// Every blob reachable from a descriptor, itself included. Blobs that are not there are listed too.
    pub fn reachable(&self, descriptor: &Descriptor) -> Result<Vec<Descriptor>, Error> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        self.collect(descriptor, 0, &mut seen, &mut found)?;
        Ok(found)
    }

    /// As [`Self::reachable`]: first the manifests and indexes, the image itself last, then the other blobs.
    pub(crate) fn documents_and_blobs(&self, image: &Descriptor) -> Result<(Vec<Descriptor>, Vec<Descriptor>), Error> {
        let all = self.reachable(image)?;
        Ok(all
            .into_iter()
            .partition(|blob| is_manifest(&blob.media_type) || is_index(&blob.media_type)))
    }

    fn collect(
        &self,
        descriptor: &Descriptor,
        depth: usize,
        seen: &mut BTreeSet<Digest>,
        found: &mut Vec<Descriptor>,
    ) -> Result<(), Error> {
        if !seen.insert(descriptor.digest.clone()) {
            return Ok(());
        }
        if is_index(&descriptor.media_type) {
            if depth >= INDEX_DEPTH {
                return Err(refused_manifest(descriptor, depth));
            }
            for entry in self.read_index(descriptor)?.manifests {
                self.collect(&entry, depth + 1, seen, found)?;
            }
        } else if is_manifest(&descriptor.media_type) {
            let manifest = self.read_manifest(descriptor)?;
            for blob in manifest.layers.into_iter().chain([manifest.config]) {
                if seen.insert(blob.digest.clone()) {
                    found.push(blob);
                }
            }
        }
        found.push(descriptor.clone());
        Ok(())
    }

    /// Deletes the blobs that no named image needs any more. As long as an image is damaged, nothing is deleted: what it
    /// needs is not known.
    pub fn prune(&self) -> Result<Pruned, Error> {
        let mut needed = BTreeSet::new();
        let mut pruned = Pruned::default();
        for entry in self.index()?.manifests {
            match self.reachable(&entry) {
                Ok(blobs) => needed.extend(blobs.into_iter().map(|blob| blob.digest)),
                Err(error) => {
                    let name = entry.annotations.get(REFERENCE_NAME).cloned();
                    let name = name.unwrap_or_else(|| entry.digest.to_string());
                    pruned.damaged.push((name, error.to_string()));
                }
            }
        }
        if !pruned.damaged.is_empty() {
            return Ok(pruned);
        }
        for algorithm in [Algorithm::Sha256, Algorithm::Sha512] {
            let sample = super::digest::sha256(b"");
            let name = if algorithm == sample.algorithm() {
                "sha256"
            } else {
                "sha512"
            };
            let folder = self.root.join("blobs").join(name);
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let digest = format!("{name}:{}", entry.file_name().to_string_lossy()).parse::<Digest>();
                if digest.is_ok_and(|digest| !needed.contains(&digest)) {
                    pruned.bytes += entry.metadata().map(|metadata| metadata.len()).unwrap_or_default();
                    fs::remove_file(entry.path()).map_err(Error::file("delete", &entry.path()))?;
                }
            }
        }
        Ok(pruned)
    }
}

/// What [`Layout::prune`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// Bytes of the blobs that were deleted.
    pub bytes: u64,
    /// Names of images that are damaged, and how.
    pub damaged: Vec<(String, String)>,
}

/// The entry of an index for a platform.
pub fn choose_platform(index: &Index, platform: &Platform, digest: &Digest) -> Result<Descriptor, Error> {
    let images = || {
        index
            .manifests
            .iter()
            .filter(|entry| is_manifest(&entry.media_type) || is_index(&entry.media_type))
    };
    let matching = |entry: &&Descriptor| entry.platform.as_ref().is_some_and(|have| platform.accepts(have));
    let only = || {
        let mut all = images().filter(|entry| entry.platform.is_none());
        all.next().filter(|_| all.next().is_none())
    };
    images().find(matching).or_else(only).cloned().ok_or_else(|| {
        let mut have: Vec<String> = images()
            .filter_map(|entry| entry.platform.as_ref())
            .map(ToString::to_string)
            .collect();
        have.sort();
        have.dedup();
        Error::Missing {
            what: format!("an image for {platform}"),
            place: format!("index {digest}"),
            hint: format!(" (it holds: {}); choose one with --platform", have.join(", ")),
        }
    })
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
    reader: DigestReader<io::Take<BufReader<File>>>,
    descriptor: Descriptor,
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

impl BlobReader {
    /// Reads what is left and compares size and digest with the descriptor.
    pub fn verify(mut self) -> Result<(), Error> {
        let what = format!("blob {}", self.descriptor.digest);
        io::copy(&mut self.reader, &mut io::sink()).map_err(|source| Error::File {
            action: "read",
            path: PathBuf::from(&what),
            source,
        })?;
        let (digest, size) = self.reader.finish();
        if size != self.descriptor.size {
            return Err(Error::Size {
                what,
                expected: self.descriptor.size,
                actual: size,
            });
        }
        if digest != self.descriptor.digest {
            return Err(Error::Mismatch {
                what,
                expected: self.descriptor.digest,
                actual: digest,
            });
        }
        Ok(())
    }
}

fn empty_index() -> Index {
    Index {
        schema_version: 2,
        media_type: Some(media_type::OCI_INDEX.to_owned()),
        manifests: Vec::new(),
        annotations: BTreeMap::new(),
    }
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
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
    fn names_are_replaced_and_unused_blobs_go() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        let one = layout.write_blob("text/plain", b"one").unwrap();
        let two = layout.write_blob("text/plain", b"two").unwrap();
        layout.set("r.io/a:v1", &one).unwrap();
        layout.set("r.io/a:v1", &two).unwrap();
        assert_eq!(layout.find(Some("r.io/a:v1")).unwrap().digest, two.digest);
        assert_eq!(layout.find(None).unwrap().digest, two.digest);
        assert_eq!(layout.prune().unwrap().bytes, 3);
        assert!(!layout.has_blob(&one.digest) && layout.has_blob(&two.digest));
        let message = layout.find(Some("r.io/b:v1")).unwrap_err().to_string();
        assert!(message.contains("it holds: r.io/a:v1"), "{message}");
    }

    #[test]
    fn an_index_that_points_at_itself_ends() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        let mut inner = layout
            .write_blob(media_type::OCI_INDEX, br#"{"schemaVersion":2,"manifests":[]}"#)
            .unwrap();
        for _ in 0..INDEX_DEPTH + 1 {
            let index = Index {
                manifests: vec![inner],
                ..empty_index()
            };
            inner = layout
                .write_blob(media_type::OCI_INDEX, &serde_json::to_vec(&index).unwrap())
                .unwrap();
        }
        assert!(matches!(
            layout.image(&inner, &Platform::host()),
            Err(Error::Refused { .. })
        ));
        assert!(matches!(layout.reachable(&inner), Err(Error::Refused { .. })));
    }
}
