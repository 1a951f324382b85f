//! Descriptors that scorecard misses, from the schema of the CRD.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::facts::{Facts, Owned, text};
use super::{Action, Proposal, proposal};
use crate::crd::display_name;

/// A descriptor for each key of the examples' specs that has none; for each key of their status if there is none at all.
pub(super) fn propose(facts: &Facts) -> Vec<Proposal> {
    let Some(csv) = facts.csv() else { return Vec::new() };
    let examples = Facts::examples(&csv).unwrap_or_default();
    let mut seen = BTreeSet::new();
    let mut proposals = Vec::new();
    for owned in facts.owned(&csv) {
        // Of two entries for one kind and version, scorecard sees the first.
        if !seen.insert((text(owned.entry, "kind"), text(owned.entry, "version"))) {
            continue;
        }
        for part in ["spec", "status"] {
            let of_api = examples.iter().filter(|example| owned.is_of(example));
            let keys: BTreeSet<&str> = of_api.flat_map(|example| keys(example, part)).collect();
            for (key, actions) in missing(&owned, part, &keys) {
                let title = format!("add a {part} descriptor for {key} of {}", owned.shown());
                let group = format!("{part} {key} of {}", owned.group());
                proposals.push(proposal(&csv.object.path, title, true, &group, actions));
            }
        }
    }
    proposals
}

/// The keys of `spec` or `status` of a custom resource.
pub(super) fn keys<'a>(example: &'a Value, part: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let map = example.get(part).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, _)| key.as_str())
}

/// The keys without a descriptor, each with the change that adds one.
pub(super) fn missing(owned: &Owned<'_>, part: &str, keys: &BTreeSet<&str>) -> Vec<(String, Vec<Action>)> {
    let list = format!("{part}Descriptors");
    let present = owned
        .entry
        .get(&list)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    if part == "status" && !present.is_empty() {
        return Vec::new();
    }
    let described: BTreeSet<&str> = present.iter().map(|entry| text(entry, "path")).collect();
    let keys = keys.iter().filter(|key| !described.contains(**key));
    keys.map(|key| {
        let action = Action::Append {
            map: owned.pointer.clone(),
            key: list.clone(),
            items: vec![descriptor(owned, part, key)],
        };
        ((*key).to_owned(), vec![action])
    })
    .collect()
}

fn descriptor(owned: &Owned<'_>, part: &str, key: &str) -> Value {
    let property = |name: &str| {
        owned
            .schema?
            .get("properties")?
            .get(part)?
            .get("properties")?
            .get(key)?
            .get(name)
    };
    let description = property("description").and_then(Value::as_str).map(first_sentence);
    let mut descriptor = Map::new();
    if let Some(description) = description.filter(|text| !text.is_empty()) {
        descriptor.insert("description".to_owned(), json!(description));
    }
    descriptor.insert("displayName".to_owned(), json!(display_name(key)));
    descriptor.insert("path".to_owned(), json!(key));
    Value::Object(descriptor)
}

/// The first sentence of a description, on one line.
fn first_sentence(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => text,
    }
}
