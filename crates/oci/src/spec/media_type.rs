//! Media types of both families.

/// OCI image manifest.
pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// OCI image index.
pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// OCI image configuration.
pub const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// OCI layer, tar, gzip.
pub const OCI_LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// OCI layer, tar.
pub const OCI_LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
/// OCI layer, tar, Zstandard.
pub const OCI_LAYER_ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
/// OCI layer that its owner does not let others distribute.
pub const OCI_FOREIGN: &str = "application/vnd.oci.image.layer.nondistributable.v1.tar";
/// The same, gzip.
pub const OCI_FOREIGN_GZIP: &str = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip";
/// The same, Zstandard.
pub const OCI_FOREIGN_ZSTD: &str = "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd";
/// Docker image manifest.
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// Docker manifest list.
pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// Docker image configuration.
pub const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
/// Docker layer, tar, gzip.
pub const DOCKER_LAYER_GZIP: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
/// Docker layer, tar.
pub const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar";
/// Docker layer, tar, Zstandard.
pub const DOCKER_LAYER_ZSTD: &str = "application/vnd.docker.image.rootfs.diff.tar.zstd";
/// Docker layer that its owner does not let others distribute.
pub const DOCKER_FOREIGN: &str = "application/vnd.docker.image.rootfs.foreign.diff.tar";
/// The same, gzip.
pub const DOCKER_FOREIGN_GZIP: &str = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";
/// The retired signed manifest of Docker registries before 2016. Recognised so that it can be refused by name.
pub const DOCKER_SCHEMA_1: &str = "application/vnd.docker.distribution.manifest.v1+prettyjws";
/// SPDX document as JSON.
pub const SPDX_JSON: &str = "application/spdx+json";

/// The family of media types that an image is written with. Current registries and runtimes accept both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MediaTypes {
    /// The OCI image specification.
    #[default]
    Oci,
    /// Docker image manifest version 2, schema 2, for registries without OCI support.
    Docker,
}

impl MediaTypes {
    /// Media type of an image manifest.
    pub fn manifest(self) -> &'static str {
        match self {
            Self::Oci => OCI_MANIFEST,
            Self::Docker => DOCKER_MANIFEST,
        }
    }

    /// Media type of an index (manifest list).
    pub fn index(self) -> &'static str {
        match self {
            Self::Oci => OCI_INDEX,
            Self::Docker => DOCKER_LIST,
        }
    }

    /// Media type of an image configuration.
    pub fn config(self) -> &'static str {
        match self {
            Self::Oci => OCI_CONFIG,
            Self::Docker => DOCKER_CONFIG,
        }
    }

    /// Media type of a gzip layer.
    pub fn layer(self) -> &'static str {
        match self {
            Self::Oci => OCI_LAYER_GZIP,
            Self::Docker => DOCKER_LAYER_GZIP,
        }
    }
}

/// Returns true if a media type names an index or manifest list.
pub fn is_index(media_type: &str) -> bool {
    matches!(media_type, OCI_INDEX | DOCKER_LIST)
}

/// Returns true if a media type names an image manifest.
pub fn is_manifest(media_type: &str) -> bool {
    matches!(media_type, OCI_MANIFEST | DOCKER_MANIFEST)
}

/// Media types of nondistributable layers.
pub(super) const FOREIGN: [&str; 5] = [
    OCI_FOREIGN,
    OCI_FOREIGN_GZIP,
    OCI_FOREIGN_ZSTD,
    DOCKER_FOREIGN,
    DOCKER_FOREIGN_GZIP,
];

/// Returns true if a media type names a file system layer. The bytes show the compression.
pub fn is_layer(media_type: &str) -> bool {
    FOREIGN.contains(&media_type)
        || matches!(
            media_type,
            OCI_LAYER | OCI_LAYER_GZIP | OCI_LAYER_ZSTD | DOCKER_LAYER | DOCKER_LAYER_GZIP | DOCKER_LAYER_ZSTD
        )
}
