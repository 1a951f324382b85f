//! The format of the cases.
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// One case. See the README of the cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    #[serde(skip)]
    pub name: String,
    #[serde(rename = "title")]
    _title: String,
    #[serde(rename = "why", default)]
    _why: String,
    #[serde(rename = "plain", default)]
    _plain: String,
    #[serde(default)]
    pub before: Vec<Step>,
    pub desired: Value,
    #[serde(default)]
    pub edit: Vec<Step>,
    pub next: Option<Value>,
    pub call: Option<String>,
    #[serde(default)]
    pub keep: Vec<String>,
    pub expect: String,
    #[serde(default)]
    pub accept: Vec<String>,
    #[serde(default)]
    pub fields: Vec<String>,
    pub reason: Option<String>,
    /// Why a new process cannot find what this case is about.
    pub skip_restarted: Option<String>,
}

/// A change by another client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub manager: String,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub patch: Option<Value>,
    pub subresource: Option<String>,
    pub object: Option<Value>,
}

/// The cases of a directory, sorted by name. `None` if it has none.
pub fn read(directory: &Path) -> Option<Vec<Case>> {
    let files = std::fs::read_dir(directory)
        .ok()?
        .filter_map(Result::ok)
        .map(|entry| entry.path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    let cases: Vec<Case> = files
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let mut case: Case =
                serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            case.name = path.file_stem().unwrap().to_string_lossy().into_owned();
            case
        })
        .collect();
    (!cases.is_empty()).then_some(cases)
}
