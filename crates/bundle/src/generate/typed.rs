//! Objects decoded by their Go types, and the versions that a CRD among them serves.

use serde_json::Value;

use super::{Document, Notice, Weight};

/// An object with its position, decoded by its Go type: only known fields, no nulls.
#[derive(Debug, Clone)]
pub(super) struct Typed {
    pub document: Document,
    pub value: Value,
}

impl Typed {
    pub fn name(&self) -> &str {
        self.value
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub fn namespace(&self) -> &str {
        self.value
            .pointer("/metadata/namespace")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub fn list(&self, pointer: &str) -> &[Value] {
        self.value
            .pointer(pointer)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    pub fn notice(&self, weight: Weight, message: impl Into<String>, hint: impl Into<String>) -> Notice {
        Notice {
            weight,
            origin: self.document.origin.clone(),
            object: self.document.object(),
            message: message.into(),
            hint: hint.into(),
        }
    }
}

/// A served version of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Served {
    pub name: String,
    pub group: String,
    pub version: String,
    pub kind: String,
}

/// The versions that a definition serves. In v1beta1 a definition may name its only version in `spec.version`.
pub(super) fn served(definition: &Typed) -> Vec<Served> {
    let text = |pointer: &str| {
        definition
            .value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let key = |version: String| Served {
        name: definition.name().to_owned(),
        group: text("/spec/group"),
        kind: text("/spec/names/kind"),
        version,
    };
    let versions = definition.list("/spec/versions");
    let beta = definition.document.group_version().1 == "v1beta1";
    if beta && versions.is_empty() {
        return vec![key(text("/spec/version"))];
    }
    versions
        .iter()
        .filter(|version| version.get("served") == Some(&Value::Bool(true)))
        .map(|version| {
            key(version
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned())
        })
        .collect()
}
