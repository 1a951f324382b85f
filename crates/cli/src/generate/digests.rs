//! Digests of images from their registries.

use crate::runtime::block_on;
use olmkit_oci::Reference;
use olmkit_oci::registry::Client;

/// Asks the registry of an image for its digest.
pub fn look_up(client: &Client, image: &str) -> Result<String, String> {
    let reference: Reference = image.parse().map_err(|error| format!("{error}"))?;
    let resolved = block_on(client.resolve(&reference.with_default_tag()))
        .map_err(|error| error.to_string())?
        .map_err(|error| {
            format!(
                "its digest is unknown: {error}. Push the image first, or set its digest in a file with --image-digests"
            )
        })?;
    Ok(resolved.digest.to_string())
}
