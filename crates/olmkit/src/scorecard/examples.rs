//! The custom resources in `alm-examples`, and `basic-check-spec`.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::csv::{Csv, crash};
use super::rules::{Answer, EXAMPLES, SC_2, SC_3};
use crate::bundle::Object;
use crate::diagnostics::Severity;
use crate::validate::Checked;
use crate::yaml::{self, Style};
use olmkit_go::json;

/// One custom resource.
#[derive(Debug)]
pub(super) struct Example {
    map: Map<String, Value>,
    /// Its first line in the value, counted from 0.
    pub line: u32,
}

impl Example {
    /// A part of the resource. `None` when it is null or absent.
    pub fn part(&self, key: &str) -> Option<&Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> &str {
        self.map.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// `metadata.name`
    pub fn name(&self) -> &str {
        let name = self.map.get("metadata").and_then(|metadata| metadata.get("name"));
        name.and_then(Value::as_str).unwrap_or_default()
    }

    /// `kind`
    pub fn kind(&self) -> &str {
        self.text("kind")
    }

    /// The version of `apiVersion`
    pub fn version(&self) -> &str {
        let api_version = self.text("apiVersion");
        api_version.split_once('/').map_or(api_version, |(_, version)| version)
    }

    /// Group, version and kind as Go prints them.
    pub fn gvk(&self) -> String {
        let api_version = self.text("apiVersion");
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        format!("{group}/{}, Kind={}", self.version(), self.kind())
    }

    /// The keys of `spec` or `status`, sorted. A part that is something else than a map crashes operator-sdk.
    pub fn keys(&self, part: &str) -> Result<Vec<&str>, Crash> {
        match self.part(part) {
            None => Ok(Vec::new()),
            Some(Value::Object(map)) => {
                let mut keys: Vec<&str> = map.keys().map(String::as_str).collect();
                keys.sort_unstable();
                Ok(keys)
            }
            Some(other) => Err(Crash {
                error: format!(
                    "{part} of the example {} {:?} must be a map, got {}; operator-sdk crashes on it",
                    self.kind(),
                    self.name(),
                    json::kind(other)
                ),
                panic: format!(
                    "interface conversion: interface {{}} is {}, not map[string]interface {{}}",
                    go_type(other)
                ),
            }),
        }
    }
}

/// A crash of operator-sdk.
#[derive(Debug)]
pub(super) struct Crash {
    pub error: String,
    pub panic: String,
}

impl Crash {
    /// Makes it the result of the test.
    pub fn into_answer(self, csv: &Csv<'_>, example: &Example, answer: &mut Answer) {
        answer.add_at(
            csv.object,
            example,
            Checked::new(&SC_2, self.error.clone()).hint("write a map"),
        );
        crash(&mut answer.result, self.error, &self.panic);
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Reads the examples. The error is operator-sdk's.
pub(super) fn read(csv: &Csv<'_>) -> Result<Vec<Example>, String> {
    let text = csv.examples();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    parse(text).map_err(|error| format!("failed to parse alm-examples annotation: {error}"))
}

fn parse(text: &str) -> Result<Vec<Example>, String> {
    json::check(text).map_err(|error| error.message)?;
    let own_words = |error: serde_json::Error| error.to_string();
    let whole: &RawValue = serde_json::from_str(text).map_err(own_words)?;
    let items: Vec<&RawValue> = match whole.get().as_bytes().first() {
        Some(b'[') => serde_json::from_str(whole.get()).map_err(own_words)?,
        Some(b'n') => Vec::new(),
        _ => {
            let value: Value = serde_json::from_str(whole.get()).map_err(own_words)?;
            return Err(misfit(&value, "[]unstructured.Unstructured"));
        }
    };
    let line_of = |item: &RawValue| {
        let before = (item.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let lines = text.get(..before).unwrap_or_default().matches('\n').count();
        u32::try_from(lines).unwrap_or_default()
    };
    items.into_iter().map(|item| example(item, line_of(item))).collect()
}

fn misfit(value: &Value, wanted: &str) -> String {
    format!(
        "json: cannot unmarshal {} into Go value of type {wanted}",
        json::kind(value)
    )
}

fn example(item: &RawValue, line: u32) -> Result<Example, String> {
    let value: Value = serde_json::from_str(item.get()).map_err(|error| error.to_string())?;
    let example = match value {
        Value::Object(map) => Example { map, line },
        Value::Null => Example { map: Map::new(), line },
        other => return Err(misfit(&other, "map[string]interface {}")),
    };
    if example.kind().is_empty() || example.text("apiVersion").matches('/').count() > 1 {
        return Err(format!("Object 'Kind' is missing in '{}'", item.get()));
    }
    Ok(example)
}

/// The finding for examples that cannot be read.
pub(super) fn unreadable(csv: &Csv<'_>, error: &str, answer: &mut Answer) {
    let checked = Checked::new(&SC_2, error).hint("write a JSON list with one object for each owned API");
    answer.add(match csv.object {
        Some(object) => checked.at(object, EXAMPLES),
        None => checked,
    });
}

/// Each example has a spec. Only the first one without is named, and that does not fail the test.
pub(super) fn check_spec(csv: &Csv<'_>, answer: &mut Answer) {
    match read(csv) {
        Ok(examples) => {
            if let Some(example) = examples.iter().find(|example| example.part("spec").is_none()) {
                answer.result.suggest(format!("spec missing from [{}]", example.name()));
                let message = format!("the example {} {:?} has no spec", example.kind(), example.name());
                answer.add_at(
                    csv.object,
                    example,
                    Checked::new(&SC_3, message)
                        .severity(Severity::Warning)
                        .hint("add a spec, `{}` if it needs none"),
                );
            }
        }
        Err(error) => {
            unreadable(csv, &error, answer);
            answer.result.fail(format!("error getting custom resources: {error}"));
        }
    }
}

impl Answer {
    /// Adds a finding about an example, at its line where the annotation is a literal block.
    pub(super) fn add_at(&mut self, csv: Option<&Object>, example: &Example, checked: Checked) {
        let Some(csv) = csv else { return self.add(checked) };
        let mut checked = checked.at(csv, EXAMPLES);
        let (annotation, found) = csv.nearest(EXAMPLES);
        if found && annotation.style == Style::Literal {
            let line = annotation.start.line.saturating_add(1).saturating_add(example.line);
            checked.finding.position = Some(yaml::Position { line, column: 1 });
            checked.finding.end = None;
        }
        checked.finding.object = Some(format!("{}/{}", example.kind(), example.name()));
        self.add(checked);
    }
}
