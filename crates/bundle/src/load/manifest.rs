//! One file of the manifests directory, read as the reference tools read it.

use std::sync::Arc;

use serde_json::Value;

use super::Object;
use super::documents::{self, DocumentError};
use olmkit_diagnostics::{Finding, Origin, Severity, define_rules};
use olmkit_yaml as yaml;

define_rules! {
    LOAD_5 = {
        id: "LOAD-5",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle loader"),
        summary: "Every other file must contain a Kubernetes object with a kind.",
        why: "Every file in the directory is applied to the cluster, so each must be an object.",
        bad: "manifests/README.md",
        good: "README.md",
        since: "0.1.0",
    }
}

/// Result of the generic reading of a file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Manifest {
    /// Path relative to the bundle root.
    pub path: String,
    /// The first document as an object, or why it is not one.
    pub object: Result<Object, Box<Finding>>,
    /// Kind of the first JSON value if the file is JSON that the YAML reader rejects.
    pub json_kind: Option<String>,
}

impl Manifest {
    /// Reads a file.
    pub fn read(path: &str, bytes: &[u8]) -> Self {
        let object = read_object(path, bytes).map_err(|problem| Box::new(problem.file(path)));
        let json_kind = match &object {
            Ok(_) => None,
            Err(_) => {
                first_json_value(bytes).and_then(|value| value.get("kind").and_then(Value::as_str).map(str::to_string))
            }
        };
        Self {
            path: path.to_string(),
            object,
            json_kind,
        }
    }

    /// The kind that decides whether this file is read as a ClusterServiceVersion.
    pub fn kind(&self) -> &str {
        match &self.object {
            Ok(object) => object.kind(),
            Err(_) => self.json_kind.as_deref().unwrap_or_default(),
        }
    }
}

fn read_object(path: &str, bytes: &[u8]) -> Result<Object, Box<Finding>> {
    let documents = documents::split(bytes).map_err(|error| {
        let line = match &error {
            DocumentError::Separator { line, .. } => Some(*line),
            DocumentError::Empty => None,
        };
        let mut problem = Finding::from_rule(&LOAD_5, error.to_string())
            .hint("the file needs a Kubernetes object; only a comment may follow `---` on its line");
        problem.position = line.map(|line| yaml::Position {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: 1,
        });
        problem
    })?;
    let (document, value) = parse(&documents.first)?;
    check_kind(&value)?;
    Ok(Object {
        path: path.to_string(),
        node: Arc::new(document.root),
        duplicates: document.duplicates,
        value: Arc::new(value),
        typed: None,
        is_exact: false,
        typed_document: documents.typed,
        second_document: documents.second_line,
    })
}

/// Reads one YAML document into the tree and the JSON value.
pub(super) fn parse(bytes: &[u8]) -> Result<(yaml::Document, Value), Box<Finding>> {
    let document = yaml::parse_document(bytes).map_err(|error| failed(&error))?;
    let value = document.root.to_json().map_err(|error| failed(&error))?;
    Ok((document, value))
}

/// Converts annotations with the values `.inf` and `.nan` to strings, as the reference tools read them in metadata
/// files. Anywhere else such values are rejected.
pub(super) fn infinite_annotations_as_text(root: &mut yaml::Node) {
    let yaml::Value::Mapping(entries) = &mut root.value else {
        return;
    };
    let named = entries
        .iter_mut()
        .filter(|(key, _)| key.as_str() == Some("annotations"));
    for (_, map) in named {
        let yaml::Value::Mapping(annotations) = &mut map.value else {
            continue;
        };
        for (_, value) in annotations {
            let text = match value.value {
                yaml::Value::Float(number) if number.is_nan() => "NaN",
                yaml::Value::Float(f64::INFINITY) => "+Inf",
                yaml::Value::Float(f64::NEG_INFINITY) => "-Inf",
                _ => continue,
            };
            value.value = yaml::Value::String(text.to_string());
        }
    }
}

pub(super) fn failed(error: &yaml::Error) -> Box<Finding> {
    let mut problem = Finding::from_rule(&LOAD_5, conversion_text(error));
    problem.position = error.position();
    problem.hint = syntax_hint(error);
    Box::new(problem)
}

/// The usual cause of the parser's error.
fn syntax_hint(error: &yaml::Error) -> Option<String> {
    let yaml::Error::Yaml { problem, .. } = error else {
        return None;
    };
    let has = |words: &str| problem.contains(words);
    let hint = if has("found character that cannot start any token") || has("tab character") {
        "YAML is indented with spaces, not tabs; a value that starts with `@`, `%` or a backquote needs quotes"
    } else if has("mapping values are not allowed") {
        "indent this line like the keys around it, or quote a value that contains `: `"
    } else if has("did not find expected key") || has("did not find expected '-' indicator") {
        "this line is indented otherwise than the lines before it that it belongs to"
    } else if has("could not find expected ':'") {
        "a key without `:`, or a text of several lines that is not indented under its key"
    } else if has("unexpected end of stream") {
        "close the text that begins here with the same quote"
    } else if has("unknown escape character") {
        "double the backslash in a string with double quotes, or use single quotes"
    } else if has("UTF-8") || has("control characters") {
        "save the file as UTF-8 text"
    } else if has("unknown anchor") {
        "a value that starts with `*` needs quotes, unless it is an alias"
    } else {
        return None;
    };
    Some(hint.to_string())
}

fn conversion_text(error: &yaml::Error) -> String {
    match error {
        yaml::Error::Convert(_) | yaml::Error::Unmarshal(_) => error.to_string(),
        _ => format!("error converting YAML to JSON: {error}"),
    }
}

/// The generic reading requires a map with a kind. An empty document passes.
fn check_kind(value: &Value) -> Result<(), Box<Finding>> {
    let refuse =
        |text: String| Finding::from_rule(&LOAD_5, format!("error unmarshaling JSON: while decoding JSON: {text}"));
    match value {
        Value::Null => Ok(()),
        Value::Object(_) => {
            let api_version = value.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
            if kind.is_empty() || api_version.matches('/').count() > 1 {
                let problem = refuse(format!(
                    "Object 'Kind' is missing in '{}'",
                    olmkit_go::json::marshal(value)
                ));
                return Err(Box::new(problem.hint(
                    "every file in the manifests directory must be a Kubernetes object with `apiVersion: group/version` and a `kind`; \
                     move other files elsewhere",
                )));
            }
            Ok(())
        }
        other => {
            let kind = olmkit_go::json::kind(other);
            Err(Box::new(refuse(format!(
                "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            ))))
        }
    }
}

/// The first JSON value of a file that starts like JSON.
fn first_json_value(bytes: &[u8]) -> Option<Value> {
    let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace())?;
    if bytes.get(start) != Some(&b'{') {
        return None;
    }
    serde_json::Deserializer::from_slice(bytes)
        .into_iter::<Value>()
        .next()?
        .ok()
}
