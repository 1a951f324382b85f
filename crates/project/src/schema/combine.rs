//! `anyOf`, `oneOf`, `allOf`: converts schemars' form of options, enums and flattened structs to the structural form.
//!
//! A structural schema declares type, description, default and every property outside the combination. Inside are only
//! value validations. So properties of variants move out (they are hoisted), and the variants keep their required
//! properties and allowed values.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Error;
use super::variants::{declare, hoist, tests_of};

/// Converts the combinations of one node, whose children are not yet normalized, to the structural form. Afterwards the
/// node has a type if the alternatives had one, and every property of a variant is declared on the node.
pub(super) fn normalise(node: &mut Map<String, Value>, path: &str) -> Result<(), Error> {
    flatten_all_of(node, path)?;
    for keyword in ["oneOf", "anyOf"] {
        let Some(Value::Array(alternatives)) = node.remove(keyword) else {
            continue;
        };
        let before = alternatives.len();
        let alternatives: Vec<Value> = alternatives.into_iter().filter(|schema| !is_null(schema)).collect();
        if alternatives.len() < before {
            node.insert("nullable".into(), true.into());
        }
        if let [single] = alternatives.as_slice() {
            if let Value::Object(single) = single.clone() {
                merge_into(node, single, path)?;
            }
            // The merged schema may have a combination itself (an optional enum with data).
            flatten_all_of(node, path)?;
            if node.contains_key("oneOf") || node.contains_key("anyOf") {
                return normalise(node, path);
            }
        } else if is_int_or_string(&alternatives) {
            node.remove("type");
            node.insert("x-kubernetes-int-or-string".into(), true.into());
            node.insert(
                "anyOf".into(),
                serde_json::json!([{"type": "integer"}, {"type": "string"}]),
            );
        } else if let Some(merged) = plain_enum(&alternatives) {
            merge_into(node, merged, path)?;
        } else if !alternatives.is_empty() {
            hoist(node, keyword, normalised_variants(alternatives, path)?, path)?;
        }
    }
    if let Some(Value::Object(not)) = node.remove("not") {
        for (name, schema) in not.get("properties").and_then(Value::as_object).into_iter().flatten() {
            // Only its type: the other keywords of `not` do not apply to the value.
            let of = schema.get("type").map(|of| serde_json::json!({ "type": of }));
            declare(node, name, of.unwrap_or(Value::Bool(true)), path)?;
        }
        node.insert("not".into(), Value::Object(tests_of(not)));
    }
    Ok(())
}

/// Variants of an enum with data. A combination inside a variant (an enum inside an enum) is hoisted first, so that its
/// properties are found.
fn normalised_variants(alternatives: Vec<Value>, path: &str) -> Result<Vec<Map<String, Value>>, Error> {
    let mut variants = Vec::new();
    for alternative in alternatives {
        let Value::Object(mut variant) = alternative else {
            continue;
        };
        normalise(&mut variant, path)?;
        variants.push(variant);
    }
    Ok(variants)
}

/// A schema that only null satisfies.
fn is_null(schema: &Value) -> bool {
    let Value::Object(schema) = schema else { return false };
    if schema.get("type").and_then(Value::as_str) == Some("null") || schema.get("const") == Some(&Value::Null) {
        return schema
            .get("enum")
            .is_none_or(|values| values == &serde_json::json!([null]));
    }
    if schema
        .get("enum")
        .is_some_and(|values| values == &serde_json::json!([null]))
    {
        return true;
    }
    // OpenAPI 3.0 has no null type. Schemars writes it as an enum of null that is nullable.
    schema.get("nullable") == Some(&Value::Bool(true)) && schema.len() == 1
}

fn is_int_or_string(alternatives: &[Value]) -> bool {
    let types: BTreeSet<&str> = alternatives
        .iter()
        .filter_map(|schema| schema.get("type").and_then(Value::as_str))
        .collect();
    alternatives.len() == 2 && types == BTreeSet::from(["integer", "string"])
}

/// Merges the members of `allOf` into the node. Correct for schemars' uses: one reference with a sibling description,
/// and the parts of a flattened struct.
fn flatten_all_of(node: &mut Map<String, Value>, path: &str) -> Result<(), Error> {
    while let Some(Value::Array(parts)) = node.remove("allOf") {
        let mut combinations = Vec::new();
        for part in parts {
            let Value::Object(mut part) = part else { continue };
            // Two parts that are both enums with data cannot share one oneOf: they remain separate inside allOf.
            for keyword in ["oneOf", "anyOf"] {
                if node.contains_key(keyword)
                    && part.contains_key(keyword)
                    && let Some(value) = part.remove(keyword)
                {
                    combinations.push((keyword, value));
                }
            }
            merge_into(node, part, path)?;
        }
        let mut kept = Vec::new();
        for (keyword, alternatives) in combinations {
            let mut holder = Map::new();
            holder.insert(keyword.into(), alternatives);
            normalise(&mut holder, path)?;
            let mut tests = Map::new();
            for keyword in ["oneOf", "anyOf", "allOf"] {
                if let Some(value) = holder.remove(keyword) {
                    tests.insert(keyword.into(), value);
                }
            }
            merge_into(node, holder, path)?;
            kept.push(Value::Object(tests));
        }
        if !kept.is_empty() {
            node.insert("allOf".into(), Value::Array(kept));
            return Ok(());
        }
    }
    Ok(())
}

/// An enum whose variants carry no data: every alternative is a list of values of one type. Descriptions of the variants
/// are kept as a list below the description of the enum, where `kubectl explain` shows them.
fn plain_enum(alternatives: &[Value]) -> Option<Map<String, Value>> {
    let mut values: Vec<Value> = Vec::new();
    let mut lines = Vec::new();
    let mut kind: Option<&str> = None;
    for alternative in alternatives {
        let alternative = alternative.as_object()?;
        if alternative.contains_key("properties") {
            return None;
        }
        let own: Vec<Value> = match (alternative.get("enum"), alternative.get("const")) {
            (Some(Value::Array(own)), _) => own.clone(),
            (None, Some(value)) => vec![value.clone()],
            _ => return None,
        };
        let this = alternative
            .get("type")
            .and_then(Value::as_str)
            .or_else(|| own.first().map(type_of))?;
        if *kind.get_or_insert(this) != this {
            return None;
        }
        if let (Some(description), [Value::String(name)]) =
            (alternative.get("description").and_then(Value::as_str), own.as_slice())
        {
            lines.push(format!("* {name}: {}", description.trim().replace('\n', "\n  ")));
        }
        values.extend(own.into_iter().filter(|value| !value.is_null()));
    }
    let mut merged = Map::new();
    merged.insert("type".into(), kind?.into());
    merged.insert("enum".into(), Value::Array(values));
    if !lines.is_empty() {
        merged.insert(VARIANTS.into(), lines.join("\n").into());
    }
    Some(merged)
}

/// Temporary key of [`plain_enum`] for the descriptions of variants, until the description of the enum is known.
const VARIANTS: &str = "x-olmkit-variants";

/// Moves the collected descriptions of variants below the node's own description.
pub(super) fn describe_variants(node: &mut Map<String, Value>) {
    let Some(Value::String(variants)) = node.remove(VARIANTS) else {
        return;
    };
    let text = match node.get("description").and_then(Value::as_str) {
        Some(own) if !own.is_empty() => format!("{own}\n\n{variants}"),
        _ => variants,
    };
    node.insert("description".into(), text.into());
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Merges a schema into the node that refers to it. The node's own keywords win: a field's documentation replaces that
/// of its type.
pub(super) fn merge_into(node: &mut Map<String, Value>, other: Map<String, Value>, path: &str) -> Result<(), Error> {
    for (keyword, value) in other {
        match (keyword.as_str(), node.get_mut(&keyword)) {
            ("required", Some(Value::Array(present))) => {
                if let Value::Array(more) = value {
                    for name in more {
                        if !present.contains(&name) {
                            present.push(name);
                        }
                    }
                }
            }
            ("properties", Some(Value::Object(present))) => {
                if let Value::Object(more) = value {
                    for (name, schema) in more {
                        present.entry(name).or_insert(schema);
                    }
                }
            }
            ("type", Some(present)) => {
                let (mine, theirs) = (present.clone(), value);
                if mine != theirs && !mine.is_array() && !theirs.is_array() {
                    return Err(Error::MixedTypes {
                        path: path.to_owned(),
                        types: format!("{mine} and {theirs}"),
                    });
                }
                // A list of types (with null) yields to the plain one.
                if mine.is_array() {
                    node.insert(keyword, theirs);
                }
            }
            (_, Some(_)) => {}
            (_, None) => {
                node.insert(keyword, value);
            }
        }
    }
    Ok(())
}
