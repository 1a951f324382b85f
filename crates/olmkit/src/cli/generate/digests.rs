//! Images to digests: from a file, then from registries.

use std::path::Path;

use anyhow::Context as _;
use olmkit::bundle::generate::{self, DigestMap, Error, Generated};

/// Pins the images of the CSV.
pub fn pin(generated: &mut Generated, map: Option<&Path>) -> anyhow::Result<()> {
    let map = match map {
        Some(path) => read(path)?,
        None => DigestMap::new(),
    };
    generate::pin(&mut generated.csv, |image| match map.get(image) {
        Some(digest) if digest.starts_with("sha256:") => Ok(format!("{}@{digest}", without_tag(image))),
        Some(pinned) => Ok(pinned.clone()),
        None => Err(Error::Digest {
            image: image.to_owned(),
            reason: "it is not in the file of --image-digests".into(),
        }),
    })?;
    if let Some((_, csv)) = generated.manifests.first_mut() {
        csv.clone_from(&generated.csv);
    }
    Ok(())
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
