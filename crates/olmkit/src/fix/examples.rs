//! Examples of owned APIs that have none, from the required fields of their schemas.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::descriptors;
use super::facts::{Facts, Owned, text};
use super::{Action, Proposal, proposal};

/// Deeper schemas are not followed.
const DEPTH: usize = 16;

/// An example for each owned API that has none, together with the descriptors that scorecard then requires.
pub(super) fn propose(facts: &Facts) -> Vec<Proposal> {
    let Some(csv) = facts.csv() else { return Vec::new() };
    let Some(examples) = Facts::examples(&csv) else {
        return Vec::new();
    };
    if csv.annotation("alm-examples").is_none() && csv.annotation("olm.examples").is_some() {
        return Vec::new();
    }
    let mut text_now = csv.annotation("alm-examples").unwrap_or_default().to_owned();
    let mut is_there = csv.annotation("alm-examples").is_some();
    let has_annotations = csv.annotations().next().is_some();
    let mut proposals = Vec::new();
    for owned in facts.owned(&csv) {
        let Some(schema) = owned.schema else { continue };
        if !has_annotations || examples.iter().any(|example| owned.is_of(example)) {
            continue;
        }
        let Some(example) = example(&owned, schema) else {
            continue;
        };
        let Some(new_text) = with_item(&text_now, &example) else {
            continue;
        };
        let mut actions = vec![match is_there {
            true => Action::Replace {
                at: "/metadata/annotations/alm-examples".to_owned(),
                text: new_text.clone(),
            },
            false => Action::Add {
                map: "/metadata/annotations".to_owned(),
                key: "alm-examples".to_owned(),
                value: json!(new_text),
            },
        }];
        let keys: BTreeSet<&str> = descriptors::keys(&example, "spec").collect();
        let missing = descriptors::missing(&owned, "spec", &keys);
        actions.extend(missing.into_iter().flat_map(|(_, actions)| actions));
        (text_now, is_there) = (new_text, true);
        let title = format!("add an example of {} with its required fields", owned.shown());
        // Each value contains the previous ones, so they are applied together.
        proposals.push(proposal(&csv.object.path, title, false, "examples", actions));
    }
    proposals
}

fn example(owned: &Owned<'_>, schema: &Value) -> Option<Value> {
    let (_, group) = text(owned.entry, "name").split_once('.')?;
    let kind = text(owned.entry, "kind");
    let spec = schema.pointer("/properties/spec");
    let mut example = json!({
        "apiVersion": format!("{group}/{}", text(owned.entry, "version")),
        "kind": kind,
        "metadata": {"name": format!("{}-sample", kind.to_lowercase())},
    });
    if let Some(spec) = spec {
        example.as_object_mut()?.insert("spec".to_owned(), value(spec, DEPTH)?);
    }
    Some(example)
}

/// The smallest value of a schema: its default, its first enum value, or one that its type and bounds allow.
fn value(schema: &Value, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    if let Some(default) = schema.get("default") {
        return Some(default.clone());
    }
    if let Some(first) = schema
        .get("enum")
        .and_then(Value::as_array)
        .and_then(|list| list.first())
    {
        return Some(first.clone());
    }
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    match text(schema, "type") {
        "object" => {
            let required = schema.get("required").and_then(Value::as_array);
            let mut map = Map::new();
            for key in required.into_iter().flatten().filter_map(Value::as_str) {
                map.insert(key.to_owned(), value(schema.get("properties")?.get(key)?, depth)?);
            }
            Some(Value::Object(map))
        }
        "array" => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or_default();
            match least {
                0 => Some(json!([])),
                1 => Some(json!([value(schema.get("items")?, depth)?])),
                _ => None,
            }
        }
        "boolean" => Some(json!(false)),
        "integer" | "number" => {
            let least = number("minimum").unwrap_or(0.0).max(0.0).ceil();
            #[allow(clippy::cast_possible_truncation)]
            let whole = least as i64;
            Some(json!(if schema.get("exclusiveMinimum") == Some(&json!(true)) {
                whole + 1
            } else {
                whole
            }))
        }
        "string" if schema.get("pattern").is_none() && schema.get("format").is_none() => {
            let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or_default();
            let word = "example";
            Some(json!(word.repeat(
                usize::try_from(least).ok()?.min(256).div_ceil(word.len()).max(1)
            )))
        }
        _ if schema.get("x-kubernetes-int-or-string").is_some() => Some(json!(1)),
        _ if schema.get("x-kubernetes-preserve-unknown-fields").is_some() => Some(json!({})),
        _ => None,
    }
}

/// A JSON list with one more item, in its existing layout.
fn with_item(text: &str, item: &Value) -> Option<String> {
    let pretty = |item: &Value, indent: &str| -> Option<String> {
        let lines = serde_json::to_string_pretty(item).ok()?;
        let unit = if indent.is_empty() { "  " } else { indent };
        let reindent = |line: &str| {
            let depth = (line.len() - line.trim_start().len()) / 2;
            format!("{indent}{}{}", unit.repeat(depth), line.trim_start())
        };
        Some(lines.lines().map(reindent).collect::<Vec<_>>().join("\n"))
    };
    let body = text.trim_end();
    let head = match body.strip_suffix(']') {
        Some(head) => head.trim_end(),
        None if body.is_empty() => "[",
        None => return None,
    };
    let comma = if head.ends_with('[') { "" } else { "," };
    if !body.is_empty() && !body.contains('\n') && comma == "," {
        return Some(format!("{head}{comma}{item}]"));
    }
    let second = head.lines().nth(1).unwrap_or("  ");
    let indent = second
        .get(..second.len() - second.trim_start().len())
        .unwrap_or_default();
    let end = text.get(body.len()..).unwrap_or_default();
    Some(format!("{head}{comma}\n{}\n]{end}", pretty(item, indent)?))
}
