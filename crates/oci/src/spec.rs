//! The documents of the OCI image specification and of Docker's image format version 2, schema 2, as far as they are
//! written or understood here. Field order is the specification's own, so documents are stable byte for byte.
//! Unknown fields of foreign documents are left out of these views; the raw bytes are what is copied.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::digest::Digest;

/// Media types of both families.
pub mod media_type {
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
    /// The retired signed manifest of Docker registries before 2016. Recognised so that it can be refused by name.
    pub const DOCKER_SCHEMA_1: &str = "application/vnd.docker.distribution.manifest.v1+prettyjws";
    /// SPDX document as JSON.
    pub const SPDX_JSON: &str = "application/spdx+json";
}

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
            Self::Oci => media_type::OCI_MANIFEST,
            Self::Docker => media_type::DOCKER_MANIFEST,
        }
    }

    /// Media type of an index (manifest list).
    pub fn index(self) -> &'static str {
        match self {
            Self::Oci => media_type::OCI_INDEX,
            Self::Docker => media_type::DOCKER_LIST,
        }
    }

    /// Media type of an image configuration.
    pub fn config(self) -> &'static str {
        match self {
            Self::Oci => media_type::OCI_CONFIG,
            Self::Docker => media_type::DOCKER_CONFIG,
        }
    }

    /// Media type of a gzip layer.
    pub fn layer(self) -> &'static str {
        match self {
            Self::Oci => media_type::OCI_LAYER_GZIP,
            Self::Docker => media_type::DOCKER_LAYER_GZIP,
        }
    }
}

/// Returns true if a media type names an index or manifest list.
pub fn is_index(media_type: &str) -> bool {
    matches!(media_type, media_type::OCI_INDEX | media_type::DOCKER_LIST)
}

/// Returns true if a media type names an image manifest.
pub fn is_manifest(media_type: &str) -> bool {
    matches!(media_type, media_type::OCI_MANIFEST | media_type::DOCKER_MANIFEST)
}

/// Refers to content by digest and size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Media type of the content.
    pub media_type: String,
    /// Digest of the content.
    pub digest: Digest,
    /// Size of the content in bytes.
    pub size: u64,
    /// Annotations of the pointer, not of the content.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub annotations: BTreeMap<String, String>,
    /// For manifests in an index: the platform of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// The type of manifests other than images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
}

impl Descriptor {
    /// A descriptor without annotations and platform.
    pub fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        let (annotations, platform, artifact_type) = Default::default();
        Self {
            media_type: media_type.to_owned(),
            digest,
            size,
            annotations,
            platform,
            artifact_type,
        }
    }
}

/// The platform of an image, written `linux/amd64` or `linux/arm/v7`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Platform {
    /// Processor architecture in Go's spelling: `amd64`, `arm64`, `ppc64le`, `s390x`.
    pub architecture: String,
    /// Operating system in Go's spelling.
    pub os: String,
    /// Variant of the architecture, such as `v7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

impl Platform {
    /// Linux on this machine's architecture.
    pub fn host() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "powerpc64" => "ppc64le",
            other => other,
        };
        Self {
            architecture: architecture.to_owned(),
            os: "linux".to_owned(),
            variant: None,
        }
    }

    /// Returns true if an image for `other` serves a request for this platform: a missing variant matches any.
    pub fn accepts(&self, other: &Self) -> bool {
        self.os == other.os
            && self.architecture == other.architecture
            && (self.variant.is_none() || other.variant.is_none() || self.variant == other.variant)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.os, self.architecture)?;
        match &self.variant {
            Some(variant) => write!(formatter, "/{variant}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split('/').map(str::to_owned);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(os), Some(architecture), variant, None) if !os.is_empty() && !architecture.is_empty() => Ok(Self {
                architecture,
                os,
                variant,
            }),
            _ => Err(format!("{text:?} is not a platform: write linux/amd64 or linux/arm/v7")),
        }
    }
}

/// An image manifest of either family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: u32,
    /// The manifest's own media type. OCI lets writers leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The type of an artifact other than an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The image configuration.
    pub config: Descriptor,
    /// Layers, lowest first.
    #[serde(default, deserialize_with = "null_as_default")]
    pub layers: Vec<Descriptor>,
    /// The manifest this one belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Annotations of the image.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub annotations: BTreeMap<String, String>,
}

/// An index (OCI) or manifest list (Docker).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Always 2.
    pub schema_version: u32,
    /// The index's own media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What the index points at.
    #[serde(default, deserialize_with = "null_as_default")]
    pub manifests: Vec<Descriptor>,
    /// Annotations of the index.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub annotations: BTreeMap<String, String>,
}

/// An image configuration document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageConfig {
    /// When the image was created, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Processor architecture in Go's spelling.
    #[serde(default)]
    pub architecture: String,
    /// Operating system in Go's spelling.
    #[serde(default)]
    pub os: String,
    /// Variant of the architecture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The configuration for container runtimes.
    #[serde(default, deserialize_with = "null_as_default")]
    pub config: RunConfig,
    /// The layers' uncompressed digests.
    pub rootfs: RootFs,
    /// How the layers were built.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub history: Vec<History>,
}

/// The part of an image configuration that a runtime reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct RunConfig {
    /// User and optional group: `65532:65532`.
    #[serde(
        default,
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub user: String,
    /// Ports such as `50051/tcp`; information only.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub exposed_ports: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
    /// Environment, `NAME=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub env: Vec<String>,
    /// The program and its first arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub entrypoint: Vec<String>,
    /// Arguments unless the caller gives others.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub cmd: Vec<String>,
    /// Working directory; absent means `/`.
    #[serde(
        default,
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub working_dir: String,
    /// Labels.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub labels: BTreeMap<String, String>,
}

/// The layers of an image configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Digests of the uncompressed layers, lowest first.
    #[serde(default, deserialize_with = "null_as_default")]
    pub diff_ids: Vec<Digest>,
}

/// One step of an image's history.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// When, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// By what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// A remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// True if the step added no layer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty_layer: bool,
}

/// Go writers print empty maps and lists as `null`.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_are_spelled_as_engines_spell_them() {
        let platform: Platform = "linux/arm/v7".parse().unwrap();
        assert_eq!(platform.to_string(), "linux/arm/v7");
        assert!("linux".parse::<Platform>().is_err());
        assert!(
            "linux/arm64"
                .parse::<Platform>()
                .unwrap()
                .accepts(&"linux/arm64/v8".parse().unwrap())
        );
        assert!(!platform.accepts(&"linux/arm/v6".parse().unwrap()));
    }

    #[test]
    fn configurations_of_go_writers_are_read() {
        let text = r#"{"created":"2024-01-01T00:00:00Z","architecture":"amd64","os":"linux","config":{"Env":null,
            "ExposedPorts":{"50051/tcp":{}},"Labels":null,"Entrypoint":["/bin/opm"]},"rootfs":{"type":"layers","diff_ids":null},
            "history":null}"#;
        let config: ImageConfig = serde_json::from_str(text).unwrap();
        assert_eq!(config.config.entrypoint, ["/bin/opm"]);
        assert!(config.rootfs.diff_ids.is_empty());
    }
}
