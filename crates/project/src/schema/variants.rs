//! Variants of an enum with data: their fields are declared on the parent object, and each variant keeps its value
//! validations.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::keywords::VALUE_VALIDATIONS;
use super::{Error, scalar};

/// Enums with data, whose variants are normalized: properties move out, requirements stay inside.
pub(super) fn hoist(
    node: &mut Map<String, Value>,
    keyword: &str,
    variants: Vec<Map<String, Value>>,
    path: &str,
) -> Result<(), Error> {
    let varying = varying_properties(&variants);
    let mut kept = Vec::new();
    for mut alternative in variants {
        let properties = match alternative.remove("properties") {
            Some(Value::Object(properties)) => properties,
            _ => Map::new(),
        };
        if alternative
            .get("additionalProperties")
            .is_some_and(|extra| extra != &Value::Bool(false))
        {
            node.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
        }
        if let Some(own) = alternative.get("type").and_then(Value::as_str) {
            agree_on_type(node, own, path)?;
        } else if !properties.is_empty() {
            agree_on_type(node, "object", path)?;
        }
        let mut tests = Map::new();
        for (name, schema) in properties {
            if let Value::Object(schema) = &schema {
                let mut test = tests_of_property(schema);
                if !varying.contains(&name) {
                    test.retain(|keyword, _| keyword == "enum");
                }
                if !test.is_empty() {
                    tests.insert(name.clone(), Value::Object(test));
                }
            }
            declare(node, &name, schema, path)?;
        }
        if let Some(items) = alternative.remove("items") {
            let declared = node.entry("items").or_insert_with(|| items.clone());
            if *declared != items {
                *declared = Value::Bool(true);
            }
        }
        let mut alternative = tests_of(alternative);
        if !tests.is_empty() {
            alternative.insert("properties".into(), Value::Object(tests));
        }
        kept.push(Value::Object(alternative));
    }
    // Alternatives without validations accept everything: the combination would reject all values (oneOf) or have no
    // effect.
    if kept
        .iter()
        .all(|alternative| alternative.as_object().is_some_and(|tests| !tests.is_empty()))
    {
        node.insert(keyword.into(), Value::Array(kept));
    }
    Ok(())
}

fn agree_on_type(node: &mut Map<String, Value>, own: &str, path: &str) -> Result<(), Error> {
    match node.get("type").and_then(Value::as_str) {
        None => {
            node.insert("type".into(), own.into());
            Ok(())
        }
        Some(present) if present == own => Ok(()),
        // Every integer is a number.
        Some("number") if own == "integer" => Ok(()),
        Some("integer") if own == "number" => {
            node.insert("type".into(), "number".into());
            Ok(())
        }
        Some(present) => Err(Error::MixedTypes {
            path: path.to_owned(),
            types: format!("{present} and {own}"),
        }),
    }
}

/// Declares a variant's property on the object itself, or joins it with the declaration of another variant.
pub(super) fn declare(node: &mut Map<String, Value>, name: &str, schema: Value, path: &str) -> Result<(), Error> {
    let properties = node.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(properties) = properties else {
        return Err(Error::NotASchema {
            path: path.to_owned(),
            what: "properties".into(),
        });
    };
    let Some(Value::Object(present)) = properties.get_mut(name) else {
        properties.insert(name.to_owned(), schema);
        return Ok(());
    };
    let Value::Object(mut other) = schema else {
        return Ok(());
    };
    let (first, second) = (stated_type(present), stated_type(&other));
    if let (Some(first), Some(second)) = (first, second)
        && first != second
    {
        return Err(Error::PropertyClash {
            path: path.to_owned(),
            property: name.to_owned(),
            first,
            second,
        });
    }
    join_values(present, &mut other);
    if let (Some(Value::Object(mine)), Some(Value::Object(theirs))) =
        (present.get_mut("properties"), other.remove("properties"))
    {
        for (key, value) in theirs {
            mine.entry(key).or_insert(value);
        }
    }
    // A bound that only one variant has would bind the other one too.
    for keyword in VALUE_VALIDATIONS {
        if *keyword != "enum" && *keyword != "properties" && present.get(*keyword) != other.get(*keyword) {
            present.remove(*keyword);
        }
    }
    Ok(())
}

/// The values of the tag of an internally tagged enum: what any variant allows.
fn join_values(present: &mut Map<String, Value>, other: &mut Map<String, Value>) {
    let take = |schema: &mut Map<String, Value>| match (schema.remove("enum"), schema.remove("const")) {
        (Some(Value::Array(values)), _) => Some(values),
        (_, Some(value)) => Some(vec![value]),
        _ => None,
    };
    if let (Some(mut values), Some(more)) = (take(present), take(other)) {
        for value in more {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        present.insert("enum".into(), Value::Array(values));
    }
}

fn stated_type(schema: &Map<String, Value>) -> Option<String> {
    match schema.get("type") {
        Some(Value::String(own)) => Some(own.clone()),
        Some(Value::Array(own)) => own
            .iter()
            .filter_map(Value::as_str)
            .find(|own| *own != "null")
            .map(str::to_owned),
        _ => None,
    }
}

/// Properties that several variants have with different schemas: the declaration applies to all variants, so each
/// variant keeps its own validations.
fn varying_properties(variants: &[Map<String, Value>]) -> BTreeSet<String> {
    let mut seen: BTreeMap<&String, &Value> = BTreeMap::new();
    let mut varying = BTreeSet::new();
    for variant in variants {
        for (name, schema) in variant
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if *seen.entry(name).or_insert(schema) != schema {
                varying.insert(name.clone());
            }
        }
    }
    varying
}

/// The value validations of a schema, at every depth, without its specifications.
pub(super) fn tests_of(mut schema: Map<String, Value>) -> Map<String, Value> {
    // Before the type is removed, which identifies integers. Formats are removed too, because the server warns of them.
    scalar::normalise(&mut schema);
    schema.remove("format");
    if let Some(value) = schema.remove("const") {
        schema.entry("enum").or_insert_with(|| Value::Array(vec![value]));
    }
    schema.retain(|keyword, _| VALUE_VALIDATIONS.contains(&keyword.as_str()));
    for (keyword, value) in &mut schema {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(reduce_to_tests),
            ("items" | "not", value) => reduce_to_tests(value),
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => parts.iter_mut().for_each(reduce_to_tests),
            _ => {}
        }
    }
    schema
}

fn reduce_to_tests(value: &mut Value) {
    *value = match value.take() {
        Value::Object(schema) => Value::Object(tests_of(schema)),
        _ => Value::Object(Map::new()),
    };
}

/// A variant's validations of a property that is not normalized yet: combinations may contain references and are left
/// to the property's declaration.
fn tests_of_property(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut tests = schema.clone();
    for keyword in ["allOf", "anyOf", "oneOf", "not", "items"] {
        tests.remove(keyword);
    }
    if let Some(Value::Object(properties)) = tests.get_mut("properties") {
        for property in properties.values_mut() {
            let test = property.as_object().map(tests_of_property).unwrap_or_default();
            *property = Value::Object(test);
        }
        properties.retain(|_, test| test.as_object().is_some_and(|test| !test.is_empty()));
        if properties.is_empty() {
            tests.remove("properties");
        }
    }
    tests = tests_of(tests);
    if let Some(Value::Array(values)) = tests.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    tests
}
