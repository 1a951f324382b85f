//! Image configurations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{null_as_default, null_as_empty};
use crate::digest::Digest;
use crate::json;

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
