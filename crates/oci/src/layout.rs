//! OCI image layout directories: `oci-layout`, `index.json`, `blobs/<algorithm>/<hex>`.
//!
//! Blobs appear under their name only when they are complete and verified, and `index.json` is replaced in one step, so
//! an interrupted run leaves nothing half-written behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use olmkit::temporary::{self, Durability};
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use super::digest::{Digest, DigestWriter, Hasher};
use super::error::Error;
use super::json;
use super::limits::{DOCUMENT_BYTES, INDEX_DEPTH};
use super::read::read_limited;
use super::spec::{
    Descriptor, ImageConfig, Index, Manifest, Platform, check_unambiguous, is_index, is_manifest, media_type,
    media_type_of,
};

/// The annotation of `index.json` entries that contains an image's name.
pub const REFERENCE_NAME: &str = "org.opencontainers.image.ref.name";
/// The annotation with the full name in archives of Docker 25 and later and of containerd. [`REFERENCE_NAME`] is the tag there.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// The names of an `index.json` entry, the fullest first.
pub fn names(entry: &Descriptor) -> impl Iterator<Item = &str> {
    [CONTAINERD_NAME, REFERENCE_NAME]
        .into_iter()
        .filter_map(|key| entry.annotations.get(key).map(String::as_str))
}

/// `index.json` with the bytes of its entries. A change does not rewrite the other entries, even those of unknown form.
#[derive(serde::Serialize, serde::Deserialize)]
struct RawIndex {
    #[serde(default)]
    manifests: Option<Vec<Box<RawValue>>>,
    /// The other fields. They are few and simple, so their values are kept, not their bytes.
    #[serde(flatten)]
    other: serde_json::Map<String, serde_json::Value>,
}

impl RawIndex {
    fn entries(&mut self) -> &mut Vec<Box<RawValue>> {
        self.manifests.get_or_insert_default()
    }
}

/// An entry, if it is a descriptor.
fn parse_entry(raw: &RawValue) -> Option<Descriptor> {
    serde_json::from_str(raw.get()).ok()
}

fn entry_name(raw: &RawValue) -> Option<String> {
    parse_entry(raw)?.annotations.get(REFERENCE_NAME).cloned()
}

/// A layout directory.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
    durability: Durability,
    /// True if no other user can change the directory.
    private: bool,
    written: Arc<Mutex<Written>>,
    /// The archive that the layout was read from.
    archive: Option<PathBuf>,
}

/// The blobs that this process has written into a layout.
#[derive(Debug, Default)]
struct Written {
    /// Blobs in a private layout whose bytes were compared with their digest on the way there. They are not hashed again.
    verified: BTreeSet<Digest>,
    /// Blobs that were left out because their bytes have another digest, with that digest.
    damaged: BTreeMap<Digest, Digest>,
    /// Files that must be written to disk before `index.json` names them.
    unsynced: BTreeSet<PathBuf>,
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

    /// As [`Layout::create`], for a layout that is deleted soon: writes are not synced to disk.
    pub fn create_temporary(root: &Path) -> Result<Self, Error> {
        Self::create_with(root, Durability::Unsynced)
    }

    fn create_with(root: &Path, durability: Durability) -> Result<Self, Error> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        if durability == Durability::Unsynced {
            builder.mode(0o700);
        }
        builder.create(root).map_err(Error::file("create", root))?;
        let layout = Self {
            root: root.to_owned(),
            durability,
            private: durability == Durability::Unsynced && make_private(root),
            written: Arc::default(),
            archive: None,
        };
        layout.create_folder(&root.join("blobs/sha256"))?;
        if is_missing_or_empty(&root.join("index.json")) {
            let index = serde_json::to_vec(&empty_index()).map_err(Error::document("index.json"))?;
            layout.replace("index.json", &index, Durability::Unsynced)?;
        }
        // Written last: a directory is a layout only when it has everything.
        if is_missing_or_empty(&root.join("oci-layout")) {
            let marker = br#"{"imageLayoutVersion":"1.0.0"}"#;
            layout.replace("oci-layout", marker, Durability::Unsynced)?;
            layout.written().unsynced.insert(root.join("oci-layout"));
        }
        let Self { private, written, .. } = layout;
        Ok(Self {
            durability,
            private,
            written,
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
                private: false,
                written: Arc::default(),
                archive: None,
            }),
            other => Err(Error::Refused {
                what: display(&marker),
                reason: format!("layout version {other:?} is not supported, only 1.x is"),
            }),
        }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        // The sets are never half changed.
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The layout with an archive's name, which messages contain instead of the directory's.
    pub(crate) fn with_archive(self, archive: &Path) -> Self {
        Self {
            archive: Some(archive.to_owned()),
            ..self
        }
    }

    /// Notes that a blob was left out because its bytes have another digest. This matters only if an image needs it.
    pub(crate) fn leave_out(&self, digest: Digest, actual: Digest) {
        self.written().damaged.insert(digest, actual);
    }

    /// The name in messages.
    fn place(&self) -> String {
        display(self.archive.as_ref().unwrap_or(&self.root))
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The layout's index of named images. Entries that are not descriptors are omitted.
    pub fn index(&self) -> Result<Index, Error> {
        let mut raw = self.raw_index()?;
        let mut manifests: Vec<Descriptor> = raw.entries().iter().filter_map(|entry| parse_entry(entry)).collect();
        manifests.iter_mut().for_each(|entry| self.add_media_type(entry));
        Ok(Index {
            manifests,
            ..empty_index()
        })
    }

    fn raw_index(&self) -> Result<RawIndex, Error> {
        let path = self.root.join("index.json");
        let bytes = read_limited(&path, DOCUMENT_BYTES)?;
        let what = match &self.archive {
            Some(archive) => format!("index.json of {}", archive.display()),
            None => display(&path),
        };
        if let Err(reason) = check_unambiguous(&bytes, media_type::OCI_INDEX) {
            return Err(Error::Refused { what, reason });
        }
        serde_json::from_slice(&bytes).map_err(Error::document(what))
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

    /// Stores a document under the digest that names it, whose algorithm is not always SHA-256.
    pub(crate) fn write_document(&self, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), Error> {
        let mut file = self.temporary()?;
        file.write_all(bytes).map_err(Error::file("write", &self.root))?;
        self.persist(file, &descriptor.digest)
    }

    /// A blob to be written piece by piece. It gets its name in [`Self::store`].
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

    /// Moves a file whose bytes have this digest to its blob name.
    pub(crate) fn persist(&self, file: temporary::File, digest: &Digest) -> Result<(), Error> {
        self.name(file, digest)?;
        if self.private {
            self.written().verified.insert(digest.clone());
        }
        Ok(())
    }

    fn name(&self, file: temporary::File, digest: &Digest) -> Result<(), Error> {
        let path = self.blob_path(digest);
        self.create_folder(path.parent().unwrap_or(&self.root))?;
        file.persist(&path, Durability::Unsynced)
            .map_err(Error::file("write", &path))?;
        self.written().unsynced.insert(path);
        Ok(())
    }

    /// Takes a blob of another layout, whose bytes the caller has checked or will check: by hard link where possible, else by copy.
    pub(crate) fn adopt(&self, from: &Path, digest: &Digest) -> Result<(), Error> {
        let path = self.blob_path(digest);
        if path.is_file() {
            return Ok(());
        }
        self.create_folder(path.parent().unwrap_or(&self.root))?;
        if fs::hard_link(from, &path).is_ok() || path.is_file() {
            self.written().unsynced.insert(path);
            return Ok(());
        }
        let mut temporary = self.temporary()?;
        let mut source = olmkit::limits::open(from).map_err(Error::file("read", from))?;
        io::copy(&mut source, &mut temporary).map_err(Error::file("write", &path))?;
        self.name(temporary, digest)
    }

    fn create_folder(&self, folder: &Path) -> Result<(), Error> {
        if folder.is_dir() {
            return Ok(());
        }
        fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
        // Its name must be written to disk too.
        self.written().unsynced.insert(folder.to_owned());
        Ok(())
    }

    /// Writes everything to disk that this process has added, each file and each directory once.
    fn sync(&self) -> Result<(), Error> {
        let unsynced = std::mem::take(&mut self.written().unsynced);
        if self.durability == Durability::Unsynced {
            return Ok(());
        }
        let mut folders = BTreeSet::new();
        for path in &unsynced {
            folders.extend(path.parent());
            // A file that is no longer there needs nothing.
            if path.is_file() {
                let synced = File::open(path).and_then(|file| file.sync_all());
                synced.map_err(Error::file("write", path))?;
            }
        }
        // The index is written into the root after this, which writes the names there.
        folders.remove(self.root.as_path());
        for folder in folders {
            temporary::sync_directory(folder).map_err(Error::file("write", folder))?;
        }
        Ok(())
    }

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
        index.manifests.iter_mut().for_each(|entry| self.add_media_type(entry));
        Ok(index)
    }

    /// Adds the media type that an index omits in an entry. The entry's document shows it.
    fn add_media_type(&self, entry: &mut Descriptor) {
        if entry.media_type.is_empty()
            && let Ok(bytes) = self.read_document(entry)
        {
            entry.media_type = media_type_of(&bytes, None).unwrap_or_default();
        }
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

    /// The entry of an image by name: its full name, its tag, or a spelling that means the same, as `busybox` and
    /// `docker.io/library/busybox:latest` do. `@0` is the first entry. Without a name, the only image of the layout. It may have
    /// several names.
    pub fn find(&self, name: Option<&str>) -> Result<Descriptor, Error> {
        let index = self.index()?;
        let find = |fits: &dyn Fn(&str) -> bool| index.manifests.iter().find(|entry| names(entry).any(fits));
        let found = match name {
            None => match index.manifests.split_first() {
                Some((first, others)) if others.iter().all(|other| other.digest == first.digest) => Some(first),
                _ => None,
            },
            Some(name) => find(&|have| have == name)
                .or_else(|| find(&|have| have.rsplit_once(':').is_some_and(|(_, tag)| tag == name)))
                .or_else(|| {
                    let wanted = normalized(name)?;
                    find(&|have| normalized(have).as_ref() == Some(&wanted))
                })
                .or_else(|| index.manifests.get(position(name)?)),
        };
        found.cloned().ok_or_else(|| {
            let names: Vec<&str> = index.manifests.iter().filter_map(|entry| names(entry).next()).collect();
            Error::Missing {
                what: name.map_or_else(|| "a single image".to_owned(), |name| format!("image {name}")),
                place: self.place(),
                hint: if names.is_empty() {
                    String::new()
                } else {
                    format!(" (it contains: {})", names.join(", "))
                },
            }
        })
    }

    /// Names an image. An entry of the same name is replaced.
    pub fn set(&self, name: &str, descriptor: &Descriptor) -> Result<(), Error> {
        self.set_all(&[(Some(name.to_owned()), descriptor.clone())])
    }

    /// Adds several images in one step, with a name or without. Entries of the same names are replaced; of equal names the
    /// last counts.
    pub fn set_all(&self, images: &[(Option<String>, Descriptor)]) -> Result<(), Error> {
        let mut index = self.raw_index()?;
        let entries = std::mem::take(index.entries()).into_iter();
        let mut entries: Vec<(Option<String>, Box<RawValue>)> = entries.map(|old| (entry_name(&old), old)).collect();
        for (name, image) in images {
            let key = |name: &String| (REFERENCE_NAME.to_owned(), name.clone());
            let entry = Descriptor {
                annotations: name.iter().map(key).collect(),
                ..image.clone()
            };
            let entry = to_raw_value(&entry).map_err(Error::document("index.json"))?;
            let is_replaced = |old: &Option<String>| name.is_some() && old == name;
            let place = entries.iter().position(|(old, _)| is_replaced(old));
            entries.retain(|(old, _)| !is_replaced(old));
            entries.insert(place.unwrap_or(entries.len()), (name.clone(), entry));
        }
        *index.entries() = entries.into_iter().map(|(_, raw)| raw).collect();
        self.write_index(&index)
    }

    /// Removes a name. `false` if it does not exist.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        let mut index = self.raw_index()?;
        let entries = index.entries();
        let before = entries.len();
        entries.retain(|entry| entry_name(entry).as_deref() != Some(name));
        let removed = entries.len() < before;
        self.write_index(&index)?;
        Ok(removed)
    }

    fn write_index(&self, index: &impl serde::Serialize) -> Result<(), Error> {
        let index = serde_json::to_vec(index).map_err(Error::document("index.json"))?;
        self.sync()?;
        self.replace("index.json", &index, self.durability)
    }

    fn replace(&self, name: &str, bytes: &[u8], durability: Durability) -> Result<(), Error> {
        let path = self.root.join(name);
        let mut file =
            temporary::File::within(&self.root, temporary::PARTIAL).map_err(Error::file("create", &self.root))?;
        file.write_all(bytes).map_err(Error::file("write", &path))?;
        file.persist(&path, durability).map_err(Error::file("write", &path))?;
        Ok(())
    }

    /// Every blob reachable from a descriptor, itself included. Blobs that are not there are listed too, nondistributable
    /// layers with an address elsewhere are not.
    pub fn reachable(&self, descriptor: &Descriptor) -> Result<Vec<Descriptor>, Error> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        self.collect(descriptor, 0, &mut seen, &mut found)?;
        Ok(found)
    }

    /// As [`Self::reachable`]: first the manifests and indexes, the image itself last, then the other blobs.
    pub(crate) fn documents_and_blobs(&self, image: &Descriptor) -> Result<(Vec<Descriptor>, Vec<Descriptor>), Error> {
        let all = self.reachable(image)?;
        Ok(all.into_iter().partition(|blob| is_document(&blob.media_type)))
    }

    /// The nondistributable layers of an image or index that have an address elsewhere.
    pub(crate) fn foreign_layers(&self, image: &Descriptor) -> Result<Vec<Descriptor>, Error> {
        let mut foreign: BTreeMap<Digest, Descriptor> = BTreeMap::new();
        for document in self.documents_and_blobs(image)?.0 {
            if is_manifest(&document.media_type) {
                let layers = self.read_manifest(&document)?.layers;
                let layers = layers.into_iter().filter(|layer| layer.foreign_url().is_some());
                foreign.extend(layers.map(|layer| (layer.digest.clone(), layer)));
            }
        }
        Ok(foreign.into_values().collect())
    }

    /// Fails if a reference has a digest that is not the image's.
    pub(crate) fn check_digest(&self, image: &Descriptor, reference: &super::Reference) -> Result<(), Error> {
        let Some(wanted) = reference.digest() else {
            return Ok(());
        };
        let mut hasher = Hasher::new(wanted.algorithm());
        hasher.update(&self.read_document(image)?);
        let actual = hasher.finish();
        if *wanted == actual {
            return Ok(());
        }
        Err(Error::Input(format!(
            "cannot write the image to {reference}: its digest is {actual}; omit the digest, or name the image that has it"
        )))
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
            let layers = manifest
                .layers
                .into_iter()
                .filter(|layer| layer.foreign_url().is_none());
            for blob in layers.chain([manifest.config]) {
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
        for raw in self.raw_index()?.entries() {
            let Some(entry) = parse_entry(raw) else {
                let name = "an entry of index.json".to_owned();
                pruned.damaged.push((name, "it is not a descriptor".to_owned()));
                continue;
            };
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
        for name in ["sha256", "sha512"] {
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

/// The result of [`Layout::prune`].
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
    let images = || index.manifests.iter().filter(|entry| may_be_image(&entry.media_type));
    let preference = |entry: &&Descriptor| entry.platform.as_ref().and_then(|have| platform.preference(have));
    let ranked = images().filter_map(|entry| Some((preference(&entry)?, entry)));
    // Of equals, `min_by_key` takes the first.
    let matching = ranked.min_by_key(|(rank, _)| *rank).map(|(_, entry)| entry);
    // As for skopeo and crane, an entry without a platform may be for any.
    let any = || images().find(|entry| entry.platform.is_none());
    matching.or_else(any).cloned().ok_or_else(|| {
        let mut have: Vec<String> = images()
            .filter_map(|entry| entry.platform.as_ref())
            .map(ToString::to_string)
            .collect();
        have.sort();
        have.dedup();
        Error::Missing {
            what: format!("an image for {platform}"),
            place: format!("index {digest}"),
            hint: format!(" (it contains: {}); choose one with --platform", have.join(", ")),
        }
    })
}

/// Returns true for the media type of an image or index, and for none: other tools accept such entries too.
fn may_be_image(media_type: &str) -> bool {
    media_type.is_empty() || is_manifest(media_type) || is_index(media_type)
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

/// Returns true if registries store content of a media type as a manifest: images, indexes, and manifests of other kinds
/// that an index may name.
pub(crate) fn is_document(media_type: &str) -> bool {
    is_manifest(media_type)
        || is_index(media_type)
        || media_type.contains(".manifest.")
        || media_type.contains(".index.")
}

/// The number in `@NUMBER`, which selects an image by its position.
pub(crate) fn position(name: &str) -> Option<usize> {
    name.strip_prefix('@')?.parse().ok()
}

/// The full name that engines give to an image name.
fn normalized(name: &str) -> Option<super::Reference> {
    let reference = super::Reference::parse_normalized(name).ok()?;
    Some(reference.with_default_tag())
}

/// Takes a directory away from all other users. Returns false if it is not this user's, or had content before.
fn make_private(folder: &Path) -> bool {
    let is_private = || {
        let is_own = |metadata: &fs::Metadata| metadata.uid() == rustix::process::geteuid().as_raw();
        fs::metadata(folder).is_ok_and(|metadata| metadata.mode() & 0o077 == 0 && is_own(&metadata))
    };
    let is_empty = || fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    is_private() || fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).is_ok() && is_private() && is_empty()
}

/// A file that is empty was not written to disk before the machine failed.
fn is_missing_or_empty(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |metadata| metadata.len() == 0)
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

    #[test]
    fn files_that_a_crash_left_empty_are_written_again() {
        let folder = tempfile::tempdir().unwrap();
        drop(Layout::create(folder.path()).unwrap());
        for name in ["index.json", "oci-layout"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(Layout::create(folder.path()).unwrap().index().unwrap().manifests, []);
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
        assert!(message.contains("it contains: r.io/a:v1"), "{message}");
    }

    #[test]
    fn naming_an_image_leaves_the_other_entries_alone() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        let digest = crate::digest::sha256(b"");
        let known = format!(
            r#"{{"size": 1, "digest":"{digest}", "mediaType":"m", "urls":["u"], "data":"eA==", "annotations": {{"a":null, "{REFERENCE_NAME}":"old"}},
            "platform":{{"os":"windows","architecture":"amd64","os.version":"10","os.features":["w"],"x":1}}, "y":1.50}}"#
        );
        let entries = [
            known.as_str(),
            r#"{"mediaType":"x","digest":"md5:0","annotations":null}"#,
            "7",
        ];
        let text = format!(
            r#"{{"schemaVersion":2,"z":[null],"manifests":[{}]}}"#,
            entries.join(",")
        );
        fs::write(folder.path().join("index.json"), text).unwrap();
        let image = layout.write_blob("text/plain", b"one").unwrap();
        layout.set("new", &image).unwrap();
        let written = fs::read_to_string(folder.path().join("index.json")).unwrap();
        for entry in entries {
            assert!(written.contains(entry), "{written}");
        }
        assert!(written.contains(r#""z":[null]"#), "{written}");
        let names_of = |layout: &Layout| -> Vec<String> {
            let index = layout.index().unwrap();
            index.manifests.iter().flat_map(names).map(str::to_owned).collect()
        };
        assert_eq!(names_of(&layout), ["old", "new"]);
        // The blobs of an unknown entry are unknown, so none is deleted.
        assert!(!layout.prune().unwrap().damaged.is_empty());
        layout.set("old", &image).unwrap();
        assert_eq!(names_of(&layout), ["old", "new"]);
        assert!(layout.remove("new").unwrap() && !layout.remove("new").unwrap());
        assert_eq!(layout.find(None).unwrap().digest, image.digest);
    }

    #[test]
    fn names_are_found_as_engines_spell_them() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        let one = layout.write_blob("text/plain", b"one").unwrap();
        let two = layout.write_blob("text/plain", b"two").unwrap();
        let named = ["busybox:latest", "busybox:1"].map(|name| (Some(name.to_owned()), one.clone()));
        layout.set_all(&named).unwrap();
        // Two names of one image are one image.
        assert_eq!(layout.find(None).unwrap().digest, one.digest);
        layout.set("quay.io/a/b:v1", &two).unwrap();
        for name in ["busybox:latest", "busybox", "docker.io/library/busybox", "1"] {
            assert_eq!(layout.find(Some(name)).unwrap().digest, one.digest, "{name}");
        }
        assert!(layout.find(None).is_err() && layout.find(Some("quay.io/a/b")).is_err());
        assert_eq!(layout.find(Some("@2")).unwrap().digest, two.digest);
        assert!(layout.find(Some("@3")).is_err() && layout.find(Some("@-1")).is_err());
    }

    #[test]
    fn an_entry_without_a_platform_comes_last() {
        let digest = crate::digest::sha256(b"");
        let entry = |size, platform: Option<&str>| Descriptor {
            platform: platform.map(|platform| platform.parse().unwrap()),
            ..Descriptor::new(media_type::OCI_MANIFEST, digest.clone(), size)
        };
        let index = Index {
            manifests: vec![
                entry(0, Some("linux/arm64")),
                entry(1, None),
                entry(2, None),
                entry(3, Some("linux/s390x")),
            ],
            ..empty_index()
        };
        for (platform, expected) in [("linux/arm64", 0), ("linux/amd64", 1), ("linux/s390x", 3)] {
            let chosen = choose_platform(&index, &platform.parse().unwrap(), &digest).unwrap();
            assert_eq!(chosen.size, expected, "{platform}");
        }
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
