//! Images as one file: OCI layouts in a tar archive, and the format of `docker save`.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use olmkit::temporary::{self, Durability};
use serde::{Deserialize, Serialize};

use super::digest::{Digest, DigestReader};
use super::error::Error;
use super::layout::{Image, Layout};
use super::limits::{self, ARCHIVE_BYTES, DOCUMENT_BYTES};
use super::spec::{Descriptor, ImageConfig, Manifest, Platform, media_type};
use super::unpack::Limits;

/// The largest plausible size of a compressed file of that many bytes once decompressed.
fn unpacked_limit(size: u64) -> u64 {
    let by_ratio = size.saturating_mul(Limits::default().ratio);
    by_ratio.clamp(Limits::RATIO_FREE, ARCHIVE_BYTES)
}

/// Writes an image and everything it points at as an OCI layout in a tar archive.
pub fn write_oci(layout: &Layout, image: &Descriptor, name: &str, path: &Path) -> Result<(), Error> {
    let folder = temporary::Directory::new("archive").map_err(Error::file("create", path))?;
    let copy = Layout::create_temporary(folder.path())?;
    let mut blobs = layout.reachable(image)?;
    blobs.sort_by(|one, two| one.digest.cmp(&two.digest));
    // Only its index is needed; the blobs are read in place.
    copy.set(name, image)?;
    replace(path, |output| {
        let mut archive = tar::Builder::new(output);
        for file in ["index.json", "oci-layout"] {
            let bytes = fs::read(folder.path().join(file)).map_err(Error::file("read", folder.path()))?;
            append(&mut archive, file, bytes.len() as u64, &mut bytes.as_slice(), path)?;
        }
        for blob in &blobs {
            let source = layout.blob_path(&blob.digest);
            let mut file = olmkit::limits::open(&source).map_err(Error::file("read", &source))?;
            let inside = format!("blobs/{}/{}", blob.digest.algorithm_name(), blob.digest.hex());
            append(&mut archive, &inside, blob.size, &mut file, path)?;
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
    layers: Vec<String>,
}

/// Writes an image as `docker load` and `podman load` read it. The format has no indexes.
pub fn write_docker(layout: &Layout, image: &Image, name: &str, path: &Path) -> Result<(), Error> {
    let config = layout.read_document(&image.manifest.config)?;
    let config_name = format!("{}.json", image.manifest.config.digest.hex());
    let layer_name = |digest: &Digest| format!("{}/layer.tar", digest.hex());
    let saved = Saved {
        config: config_name.clone(),
        repo_tags: Some(vec![name.to_owned()]),
        layers: image.config.rootfs.diff_ids.iter().map(layer_name).collect(),
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
    let blob = layout.open_blob(layer)?;
    let mut plain = tempfile::tempfile().map_err(Error::file("create", layout.root()))?;
    let what = format!("layer {}", layer.digest);
    let failed = |source| Error::File {
        action: "decompress",
        path: PathBuf::from(&what),
        source,
    };
    let reader: Box<dyn Read> = match layer.media_type.as_str() {
        media_type::OCI_LAYER_GZIP | media_type::DOCKER_LAYER_GZIP => {
            Box::new(MultiGzDecoder::new(BufReader::new(blob)).take(unpacked_limit(layer.size)))
        }
        media_type::OCI_LAYER | media_type::DOCKER_LAYER => Box::new(blob),
        other => {
            return Err(Error::Refused {
                what,
                reason: format!("media type {other:?} is not supported"),
            });
        }
    };
    let mut reader = DigestReader::new(reader.take(ARCHIVE_BYTES), diff_id.algorithm());
    io::copy(&mut reader, &mut plain).map_err(failed)?;
    let (actual, _) = reader.finish();
    if actual != *diff_id {
        return Err(Error::Mismatch {
            what,
            expected: diff_id.clone(),
            actual,
        });
    }
    plain.rewind().map_err(failed)?;
    Ok(plain)
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
    let layout = Layout::create_temporary(folder)?;
    for_each(path, |name, content| {
        if let Some(blob) = name.strip_prefix("blobs/") {
            let digest: Digest = match blob.replacen('/', ":", 1).parse() {
                Ok(digest) => digest,
                Err(_) => return Ok(()),
            };
            let mut file = layout.temporary()?;
            let mut reader = DigestReader::new(content, digest.algorithm());
            io::copy(&mut reader, &mut file).map_err(Error::file("read", path))?;
            let (actual, _) = reader.finish();
            if actual != digest {
                return Err(Error::Mismatch {
                    what: format!("{name} of {}", path.display()),
                    expected: digest,
                    actual,
                });
            }
            layout.persist(file, &digest)?;
        } else if name == "index.json" {
            fs::write(folder.join("index.json"), document(content, path)?).map_err(Error::file("write", folder))?;
        }
        Ok(())
    })?;
    if layout.index()?.manifests.is_empty() {
        return Err(Error::Missing {
            what: "an image".to_owned(),
            place: path.display().to_string(),
            hint: ": it is not an OCI archive (is it a docker-archive?)".to_owned(),
        });
    }
    Ok(layout)
}

/// Reads an archive of `docker save` into a layout. Layers are kept as they are, uncompressed as a rule.
pub fn read_docker(path: &Path, folder: &Path) -> Result<Layout, Error> {
    let layout = Layout::create_temporary(folder)?;
    let mut blobs: HashMap<String, (Digest, u64, bool)> = HashMap::new();
    let mut saved: Option<Vec<Saved>> = None;
    for_each(path, |name, mut content| {
        if name == "manifest.json" {
            let bytes = document(content, path)?;
            saved = Some(
                serde_json::from_slice(&bytes)
                    .map_err(Error::document(format!("manifest.json of {}", path.display())))?,
            );
        } else {
            let mut start = [0; 2];
            let length = content.read(&mut start).map_err(Error::file("read", path))?;
            let mut blob = layout.blob_writer()?;
            let start = start.get(..length).unwrap_or_default();
            blob.write_all(start).map_err(Error::file("write", folder))?;
            io::copy(&mut content, &mut blob).map_err(Error::file("read", path))?;
            let (digest, size) = layout.store(blob)?;
            blobs.insert(name.to_owned(), (digest, size, start == [0x1f, 0x8b]));
        }
        Ok(())
    })?;
    let missing = |what: &str| Error::Missing {
        what: what.to_owned(),
        place: path.display().to_string(),
        hint: ": it is not an archive of `docker save`".to_owned(),
    };
    let saved = saved.ok_or_else(|| missing("manifest.json"))?;
    let names = saved.iter().map(|image| image.repo_tags.as_ref().map_or(1, Vec::len));
    limited(path, "names", names.sum(), limits::NAMES)?;
    let mut named = Vec::new();
    for image in saved {
        limited(path, "layers in one image", image.layers.len(), limits::LAYERS)?;
        let blob = |name: &String| blobs.get(name).cloned().ok_or_else(|| missing(name));
        let (digest, size, _) = blob(&image.config)?;
        let config = Descriptor::new(media_type::DOCKER_CONFIG, digest, size);
        let document: ImageConfig = serde_json::from_slice(&layout.read_document(&config)?)
            .map_err(Error::document(format!("{} of {}", image.config, path.display())))?;
        let mut layers = Vec::new();
        for name in &image.layers {
            let (digest, size, gzip) = blob(name)?;
            let kind = if gzip {
                media_type::DOCKER_LAYER_GZIP
            } else {
                media_type::DOCKER_LAYER
            };
            layers.push(Descriptor::new(kind, digest, size));
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
        descriptor.platform = Some(Platform {
            architecture: document.architecture,
            os: document.os,
            variant: document.variant,
        });
        let names = image.repo_tags.unwrap_or_default();
        if names.is_empty() {
            named.push((descriptor.digest.to_string(), descriptor.clone()));
        }
        named.extend(names.into_iter().map(|name| (name, descriptor.clone())));
    }
    layout.set_all(&named)?;
    Ok(layout)
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

/// Calls `visit` for each regular file of an archive, which may be compressed with gzip. Names are only compared and
/// looked up, never used as paths on this machine.
fn for_each(path: &Path, mut visit: impl FnMut(&str, &mut dyn Read) -> Result<(), Error>) -> Result<(), Error> {
    let mut file = olmkit::limits::open(path).map_err(Error::file("read", path))?;
    let mut start = [0; 2];
    let count = file.read(&mut start).map_err(Error::file("read", path))?;
    file.rewind().map_err(Error::file("read", path))?;
    let size = file.metadata().map_err(Error::file("read", path))?.len();
    let reader = BufReader::new(file);
    let reader: Box<dyn Read> = if count == 2 && start == [0x1f, 0x8b] {
        Box::new(MultiGzDecoder::new(reader).take(unpacked_limit(size)))
    } else {
        Box::new(reader.take(ARCHIVE_BYTES))
    };
    let mut archive = tar::Archive::new(reader);
    // The tar reader's error quotes the bytes that it took for a header.
    let broken = |_: io::Error| Error::Refused {
        what: path.display().to_string(),
        reason: "it is not a tar archive, or it is damaged".to_owned(),
    };
    for (number, entry) in archive.entries().map_err(broken)?.raw(true).enumerate() {
        let mut entry = entry.map_err(broken)?;
        if number > limits::ARCHIVE_ENTRIES {
            return Err(Error::Refused {
                what: path.display().to_string(),
                reason: "it has too many entries".to_owned(),
            });
        }
        // Names in both formats fit a plain header, so extension records need no reading.
        if entry.header().entry_type().is_file() {
            let name = String::from_utf8_lossy(&entry.header().path_bytes())
                .trim_start_matches("./")
                .to_owned();
            visit(&name, &mut entry)?;
        }
    }
    Ok(())
}
