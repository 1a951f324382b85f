//! The kinds that a Go project owns, read from the definitions that controller-gen makes of its types.

use std::path::Path;

use anyhow::Context as _;
use olmkit::crd::display_name;
use olmkit::limits;
use olmkit::object::SetAt as _;
use serde_json::{Value, json};

/// Adds an entry to the base for each served version of a definition in `directory` that it does not describe yet. The
/// description is that of the type, the display name its name in words, as operator-sdk says without a marker.
pub fn describe(base: &mut Value, directory: &Path) -> anyhow::Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?
        .collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::path);
    let pointer = "/spec/customresourcedefinitions/owned";
    let mut owned = base
        .pointer(pointer)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for file in files.iter().map(std::fs::DirEntry::path) {
        let is_yaml = matches!(file.extension().and_then(|end| end.to_str()), Some("yaml" | "yml"));
        if !is_yaml || !file.is_file() {
            continue;
        }
        let bytes = limits::read_file(&file, &limits::GENERATE_INPUT)
            .with_context(|| format!("cannot read {}", file.display()))?;
        for node in olmkit::yaml::documents(&bytes) {
            let definition = node
                .and_then(|node| node.to_json())
                .with_context(|| file.display().to_string())?;
            for entry in entries(&definition) {
                let known = |field: &str, other: &Value| other.get(field) == entry.get(field);
                if !owned
                    .iter()
                    .any(|other| known("name", other) && known("version", other) && known("kind", other))
                {
                    owned.push(entry);
                }
            }
        }
    }
    if !owned.is_empty() {
        base.set_at(&["spec", "customresourcedefinitions", "owned"], Value::Array(owned));
    }
    Ok(())
}

fn entries(definition: &Value) -> Vec<Value> {
    let text = |value: &Value, pointer: &str| {
        let found = value.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    if text(definition, "/kind") != "CustomResourceDefinition" {
        return Vec::new();
    }
    let kind = text(definition, "/spec/names/kind");
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    versions
        .into_iter()
        .flatten()
        .filter(|version| version.get("served") == Some(&Value::Bool(true)))
        .map(|version| {
            json!({
                "description": text(version, "/schema/openAPIV3Schema/description"),
                "displayName": display_name(&kind),
                "kind": kind,
                "name": text(definition, "/metadata/name"),
                "version": text(version, "/name"),
            })
        })
        .collect()
}
