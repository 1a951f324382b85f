//! Docker's media types as those of OCI.

use super::Layout;
use crate::error::Error;
use crate::spec::{Descriptor, media_type};

impl Layout {
    /// Writes the manifest of an image with the media types of OCI. The configuration and the layers do not change.
    pub(crate) fn to_oci(&self, image: &Descriptor) -> Result<Descriptor, Error> {
        let mut manifest = self.read_manifest(image)?;
        manifest.media_type = Some(media_type::OCI_MANIFEST.to_owned());
        for part in manifest.layers.iter_mut().chain([&mut manifest.config]) {
            let kind = match part.media_type.as_str() {
                media_type::DOCKER_CONFIG => media_type::OCI_CONFIG,
                media_type::DOCKER_LAYER => media_type::OCI_LAYER,
                media_type::DOCKER_LAYER_GZIP => media_type::OCI_LAYER_GZIP,
                media_type::DOCKER_LAYER_ZSTD => media_type::OCI_LAYER_ZSTD,
                _ => continue,
            };
            part.media_type = kind.to_owned();
        }
        let bytes = serde_json::to_vec(&manifest).map_err(Error::document("manifest"))?;
        let written = self.write_blob(media_type::OCI_MANIFEST, &bytes)?;
        let platform = image.platform.clone();
        Ok(Descriptor { platform, ..written })
    }
}
