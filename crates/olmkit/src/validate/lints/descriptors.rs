//! DESC: compares the descriptors of owned APIs with the schemas of their CRDs. Consoles create form fields from them,
//! and silently omit one whose path does not exist.

use serde_json::Value;

use crate::diagnostics::{Origin, Severity, define_rules};
use crate::validate::checked::Checked;
use crate::validate::context::{Context, field, items};

define_rules! {
    DESC_1 = {
        id: "DESC-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The path of each descriptor of an owned API should exist in its schema.",
        why: "Consoles show nothing for a path that does not exist.",
        bad: "specDescriptors:\n- path: spec.size   # paths begin below spec",
        good: "specDescriptors:\n- path: size",
        since: "0.1.0",
    }
}

const OWNED: &str = "/spec/customresourcedefinitions/owned";

/// At most this many findings are shown. After a renamed field they are all alike.
const SHOWN: usize = 10;

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let mut found = Vec::new();
    let schemas = context.schemas();
    for (at, api) in csv.list(OWNED).iter().enumerate() {
        let Some(schema) = schemas.get(&(field(api, "name"), field(api, "version"))) else {
            continue;
        };
        for (list, root) in [("specDescriptors", "spec"), ("statusDescriptors", "status")] {
            for (index, descriptor) in items(api, list).iter().enumerate() {
                let path = field(descriptor, "path");
                let Some(missing) = missing_part(schema, root, path) else {
                    continue;
                };
                let message = format!(
                    "{root} path {path:?} does not exist: the schema of {} {} has no {missing:?}",
                    field(api, "kind"),
                    field(api, "version"),
                );
                found.push(
                    Checked::new(&DESC_1, message)
                        .at(csv.object, &format!("{OWNED}/{at}/{list}/{index}/path"))
                        .hint(format!("paths are relative to `{root}` and spelled as in the schema; remove the descriptor of a field that no longer exists")),
                );
            }
        }
    }
    let more = found.len().saturating_sub(SHOWN);
    found.truncate(SHOWN);
    if more > 0 {
        let message = format!("{more} more descriptors have paths that do not exist");
        found.push(Checked::new(&DESC_1, message).at(csv.object, OWNED));
    }
    found
}

/// Target of a step in a schema.
enum Step<'s> {
    /// To a schema.
    Into(&'s Value),
    /// Anything may follow.
    Open,
    /// Nowhere.
    Missing,
}

/// The first part of a path (`pools[0].size`) that the schema does not have below `root`.
fn missing_part<'p>(schema: &Value, root: &'p str, path: &'p str) -> Option<&'p str> {
    // A quoted part may contain dots. Such paths are rare.
    if path.is_empty() || path.contains(['"', '\'']) {
        return None;
    }
    let parts = path.split(['.', '[', ']']).filter(|part| !part.is_empty());
    let mut at = schema;
    for part in std::iter::once(root).chain(parts) {
        match step(at, part) {
            Step::Into(next) => at = next,
            Step::Open => return None,
            Step::Missing => return Some(part),
        }
    }
    None
}

fn step<'s>(schema: &'s Value, part: &str) -> Step<'s> {
    let is_index = part.bytes().all(|byte| byte.is_ascii_digit()) || part == "*";
    if let Some(items) = schema.get("items") {
        // The index is optional.
        return if is_index { Step::Into(items) } else { step(items, part) };
    }
    if let Some(property) = schema.pointer("/properties").and_then(|map| map.get(part)) {
        return Step::Into(property);
    }
    let is_true = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    match schema.get("additionalProperties") {
        Some(Value::Bool(true)) => return Step::Open,
        Some(values @ Value::Object(_)) => return Step::Into(values),
        _ => {}
    }
    // A schema of v1beta1 without a type does not restrict its fields.
    let open = is_true("x-kubernetes-preserve-unknown-fields")
        || is_true("x-kubernetes-embedded-resource")
        || schema.get("type").is_none() && schema.get("properties").is_none();
    if open { Step::Open } else { Step::Missing }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_followed_through_lists_maps_and_open_schemas() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "pools": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}}});
        for path in [
            "size",
            "pools[0].name",
            "pools.name",
            "labels.app",
            "any.thing.at.all",
            "a[\"b\"]",
            "",
        ] {
            assert_eq!(missing_part(&schema, "spec", path), None, "{path}");
        }
        for (path, missing) in [
            ("sizes", "sizes"),
            ("pools[0].size", "size"),
            ("size.max", "max"),
            ("spec.size", "spec"),
        ] {
            assert_eq!(missing_part(&schema, "spec", path), Some(missing), "{path}");
        }
        assert_eq!(missing_part(&schema, "status", "phase"), Some("status"));
    }
}
