//! CSV-3 to CSV-11: the example objects in the annotations.

use std::collections::BTreeSet;

use serde_json::Value;

use super::checked::{Checked, Subject};
use super::context::{Csv, field};
use crate::diagnostics::Severity;
use crate::types::{decode, go_json};
use crate::yaml;

/// Group, version and kind.
type Key = (String, String, String);

/// Checks the examples.
pub fn check(csv: &Csv<'_>) -> Vec<Checked> {
    if csv.annotations().next().is_none() {
        let hint = "add the annotation `alm-examples` with one example of each API, as a JSON list";
        return vec![
            csv.warning("CSV-3", "/metadata/annotations", "annotations not found")
                .hint(hint),
        ];
    }
    let mut findings = Vec::new();
    let (key, text) = match (csv.annotation("alm-examples"), csv.annotation("olm.examples")) {
        (None, None) => {
            let hint = "add the annotation `alm-examples` with one example of each API, as a JSON list";
            return vec![
                csv.warning("CSV-4", "/metadata/annotations", "example annotations not found")
                    .hint(hint),
            ];
        }
        (Some(text), other) => {
            if other.is_some() {
                let detail = "both `alm-examples` and `olm.examples` are present. Checking only `alm-examples`";
                findings.push(
                    csv.warning("CSV-5", "/metadata/annotations/olm.examples", detail)
                        .hint("remove `olm.examples`"),
                );
            }
            ("alm-examples", text)
        }
        (None, Some(text)) => ("olm.examples", text),
    };
    let pointer = format!("/metadata/annotations/{key}");
    let examples = match read(text) {
        Ok(examples) => examples,
        Err((rule, value, detail, hint)) => {
            let mut checked =
                Checked::shared(rule, Severity::Error, &Subject::Value(value.clone()), detail).at(csv.object, &pointer);
            checked.finding.message = match serde_json::from_str::<Value>(text) {
                // The offset that Go tells means little in a text of many lines.
                Err(error) if rule == "CSV-6" => {
                    place_in_annotation(&mut checked, csv, &pointer, &error);
                    format!("{key} is no valid JSON: {error}")
                }
                _ => format!("{detail}: {value}"),
            };
            findings.push(checked.hint(hint));
            return findings;
        }
    };
    let mut provided = BTreeSet::new();
    for (at, owned) in csv.list("/spec/customresourcedefinitions/owned").iter().enumerate() {
        let name = field(owned, "name");
        match name.split_once('.') {
            Some((_, group)) => {
                provided.insert((
                    group.to_string(),
                    field(owned, "version").to_string(),
                    field(owned, "kind").to_string(),
                ));
            }
            None => {
                let detail = format!("couldn't parse plural.group from crd name: {name}");
                let pointer = format!("/spec/customresourcedefinitions/owned/{at}/name");
                let checked =
                    Checked::shared("CSV-8", Severity::Error, &Subject::None, detail).at(csv.object, &pointer);
                findings.push(checked.hint("the name of a CRD is `<plural>.<group>`"));
            }
        }
    }
    for api in csv.list("/spec/apiservicedefinitions/owned") {
        provided.insert((
            field(api, "group").to_string(),
            field(api, "version").to_string(),
            field(api, "kind").to_string(),
        ));
    }
    for key in examples.difference(&provided) {
        let subject = Subject::Value(super::bundle::show(key));
        let mut checked = Checked::shared("CSV-9", Severity::Error, &subject, "example must have a provided API")
            .at(csv.object, &pointer);
        checked.finding.message = format!(
            "the example of {} has no API that this operator owns",
            super::bundle::show(key)
        );
        findings.push(checked.hint(
            "list the API under spec.customresourcedefinitions.owned, or correct the example's apiVersion and kind",
        ));
    }
    for key in provided.difference(&examples) {
        let subject = Subject::Value(super::bundle::show(key));
        let mut checked = Checked::shared(
            "CSV-10",
            Severity::Warning,
            &subject,
            "provided API should have an example annotation",
        )
        .at(csv.object, &pointer);
        checked.finding.message = format!("{} has no example", super::bundle::show(key));
        findings.push(
            checked.hint("add an object of this API to the list: consoles offer it as the form's starting point"),
        );
    }
    findings
}

/// Points at the fault where the annotation's text stands in the file line for line.
fn place_in_annotation(checked: &mut Checked, csv: &Csv<'_>, pointer: &str, error: &serde_json::Error) {
    let (annotation, found) = csv.object.nearest(pointer);
    if !found || annotation.style != yaml::Style::Literal {
        return;
    }
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    // A literal text is indented below its key; how deep is not kept, and the line says enough.
    checked.finding.position = Some(yaml::Position {
        line: annotation.start.line.saturating_add(count(error.line())),
        column: 1,
    });
    checked.finding.end = None;
}

type Refusal = (&'static str, String, &'static str, &'static str);

/// The APIs of the examples.
fn read(text: &str) -> Result<BTreeSet<Key>, Refusal> {
    if text.is_empty() {
        return Ok(BTreeSet::new());
    }
    if let Err(fault) = go_json::check(text) {
        let head = String::from_utf8_lossy(text.as_bytes().get(..fault).unwrap_or_default()).into_owned();
        let value = format!("invalid character at {fault}\n {head}<--(see the invalid character)");
        return Err(("CSV-6", value, "invalid example", "the value must be one JSON list"));
    }
    let refuse = |value: String| {
        let hint = "the value is read as YAML after it passed as JSON: write a list of objects, without `\\/` and without \\u surrogate pairs";
        ("CSV-7", value, "error decoding example CustomResource", hint)
    };
    if text.trim_start().starts_with('{') {
        // A JSON object goes to the JSON reader, which wants a list.
        return Err(refuse(
            "json: cannot unmarshal object into Go value of type []unstructured.Unstructured".to_string(),
        ));
    }
    let document = match yaml::documents_with_lookahead(text.as_bytes(), 8).next() {
        None => return Ok(BTreeSet::new()),
        Some(Ok(node)) => node,
        Some(Err(error)) => return Err(refuse(with_prefix(&error))),
    };
    let value = document.to_json().map_err(|error| refuse(with_prefix(&error)))?;
    let in_json = |text: String| refuse(format!("error unmarshaling JSON: while decoding JSON: {text}"));
    let list = match &value {
        Value::Null => return Ok(BTreeSet::new()),
        Value::Array(list) => list,
        other => {
            let kind = decode::type_name(other);
            return Err(in_json(format!(
                "json: cannot unmarshal {kind} into Go value of type []unstructured.Unstructured"
            )));
        }
    };
    let mut keys = BTreeSet::new();
    for example in list {
        if !example.is_object() && !example.is_null() {
            let kind = decode::type_name(example);
            return Err(in_json(format!(
                "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            )));
        }
        let (api_version, kind) = (field(example, "apiVersion"), field(example, "kind"));
        if kind.is_empty() || api_version.matches('/').count() > 1 {
            return Err(in_json(format!(
                "Object 'Kind' is missing in '{}'",
                go_json::compact(example)
            )));
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        keys.insert((group.to_string(), version.to_string(), kind.to_string()));
    }
    Ok(keys)
}

fn with_prefix(error: &yaml::Error) -> String {
    match error {
        yaml::Error::Yaml { .. } | yaml::Error::NotJson { .. } | yaml::Error::Limit { .. } => {
            format!("error converting YAML to JSON: {error}")
        }
        _ => error.to_string(),
    }
}
