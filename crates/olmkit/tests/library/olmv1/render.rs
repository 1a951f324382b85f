//! The objects that OLM v1 applies.

use std::path::Path;

use olmkit::bundle::install::CertificateProvider;
use olmkit::bundle::load::Tree;
use olmkit::olmv1::{self, Bundle, Options};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use test_support::corpus;

use super::{count, lines, made_up, real};

fn hex(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Long strings in the recorded form.
fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > 1000 => format!("sha256:{}", hex(text)).into(),
        Value::Array(items) => items.iter().map(shortened).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), shortened(value)))
            .collect(),
        Value::Number(number) => whole(number),
        other => other.clone(),
    }
}

fn whole(number: &serde_json::Number) -> Value {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 => json!(float as i64),
        _ => Value::Number(number.clone()),
    }
}

const FALSE: [&str; 6] = [
    "nullable",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
];

/// A schema without keywords that have no effect, in the recorded form.
fn cleaned(schema: &Value) -> Value {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    match schema {
        Value::Object(fields) => {
            let mut out = Map::new();
            for (key, value) in fields {
                let value = match key.as_str() {
                    "default" | "example" | "enum" => value.clone(),
                    "properties" => Value::Object(
                        value
                            .as_object()
                            .into_iter()
                            .flatten()
                            .map(|(name, value)| (name.clone(), cleaned(value)))
                            .collect(),
                    ),
                    _ => cleaned(value),
                };
                let kept = matches!(key.as_str(), "items" | "additionalProperties") && value.is_object();
                let verbatim = matches!(key.as_str(), "default" | "example" | "enum");
                if !kept && !verbatim && empty(&value) || FALSE.contains(&key.as_str()) && value == Value::Bool(false) {
                    continue;
                }
                out.insert(key.clone(), value);
            }
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(cleaned).collect(),
        Value::Number(number) => whole(number),
        other => other.clone(),
    }
}

/// An object for the comparison: CRDs with the checksum of their schemas.
fn compared(object: &Value) -> Value {
    let mut object = object.clone();
    let fields = object.as_object_mut().unwrap();
    fields.remove("status");
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        metadata.remove("creationTimestamp");
    }
    if object["kind"] == "CustomResourceDefinition" && object.get("schemaSha256").is_none() {
        let mut schemas = Map::new();
        for version in object
            .pointer_mut("/spec/versions")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            let schema = version.as_object_mut().unwrap().remove("schema");
            let name = version["name"].as_str().unwrap_or_default().to_owned();
            schemas.insert(name, cleaned(&schema.unwrap_or_default()));
        }
        object["schemaSha256"] = hex(&Value::Object(schemas).to_string()).into();
    }
    shortened(&object)
}

fn sorted(objects: Vec<Value>) -> Vec<Value> {
    let mut objects: Vec<Value> = objects.iter().map(compared).collect();
    objects.sort_by_key(Value::to_string);
    objects
}

struct Counts {
    renderings: usize,
    objects: usize,
    wrong: Vec<String>,
}

/// Compares all renderings of a line.
fn compare(name: &str, line: &Value, tree: &Tree, counts: &mut Counts) {
    let bundle = Bundle::read(tree);
    for rendering in line["renderings"].as_array().unwrap() {
        counts.renderings += 1;
        let watch = rendering["watch"].as_str().unwrap();
        let mut options = Options::new("install-ns");
        options.config = match &line["config"] {
            Value::Null if watch.is_empty() => Value::Null,
            Value::Null => json!({ "watchNamespace": watch }),
            config => config.clone(),
        };
        options.certificates = match rendering["certProvider"].as_str().unwrap() {
            "service-ca" => Some(CertificateProvider::ServiceCa),
            "none" => None,
            _ => Some(CertificateProvider::CertManager),
        };
        let bundle = match &bundle {
            Ok(bundle) => bundle,
            Err(error) => {
                if rendering["refused"] != error.to_string() {
                    counts.wrong.push(format!("{name}: {error}"));
                }
                continue;
            }
        };
        let label = format!("{name} watching {watch:?} with {}", rendering["certProvider"]);
        let listed = |key: &str| {
            let numbers = rendering.get(key)?.as_array()?.iter();
            let objects = numbers.map(|number| {
                let number = number.as_str().map_or_else(|| number.to_string(), str::to_owned);
                line["objects"][&number].clone()
            });
            Some(sorted(objects.collect()))
        };
        match (olmv1::render(bundle, &options), rendering.get("refused")) {
            (Err(error), Some(refused)) if *refused == error.to_string() => {}
            (Ok(ours), None) => counts.compare(&label, listed("objects").unwrap(), sorted(ours)),
            (ours, refused) => counts.wrong.push(format!(
                "{label}: {:?}\n  instead of {refused:?}",
                ours.map(|_| "objects")
            )),
        }
        if let Some(theirs) = listed("objectsWithoutProvider") {
            let ours = olmv1::objects(bundle, &options).unwrap();
            counts.compare(&label, theirs, sorted(ours));
        }
    }
}

impl Counts {
    fn compare(&mut self, label: &str, theirs: Vec<Value>, ours: Vec<Value>) {
        self.objects += theirs.len();
        if theirs == ours {
            return;
        }
        let (mut missing, mut more) = (theirs.clone(), ours.clone());
        missing.retain(|object| !ours.contains(object));
        more.retain(|object| !theirs.contains(object));
        let list = |objects: &[Value]| objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n    ");
        self.wrong.push(format!(
            "{label}\n  OLM v1: {}\n  olmkit: {}",
            list(&missing),
            list(&more)
        ));
    }
}

fn counted(root: &Path, each: impl FnOnce(&Path, &mut Counts)) -> Counts {
    let mut counts = Counts {
        renderings: 0,
        objects: 0,
        wrong: Vec::new(),
    };
    each(root, &mut counts);
    println!("{} objects compared", counts.objects);
    counts
}

#[test]
fn real_bundles_render_as_in_olm_v1() {
    let Some(root) = corpus("olmv1") else { return };
    let counts = counted(&root, |root, counts| {
        for line in lines(&root.join("render.jsonl")) {
            let Some(tree) = real(root, &line, "bundle", "input") else {
                continue;
            };
            compare(line["bundle"].as_str().unwrap(), &line, &tree, counts);
        }
    });
    count("renderings of real bundles", counts.renderings, &counts.wrong);
    assert!(counts.renderings > 100, "{}", counts.renderings);
}

#[test]
fn made_up_bundles_render_as_in_olm_v1() {
    let Some(root) = corpus("olmv1") else { return };
    let counts = counted(&root, |root, counts| {
        for line in lines(&root.join("synthetic.jsonl")) {
            compare(line["name"].as_str().unwrap(), &line, &made_up(&line["files"]), counts);
        }
    });
    count("renderings of made-up bundles", counts.renderings, &counts.wrong);
    assert!(counts.renderings > 200, "{}", counts.renderings);
}
