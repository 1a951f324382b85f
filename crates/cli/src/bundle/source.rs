//! A bundle as a command names it: a directory or an image.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use olmkit::bundle::load::{Limits, Tree};
use olmkit::olmv1::{Bundle, ReadError};
use olmkit_oci::registry::Platforms;
use olmkit_oci::spec::Platform;
use olmkit_oci::{Location, fetch};

use crate::registry_flags::RegistryFlags;
use crate::runtime::block_on;

/// The directory of a bundle. An image is unpacked into the second argument, which must exist while the bundle is read.
pub fn directory(bundle: &str, folder: &Path, registry: &RegistryFlags) -> anyhow::Result<PathBuf> {
    let directory = Path::new(bundle);
    if directory.is_dir() {
        return Ok(directory.to_owned());
    }
    let location: Location = bundle
        .parse()
        .with_context(|| format!("{bundle:?} is neither a directory nor an image"))?;
    let client = registry.client()?;
    let platform = Platform::host();
    let fetched = block_on(fetch(&client, &location, &Platforms::One(platform.clone())))??;
    fetched.unpack(&platform, folder, &[])?;
    Ok(folder.to_owned())
}

/// A bundle as OLM v1 reads it.
pub fn for_olm_v1(bundle: &str, registry: &RegistryFlags) -> anyhow::Result<Bundle> {
    let folder = olmkit::temporary::Directory::new("bundle")?;
    let tree = Tree::from_dir(&directory(bundle, folder.path(), registry)?, Limits::default())?;
    Bundle::read_to_compare(&tree).map_err(|error| unreadable(bundle, &error))
}

/// The error for a bundle that OLM v1 cannot read, with its position.
pub fn unreadable(name: &str, error: &ReadError) -> anyhow::Error {
    let place = &error.place;
    let line = place
        .position
        .map(|position| format!(":{}:{}", position.line, position.column));
    anyhow::anyhow!(
        "OLM v1 cannot read {name}: {}{}: {}",
        place.file,
        line.unwrap_or_default(),
        error.message
    )
}
