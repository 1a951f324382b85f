//! Reads the bundle that is to be installed, from a directory or from a registry.

use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::facts::BundleFacts;
use crate::base::error::Error;
use olmkit::bundle;
use olmkit::catalog::{self, model::Blob};
use olmkit_oci::registry::{Client, Platforms};
use olmkit_oci::spec::Platform;
use olmkit_oci::{Location, fetch};

/// Reads a bundle. An existing directory is a bundle directory, everything else is an image reference.
///
/// # Errors
/// [`Error::Bundle`] if the bundle is invalid.
pub async fn load(source: &str, client: &Client) -> Result<BundleFacts, Error> {
    let path = Path::new(source);
    if path.is_dir() {
        return from_directory(path, None);
    }
    if source.starts_with("./") || source.starts_with('/') || source.starts_with("../") {
        return Err(Error::Bundle(format!("{source}: no such directory")));
    }
    from_image(source, client).await
}

/// Pulls a bundle image and reads its bundle. The catalog will use the same reference, so the node must be able to pull
/// it under this name.
///
/// # Errors
/// [`Error::Bundle`].
async fn from_image(reference: &str, client: &Client) -> Result<BundleFacts, Error> {
    let fault = |what: &str, error: &dyn std::fmt::Display| {
        Error::Bundle(format!("cannot {what} bundle image {reference}: {error}"))
    };
    let location: Location = reference.parse().map_err(|error| fault("read the name of", &error))?;
    let Location::Registry(name) = &location else {
        return Err(Error::Bundle(format!(
            "{reference}: the cluster pulls the bundle by this name, so it must be a reference to a registry"
        )));
    };
    let full = client
        .full_name(name)
        .map_err(|error| fault("find", &error))?
        .to_string();
    let platform = Platform::host();
    let fetched = fetch(client, &location, &Platforms::One(platform.clone()))
        .await
        .map_err(|error| Error::BundleImage {
            image: full.clone(),
            message: error.to_string(),
        })?;
    let folder = olmkit::temporary::Directory::new("bundle").map_err(|error| fault("unpack", &error))?;
    fetched
        .unpack(&platform, folder.path(), &[])
        .map_err(|error| fault("unpack", &error))?;
    from_directory(folder.path(), Some(&full))
}

/// Reads a bundle directory; with an image reference the catalog refers to that instead of holding the manifests.
pub(crate) fn from_directory(path: &Path, image: Option<&str>) -> Result<BundleFacts, Error> {
    let loaded = bundle::load(path).map_err(|error| Error::Bundle(format!("{}: {error}", path.display())))?;
    let manifests: Vec<Value> = loaded
        .objects
        .iter()
        .map(|object| Value::clone(&object.value))
        .filter(|value| !value.is_null())
        .collect();
    let rendered = catalog::render::bundle::directory(path, image.unwrap_or_default())
        .map_err(|error| Error::Bundle(error.to_string()))?;
    let mut text = String::new();
    catalog::write::blob(&Blob::Bundle(rendered), catalog::write::Format::Json, &mut text)
        .map_err(|error| Error::Bundle(error.to_string()))?;
    let blob: Value = serde_json::from_str(&text)
        .map_err(|error| Error::Bundle(format!("the rendered bundle cannot be read back: {error}")))?;
    let mut facts = BundleFacts::new(loaded.package(), manifests, blob, image.map(str::to_owned))?;
    facts.unpacked_size = unpacked_size(&path.join("manifests")).map_err(|source| Error::File {
        path: path.join("manifests"),
        source,
    })?;
    Ok(facts)
}

/// Bytes that the directory's files take in the ConfigMap to which OLM unpacks a bundle image: each is compressed with
/// gzip and encoded in base64.
fn unpacked_size(folder: &Path) -> std::io::Result<usize> {
    let mut size = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            let mut packed = GzEncoder::new(Vec::new(), Compression::default());
            std::io::copy(&mut std::fs::File::open(&path)?, &mut packed)?;
            size += packed.finish()?.len().div_ceil(3) * 4;
        }
    }
    Ok(size)
}
