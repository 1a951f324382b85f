//! Entries for the operator's own kinds in a base: from its Go types, or from the CRDs that controller-gen generates
//! from them.

use std::path::Path;

use anyhow::Context as _;
use olmkit::crd::display_name;
use olmkit::limits;
use olmkit::object::{GroupVersionKind, SetAt as _};
use olmkit_scaffold::go_markers::{self, Description};
use serde_json::{Value, json};

const OWNED: &str = "/spec/customresourcedefinitions/owned";

/// Replaces the entries of the kinds that have a Go type below `directory`, as operator-sdk does. Other entries keep
/// their position.
pub fn describe_types(base: &mut Value, directory: &Path, kinds: &[GroupVersionKind]) -> anyhow::Result<()> {
    let mut described = go_markers::describe(directory, kinds)?;
    for kind in kinds {
        if !described.iter().any(|description| description.kind == *kind) {
            let effect = if owned(base).iter().any(|entry| kind_of(entry) == *kind) {
                "its entry is unchanged"
            } else {
                "it gets no entry"
            };
            eprintln!("warning: no Go type for {kind} below {}; {effect}", directory.display());
        }
    }
    let others: Vec<Description> = (0..)
        .zip(owned(base))
        .map(|(order, entry)| Description {
            kind: kind_of(&entry),
            order,
            entry,
        })
        .filter(|other| !described.iter().any(|description| description.kind == other.kind))
        .collect();
    // At the same position the described kinds come first.
    described.extend(others);
    described.sort_by_key(|description| description.order);
    set(
        base,
        described.into_iter().map(|description| description.entry).collect(),
    );
    Ok(())
}

/// Group, version and kind of an entry. The group follows the plural in the name.
fn kind_of(entry: &Value) -> GroupVersionKind {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    let name = text("name");
    GroupVersionKind::new(
        name.split_once('.').map_or(name, |(_, group)| group),
        text("version"),
        text("kind"),
    )
}

fn owned(base: &Value) -> Vec<Value> {
    base.pointer(OWNED)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

/// Adds an entry for each served version of those CRDs in `directory` that PROJECT lists and that the base does not
/// describe yet. The description is the type's, the display name is the kind split into words.
pub fn describe_definitions(base: &mut Value, directory: &Path, kinds: &[GroupVersionKind]) -> anyhow::Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?
        .collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::path);
    let mut owned = owned(base);
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
                let is_known = owned
                    .iter()
                    .any(|other| known("name", other) && known("version", other) && known("kind", other));
                if kinds.contains(&kind_of(&entry)) && !is_known {
                    owned.push(entry);
                }
            }
        }
    }
    set(base, owned);
    Ok(())
}

fn set(base: &mut Value, owned: Vec<Value>) {
    if !owned.is_empty() {
        base.set_at(&["spec", "customresourcedefinitions", "owned"], Value::Array(owned));
    }
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
