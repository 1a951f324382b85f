//! CustomResourceDefinitions: the entries under `customresourcedefinitions.owned`.

use olmkit_base::object::SetAt as _;
use serde_json::{Value, json};

use super::collect::Collection;
use super::typed::served;

/// Sets the owned entries: one for each served version. Entries of the base with the same name, version and kind are
/// kept.
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
