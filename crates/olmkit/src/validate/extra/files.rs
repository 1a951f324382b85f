//! FILE, SIZE and META: files as such.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::checked::Checked;
use super::super::context::Context;
use super::warning;
use crate::bundle::Object;
use crate::bundle::load::{MANIFESTS, METADATA, PREFIX};
use crate::types::go_json;
use crate::yaml::{self, Position};

/// Bytes of one request that the API server's store takes.
const MOST_REQUEST_BYTES: usize = 1_500_000;
/// So many keys that stand twice are shown for one file.
const SHOWN: usize = 10;
/// Bytes of all annotations of one object.
const MOST_ANNOTATION_BYTES: usize = 256 << 10;

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut findings: Vec<Checked> = context.bundle.objects.iter().flat_map(object).collect();
    findings.extend(annotations(context));
    findings.extend(labels(context));
    findings.extend(properties(context));
    findings
}

fn object(object: &Object) -> Vec<Checked> {
    let mut findings = Vec::new();
    if let Some(line) = object.second_document {
        let message = "this file holds more than one YAML document; the others are ignored or misread by OLM's tools";
        let mut checked = warning("FILE-1", message)
            .at(object, "")
            .hint("put each object into a file of its own");
        checked.finding.position = Some(Position {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: 1,
        });
        checked.finding.end = None;
        findings.push(checked);
    }
    let duplicates = object.duplicates.iter().filter(|duplicate| !duplicate.merged);
    let more = duplicates.clone().count().saturating_sub(SHOWN);
    for duplicate in duplicates.take(SHOWN) {
        let message = format!(
            "key {:?} stands here again (first in line {}); the last one wins",
            duplicate.key, duplicate.first.line
        );
        let mut checked = warning("FILE-2", message).at(object, "").hint("remove one of the two");
        checked.finding.position = Some(duplicate.second);
        checked.finding.end = None;
        findings.push(checked);
    }
    if more > 0 {
        findings.push(warning("FILE-2", format!("{more} more keys stand twice in a map")).at(object, ""));
    }
    let annotations = object.value.pointer("/metadata/annotations").and_then(Value::as_object);
    let bytes: usize = annotations
        .into_iter()
        .flatten()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if bytes > MOST_ANNOTATION_BYTES && matches!(object.kind(), "ClusterServiceVersion" | "CustomResourceDefinition") {
        let message =
            format!("the annotations have {bytes} bytes together; the API server takes {MOST_ANNOTATION_BYTES}");
        findings.push(
            warning("SIZE-2", message)
                .at(object, "/metadata/annotations")
                .hint("shorten the examples"),
        );
    }
    // JSON is seldom larger than the YAML it comes from.
    let size = if object.node.is_null() {
        0
    } else {
        go_json::compact_length(&object.value)
    };
    if size > MOST_REQUEST_BYTES {
        let message = format!(
            "the object has {size} bytes as JSON; the API server's store takes about {MOST_REQUEST_BYTES} in one request"
        );
        findings.push(
            warning("SIZE-1", message)
                .at(object, "")
                .hint("leave descriptions out of the schemas, or split the API"),
        );
    }
    findings
}

fn annotations(context: &Context<'_>) -> Vec<Checked> {
    let metadata = &context.bundle.metadata;
    let wrong = |key: &str, directory: &str| {
        let value = metadata.get(key)?;
        let clean = value.trim_start_matches("./").trim_end_matches('/');
        (clean != directory).then(|| {
            let message = format!("annotation {key} says {value:?}, the directory is {directory}/");
            warning("META-1", message)
                .in_file(&metadata.file)
                .hint(format!("write `{directory}/`"))
        })
    };
    [wrong(MANIFESTS, "manifests"), wrong(METADATA, "metadata")]
        .into_iter()
        .flatten()
        .collect()
}

/// The labels of the image repeat the annotations: some tools read the ones, some the others.
fn labels(context: &Context<'_>) -> Vec<Checked> {
    let metadata = &context.bundle.metadata;
    let Some(labels) = &context.options.image_labels else {
        return Vec::new();
    };
    let keys: BTreeSet<&str> = labels
        .keys()
        .map(String::as_str)
        .chain(metadata.annotations.keys().map(String::as_str))
        .filter(|key| key.starts_with(PREFIX))
        .collect();
    let shown = |value: Option<&str>| value.map_or("nothing".to_string(), |value| format!("{value:?}"));
    keys.into_iter()
        .filter_map(|key| {
            let (label, annotation) = (labels.get(key).map(String::as_str), metadata.get(key));
            (label != annotation).then(|| {
                let message = format!(
                    "label {key} of the image says {}, the annotation says {}",
                    shown(label),
                    shown(annotation)
                );
                warning("META-3", message).in_file(&metadata.file).hint(
                    "let the Dockerfile's labels repeat the annotations: `olmkit image build` takes them from there",
                )
            })
        })
        .collect()
}

fn properties(context: &Context<'_>) -> Option<Checked> {
    let path = "metadata/properties.yaml";
    let bytes = context.bundle.tree.file(path)?;
    let problem = |message: String, position: Option<Position>| {
        let mut checked = warning("META-2", message)
            .in_file(path)
            .hint("write `properties:` with a list of `type` and `value`");
        checked.finding.position = position;
        Some(checked)
    };
    let node = match yaml::parse(bytes) {
        Ok(node) => node,
        Err(error) => return problem(format!("the properties cannot be read: {error}"), error.position()),
    };
    let list = node.get("properties").unwrap_or(&node);
    if !list.is_sequence() {
        return problem("the properties are no list".to_string(), Some(list.start));
    }
    let incomplete = list
        .items()
        .iter()
        .find(|item| item.get("type").and_then(yaml::Node::as_str).is_none() || item.get("value").is_none());
    incomplete.and_then(|item| {
        problem(
            "this property has no `type` or no `value`".to_string(),
            Some(item.start),
        )
    })
}
