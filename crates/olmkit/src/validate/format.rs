//! FMT: the layout of a bundle and its annotations.

use std::collections::BTreeMap;

use serde_json::Value;

use super::checked::Checked;
use super::dependencies;
use crate::bundle::Bundle;
use crate::bundle::load::{self, CHANNELS, DEFAULT_CHANNEL, Entry, MANIFESTS, MEDIA_TYPE, METADATA, PACKAGE};
use crate::diagnostics::{Finding, Severity};
use crate::yaml;

/// What the format rules found. operator-sdk prints it as one finding, so the texts are kept apart until the end.
#[derive(Debug, Default)]
pub struct Format {
    /// The findings, in the order in which they were made.
    pub findings: Vec<Finding>,
    /// The reference tool crashes on this bundle; the text says where.
    pub crash: Option<String>,
}

impl Format {
    fn add(&mut self, rule: &'static str, message: impl Into<String>, place: impl FnOnce(Finding) -> Finding) {
        self.findings.push(place(Finding::new(rule, Severity::Error, message)));
    }

    /// The findings with operator-sdk's single text on the first of them.
    pub fn into_checked(self, root: &str) -> Vec<Checked> {
        let texts: Vec<&str> = self.findings.iter().map(|finding| finding.message.as_str()).collect();
        let text = format!(
            "error validating format in {root}: Bundle validation errors: {}",
            texts.join(",")
        );
        let mut reference = Some(text);
        self.findings
            .into_iter()
            .map(|finding| Checked {
                finding,
                reference: reference.take(),
            })
            .collect()
    }
}

/// Runs the format rules.
pub fn check(bundle: &Bundle) -> Format {
    let mut format = Format::default();
    let tree = &bundle.tree;
    let is_real = |name: &str| matches!(tree.entry(name), Some(Entry::Directory));
    if !is_real("manifests") {
        format.add("FMT-2", "Unable to locate manifests directory", |finding| {
            finding
                .file("manifests")
                .hint("a bundle has its manifests in `manifests/`")
        });
    }
    if !is_real("metadata") {
        format.add("FMT-3", "Unable to locate metadata directory", |finding| {
            finding
                .file("metadata")
                .hint("a bundle has its annotations in `metadata/annotations.yaml`")
        });
    }
    if !format.findings.is_empty() {
        return format;
    }
    let media_type = detect_media_type(bundle, &mut format);
    let files = metadata_files(bundle, &mut format);
    match &files.annotations {
        None => {
            format.add("FMT-5", "Could not find annotations file", |finding| {
                finding
                    .file("metadata")
                    .hint("metadata/annotations.yaml must hold an `annotations:` map")
            });
        }
        Some(file) => annotations(file, &media_type, &mut format),
    }
    if let Some(file) = &files.dependencies {
        format.findings.extend(dependencies::check(file));
    }
    format
}

fn detect_media_type(bundle: &Bundle, format: &mut Format) -> String {
    if bundle.manifests_dir == "manifests" {
        return bundle.media_type.to_string();
    }
    match load::media_type_of(&bundle.tree, &bundle.root, "manifests") {
        Ok(media_type) => media_type.to_string(),
        Err(problem) => {
            format.add("FMT-4", problem.message, |finding| finding.file("manifests"));
            String::new()
        }
    }
}

/// One metadata file with its decoded content.
pub(super) struct MetadataFile {
    pub path: String,
    pub node: yaml::Node,
    pub content: Value,
}

struct MetadataFiles {
    annotations: Option<MetadataFile>,
    dependencies: Option<MetadataFile>,
}

/// Finds the file with the annotations and the one with the dependencies.
fn metadata_files(bundle: &Bundle, format: &mut Format) -> MetadataFiles {
    let mut found = MetadataFiles {
        annotations: None,
        dependencies: None,
    };
    for (name, entry) in bundle.tree.children("metadata") {
        let Entry::File(bytes) = entry else { continue };
        let path = format!("metadata/{name}");
        let Some(Ok(node)) = yaml::documents(bytes).next() else {
            continue;
        };
        if found.annotations.is_none() {
            let content = load::typed_metadata(&node, "AnnotationMetadata");
            if let Some(content) = content.filter(|content| content.get("annotations").is_some()) {
                found.annotations = Some(MetadataFile { path, node, content });
                continue;
            }
        }
        if found.dependencies.is_some() {
            continue;
        }
        if node.is_null() {
            // The reference tool follows a null pointer here.
            format.crash = Some(path);
            continue;
        }
        let content = load::typed_metadata(&node, "DependenciesFile");
        let some = |content: &Value| {
            content
                .get("dependencies")
                .and_then(Value::as_array)
                .is_some_and(|list| !list.is_empty())
        };
        if let Some(content) = content.filter(some) {
            found.dependencies = Some(MetadataFile { path, node, content });
        }
    }
    found
}

fn annotations(file: &MetadataFile, media_type: &str, format: &mut Format) {
    let values: BTreeMap<&str, &str> = file
        .content
        .get("annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
        .collect();
    let place = |finding: Finding, key: &str, hint: &str| {
        let map = file.node.get("annotations");
        let finding = finding
            .file(&file.path)
            .path(format!("annotations[{key:?}]"))
            .hint(hint);
        match map.and_then(|map| map.get(key)).or(map) {
            Some(node) => finding.at(node.start),
            None => finding,
        }
    };
    for key in [MEDIA_TYPE, MANIFESTS, METADATA, PACKAGE, CHANNELS] {
        if !values.contains_key(key) {
            let hint = format!("add `{key}` to the annotations");
            format.add("FMT-6", format!("Missing annotation {key:?}"), |finding| {
                place(finding, key, &hint)
            });
        }
    }
    let value = |key: &str| values.get(key).copied().unwrap_or_default();
    if value(MEDIA_TYPE) != media_type {
        let text = format!(
            "Expecting annotation {MEDIA_TYPE:?} to have value {media_type:?} instead of {:?}",
            value(MEDIA_TYPE)
        );
        let hint = format!("the manifests are {media_type:?}: say so, or change the manifests");
        format.add("FMT-7", text, |finding| place(finding, MEDIA_TYPE, &hint));
    }
    if value(CHANNELS).is_empty() {
        format.add(
            "FMT-8",
            format!("Expecting annotation {CHANNELS:?} to have non-empty value"),
            |finding| place(finding, CHANNELS, "list the channels, separated by commas"),
        );
    }
    if values.contains_key(DEFAULT_CHANNEL) && value(DEFAULT_CHANNEL).is_empty() {
        format.add(
            "FMT-9",
            format!("Expecting annotation {DEFAULT_CHANNEL:?} to have non-empty value"),
            |finding| place(finding, DEFAULT_CHANNEL, "name a channel, or leave the annotation out"),
        );
    }
}
