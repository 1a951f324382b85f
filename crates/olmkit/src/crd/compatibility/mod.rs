//! Removals from an older to a newer CustomResourceDefinition: versions, fields, values.
//!
//! The API server accepts nearly every change of a CRD, but stored custom resources may break: OLM blocks an upgrade
//! under which one of them would no longer be valid or readable, and objects silently lose a field that was removed.

mod schema;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::instance::schema_of_version;

/// Kinds of removals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// A version that clients use, or that objects are stored in.
    Version,
    /// Immutable parts: scope, kind.
    Identity,
    /// Values that were allowed.
    Value,
    /// A field. Objects lose its values.
    Field,
    /// The way between versions that differ.
    Conversion,
}

/// One removal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Change {
    /// Kind of removal.
    pub loss: Loss,
    /// JSON pointer into the newer CRD, as far as it has the position.
    pub pointer: String,
    /// The removal, as one sentence.
    pub message: String,
    /// The fix.
    pub hint: &'static str,
}

/// Compares an older definition with a newer one of the same name. Both may be of `apiextensions.k8s.io/v1` or `v1beta1`.
pub fn compare(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = identity(old, new);
    changes.extend(versions(old, new));
    changes.extend(schemas(old, new));
    changes.extend(conversion(old, new));
    changes
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn identity(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    for (what, pointer) in [("scope", "/spec/scope"), ("kind", "/spec/names/kind")] {
        let (before, now) = (text(old, pointer), text(new, pointer));
        if before != now && !before.is_empty() && !now.is_empty() {
            changes.push(Change {
                loss: Loss::Identity,
                pointer: pointer.to_string(),
                message: format!("the {what} was {before}, now it is {now}: the API server never changes it"),
                hint: "keep it, or make a new API under another name",
            });
        }
    }
    changes
}

/// A version of a definition.
#[derive(Debug, Clone)]
struct Version<'v> {
    name: &'v str,
    served: bool,
    stored: bool,
    pointer: String,
}

fn list(definition: &Value) -> Vec<Version<'_>> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    if let Some(versions) = versions.filter(|versions| !versions.is_empty()) {
        let flag = |version: &Value, name: &str| version.get(name).and_then(Value::as_bool).unwrap_or(false);
        return versions
            .iter()
            .enumerate()
            .map(|(at, version)| Version {
                name: text(version, "/name"),
                served: flag(version, "served"),
                stored: flag(version, "storage"),
                pointer: format!("/spec/versions/{at}"),
            })
            .collect();
    }
    // v1beta1 may name its only version in one field.
    let name = text(definition, "/spec/version");
    let only = (!name.is_empty()).then(|| Version {
        name,
        served: true,
        stored: true,
        pointer: "/spec".to_string(),
    });
    only.into_iter().collect()
}

/// The versions of a definition by their names. The first one of a name counts.
fn by_name(definition: &Value) -> HashMap<&str, Version<'_>> {
    let mut versions = HashMap::new();
    for version in list(definition) {
        versions.entry(version.name).or_insert(version);
    }
    versions
}

impl Version<'_> {
    /// Its schema, which all versions of `v1beta1` may share.
    fn schema<'d>(&self, definition: &'d Value) -> Option<&'d Value> {
        let own = definition.pointer(&format!("{}/schema/openAPIV3Schema", self.pointer));
        own.or_else(|| definition.pointer("/spec/validation/openAPIV3Schema"))
    }
}

fn versions(old: &Value, new: &Value) -> Vec<Change> {
    let now = by_name(new);
    let mut changes = Vec::new();
    for before in list(old) {
        let name = before.name;
        let same = now.get(name);
        let (pointer, message, hint) = match same {
            None if before.stored => (
                "/spec/versions".to_string(),
                format!(
                    "version {name}, in which objects are stored, was removed: OLM rejects the upgrade (\"risk of data loss\")"
                ),
                "keep the version with `served: true, storage: false`; drop it a release after all objects are stored in another and status.storedVersions no longer names it",
            ),
            None if before.served => (
                "/spec/versions".to_string(),
                format!("version {name}, which was served, was removed: clients and files that use it stop working"),
                "keep the version, with `deprecated: true`, until it is no longer used",
            ),
            Some(version) if before.served && !version.served => (
                format!("{}/served", version.pointer),
                format!("version {name} is no longer served: clients and files that use it stop working"),
                "serve the version, with `deprecated: true`, until it is no longer used",
            ),
            _ => continue,
        };
        changes.push(Change {
            loss: Loss::Version,
            pointer,
            message,
            hint,
        });
    }
    changes
}

/// Position of a loss, its fix, and the versions that share it.
struct ReportedLoss<'v> {
    pointer: String,
    hint: &'static str,
    versions: BTreeSet<&'v str>,
}

/// Compares the schemas of every version that both have. A loss that versions share is reported once.
fn schemas(old: &Value, new: &Value) -> Vec<Change> {
    let (now, first_before) = (by_name(new), by_name(old));
    let mut losses: BTreeMap<(Loss, String, String), ReportedLoss<'_>> = BTreeMap::new();
    for before in list(old) {
        let (Some(version), Some(first)) = (now.get(before.name), first_before.get(before.name)) else {
            continue;
        };
        let (Some(old_schema), Some(new_schema)) = (first.schema(old), version.schema(new)) else {
            continue;
        };
        let own = format!("{}/schema/openAPIV3Schema", version.pointer);
        let root = if new.pointer(&own).is_some() {
            own
        } else {
            "/spec/validation/openAPIV3Schema".to_string()
        };
        for change in schema::compare(old_schema, new_schema) {
            let key = (change.loss, change.path.clone(), change.message);
            let known = losses.entry(key).or_insert_with(|| ReportedLoss {
                pointer: format!("{root}{}", change.pointer),
                hint: change.hint,
                versions: BTreeSet::new(),
            });
            known.versions.insert(before.name);
        }
    }
    let changes = losses.into_iter().map(|((loss, path, message), reported)| {
        let versions: Vec<&str> = reported.versions.into_iter().collect();
        let path = if path.is_empty() { "the object" } else { &path };
        Change {
            loss,
            pointer: reported.pointer,
            message: format!("{path} {message} ({})", versions.join(", ")),
            hint: reported.hint,
        }
    });
    changes.collect()
}

fn conversion(old: &Value, new: &Value) -> Vec<Change> {
    let is_webhook = |definition: &Value| text(definition, "/spec/conversion/strategy") == "Webhook";
    let now = list(new);
    let mut changes = Vec::new();
    if is_webhook(old) && !is_webhook(new) && now.len() > 1 {
        changes.push(Change {
            loss: Loss::Conversion,
            pointer: "/spec/conversion".to_string(),
            message: "objects were converted by a webhook, now only their apiVersion is changed: fields that the versions name \
                      differently are lost"
                .to_string(),
            hint: "keep the conversion webhook, or keep one version only after all objects are stored in it",
        });
    }
    let stored = |definition: &Value| {
        let versions = list(definition);
        let version = versions.iter().find(|version| version.stored)?;
        Some((version.name.to_string(), version.pointer.clone()))
    };
    let (Some((before, _)), Some((after, pointer))) = (stored(old), stored(new)) else {
        return changes;
    };
    if before == after || is_webhook(new) {
        return changes;
    }
    let of = |definition, version: &str| schema_of_version(definition, version).and_then(|(schema, _)| schema);
    let lost = match (of(old, &before), of(new, &after)) {
        (Some(old), Some(new)) => schema::compare(old, new),
        _ => Vec::new(),
    };
    if let Some(first) = lost.first() {
        let path = if first.path.is_empty() {
            "the object"
        } else {
            &first.path
        };
        changes.push(Change {
            loss: Loss::Conversion,
            pointer: format!("{pointer}/storage"),
            message: format!(
                "objects were stored as {before} and will be stored as {after} without conversion, but the two differ: {path} {}",
                first.message
            ),
            hint: "convert with a webhook, or let the versions have the same fields",
        });
    }
    changes
}

#[cfg(test)]
mod tests;
