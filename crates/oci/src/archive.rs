//! Images as one file: OCI layouts in a tar archive, and the format of `docker save`.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use olmkit::temporary::{self, Durability};
use serde::{Deserialize, Serialize};

use super::Reference;
use super::compression::{Compression, Decoder};
use super::digest::{Algorithm, Digest, DigestReader};
use super::error::Error;
use super::json;
use super::layout::{Image, Layout};
use super::limits::{self, ARCHIVE_BYTES, DOCUMENT_BYTES};
use super::spec::{Descriptor, ImageConfig, Manifest, Platform, media_type};
use super::tarball::{self, Member, MemberKind};
use super::unpack::{LayerReader, Limits};

/// Links that are followed from one name of an archive.
const LINKS: usize = 40;
/// Bytes of the longest name of a link, or of a name that is looked for among them.
const LINKED_NAME: usize = 4096;

/// How large a compressed archive, or a layer in one, may be once decompressed.
fn unpacking_limits() -> Limits {
    Limits {
        layer_bytes: ARCHIVE_BYTES,
        ..Limits::default()
    }
}

/// Writes an image and everything it points at as an OCI layout in a tar archive.
pub fn write_oci(layout: &Layout, image: &Descriptor, name: &str, path: &Path) -> Result<(), Error> {
    let folder = temporary::Directory::new("archive").map_err(Error::file("create", path))?;
    let copy = Layout::create_temporary(folder.path())?;
    let mut blobs = layout.reachable(image)?;
    blobs.sort_by(|one, two| one.digest.cmp(&two.digest));
    // Only its index is needed. The blobs are read in place.
    copy.set(name, image)?;
    replace(path, |output| {
        let mut archive = tar::Builder::new(output);
        for file in ["index.json", "oci-layout"] {
            let bytes = fs::read(folder.path().join(file)).map_err(Error::file("read", folder.path()))?;
            append(&mut archive, file, bytes.len() as u64, &mut bytes.as_slice(), path)?;
        }
        for blob in &blobs {
            let mut reader = layout.open_blob(blob)?;
            let inside = format!("blobs/{}/{}", blob.digest.algorithm_name(), blob.digest.hex());
            append(&mut archive, &inside, blob.size, &mut reader, path)?;
            reader.verify()?;
        }
        archive.finish().map_err(Error::file("write", path))
    })
}

/// One image in the `manifest.json` of `docker save`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    #[serde(default)]
    layers: Option<Vec<String>>,
}

impl Saved {
    fn parse(bytes: &[u8]) -> serde_json::Result<Vec<Self>> {
        let mut list: serde_json::Value = serde_json::from_slice(bytes)?;
        for item in list.as_array_mut().into_iter().flatten() {
            json::spell(item, &["Config", "RepoTags", "Layers"]);
        }
        let list: Option<Vec<Self>> = serde_json::from_value(list)?;
        Ok(list.unwrap_or_default())
    }
}

/// The `NAME:TAG` that `docker load` accepts for a reference. `None` for a reference with a digest only.
pub fn repository_tag(reference: &Reference) -> Option<String> {
    let reference = reference.with_default_tag();
    let tag = reference.tag()?;
    Some(format!("{}:{tag}", reference.name()))
}

/// Fails unless the configuration of an image has one digest for each of its layers.
pub(crate) fn check_layer_count(
    what: impl FnOnce() -> String,
    layers: usize,
    config: &ImageConfig,
) -> Result<(), Error> {
    let diff_ids = config.rootfs.diff_ids.len();
    if layers == diff_ids {
        return Ok(());
    }
    Err(Error::Refused {
        what: what(),
        reason: format!("its manifest has {layers} layers, its configuration {diff_ids}"),
    })
}

/// Writes an image as `docker load` and `podman load` read it, with a `NAME:TAG` or none. The format has no indexes.
pub fn write_docker(layout: &Layout, image: &Image, tag: Option<&str>, path: &Path) -> Result<(), Error> {
    let what = || format!("image {}", image.descriptor.digest);
    check_layer_count(what, image.manifest.layers.len(), &image.config)?;
    let config = layout.read_document(&image.manifest.config)?;
    let config_name = format!("{}.json", image.manifest.config.digest.hex());
    let layer_name = |digest: &Digest| format!("{}/layer.tar", digest.hex());
    let saved = Saved {
        config: config_name.clone(),
        repo_tags: tag.map(|tag| vec![tag.to_owned()]),
        layers: Some(image.config.rootfs.diff_ids.iter().map(layer_name).collect()),
    };
    let manifest = serde_json::to_vec(&[saved]).map_err(Error::document("manifest.json"))?;
    replace(path, |output| {
        let mut archive = tar::Builder::new(output);
        append(
            &mut archive,
            &config_name,
            config.len() as u64,
            &mut config.as_slice(),
            path,
        )?;
        let mut written = Vec::new();
        for (layer, diff_id) in image.manifest.layers.iter().zip(&image.config.rootfs.diff_ids) {
            if written.contains(&diff_id) {
                continue;
            }
            written.push(diff_id);
            let mut plain = decompressed(layout, layer, diff_id)?;
            let size = plain.metadata().map_err(Error::file("read", path))?.len();
            append(&mut archive, &layer_name(diff_id), size, &mut plain, path)?;
        }
        append(
            &mut archive,
            "manifest.json",
            manifest.len() as u64,
            &mut manifest.as_slice(),
            path,
        )?;
        archive.finish().map_err(Error::file("write", path))
    })
}

/// A layer without its compression, in an unnamed file: its size must be known before it is put into an archive.
fn decompressed(layout: &Layout, layer: &Descriptor, diff_id: &Digest) -> Result<File, Error> {
    let mut plain = tempfile::tempfile().map_err(Error::file("create", layout.root()))?;
    check_diff_id(layout, layer, diff_id, &mut plain)?;
    plain
        .rewind()
        .map_err(Error::file("read", &PathBuf::from(layer.digest.to_string())))?;
    Ok(plain)
}

/// Decompresses a layer and checks the digest of the result.
fn check_diff_id(layout: &Layout, layer: &Descriptor, diff_id: &Digest, plain: &mut dyn Write) -> Result<(), Error> {
    let actual = plain_digest(layout, layer, diff_id.algorithm(), plain)?;
    if actual == *diff_id {
        return Ok(());
    }
    Err(Error::Mismatch {
        what: format!("layer {}", layer.digest),
        expected: diff_id.clone(),
        actual,
    })
}

/// Decompresses a layer. The digest of the result.
fn plain_digest(
    layout: &Layout,
    layer: &Descriptor,
    algorithm: Algorithm,
    plain: &mut dyn Write,
) -> Result<Digest, Error> {
    let what = format!("layer {}", layer.digest);
    let mut stream = LayerReader::open(layout, layer, &unpacking_limits())?;
    let mut reader = DigestReader::new(&mut stream, algorithm);
    let copied = io::copy(&mut reader, plain);
    let (actual, _) = reader.finish();
    stream.verify()?;
    copied.map_err(|source| Error::File {
        action: "decompress",
        path: PathBuf::from(&what),
        source,
    })?;
    Ok(actual)
}

fn append<W: Write>(
    archive: &mut tar::Builder<W>,
    name: &str,
    size: u64,
    content: &mut dyn Read,
    path: &Path,
) -> Result<(), Error> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(size);
    header.set_mtime(0);
    archive
        .append_data(&mut header, name, content.take(size))
        .map_err(Error::file("write", path))
}

/// Writes a file that appears only when it is complete.
fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<(), Error>) -> Result<(), Error> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    // Checked first: the error of a temporary file would name that file.
    fs::metadata(folder).map_err(Error::file("create", path))?;
    let mut file = temporary::File::within(folder, temporary::PARTIAL).map_err(Error::file("create", path))?;
    let mut output = BufWriter::new(&mut file);
    write(&mut output)?;
    output.flush().map_err(Error::file("write", path))?;
    drop(output);
    file.persist(path, Durability::Synced)
        .map_err(Error::file("write", path))?;
    Ok(())
}

/// Reads an archive of either format into a directory and opens the layout there. One that is both, as newer versions
/// of `docker save` write it, is read as OCI archive.
pub fn read(path: &Path, folder: &Path) -> Result<Layout, Error> {
    match read_oci(path, &folder.join("oci")) {
        // It has no index with images.
        Err(Error::Missing { .. }) => read_docker(path, &folder.join("docker")),
        result => result,
    }
}

/// Reads an OCI archive into a directory and opens the layout there. Blobs are checked against their names.
pub fn read_oci(path: &Path, folder: &Path) -> Result<Layout, Error> {
    let layout = Layout::create_temporary(folder)?.with_archive(path);
    let mut links = Links::default();
    for_each(path, |name, member, content| match member.kind {
        MemberKind::File => read_part(name, content, &layout, path),
        _ => {
            links.add(name, member);
            Ok(())
        }
    })?;
    let aliases = links.aliases(|name| name == "index.json" || name == "blobs" || name.starts_with("blobs/"));
    if !aliases.is_empty() {
        // The targets of links may come before the links, so the archive is read again.
        for_each(path, |name, member, content| {
            if member.kind != MemberKind::File {
                return Ok(());
            }
            let above = name
                .match_indices('/')
                .filter_map(|(end, _)| name.split_at_checked(end));
            let targets = above.chain([(name, "")]);
            let found = targets
                .flat_map(|(target, rest)| aliases.get(target).into_iter().flatten().map(move |link| (link, rest)));
            let mut names: Vec<String> = found.map(|(link, rest)| format!("{link}{rest}")).collect();
            names.sort();
            names.dedup();
            let Some((first, others)) = names.split_first() else {
                return Ok(());
            };
            if others.is_empty() {
                return read_part(first, content, &layout, path);
            }
            // Several names of one file are the rare case.
            let mut copy = tempfile::tempfile().map_err(Error::file("create", folder))?;
            io::copy(content, &mut copy).map_err(Error::file("read", path))?;
            for name in &names {
                copy.rewind().map_err(Error::file("read", path))?;
                read_part(name, &mut copy, &layout, path)?;
            }
            Ok(())
        })?;
    }
    if layout.index()?.manifests.is_empty() {
        return Err(Error::Missing {
            what: "an image".to_owned(),
            place: path.display().to_string(),
            hint: ": it is not an OCI archive (is it a docker-archive?)".to_owned(),
        });
    }
    Ok(layout)
}

/// Stores a file of an OCI archive if it belongs to the layout.
fn read_part(name: &str, content: &mut dyn Read, layout: &Layout, path: &Path) -> Result<(), Error> {
    if name == "index.json" {
        let index = layout.root().join(name);
        return fs::write(&index, document(content, path)?).map_err(Error::file("write", &index));
    }
    let blob = name.strip_prefix("blobs/").map(|blob| blob.replacen('/', ":", 1));
    let Some(digest) = blob.and_then(|blob| blob.parse::<Digest>().ok()) else {
        return Ok(());
    };
    let mut file = layout.temporary()?;
    let mut reader = DigestReader::new(content, digest.algorithm());
    io::copy(&mut reader, &mut file).map_err(Error::file("read", path))?;
    let (actual, _) = reader.finish();
    if actual == digest {
        layout.persist(file, &digest)
    } else {
        layout.leave_out(digest, actual);
        Ok(())
    }
}

/// The links of an archive by name. Their targets are names in the archive.
#[derive(Default)]
struct Links(HashMap<String, String>);

impl Links {
    fn add(&mut self, name: &str, member: &Member) {
        let target = match member.kind {
            // A link's target is relative to its directory, a hard link's to the archive.
            MemberKind::Symlink if !member.link.starts_with(b"/") => {
                let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
                Some(clean_inside(&[folder.as_bytes(), b"/", &member.link].concat()))
            }
            MemberKind::Symlink | MemberKind::HardLink => Some(clean_inside(&member.link)),
            MemberKind::File | MemberKind::Directory | MemberKind::Special => None,
        };
        let target = target.filter(|target| name.len().max(target.len()) <= LINKED_NAME);
        self.0.extend(target.map(|target| (name.to_owned(), target)));
    }

    /// The name that a name leads to, with the links in its directories followed.
    fn resolve(&self, name: &str) -> Option<String> {
        if self.0.is_empty() || name.len() > LINKED_NAME {
            return Some(name.to_owned());
        }
        let mut pending: Vec<&str> = name.rsplit('/').collect();
        let mut resolved = String::new();
        let mut followed = 0;
        while let Some(part) = pending.pop() {
            if part.is_empty() {
                continue;
            }
            if !resolved.is_empty() {
                resolved.push('/');
            }
            resolved.push_str(part);
            if let Some(target) = self.0.get(&resolved) {
                followed += 1;
                if followed > LINKS {
                    return None;
                }
                // Targets are clean and relative to the archive.
                resolved.clear();
                pending.extend(target.rsplit('/'));
            }
        }
        Some(resolved)
    }

    /// The links whose names are wanted, by the name that they lead to.
    fn aliases(&self, is_wanted: impl Fn(&str) -> bool) -> HashMap<String, Vec<&str>> {
        let mut aliases: HashMap<String, Vec<&str>> = HashMap::new();
        for link in self.0.keys().filter(|link| is_wanted(link)) {
            if let Some(target) = self.resolve(link) {
                aliases.entry(target).or_default().push(link);
            }
        }
        aliases
    }
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
#[derive(Default)]
struct Layers(HashMap<(Digest, Algorithm), Result<(Descriptor, Digest), String>>);

impl Layers {
    /// The layer for a file. A compression that has no media type is removed.
    fn get(
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
        let (layer, actual) = match self.0.get(&key) {
            Some(Ok(known)) => known.clone(),
            Some(Err(reason)) => {
                let reason = reason.clone();
                return Err(Error::Refused { what, reason });
            }
            None => {
                let read = Self::read(layout, &layer, is_kept, diff_id.algorithm());
                let outcome = read.as_ref().map(Clone::clone).map_err(ToString::to_string);
                self.0.insert(key, outcome);
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
        layout: &Layout,
        layer: &Descriptor,
        is_kept: bool,
        algorithm: Algorithm,
    ) -> Result<(Descriptor, Digest), Error> {
        if is_kept {
            let actual = plain_digest(layout, layer, algorithm, &mut io::sink())?;
            return Ok((layer.clone(), actual));
        }
        let mut blob = layout.blob_writer()?;
        let actual = plain_digest(layout, layer, algorithm, &mut blob)?;
        let (digest, size) = layout.store(blob)?;
        Ok((Descriptor::new(&layer.media_type, digest, size), actual))
    }
}

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
    let mut known = Layers::default();
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

fn missing(what: &str, path: &Path) -> Error {
    Error::Missing {
        what: what.to_owned(),
        place: path.display().to_string(),
        hint: ": it is not an archive of `docker save`".to_owned(),
    }
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

fn document(content: &mut dyn Read, path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    content
        .take(DOCUMENT_BYTES)
        .read_to_end(&mut bytes)
        .map_err(Error::file("read", path))?;
    Ok(bytes)
}

/// The name of a member without `.` and `..`. `None` if it leads out of the archive.
fn clean(name: &[u8]) -> Option<String> {
    let name = String::from_utf8_lossy(name);
    let mut parts: Vec<&str> = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// As [`clean`]. The directory above the root is the root, as for a link in a directory with its own root.
fn clean_inside(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let mut parts: Vec<&str> = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Calls `visit` for each member of an archive, which may be compressed. Names are only compared and looked up, never used
/// as paths on this machine.
fn for_each(
    path: &Path,
    mut visit: impl FnMut(&str, &Member, &mut dyn Read) -> Result<(), Error>,
) -> Result<(), Error> {
    let refused = |reason: String| Error::Refused {
        what: path.display().to_string(),
        reason,
    };
    let file = olmkit::limits::open(path).map_err(Error::file("read", path))?;
    let size = file.metadata().map_err(Error::file("read", path))?.len();
    let decoder = Decoder::new(BufReader::new(file)).map_err(|error| refused(error.to_string()))?;
    let limit = match decoder {
        Decoder::Plain(_) => ARCHIVE_BYTES,
        _ => unpacking_limits().unpacked_layer(size),
    };
    let mut number = 0;
    tarball::for_each(
        &mut decoder.take(limit),
        &path.display().to_string(),
        |member, content| {
            number += 1;
            if number > limits::ARCHIVE_ENTRIES {
                return Err(refused("it has too many entries".to_owned()));
            }
            match clean(&member.path) {
                Some(name) => visit(&name, &member, content),
                None => Ok(()),
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A member as an archive's writer sets it.
    enum Entry<'e> {
        File(&'e str, &'e [u8]),
        Symlink(&'e str, &'e str),
        HardLink(&'e str, &'e str),
    }

    fn archive(entries: &[Entry]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for entry in entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(0);
            match entry {
                Entry::File(name, content) => {
                    header.set_size(content.len() as u64);
                    archive.append_data(&mut header, name, *content).unwrap();
                }
                Entry::Symlink(name, target) => {
                    header.set_entry_type(tar::EntryType::Symlink);
                    archive.append_link(&mut header, name, target).unwrap();
                }
                Entry::HardLink(name, target) => {
                    header.set_entry_type(tar::EntryType::Link);
                    archive.append_link(&mut header, name, target).unwrap();
                }
            }
        }
        archive.into_inner().unwrap()
    }

    fn read(bytes: &[u8]) -> Result<(tempfile::TempDir, Layout), Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        fs::write(&path, bytes).unwrap();
        let layout = read_docker(&path, &folder.path().join("layout"))?;
        Ok((folder, layout))
    }

    fn config(layers: &[&[u8]]) -> Vec<u8> {
        let diff_ids: Vec<String> = layers.iter().map(|layer| crate::sha256(layer).to_string()).collect();
        let rootfs = serde_json::json!({"type": "layers", "diff_ids": diff_ids});
        serde_json::json!({"os": "linux", "architecture": "amd64", "rootfs": rootfs})
            .to_string()
            .into_bytes()
    }

    #[test]
    fn repeated_layers_and_long_names_are_read() {
        let layer = archive(&[Entry::File("a", b"x")]);
        let long = format!("{}/layer.tar", "d".repeat(120));
        let config = config(&[&layer, &layer, &layer, &layer, &layer]);
        let manifest = serde_json::json!([{"Config": "./c.json", "RepoTags": ["a:v1", "b.io/c:v2"],
            "Layers": [long, "two/layer.tar", "three/../four/layer.tar", "five/layer.tar", "six.tar"]}]);
        let manifest = manifest.to_string();
        let entries = [
            Entry::Symlink("two/layer.tar", "../one/layer.tar"),
            Entry::HardLink("four/layer.tar", "one/layer.tar"),
            Entry::Symlink("one/layer.tar", &format!("../../{long}")),
            Entry::Symlink("unused", "../../outside"),
            Entry::Symlink("five", "four"),
            Entry::Symlink("six.tar", "/five/layer.tar"),
            Entry::Symlink("loop", "loop"),
            Entry::File(&long, &layer),
            Entry::File("./c.json", &config),
            Entry::File("manifest.json", manifest.as_bytes()),
        ];
        let plain = archive(&entries);
        let zstd = ruzstd::encoding::compress_to_vec(plain.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
        for bytes in [plain, zstd] {
            let (_folder, layout) = read(&bytes).unwrap();
            // Two names, one image.
            let image = layout
                .image(&layout.find(None).unwrap(), &"linux/amd64".parse().unwrap())
                .unwrap();
            assert_eq!(image.manifest.layers.len(), 5);
            assert!(
                image
                    .manifest
                    .layers
                    .iter()
                    .all(|found| found.digest == crate::sha256(&layer))
            );
            assert_eq!(layout.find(Some("b.io/c:v2")).unwrap().digest, image.descriptor.digest);
        }
    }

    #[test]
    fn manifest_json_is_read_as_go_reads_it() {
        let config = config(&[]);
        for (file, text) in [
            (
                "manifest.json",
                r#"[{"config":"c.json","repotags":["a:v1"],"LAYERS":null}]"#,
            ),
            (
                "manifest.json",
                r#"[{"Config":"x","Config":"c.json","RepoTags":["a:v1"]}]"#,
            ),
            ("other.json", r#"[{"Config":"c.json","RepoTags":["a:v1"]}]"#),
        ] {
            let mut entries = vec![Entry::File("c.json", &config), Entry::File(file, text.as_bytes())];
            for link in [
                Entry::Symlink("manifest.json", "other.json"),
                Entry::HardLink("manifest.json", "other.json"),
            ] {
                if file == "other.json" {
                    entries.push(link);
                }
                let (_folder, layout) = read(&archive(&entries)).unwrap();
                assert!(layout.find(Some("a:v1")).is_ok(), "{text}");
            }
        }
        let (_folder, none) = read(&archive(&[Entry::File("manifest.json", b"null")])).unwrap();
        assert!(none.index().unwrap().manifests.is_empty());
    }

    #[test]
    fn files_that_no_image_needs_do_not_matter() {
        let layer = archive(&[Entry::File("a", b"x")]);
        let config = config(&[&layer]);
        let list = br#"[{"Config":"c","RepoTags":["a:v1"],"Layers":["l"]},{"Config":"gone","RepoTags":["b:v1"]},
            {"Config":"c","RepoTags":["c:v1"],"Layers":["x"]}]"#;
        for unused in [
            &b"BZh91AY&SYbz"[..],
            b"\x04\x22\x4d\x18lz4",
            b"\xfd7zXZ\0xz",
            b"\x1f\x8bgzip",
        ] {
            let bytes = archive(&[
                Entry::File("x", unused),
                Entry::File("l", &layer),
                Entry::File("c", &config),
                Entry::File("manifest.json", list),
            ]);
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.tar");
            fs::write(&path, &bytes).unwrap();
            let read = read_docker_images(&path, &folder.path().join("layout")).unwrap();
            assert!(read.layout.find(Some("a:v1")).is_ok());
            let found: Vec<bool> = read.images.iter().map(Option::is_some).collect();
            assert_eq!(found, [true, false, false]);
            assert!(read.broken.unwrap().to_string().contains("gone"));
            assert!(read_docker(&path, &folder.path().join("all")).is_err());
        }
    }

    #[test]
    fn a_layer_is_decompressed_once_however_often_it_is_listed() {
        let plain = archive(&[Entry::File("a", b"x")]);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&plain).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create_temporary(folder.path()).unwrap();
        let mut known = Layers::default();
        let diff_id = crate::sha256(&plain);
        let wrong = crate::sha256(b"wrong");
        for (bytes, compression, is_right) in [
            (gzip.finish().unwrap(), Compression::Gzip, true),
            (b"\x1f\x8bdamaged".to_vec(), Compression::Gzip, false),
        ] {
            let blob = layout.write_blob(media_type::DOCKER_LAYER_GZIP, &bytes).unwrap();
            let file = (blob.digest.clone(), blob.size, compression);
            assert_eq!(known.get(&layout, &file, &diff_id).is_ok(), is_right);
            // Another decompression would need the blob.
            fs::remove_file(layout.blob_path(&blob.digest)).unwrap();
            let again = known.get(&layout, &file, &diff_id);
            assert_eq!(again.as_ref().is_ok_and(|layer| *layer == blob), is_right);
            let error = known.get(&layout, &file, &wrong).unwrap_err();
            assert_eq!(matches!(error, Error::Mismatch { .. }), is_right, "{error}");
            assert!(!error.to_string().contains("No such file"), "{error}");
        }
    }

    #[test]
    fn tags_that_are_not_names_are_ignored() {
        let config = config(&[]);
        let digest = crate::sha256(b"");
        for tag in ["", "<none>:<none>", "A/B:v1", &format!("a.io/b@{digest}")] {
            let text = serde_json::json!([{"Config": "c.json", "RepoTags": [tag]}]).to_string();
            let entries = [
                Entry::File("c.json", &config),
                Entry::File("manifest.json", text.as_bytes()),
            ];
            let (_folder, layout) = read(&archive(&entries)).unwrap();
            assert!(layout.find(None).unwrap().annotations.is_empty(), "{tag}");
        }
    }

    #[test]
    fn images_are_numbered_in_the_order_of_the_archive() {
        let (one, two) = (
            config(&[]),
            serde_json::to_vec(&serde_json::json!({"os": "x"})).unwrap(),
        );
        let text = br#"[{"Config":"1","RepoTags":["a:v1","b:v1"]},{"Config":"2"}]"#;
        let entries = [
            Entry::File("1", &one),
            Entry::File("2", &two),
            Entry::File("manifest.json", text),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        fs::write(&path, archive(&entries)).unwrap();
        let read = read_docker_images(&path, &folder.path().join("layout")).unwrap();
        assert_eq!(read.layout.index().unwrap().manifests.len(), 3);
        let digests: Vec<_> = read
            .images
            .iter()
            .flatten()
            .map(|image| read.layout.read_manifest(image).unwrap().config.digest)
            .collect();
        assert_eq!(digests, [crate::sha256(&one), crate::sha256(&two)]);
    }

    #[test]
    fn links_in_oci_archives_are_followed() {
        let manifest = br#"{"schemaVersion":2,"config":{"digest":"x"}}"#;
        let digest = crate::sha256(manifest);
        let index = serde_json::json!({"schemaVersion": 2, "manifests": [Descriptor::new("text/plain", digest.clone(), manifest.len() as u64)]});
        let index = index.to_string();
        let blob = format!("blobs/sha256/{}", digest.hex());
        let below = format!("other/{}", digest.hex());
        let cases: [Vec<Entry>; 5] = [
            vec![
                Entry::Symlink(&blob, "../../x"),
                Entry::File("x", manifest),
                Entry::File("index.json", index.as_bytes()),
            ],
            vec![
                Entry::File("x", manifest),
                Entry::HardLink(&blob, "x"),
                Entry::File("index.json", index.as_bytes()),
            ],
            vec![
                Entry::Symlink("blobs/sha256", "../other"),
                Entry::File(&below, manifest),
                Entry::File("index.json", index.as_bytes()),
            ],
            vec![
                Entry::File(&blob, manifest),
                Entry::File("i", index.as_bytes()),
                Entry::Symlink("index.json", "/i"),
            ],
            // One file has two names.
            vec![
                Entry::File("x", manifest),
                Entry::HardLink(&blob, "x"),
                Entry::HardLink("blobs/sha256/0", "x"),
                Entry::File("index.json", index.as_bytes()),
            ],
        ];
        for (number, entries) in cases.iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.tar");
            fs::write(&path, archive(entries)).unwrap();
            let layout = read_oci(&path, &folder.path().join("layout")).unwrap();
            let image = layout.find(None).unwrap();
            assert_eq!(layout.read_document(&image).unwrap(), manifest, "{number}");
        }
    }

    #[test]
    fn a_wrong_blob_matters_only_if_it_is_needed() {
        let digests = [crate::sha256(b"one"), crate::sha256(b"two")];
        let names = digests
            .each_ref()
            .map(|digest| format!("blobs/sha256/{}", digest.hex()));
        let index = serde_json::json!({"schemaVersion": 2, "manifests": [Descriptor::new("text/plain", digests[0].clone(), 3)]});
        let entries = [
            Entry::File(&names[0], b"one"),
            Entry::File(&names[1], b"wrong"),
            Entry::File("index.json", index.to_string().as_bytes()),
        ]
        .map(|entry| archive(&[entry]));
        // One archive of three members.
        let bytes: Vec<u8> = entries
            .iter()
            .flat_map(|part| part[..part.len() - 1024].to_vec())
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        fs::write(&path, bytes).unwrap();
        let layout = read_oci(&path, &folder.path().join("layout")).unwrap();
        assert_eq!(layout.read_document(&layout.find(None).unwrap()).unwrap(), b"one");
        let needed = Descriptor::new("text/plain", digests[1].clone(), 3);
        let error = layout.read_document(&needed).unwrap_err();
        assert!(
            matches!(error, Error::Mismatch { .. }) && error.to_string().contains("a.tar"),
            "{error}"
        );
    }

    #[test]
    fn a_damaged_blob_is_not_written_into_an_oci_archive() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(&folder.path().join("layout")).unwrap();
        let blob = layout.write_blob("text/plain", b"memcached").unwrap();
        let path = folder.path().join("a.tar");
        for (content, is_right) in [
            ("memcachee", false),
            ("mem", false),
            ("memcached+", false),
            ("memcached", true),
        ] {
            fs::write(layout.blob_path(&blob.digest), content).unwrap();
            assert_eq!(write_oci(&layout, &blob, "v1", &path).is_ok(), is_right, "{content}");
            assert_eq!(path.exists(), is_right, "{content}");
        }
    }

    #[test]
    fn images_without_layers_and_names_are_read() {
        let config = config(&[]);
        let entries = [
            Entry::File("c.json", &config),
            Entry::File(
                "manifest.json",
                br#"[{"Config":"c.json","RepoTags":null,"Layers":null}]"#,
            ),
        ];
        let (_folder, layout) = read(&archive(&entries)).unwrap();
        assert!(layout.find(None).unwrap().annotations.is_empty());
    }

    #[test]
    fn layers_that_the_configuration_does_not_name_are_refused() {
        let layer = archive(&[Entry::File("a", b"x")]);
        let other = archive(&[Entry::File("a", b"y")]);
        for (config, reason) in [
            (config(&[]), "its manifest has 1 layers, its configuration 0"),
            (config(&[&layer, &layer]), "configuration 2"),
            (config(&[&other]), "expected digest"),
        ] {
            let entries = [
                Entry::File("l.tar", &layer),
                Entry::File("c.json", &config),
                Entry::File("manifest.json", br#"[{"Config":"c.json","Layers":["l.tar"]}]"#),
            ];
            let error = read(&archive(&entries)).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn tags_are_what_docker_load_accepts() {
        let digest = crate::sha256(b"");
        for (reference, expected) in [
            ("quay.io/a/b:v1".to_owned(), Some("quay.io/a/b:v1")),
            ("quay.io/a/b".to_owned(), Some("quay.io/a/b:latest")),
            (format!("quay.io/a/b:v1@{digest}"), Some("quay.io/a/b:v1")),
            (format!("quay.io/a/b@{digest}"), None),
        ] {
            let reference: Reference = reference.parse().unwrap();
            assert_eq!(repository_tag(&reference).as_deref(), expected);
        }
    }
}
