//! Reads a bundle out of an image.

use super::Error;
use super::bundle_source::from_directory;
use super::facts::BundleFacts;
use olmkit_oci::registry::{Client, Platforms};
use olmkit_oci::spec::Platform;
use olmkit_oci::{Location, fetch};

/// Pulls a bundle image and reads what it holds. The catalog will refer to the image as it is written here: the node must be
/// able to pull it by the same name.
///
/// # Errors
/// [`Error::Bundle`].
pub async fn load(reference: &str, client: &Client) -> Result<BundleFacts, Error> {
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
