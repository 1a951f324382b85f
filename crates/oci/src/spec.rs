//! The documents of the OCI image specification and of Docker's image format version 2, schema 2, with the fields that
//! are read or written here. The fields have the specification's order, so documents are stable byte for byte.
//! Descriptors and configurations keep the fields that have no name here. Copies keep the raw bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::digest::{Digest, Hasher};
use super::json;

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

/// Media types of nondistributable layers.
const FOREIGN: [&str; 5] = [
    media_type::OCI_FOREIGN,
    media_type::OCI_FOREIGN_GZIP,
    media_type::OCI_FOREIGN_ZSTD,
    media_type::DOCKER_FOREIGN,
    media_type::DOCKER_FOREIGN_GZIP,
];

/// Returns true if a media type names a file system layer. The bytes show the compression.
pub fn is_layer(media_type: &str) -> bool {
    FOREIGN.contains(&media_type)
        || matches!(
            media_type,
            media_type::OCI_LAYER
                | media_type::OCI_LAYER_GZIP
                | media_type::OCI_LAYER_ZSTD
                | media_type::DOCKER_LAYER
                | media_type::DOCKER_LAYER_GZIP
                | media_type::DOCKER_LAYER_ZSTD
        )
}

/// The fields that decide how a manifest or index is understood.
const DECISIVE: [&str; 6] = ["mediaType", "config", "layers", "manifests", "fsLayers", "history"];

/// Checks that a manifest or index has only the fields of its `media_type`. A document with the fields of both is a manifest for
/// one reader and an index for another (CVE-2021-41190). Go programs accept field names in any case, so a name in
/// another case counts too.
///
/// # Errors
/// The reason why the document is ambiguous.
pub(crate) fn check_unambiguous(bytes: &[u8], media_type: &str) -> Result<(), String> {
    let bytes = json::repair(bytes);
    let Ok(Fields(fields)) = serde_json::from_slice::<Fields<'_>>(&bytes) else {
        // The reader of the document reports the syntax error.
        return Ok(());
    };
    let allowed: &[&str] = if is_index(media_type) {
        &["mediaType", "manifests"]
    } else if is_manifest(media_type) {
        &["mediaType", "config", "layers"]
    } else {
        return Ok(());
    };
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (name, value) in fields {
        let folded = fold(&name);
        let Some(meant) = DECISIVE.into_iter().find(|decisive| fold(decisive) == folded) else {
            continue;
        };
        // Readers differ in what they make of a field that is there twice: the last value, the first, or a mixture.
        if seen.iter().any(|(have, text)| *have == meant && *text != value.get()) {
            return Err(format!("it has the field {meant:?} twice"));
        }
        seen.push((meant, value.get()));
        let is_null = value.get() == "null";
        if meant == "mediaType"
            && let Ok(kind) = serde_json::from_str::<String>(value.get())
            && (is_index(&kind) && is_manifest(media_type) || is_manifest(&kind) && is_index(media_type))
        {
            return Err(format!("it calls itself {kind:?}, but is used as {media_type:?}"));
        }
        if !is_null && !allowed.contains(&meant) {
            return Err(format!(
                "it has the field {name:?}, which a document of type {media_type:?} must not have"
            ));
        }
        if !is_null && name != meant {
            return Err(format!("it spells the field {meant:?} as {name:?}"));
        }
    }
    Ok(())
}

/// The media type of a manifest: its own field if that is the type of an image, else the header, else any own field, else a
/// guess from its fields.
pub(crate) fn media_type_of(bytes: &[u8], header: Option<&str>) -> Option<String> {
    let document: Value = json::parse(bytes).ok()?;
    let own = document.get("mediaType").and_then(Value::as_str);
    let own = own.filter(|own| !own.is_empty());
    let known = own.filter(|own| is_manifest(own) || is_index(own));
    if let Some(kind) = known.or(header).or(own) {
        return Some(kind.to_owned());
    }
    if document.get("manifests").is_some() {
        Some(media_type::OCI_INDEX.to_owned())
    } else if document.get("config").is_some() {
        Some(media_type::OCI_MANIFEST.to_owned())
    } else if document.get("fsLayers").is_some() {
        Some(media_type::DOCKER_SCHEMA_1.to_owned())
    } else {
        None
    }
}

/// A field name as Go's JSON decoder compares it.
fn fold(name: &str) -> String {
    name.chars()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

/// The top-level fields of a JSON object in their order, with repeated names.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Fields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

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

/// The platform of an image, written `linux/amd64` or `linux/arm/v7`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Platform {
    /// Processor architecture in Go's spelling: `amd64`, `arm64`, `ppc64le`, `s390x`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub architecture: String,
    /// Operating system in Go's spelling.
    #[serde(default, deserialize_with = "null_as_default")]
    pub os: String,
    /// Version of the operating system, as Windows images have it.
    #[serde(rename = "os.version", default, skip_serializing_if = "Option::is_none")]
    pub os_version: Option<String>,
    /// Features of the operating system that the image needs.
    #[serde(
        rename = "os.features",
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub os_features: Vec<String>,
    /// Variant of the architecture, such as `v7`.
    #[serde(default, skip_serializing_if = "no_text")]
    pub variant: Option<String>,
}

/// An empty variant means none.
fn no_text(text: &Option<String>) -> bool {
    text.as_ref().is_none_or(String::is_empty)
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
        Self::new("linux", architecture, None)
    }

    /// A platform without a version of its operating system.
    pub fn new(os: &str, architecture: &str, variant: Option<String>) -> Self {
        Self {
            architecture: architecture.to_owned(),
            os: os.to_owned(),
            os_version: None,
            os_features: Vec::new(),
            variant,
        }
    }

    fn variant(&self) -> Option<&str> {
        self.variant.as_deref().filter(|variant| !variant.is_empty())
    }

    /// The platform with the names that containerd uses for systems, architectures and variants.
    fn normalized(&self) -> Self {
        let lower = |text: &str| text.to_ascii_lowercase();
        let variant = self.variant().map(lower);
        let (architecture, variant) = match lower(&self.architecture).as_str() {
            "x86_64" | "x86-64" => ("amd64".to_owned(), variant),
            "i386" => ("386".to_owned(), None),
            "aarch64" => ("arm64".to_owned(), variant),
            "armhf" => ("arm".to_owned(), Some("v7".to_owned())),
            "armel" => ("arm".to_owned(), Some("v6".to_owned())),
            other => (other.to_owned(), variant),
        };
        let is_numbered = matches!(architecture.as_str(), "amd64" | "arm" | "arm64");
        let variant = variant.map(|variant| match variant.as_bytes().first() {
            Some(b'0'..=b'9') if is_numbered => format!("v{variant}"),
            _ => variant,
        });
        let os = match lower(&self.os).as_str() {
            "macos" => "darwin".to_owned(),
            other => other.to_owned(),
        };
        Self {
            os,
            architecture,
            variant,
            ..self.clone()
        }
    }

    /// Returns true if an image has the requested version of the operating system: exactly, or in more detail.
    fn accepts_version(&self, other: &Self) -> bool {
        let Some(wanted) = &self.os_version else { return true };
        let rest = other
            .os_version
            .as_ref()
            .and_then(|have| have.strip_prefix(wanted.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// How well an image for `other` serves a request for this platform. 0 is the best, `None` means that it cannot run.
    /// The exact variant comes first, then an image without a variant, then the lower variants that the processor runs.
    pub fn preference(&self, other: &Self) -> Option<u32> {
        let (wanted, other) = (self.normalized(), other.normalized());
        if wanted.os != other.os || wanted.architecture != other.architecture || !wanted.accepts_version(&other) {
            return None;
        }
        let (wanted, have) = match (wanted.variant(), other.variant()) {
            (wanted, have) if wanted == have => return Some(0),
            (_, None) => return Some(1),
            (None, Some(have)) if IMPLIED.contains(&(other.architecture.as_str(), have)) => return Some(2),
            // The implied variant of an image without one.
            (None, Some(have)) => match (other.architecture.as_str(), level(have)?) {
                // 32-bit programs of version 8 come last: most 32-bit processors are of version 7.
                ("arm", (8, 0)) => return Some(10_000),
                ("arm", have) => ((7, 0), have),
                _ => return None,
            },
            (Some(wanted), Some(have)) => (level(wanted)?, level(have)?),
        };
        let distance = match other.architecture.as_str() {
            "amd64" | "arm" => (wanted.0.checked_sub(have.0)?, wanted.1.checked_sub(have.1)?),
            // ARMv9.0 has all of ARMv8.5, ARMv9.1 all of ARMv8.6, and so on.
            "arm64" if (wanted.0, have.0) == (9, 8) => (1, wanted.1.saturating_add(5).checked_sub(have.1)?),
            "arm64" if wanted.0 == have.0 => (0, wanted.1.checked_sub(have.1)?),
            _ => return None,
        };
        let distance = distance.0.saturating_mul(100).saturating_add(distance.1);
        Some(distance.saturating_add(2))
    }
}

/// The variants that an image without one has.
const IMPLIED: [(&str, &str); 9] = [
    ("amd64", "v1"),
    ("arm64", "v8"),
    ("ppc64", "power8"),
    ("ppc64le", "power8"),
    ("riscv64", "rva20u64"),
    ("mips", "hardfloat"),
    ("mipsle", "hardfloat"),
    ("mips64", "hardfloat"),
    ("mips64le", "hardfloat"),
];

/// The numbers of a variant: 8 and 2 of `v8.2`.
fn level(variant: &str) -> Option<(u32, u32)> {
    let number = variant.strip_prefix('v').unwrap_or(variant);
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

impl fmt::Display for Platform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.os, self.architecture)?;
        if let Some(variant) = self.variant() {
            write!(formatter, "/{variant}")?;
        }
        match &self.os_version {
            Some(version) => write!(formatter, ":{version}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (names, version) = match text.split_once(':') {
            Some((names, version)) => (names, Some(version.to_owned())),
            None => (text, None),
        };
        let mut parts = names.split('/').map(str::to_owned);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(os), Some(architecture), variant, None)
                if !os.is_empty() && !architecture.is_empty() && version.as_deref() != Some("") =>
            {
                let platform = Self::new(&os, &architecture, variant).normalized();
                Ok(Self {
                    os_version: version,
                    ..platform
                })
            }
            _ => Err(format!("{text:?} is not a platform: write linux/amd64 or linux/arm/v7")),
        }
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
    #[serde(default, deserialize_with = "null_as_default")]
    pub architecture: String,
    /// Operating system in Go's spelling.
    #[serde(default, deserialize_with = "null_as_default")]
    pub os: String,
    /// Variant of the architecture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The configuration for container runtimes.
    #[serde(default, deserialize_with = "null_as_default")]
    pub config: RunConfig,
    /// The layers' uncompressed digests.
    #[serde(default, deserialize_with = "null_as_default")]
    pub rootfs: RootFs,
    /// How the layers were built.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub history: Vec<History>,
    /// All other fields, such as `os.version`.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl ImageConfig {
    /// Reads a configuration as the Go tools do.
    pub(crate) fn parse(bytes: &[u8]) -> serde_json::Result<Self> {
        let mut document: Value = json::parse(bytes)?;
        let fields = [
            "created",
            "author",
            "architecture",
            "os",
            "variant",
            "config",
            "rootfs",
            "history",
        ];
        json::spell(&mut document, &fields);
        if let Some(config) = document.get_mut("config") {
            let fields = [
                "User",
                "ExposedPorts",
                "Env",
                "Entrypoint",
                "Cmd",
                "WorkingDir",
                "Labels",
            ];
            json::spell(config, &fields);
            for list in ["Env", "Entrypoint", "Cmd"] {
                let items = config.get_mut(list).and_then(Value::as_array_mut);
                for item in items.into_iter().flatten().filter(|item| item.is_null()) {
                    *item = "".into();
                }
            }
        }
        if let Some(rootfs) = document.get_mut("rootfs") {
            json::spell(rootfs, &["type", "diff_ids"]);
        }
        let history = document.get_mut("history").and_then(Value::as_array_mut);
        for step in history.into_iter().flatten() {
            if step.is_null() {
                *step = Map::new().into();
            }
            json::spell(step, &["created", "created_by", "comment", "empty_layer"]);
        }
        serde_json::from_value(document)
    }
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
    /// Ports such as `50051/tcp`. Information only.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub exposed_ports: BTreeMap<String, Value>,
    /// Environment, `NAME=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub env: Vec<String>,
    /// The program and its first arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub entrypoint: Vec<String>,
    /// Arguments unless the caller gives others.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub cmd: Vec<String>,
    /// Working directory. Absent means `/`.
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
        deserialize_with = "null_as_empty"
    )]
    pub labels: BTreeMap<String, String>,
    /// All other fields, such as `Volumes` and `StopSignal`.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The layers of an image configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type", default = "layers")]
    pub kind: String,
    /// Digests of the uncompressed layers, lowest first.
    #[serde(default, deserialize_with = "null_as_default")]
    pub diff_ids: Vec<Digest>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

fn layers() -> String {
    "layers".to_owned()
}

impl Default for RootFs {
    fn default() -> Self {
        Self {
            kind: layers(),
            diff_ids: Vec::new(),
            other: Map::new(),
        }
    }
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
    #[serde(
        default,
        skip_serializing_if = "std::ops::Not::not",
        deserialize_with = "null_as_default"
    )]
    pub empty_layer: bool,
    /// All other fields, such as `author`.
    #[serde(flatten)]
    pub other: Map<String, Value>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_are_spelled_as_engines_spell_them() {
        let platform: Platform = "linux/arm/v7".parse().unwrap();
        assert_eq!(platform.to_string(), "linux/arm/v7");
        assert!("linux".parse::<Platform>().is_err());
    }

    #[test]
    fn exact_variant_comes_before_plain_and_lower_ones() {
        let order = |wanted: &str, have: &[&str]| -> Vec<String> {
            let wanted: Platform = wanted.parse().unwrap();
            let mut ranked: Vec<(u32, String)> = have
                .iter()
                .filter_map(|text| Some((wanted.preference(&text.parse().unwrap())?, (*text).to_owned())))
                .collect();
            ranked.sort();
            ranked.into_iter().map(|(_, text)| text).collect()
        };
        let amd = [
            "linux/amd64/v3",
            "linux/amd64/v2",
            "linux/amd64/v1",
            "linux/amd64",
            "linux/386",
        ];
        assert_eq!(order("linux/amd64", &amd), ["linux/amd64", "linux/amd64/v1"]);
        assert_eq!(
            order("linux/amd64/v2", &amd),
            ["linux/amd64/v2", "linux/amd64", "linux/amd64/v1"]
        );
        let arm = [
            "linux/arm/v8",
            "linux/arm/v5",
            "linux/arm/v6",
            "linux/arm/v7",
            "linux/arm",
        ];
        let all = [
            "linux/arm",
            "linux/arm/v7",
            "linux/arm/v6",
            "linux/arm/v5",
            "linux/arm/v8",
        ];
        assert_eq!(order("linux/arm", &arm), all);
        assert_eq!(
            order("linux/arm/v6", &arm),
            ["linux/arm/v6", "linux/arm", "linux/arm/v5"]
        );
        let arm64 = [
            "linux/arm64/v9.2",
            "linux/arm64/v9",
            "linux/arm64/v8.6",
            "linux/arm64/v8",
            "linux/arm64",
        ];
        assert_eq!(order("linux/arm64", &arm64), ["linux/arm64", "linux/arm64/v8"]);
        assert_eq!(
            order("linux/arm64/v9", &arm64),
            ["linux/arm64/v9", "linux/arm64", "linux/arm64/v8"]
        );
        assert_eq!(
            order("linux/arm64/v9.1", &arm64[2..4]),
            ["linux/arm64/v8.6", "linux/arm64/v8"]
        );
        assert_eq!(
            order("linux/ppc64le", &["linux/ppc64le/power9", "windows/ppc64le"]),
            [""; 0]
        );
    }

    #[test]
    fn documents_of_two_kinds_are_ambiguous() {
        let (manifest, index) = (media_type::OCI_MANIFEST, media_type::OCI_INDEX);
        for (text, kind) in [
            (r#"{"config":{},"layers":[],"manifests":[]}"#, manifest),
            (r#"{"config":{},"layers":[],"MANIFESTS":[]}"#, manifest),
            (r#"{"config":{},"layers":[],"manife\u017fts":[]}"#, manifest),
            (r#"{"config":{},"fsLayers":[]}"#, media_type::DOCKER_MANIFEST),
            (r#"{"manifests":[],"layers":[]}"#, index),
            (r#"{"manifests":[],"config":{}}"#, media_type::DOCKER_LIST),
            (r#"{"manifests":[],"Manifests":[]}"#, index),
            (r#"{"Layers":[],"config":{}}"#, manifest),
            (r#"{"layers":[],"layers":[{}],"config":{}}"#, manifest),
            (r#"{"mediaType":"a","config":{},"mediaType":"b"}"#, manifest),
            (
                r#"{"mediaType":"application/vnd.oci.image.index.v1+json","config":{}}"#,
                manifest,
            ),
            (
                r#"{"mediatype":"application/vnd.docker.distribution.manifest.v2+json","manifests":[]}"#,
                index,
            ),
        ] {
            assert!(check_unambiguous(text.as_bytes(), kind).is_err(), "{text}");
        }
        for (text, kind) in [
            (
                r#"{"config":{},"layers":[],"manifests":null,"x":{"manifests":[]}}"#,
                manifest,
            ),
            (r#"{"layers":[],"x":1,"layers":[],"x":2,"config":{}}"#, manifest),
            (
                r#"{"mediaType":"application/vnd.docker.distribution.manifest.list.v2+json","manifests":[]}"#,
                index,
            ),
        ] {
            assert_eq!(check_unambiguous(text.as_bytes(), kind), Ok(()), "{text}");
        }
    }

    #[test]
    fn unknown_fields_and_null_values_are_kept() {
        let text = r#"{"created":"x","architecture":"amd64","os":"windows","config":{"Labels":{"a":null},"Volumes":{"/d":{}},
            "ExposedPorts":{"80/tcp":null}},"rootfs":{"type":"layers","diff_ids":[],"x":1},
            "history":[{"author":"me","empty_layer":null}],"os.version":"10.0","new":{"deep":[1]}}"#;
        let config: ImageConfig = serde_json::from_str(text).unwrap();
        let written = serde_json::to_value(&config).unwrap();
        let mut expected: Value = serde_json::from_str(text).unwrap();
        expected["config"]["Labels"]["a"] = "".into();
        expected["history"][0].as_object_mut().unwrap().remove("empty_layer");
        assert_eq!(written, expected);
    }

    #[test]
    fn names_of_platforms_are_those_of_containerd() {
        for (wanted, have) in [
            ("linux/x86_64", "linux/amd64"),
            ("linux/amd64", "Linux/X86_64"),
            ("linux/aarch64", "linux/arm64/8"),
            ("linux/arm/7", "linux/arm/v7"),
            ("linux/armhf", "linux/arm/v7"),
            ("linux/armel", "linux/arm/v6"),
            ("linux/i386", "linux/386"),
            ("macos/arm64", "darwin/arm64"),
            ("linux/ppc64le", "linux/ppc64le/power8"),
            ("linux/riscv64", "linux/riscv64/rva20u64"),
            ("linux/mips64le", "linux/mips64le/hardfloat"),
        ] {
            let mut parts = have.split('/');
            let mut part = || parts.next().map(str::to_owned);
            // As an index has it: not normalized.
            let have = Platform::new(&part().unwrap(), &part().unwrap(), part());
            assert!(
                wanted.parse::<Platform>().unwrap().preference(&have).is_some(),
                "{wanted} {have}"
            );
        }
        assert_eq!("linux/x86_64".parse::<Platform>().unwrap().architecture, "amd64");
    }

    #[test]
    fn the_version_of_the_system_is_compared() {
        let parse = |text: &str| text.parse::<Platform>().unwrap();
        let have = parse("windows/amd64:10.0.17763.1");
        assert_eq!(have.to_string(), "windows/amd64:10.0.17763.1");
        for wanted in [
            "windows/amd64",
            "windows/amd64:10.0.17763.1",
            "windows/amd64:10.0.17763",
        ] {
            assert_eq!(parse(wanted).preference(&have), Some(0), "{wanted}");
        }
        for wanted in [
            "windows/amd64:10.0.177",
            "windows/amd64:10.0.17763.1.2",
            "windows/amd64:11",
        ] {
            assert_eq!(parse(wanted).preference(&have), None, "{wanted}");
        }
        assert_eq!(parse("windows/amd64:10").preference(&parse("windows/amd64")), None);
        assert!("windows/amd64:".parse::<Platform>().is_err());
    }

    #[test]
    fn configurations_are_read_as_go_reads_them() {
        let text = r#"{"OS":"linux","architecture":"x","architecture":"amd64","Config":{"env":[null,"A=1"],"cmd":["/x"],"volumes":{"/d":{}}},
            "RootFS":{"Type":null,"Diff_IDs":null},"history":[null,{"Created_By":"x","comment":null}],"new":null}"#;
        let config = ImageConfig::parse(text.as_bytes()).unwrap();
        assert_eq!((config.os.as_str(), config.architecture.as_str()), ("linux", "amd64"));
        assert_eq!(
            (config.config.env.len(), config.config.cmd.as_slice()),
            (2, ["/x".to_owned()].as_slice())
        );
        assert_eq!(config.rootfs, RootFs::default());
        assert_eq!(config.history[1].created_by.as_deref(), Some("x"));
        let written = serde_json::to_value(&config).unwrap();
        assert_eq!(
            written["config"],
            serde_json::json!({"Env": ["", "A=1"], "Cmd": ["/x"], "volumes": {"/d": {}}})
        );
        assert_eq!(written.get("new"), Some(&Value::Null));
        assert!(written.get("OS").is_none() && written.get("RootFS").is_none());
        assert!(ImageConfig::parse(br#"{"config":{"User":5}}"#).is_err());
        let config = ImageConfig::parse(br#"{"config":{"Labels":{"a":"\ud800"}}}"#).unwrap();
        assert_eq!(config.config.labels["a"], "\u{fffd}");
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
