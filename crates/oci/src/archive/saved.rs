//! Reads the format of `docker save`, also as other tools write it.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::path::Path;

use super::docker::{Saved, check_layer_count, plain_digest};
use super::links::{Links, clean};
use super::{document, for_each, unpacking_limits};
use crate::Reference;
use crate::compression::Compression;
use crate::digest::{Algorithm, Digest};
use crate::error::Error;
use crate::layout::Layout;
use crate::limits;
use crate::spec::{Descriptor, ImageConfig, Manifest, Platform, media_type};
use crate::tarball::{Member, MemberKind};
use crate::unpack::Budget;

/// The images of an archive of `docker save`.
pub(crate) struct DockerImages {
    /// Contains the images that are complete.
    pub layout: Layout,
    /// The images in the archive's order. `None` for one that is broken.
    pub images: Vec<Option<Descriptor>>,
    /// The problem of the first broken image. It matters only if the image is needed.
    pub broken: Option<Error>,
}

/// Reads an archive of `docker save` into a layout. Layers are not changed. Most are uncompressed.
pub fn read_docker(path: &Path, folder: &Path) -> Result<Layout, Error> {
    let read = read_docker_images(path, folder)?;
    read.broken.map_or(Ok(read.layout), Err)
}

/// As [`read_docker`]. Broken images are not an error.
pub(crate) fn read_docker_images(path: &Path, folder: &Path) -> Result<DockerImages, Error> {
    let layout = Layout::create_temporary(folder)?.with_archive(path);
    let mut files = Files::default();
    let mut list: Option<Vec<u8>> = None;
    for_each(path, |name, member, content| {
        if name == "manifest.json" && member.kind == MemberKind::File {
            list = Some(document(content, path)?);
            return Ok(());
        }
        files.add(name, member, content, &layout, path)
    })?;
    let list = match (list, files.get("manifest.json")) {
        (Some(list), _) => list,
        (None, Some((digest, size, _))) => {
            layout.read_document(&Descriptor::new("manifest.json", digest.clone(), *size))?
        }
        (None, None) => return Err(missing("manifest.json", path)),
    };
    let saved = Saved::parse(&list).map_err(Error::document(format!("manifest.json of {}", path.display())))?;
    let names = saved.iter().map(|image| image.repo_tags.as_ref().map_or(1, Vec::len));
    limited(path, "names", names.sum(), limits::NAMES)?;
    let (mut named, mut images, mut broken) = (Vec::new(), Vec::new(), None);
    let mut known = Layers::new(layout.archive_bytes().unwrap_or_default());
    for image in saved {
        let descriptor = match read_saved(&image, &files, &mut known, &layout, path) {
            Ok(descriptor) => descriptor,
            Err(error) => {
                broken.get_or_insert(error);
                images.push(None);
                continue;
            }
        };
        let names = image.repo_tags.unwrap_or_default();
        let mut names: Vec<String> = names.into_iter().filter(|name| is_name(name)).collect();
        names.dedup();
        if names.is_empty() {
            named.push((None, descriptor.clone()));
        }
        named.extend(names.into_iter().map(|name| (Some(name), descriptor.clone())));
        images.push(Some(descriptor));
    }
    layout.set_all(&named)?;
    Ok(DockerImages { layout, images, broken })
}

/// Writes the manifest of a saved image, whose files were read.
fn read_saved(
    image: &Saved,
    files: &Files,
    known: &mut Layers,
    layout: &Layout,
    path: &Path,
) -> Result<Descriptor, Error> {
    let names = image.layers.as_deref().unwrap_or_default();
    limited(path, "layers in one image", names.len(), limits::LAYERS)?;
    let file = |name: &str| files.get(name).ok_or_else(|| missing(name, path));
    let (digest, size, _) = file(&image.config)?;
    let config = Descriptor::new(media_type::DOCKER_CONFIG, digest.clone(), *size);
    let what = || format!("{} of {}", image.config, path.display());
    let document = ImageConfig::parse(&layout.read_document(&config)?).map_err(Error::document(what()))?;
    check_layer_count(what, names.len(), &document)?;
    let mut layers = Vec::new();
    for (name, diff_id) in names.iter().zip(&document.rootfs.diff_ids) {
        layers.push(known.get(layout, file(name)?, diff_id)?);
    }
    let manifest = Manifest {
        schema_version: 2,
        media_type: Some(media_type::DOCKER_MANIFEST.to_owned()),
        artifact_type: None,
        config,
        layers,
        subject: None,
        annotations: BTreeMap::new(),
    };
    let bytes = serde_json::to_vec(&manifest).map_err(Error::document("manifest"))?;
    let mut descriptor = layout.write_blob(media_type::DOCKER_MANIFEST, &bytes)?;
    let variant = document.variant.filter(|variant| !variant.is_empty());
    descriptor.platform = Some(Platform::new(&document.os, &document.architecture, variant));
    Ok(descriptor)
}

/// The files and links of an archive of `docker save`.
#[derive(Default)]
struct Files {
    /// Digest, size and compression by name.
    blobs: HashMap<String, (Digest, u64, Compression)>,
    /// Older versions of Docker, podman and skopeo write links for repeated layers.
    links: Links,
}

impl Files {
    fn get(&self, name: &str) -> Option<&(Digest, u64, Compression)> {
        let name = clean(name.as_bytes())?;
        self.blobs
            .get(&name)
            .or_else(|| self.blobs.get(&self.links.resolve(&name)?))
    }

    fn add(
        &mut self,
        name: &str,
        member: &Member,
        content: &mut dyn Read,
        layout: &Layout,
        path: &Path,
    ) -> Result<(), Error> {
        if member.kind != MemberKind::File {
            self.links.add(name, member);
            return Ok(());
        }
        let mut start = Vec::new();
        content
            .take(Compression::START)
            .read_to_end(&mut start)
            .map_err(Error::file("read", path))?;
        // A file of an unknown compression is an error only if an image needs it.
        let compression = Compression::detect(&start).unwrap_or(Compression::None);
        let mut blob = layout.blob_writer()?;
        io::copy(&mut start.as_slice().chain(content), &mut blob).map_err(Error::file("read", path))?;
        let (digest, size) = layout.store(blob)?;
        self.blobs.insert(name.to_owned(), (digest, size, compression));
        Ok(())
    }
}

/// The layers for the files of an archive of `docker save`. Each file is decompressed once, however often it is listed.
pub(super) struct Layers {
    known: HashMap<(Digest, Algorithm), Result<(Descriptor, Digest), String>>,
    budget: Budget,
}

impl Layers {
    /// For an archive of this size.
    pub(super) fn new(size: u64) -> Self {
        Self {
            known: HashMap::new(),
            budget: Budget::new(size, &unpacking_limits()),
        }
    }

    /// The layer for a file. A compression that has no media type is removed.
    pub(super) fn get(
        &mut self,
        layout: &Layout,
        file: &(Digest, u64, Compression),
        diff_id: &Digest,
    ) -> Result<Descriptor, Error> {
        let (digest, size, compression) = file;
        let kind = match compression {
            Compression::None | Compression::Bzip2 | Compression::Xz => media_type::DOCKER_LAYER,
            Compression::Gzip => media_type::DOCKER_LAYER_GZIP,
            Compression::Zstd => media_type::DOCKER_LAYER_ZSTD,
        };
        let layer = Descriptor::new(kind, digest.clone(), *size);
        let is_kept = !matches!(compression, Compression::Bzip2 | Compression::Xz);
        if is_kept && layer.digest == *diff_id {
            return Ok(layer);
        }
        let what = format!("layer {digest}");
        let key = (digest.clone(), diff_id.algorithm());
        let (layer, actual) = match self.known.get(&key) {
            Some(Ok(known)) => known.clone(),
            Some(Err(reason)) => {
                let reason = reason.clone();
                return Err(Error::Refused { what, reason });
            }
            None => {
                let read = self.read(layout, &layer, is_kept, diff_id.algorithm());
                let outcome = read.as_ref().map(Clone::clone).map_err(ToString::to_string);
                self.known.insert(key, outcome);
                read?
            }
        };
        if actual == *diff_id {
            return Ok(layer);
        }
        Err(Error::Mismatch {
            what,
            expected: diff_id.clone(),
            actual,
        })
    }

    /// The layer, and the digest of its content.
    fn read(
        &mut self,
        layout: &Layout,
        layer: &Descriptor,
        is_kept: bool,
        algorithm: Algorithm,
    ) -> Result<(Descriptor, Digest), Error> {
        if is_kept {
            let actual = plain_digest(layout, layer, algorithm, &mut self.budget, &mut io::sink())?;
            return Ok((layer.clone(), actual));
        }
        let mut blob = layout.blob_writer()?;
        let actual = plain_digest(layout, layer, algorithm, &mut self.budget, &mut blob)?;
        let (digest, size) = layout.store(blob)?;
        Ok((Descriptor::new(&layer.media_type, digest, size), actual))
    }
}

/// Returns true if a tag of an archive is a name. Some tools write `<none>:<none>`, an empty string, or a digest. That digest is of
/// another manifest, because archives have none.
fn is_name(tag: &str) -> bool {
    tag.parse()
        .is_ok_and(|reference: Reference| reference.digest().is_none())
}

fn limited(path: &Path, what: &str, count: usize, limit: usize) -> Result<(), Error> {
    if count <= limit {
        return Ok(());
    }
    Err(Error::Refused {
        what: path.display().to_string(),
        reason: format!("it has {count} {what}, the limit is {limit}"),
    })
}

fn missing(what: &str, path: &Path) -> Error {
    Error::Missing {
        what: what.to_owned(),
        place: path.display().to_string(),
        hint: ": it is not an archive of `docker save`".to_owned(),
    }
}
