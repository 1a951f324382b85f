//! The blobs that an image consists of.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::index::{REFERENCE_NAME, parse_entry};
use super::{Layout, refused_manifest};
use crate::Reference;
use crate::digest::{Digest, Hasher};
use crate::error::Error;
use crate::limits::INDEX_DEPTH;
use crate::spec::{Descriptor, is_index, is_manifest};

impl Layout {
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
    pub(crate) fn check_digest(&self, image: &Descriptor, reference: &Reference) -> Result<(), Error> {
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
            let mut entries = [entry];
            self.add_media_types(&mut entries);
            let [entry] = entries;
            if entry.media_type.is_empty() {
                let problem = format!("the kind of {} is unknown", entry.digest);
                pruned.damaged.push((entry.digest.to_string(), problem));
                continue;
            }
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

/// Returns true if registries store content of a media type as a manifest: images, indexes, and manifests of other kinds
/// that an index may name.
pub(crate) fn is_document(media_type: &str) -> bool {
    is_manifest(media_type)
        || is_index(media_type)
        || media_type.contains(".manifest.")
        || media_type.contains(".index.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::index::empty_index;
    use crate::spec::{Index, Platform, media_type};

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
    fn blobs_of_an_entry_without_a_media_type_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        let config = layout.write_blob(media_type::OCI_CONFIG, b"{}").unwrap();
        let manifest = serde_json::json!({"schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST, "config": config, "layers": []});
        let manifest = layout.write_blob("", manifest.to_string().as_bytes()).unwrap();
        let unused = layout.write_blob("text/plain", b"unused").unwrap();
        layout.set("a:v1", &manifest).unwrap();
        assert_eq!(layout.prune().unwrap().bytes, unused.size);
        assert!(layout.has_blob(&config.digest) && layout.has_blob(&manifest.digest));
        // A document of an unknown kind may need any blob.
        let unknown = layout.write_blob("", b"unknown").unwrap();
        layout.set("b:v1", &unknown).unwrap();
        let other = layout.write_blob("text/plain", b"other").unwrap();
        assert_eq!(layout.prune().unwrap().damaged.len(), 1);
        assert!(layout.has_blob(&other.digest));
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
