//! OCI image layout directories: `oci-layout`, `index.json`, `blobs/<algorithm>/<hex>`.
//!
//! Blobs appear under their name only when they are complete and verified, and `index.json` is replaced in one step, so
//! an interrupted run leaves nothing half-written behind.

mod convert;
mod index;
mod reachable;
mod read;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use olmkit::temporary::Durability;
use serde_json::Value;

use super::digest::Digest;
use super::error::Error;
use super::json;
use super::limits::DOCUMENT_BYTES;
use super::read::read_limited;
use super::spec::{Descriptor, ImageConfig, Manifest};
use index::empty_index;
pub(crate) use index::position;
pub use index::{REFERENCE_NAME, choose_platform, names};
pub use reachable::Pruned;
pub(crate) use reachable::is_document;
pub use read::BlobReader;
pub(crate) use read::refused_manifest;

/// A layout directory.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
    durability: Durability,
    /// True if no other user can change the directory.
    private: bool,
    written: Arc<Mutex<WrittenBlobs>>,
    /// The archive that the layout was read from.
    archive: Option<PathBuf>,
}

/// The blobs that this process has written into a layout.
#[derive(Debug, Default)]
struct WrittenBlobs {
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

    /// Opens an existing layout. The marker `oci-layout` may be missing, because not every tool writes it.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let marker = root.join("oci-layout");
        if !is_missing_or_empty(&marker) {
            check_version(&marker)?;
        } else if !root.join("index.json").is_file() {
            return Err(Error::Input(format!(
                "{} is not an OCI image layout: it has no file index.json",
                root.display()
            )));
        }
        Ok(Self {
            root: root.to_owned(),
            durability: Durability::Synced,
            private: false,
            written: Arc::default(),
            archive: None,
        })
    }

    fn written(&self) -> MutexGuard<'_, WrittenBlobs> {
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

    /// The size of the archive from which the layout was read.
    pub(crate) fn archive_bytes(&self) -> Option<u64> {
        Some(fs::metadata(self.archive.as_ref()?).ok()?.len())
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

    /// The path of a blob, existing or not.
    pub fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs").join(digest.algorithm_name()).join(digest.hex())
    }

    /// Returns true if a blob exists.
    pub fn has_blob(&self, digest: &Digest) -> bool {
        self.blob_path(digest).is_file()
    }
}

/// Fails if a layout's marker has another version than 1.
fn check_version(marker: &Path) -> Result<(), Error> {
    let text = read_limited(marker, DOCUMENT_BYTES)?;
    let mut document: Value = serde_json::from_slice(&text).map_err(Error::document(display(marker)))?;
    json::spell(&mut document, &["imageLayoutVersion"]);
    match document.get("imageLayoutVersion").and_then(Value::as_str) {
        Some(version) if version == "1" || version.starts_with("1.") => Ok(()),
        other => Err(Error::Refused {
            what: display(marker),
            reason: format!("layout version {other:?} is not supported, only 1.x is"),
        }),
    }
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

fn display(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_read_with_or_without_a_marker() {
        let folder = tempfile::tempdir().unwrap();
        let marker = folder.path().join("oci-layout");
        drop(Layout::create(folder.path()).unwrap());
        for (text, is_read) in [
            (Some(r#"{"imageLayoutVersion":"1.1.0"}"#), true),
            (Some(r#"{"ImageLayoutVersion":"1"}"#), true),
            (Some(""), true),
            (Some(r#"{"imageLayoutVersion":"2.0.0"}"#), false),
            (Some("{}"), false),
            (None, true),
        ] {
            match text {
                Some(text) => fs::write(&marker, text).unwrap(),
                None => fs::remove_file(&marker).unwrap(),
            }
            assert_eq!(Layout::open(folder.path()).is_ok(), is_read, "{text:?}");
        }
        fs::remove_file(folder.path().join("index.json")).unwrap();
        assert!(Layout::open(folder.path()).is_err());
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
}
