//! The documents of the OCI image specification and of Docker's image format version 2, schema 2, with the fields that
//! are read or written here. The fields have the specification's order, so documents are stable byte for byte.
//! Descriptors and configurations keep the fields that have no name here. Copies keep the raw bytes.

mod ambiguity;
mod config;
pub mod media_type;
mod platform;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::digest::{Digest, Hasher};
pub(crate) use ambiguity::{check_unambiguous, media_type_of};
pub use config::{History, ImageConfig, RootFs, RunConfig};
use media_type::FOREIGN;
pub use media_type::{MediaTypes, is_index, is_layer, is_manifest};
pub use platform::Platform;

/// Refers to content by digest and size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Media type of the content.
    #[serde(default, deserialize_with = "null_as_default")]
    pub media_type: String,
    /// Digest of the content.
    pub digest: Digest,
    /// Size of the content in bytes.
    pub size: u64,
    /// Annotations of the pointer, not of the content.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_as_empty"
    )]
    pub annotations: BTreeMap<String, String>,
    /// For manifests in an index: the platform of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// The type of manifests other than images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// All other fields, such as `urls` and `data`.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Descriptor {
    /// A descriptor without annotations and platform.
    pub fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        let (annotations, platform, artifact_type, other) = Default::default();
        Self {
            media_type: media_type.to_owned(),
            digest,
            size,
            annotations,
            platform,
            artifact_type,
            other,
        }
    }

    /// The content that the descriptor itself contains, if it has this size and digest.
    pub(crate) fn embedded(&self) -> Option<Vec<u8>> {
        let text = self.other.get("data")?.as_str()?;
        let content = STANDARD.decode(text).ok()?;
        let mut hasher = Hasher::new(self.digest.algorithm());
        hasher.update(&content);
        (content.len() as u64 == self.size && hasher.finish() == self.digest).then_some(content)
    }

    /// The first address of a nondistributable layer. `None` for content that belongs to the image's own registry.
    pub fn foreign_url(&self) -> Option<&str> {
        let urls = self.other.get("urls").and_then(Value::as_array)?;
        let first = urls.first().and_then(Value::as_str);
        first.filter(|_| FOREIGN.contains(&self.media_type.as_str()))
    }
}

/// An image manifest of either family.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// 2. Other tools read documents without it too.
    #[serde(default, deserialize_with = "null_as_default")]
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
        deserialize_with = "null_as_empty"
    )]
    pub annotations: BTreeMap<String, String>,
}

/// An index (OCI) or manifest list (Docker).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// 2. Other tools read documents without it too.
    #[serde(default, deserialize_with = "null_as_default")]
    pub schema_version: u32,
    /// The index's own media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The entries of the index.
    #[serde(default, deserialize_with = "null_as_default")]
    pub manifests: Vec<Descriptor>,
    /// Annotations of the index.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_as_empty"
    )]
    pub annotations: BTreeMap<String, String>,
}

/// Go writers print empty maps and lists as `null`.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Go readers take `null` for the empty string.
fn null_as_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let map: Option<BTreeMap<String, Option<String>>> = Option::deserialize(deserializer)?;
    let texts = map.into_iter().flatten();
    Ok(texts.map(|(key, text)| (key, text.unwrap_or_default())).collect())
}
