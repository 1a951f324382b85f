//! Errors of the Go types while a bundle is rendered: fields of the wrong type in the CSV's metadata, in the
//! deployments of its install strategy, and in CRDs.

use serde_json::Value as Json;

use super::Error;
use super::definitions::field;
use super::fits;
use super::manifests::Manifest;
use crate::text::{Numbers, Value};
use olmkit_go::json::Html;
use olmkit_go::json::write_indented;
use olmkit_go::structs::decode::{DecodeError, decode};
use olmkit_go::structs::structs;

/// CRDs must fit their type.
///
/// # Errors
/// opm's message for the first that does not.
pub fn check_crds(manifests: &[Manifest]) -> Result<(), Error> {
    for manifest in manifests
        .iter()
        .filter(|manifest| manifest.kind == "CustomResourceDefinition")
    {
        let (key, name) = match manifest.value.get("apiVersion").and_then(Value::as_str) {
            Some("apiextensions.k8s.io/v1") => ("v1.CustomResourceDefinition", "v1"),
            Some("apiextensions.k8s.io/v1beta1") => ("v1beta1.CustomResourceDefinition", "v1beta1"),
            _ => continue,
        };
        check(&manifest.value, key).map_err(|error| Error::Bundle(format!("error decoding {name} CRD: {error}")))?;
    }
    Ok(())
}

/// The CSV's metadata must fit its type.
///
/// # Errors
/// opm's message, which prints the CSV with a mark after the invalid value.
pub fn check_metadata(csv: &Value<'_>) -> Result<(), Error> {
    let Some(metadata) = field(csv, "metadata") else {
        return Ok(());
    };
    match check(metadata, "ObjectMeta") {
        Ok(()) => Ok(()),
        Err(error) => {
            let offset = offset(csv, &format!("/metadata{}", error.pointer));
            let message = inside(&error, "metadata.");
            let text = csv.to_json(Numbers::Keep, Html::Escape);
            let mut pretty = String::new();
            write_indented(&mut pretty, &text, "    ");
            let (head, tail) = pretty
                .split_at_checked(pretty_offset(&text, &pretty, offset))
                .unwrap_or((&pretty, ""));
            Err(Error::Bundle(format!(
                "{message} at offset {offset} (indicated by <==)\n{head} <== {tail}"
            )))
        }
    }
}

/// The deployments of the install strategy must fit their type.
///
/// # Errors
/// Go's message for the first field that does not.
pub fn check_deployments(spec: &Value<'_>) -> Result<(), Error> {
    let deployments = field(spec, "install")
        .and_then(|install| field(install, "spec"))
        .and_then(|strategy| field(strategy, "deployments"));
    for deployment in deployments.map(Value::items).unwrap_or_default() {
        let Some(spec) = field(deployment, "spec") else {
            continue;
        };
        check(spec, "DeploymentSpec")
            .map_err(|error| Error::Bundle(inside(&error, "Install.spec.Deployments.Spec.")))?;
    }
    Ok(())
}

/// Returns true if a value fits the Go type that the table lists under `key`.
fn check(value: &Value<'_>, key: &str) -> Result<(), DecodeError> {
    let table = structs();
    if table.get(key).is_some_and(|kind| fits::certainly(value, kind, table)) {
        return Ok(());
    }
    decode(&to_json(value), key, false).map(|_| ())
}

/// The error's form if the struct is a nested field.
fn inside(error: &DecodeError, path: &str) -> String {
    const FIELD: &str = "Go struct field ";
    let text = &error.message;
    let dot = text
        .find(FIELD)
        .and_then(|at| text.get(at..)?.find('.').map(|dot| at + dot + 1));
    match dot.and_then(|dot| text.split_at_checked(dot)) {
        Some((before, behind)) => format!("{before}{path}{behind}"),
        None => text.clone(),
    }
}

/// Offset of Go's decoder when it reads the value: after a scalar, after the opening bracket of a list or map.
fn offset(value: &Value<'_>, pointer: &str) -> usize {
    let (mut value, mut before) = (value, 0);
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let mut at = 1;
        let mut found = None;
        for (key, inner) in value.entries() {
            let length = |value: &Value<'_>| value.to_json(Numbers::Keep, Html::Escape).len();
            at += length(&Value::String(key.as_ref().into())) + 1;
            if *key == step {
                found = Some(inner);
                break;
            }
            at += length(inner) + 1;
        }
        let Some(inner) = found else { break };
        value = inner;
        before += at;
    }
    before
        + match value {
            Value::Mapping(_) | Value::Sequence(_) => 1,
            other => other.to_json(Numbers::Keep, Html::Escape).len(),
        }
}

/// The offset in the indented JSON for an offset in the compact JSON.
fn pretty_offset(compact: &str, pretty: &str, offset: usize) -> usize {
    let (mut at, compact) = (0, compact.as_bytes());
    for byte in compact.get(..offset).unwrap_or_default() {
        while pretty.as_bytes().get(at).is_some_and(|other| other != byte) {
            at += 1;
        }
        at += 1;
    }
    at
}

fn to_json(value: &Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Integer(value) => (*value).into(),
        Value::Unsigned(value) => (*value).into(),
        Value::Float(value) => serde_json::Number::from_f64(*value).map_or(Json::Null, Json::Number),
        Value::String(text) => Json::String(text.as_ref().to_owned()),
        Value::Sequence(items) => Json::Array(items.iter().map(to_json).collect()),
        Value::Mapping(entries) => Json::Object(
            entries
                .iter()
                .map(|(key, value)| (key.as_ref().to_owned(), to_json(value)))
                .collect(),
        ),
    }
}
