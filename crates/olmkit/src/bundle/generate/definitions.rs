//! CustomResourceDefinitions: the entries under `customresourcedefinitions.owned`.

use crate::object::SetAt as _;
use serde_json::{Value, json};

use super::collect::{Collection, Typed};

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

/// Sets the owned entries: one for each served version. What the base says about the same name, version and kind is kept.
pub(super) fn apply(found: &Collection, csv: &mut Value) {
    let described: Vec<Value> = csv
        .pointer("/spec/customresourcedefinitions/owned")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let text = |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let owned: Vec<Value> = found
        .definitions
        .iter()
        .flat_map(served)
        .map(|key| {
            described
                .iter()
                .rev()
                .find(|entry| {
                    text(entry, "name") == key.name
                        && text(entry, "version") == key.version
                        && text(entry, "kind") == key.kind
                })
                .cloned()
                .unwrap_or_else(|| json!({"name": key.name, "version": key.version, "kind": key.kind}))
        })
        .collect();
    csv.set_at(&["spec", "customresourcedefinitions", "owned"], Value::Array(owned));
}
