//! Writes the format of `docker save`.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{append, replace, unpacking_limits};
use crate::Reference;
use crate::digest::{Algorithm, Digest, DigestReader};
use crate::error::Error;
use crate::json;
use crate::layout::{Image, Layout};
use crate::spec::{Descriptor, ImageConfig};
use crate::unpack::{Budget, LayerReader};

/// One image in the `manifest.json` of `docker save`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Saved {
    pub(super) config: String,
    #[serde(default)]
    pub(super) repo_tags: Option<Vec<String>>,
    #[serde(default)]
    pub(super) layers: Option<Vec<String>>,
}

impl Saved {
    pub(super) fn parse(bytes: &[u8]) -> serde_json::Result<Vec<Self>> {
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
        let mut budget = Budget::of_image(layout, image, &unpacking_limits());
        for (layer, diff_id) in image.manifest.layers.iter().zip(&image.config.rootfs.diff_ids) {
            if written.contains(&diff_id) {
                continue;
            }
            written.push(diff_id);
            let mut plain = decompressed(layout, layer, diff_id, &mut budget)?;
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
fn decompressed(layout: &Layout, layer: &Descriptor, diff_id: &Digest, budget: &mut Budget) -> Result<File, Error> {
    let mut plain = tempfile::tempfile().map_err(Error::file("create", layout.root()))?;
    let actual = plain_digest(layout, layer, diff_id.algorithm(), budget, &mut plain)?;
    if actual != *diff_id {
        return Err(Error::Mismatch {
            what: format!("layer {}", layer.digest),
            expected: diff_id.clone(),
            actual,
        });
    }
    plain
        .rewind()
        .map_err(Error::file("read", &PathBuf::from(layer.digest.to_string())))?;
    Ok(plain)
}

/// Decompresses a layer. The digest of the result.
pub(super) fn plain_digest(
    layout: &Layout,
    layer: &Descriptor,
    algorithm: Algorithm,
    budget: &mut Budget,
    plain: &mut dyn Write,
) -> Result<Digest, Error> {
    let what = format!("layer {}", layer.digest);
    let mut stream = LayerReader::open(layout, layer, &unpacking_limits(), budget)?;
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
