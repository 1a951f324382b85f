//! CSV-3 to CSV-11: the example objects in the annotations.

use std::collections::BTreeSet;

use serde_json::Value;

use super::checked::{Checked, Subject};
use super::context::{Csv, field};
use crate::diagnostics::{Origin, Rule, Severity, define_rules};
use crate::yaml;
use olmkit_go::json;

define_rules! {
    CSV_3 = {
        id: "CSV-3",
        severity: Severity::Warning,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "The ClusterServiceVersion should have annotations.",
        why: "Consoles read the description, capabilities and examples from the annotations.",
        bad: "metadata:\n  name: demo.v1.0.0",
        good: "metadata:\n  name: demo.v1.0.0\n  annotations:\n    alm-examples: '[]'",
        since: "0.1.0",
    }
    CSV_4 = {
        id: "CSV-4",
        severity: Severity::Warning,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "The ClusterServiceVersion should have examples.",
        why: "Consoles fill their forms with the examples. Without them users start with an empty object.",
        bad: "annotations: {capabilities: Basic Install}",
        good: "annotations: {alm-examples: '[…]'}",
        since: "0.1.0",
    }
    CSV_5 = {
        id: "CSV-5",
        severity: Severity::Warning,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "Only one of `alm-examples` and `olm.examples` should be present.",
        why: "If both are present, operator-sdk checks only `alm-examples`.",
        bad: "alm-examples: '[]'\nolm.examples: '[]'",
        good: "alm-examples: '[]'",
        since: "0.1.0",
    }
    CSV_6 = {
        id: "CSV-6",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "The examples must be valid JSON.",
        why: "A console cannot show any example if the JSON does not parse.",
        bad: "alm-examples: '[{},]'",
        good: "alm-examples: '[{}]'",
        since: "0.1.0",
    }
    CSV_7 = {
        id: "CSV-7",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "The examples must be a list. Each item must be an object with a kind.",
        why: "A console matches examples to APIs by their kind.",
        bad: "alm-examples: '{\"kind\": \"A\"}'",
        good: "alm-examples: '[{\"kind\": \"A\"}]'",
        since: "0.1.0",
    }
    CSV_8 = {
        id: "CSV-8",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "An owned CRD must be named `<plural>.<group>`.",
        why: "The API server accepts a CRD only under this name, so OLM would never find another.",
        bad: "name: widgets",
        good: "name: widgets.example.com",
        since: "0.1.0",
    }
    CSV_9 = {
        id: "CSV-9",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "Each example must belong to an API that the operator owns.",
        why: "A console would offer an example for an API that the operator does not serve.",
        bad: "an example of Widget v2 when v1 is owned",
        good: "an example of Widget v1",
        since: "0.1.0",
    }
    CSV_10 = {
        id: "CSV-10",
        severity: Severity::Warning,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "Each owned API should have an example.",
        why: "Users have nothing to start from when they create the first object.",
        bad: "alm-examples: '[]'",
        good: "alm-examples: '[{\"apiVersion\": \"example.com/v1\", \"kind\": \"Widget\", …}]'",
        since: "0.1.0",
    }
}

/// Group, version and kind.
type Key = (String, String, String);

/// Checks the examples.
pub fn check(csv: &Csv<'_>) -> Vec<Checked> {
    if csv.annotations().next().is_none() {
        let hint = "add the annotation `alm-examples` with one example of each API, as a JSON list";
        return vec![
            csv.warning(&CSV_3, "/metadata/annotations", "annotations not found")
                .hint(hint),
        ];
    }
    let mut findings = Vec::new();
    let (key, text) = match (csv.annotation("alm-examples"), csv.annotation("olm.examples")) {
        (None, None) => {
            let hint = "add the annotation `alm-examples` with one example of each API, as a JSON list";
            return vec![
                csv.warning(&CSV_4, "/metadata/annotations", "example annotations not found")
                    .hint(hint),
            ];
        }
        (Some(text), other) => {
            if other.is_some() {
                let detail = "both `alm-examples` and `olm.examples` are present. Checking only `alm-examples`";
                findings.push(
                    csv.warning(&CSV_5, "/metadata/annotations/olm.examples", detail)
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
                // Go's byte offset is not helpful in a value of many lines.
                Err(error) if rule.id == CSV_6.id => {
                    place_in_annotation(&mut checked, csv, &pointer, &error);
                    format!("{key} is not valid JSON: {error}")
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
                let checked = Checked::shared(&CSV_8, Severity::Error, &Subject::None, detail).at(csv.object, &pointer);
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
        let mut checked = Checked::shared(&CSV_9, Severity::Error, &subject, "example must have a provided API")
            .at(csv.object, &pointer);
        checked.finding.message = format!(
            "the example is of {}, which this operator does not own",
            super::bundle::show(key)
        );
        findings.push(checked.hint(
            "list the API under spec.customresourcedefinitions.owned, or correct the example's apiVersion and kind",
        ));
    }
    for key in provided.difference(&examples) {
        let subject = Subject::Value(super::bundle::show(key));
        let mut checked = Checked::shared(
            &CSV_10,
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

/// Points at the fault if the annotation is a literal block, whose lines are those of the file.
fn place_in_annotation(checked: &mut Checked, csv: &Csv<'_>, pointer: &str, error: &serde_json::Error) {
    let (annotation, found) = csv.object.nearest(pointer);
    if !found || annotation.style != yaml::Style::Literal {
        return;
    }
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    // A literal block is indented below its key. How deep is not kept, and the line is enough.
    checked.finding.position = Some(yaml::Position {
        line: annotation.start.line.saturating_add(count(error.line())),
        column: 1,
    });
    checked.finding.end = None;
}

type ExampleError = (&'static Rule, String, &'static str, &'static str);

/// The APIs of the examples.
fn read(text: &str) -> Result<BTreeSet<Key>, ExampleError> {
    if text.is_empty() {
        return Ok(BTreeSet::new());
    }
    if let Err(error) = json::check(text) {
        let head = String::from_utf8_lossy(text.as_bytes().get(..error.offset).unwrap_or_default()).into_owned();
        let value = format!(
            "invalid character at {}\n {head}<--(see the invalid character)",
            error.offset
        );
        return Err((&CSV_6, value, "invalid example", "the value must be a single JSON list"));
    }
    let refuse = |value: String| {
        let hint = "the value is read as YAML after it passed as JSON: write a list of objects, without `\\/` and without \\u surrogate pairs";
        (&CSV_7, value, "error decoding example CustomResource", hint)
    };
    if text.trim_start().starts_with('{') {
        // The JSON reader receives a JSON object, but requires a list.
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
            let kind = olmkit_go::json::kind(other);
            return Err(in_json(format!(
                "json: cannot unmarshal {kind} into Go value of type []unstructured.Unstructured"
            )));
        }
    };
    let mut keys = BTreeSet::new();
    for example in list {
        if !example.is_object() && !example.is_null() {
            let kind = olmkit_go::json::kind(example);
            return Err(in_json(format!(
                "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            )));
        }
        let (api_version, kind) = (field(example, "apiVersion"), field(example, "kind"));
        if kind.is_empty() || api_version.matches('/').count() > 1 {
            return Err(in_json(format!(
                "Object 'Kind' is missing in '{}'",
                json::marshal(example)
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
