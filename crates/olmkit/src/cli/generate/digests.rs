//! Images to digests: from a file, then from registries.

use std::path::Path;

use anyhow::Context as _;
use olmkit::bundle::generate::{self, DigestMap, Error, Generated};
use olmkit::image::Reference;
use olmkit::image::registry::Client;

use crate::cli::registry_flags::RegistryFlags;

/// Pins the images of the CSV: what the file knows is not asked for.
pub fn pin(generated: &mut Generated, map: Option<&Path>, registry: &RegistryFlags) -> anyhow::Result<()> {
    let map = match map {
        Some(path) => read(path)?,
        None => DigestMap::new(),
    };
    let client = registry.client()?;
    generate::pin(&mut generated.csv, |image| match map.get(image) {
        Some(digest) if digest.starts_with("sha256:") => Ok(format!("{}@{digest}", without_tag(image))),
        Some(pinned) => Ok(pinned.clone()),
        None => ask(&client, image),
    })?;
    if let Some((_, csv)) = generated.manifests.first_mut() {
        csv.clone_from(&generated.csv);
    }
    Ok(())
}

fn ask(client: &Client, image: &str) -> Result<String, Error> {
    let fail = |reason: String| Error::Digest {
        image: image.to_owned(),
        reason,
    };
    let reference: Reference = image.parse().map_err(|error| fail(format!("{error}")))?;
    let asked = crate::cli::block_on(client.resolve(&reference.with_default_tag()))
        .map_err(|error| fail(error.to_string()))?
        .map_err(|error| {
            fail(format!("its digest is not known: {error}. Push the image first, or name its digest in a file with --image-digests"))
        })?;
    Ok(format!("{}@{}", without_tag(image), asked.digest))
}

fn read(path: &Path) -> anyhow::Result<DigestMap> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    olmkit::yaml::from_slice(&bytes).with_context(|| {
        format!(
            "{} must map images to digests, as in `quay.io/a/b:v1: sha256:…`",
            path.display()
        )
    })
}

/// `host:5000/name` for `host:5000/name:tag`.
fn without_tag(image: &str) -> &str {
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}
