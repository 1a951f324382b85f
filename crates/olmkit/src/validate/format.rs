//! FMT: the layout of a bundle and its annotations.

use std::collections::BTreeMap;

use serde_json::Value;

use super::checked::Checked;
use super::dependencies;
use crate::bundle::Bundle;
use crate::bundle::load::{self, CHANNELS, DEFAULT_CHANNEL, Entry, MANIFESTS, MEDIA_TYPE, METADATA, PACKAGE};
use crate::diagnostics::{Finding, Origin, Rule, Severity, define_rules};
use crate::yaml;

define_rules! {
    FMT_2 = {
        id: "FMT-2",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle format"),
        summary: "The bundle must have a directory `manifests`.",
        why: "The bundle image build copies this directory.",
        bad: "demo/\n  deploy/",
        good: "demo/\n  manifests/",
        since: "0.1.0",
    }
    FMT_3 = {
        id: "FMT-3",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle format"),
        summary: "The bundle must have a directory `metadata`.",
        why: "The bundle image build copies this directory.",
        bad: "demo/\n  annotations.yaml",
        good: "demo/\n  metadata/annotations.yaml",
        since: "0.1.0",
    }
    FMT_4 = {
        id: "FMT-4",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle format"),
        summary: "The directory `manifests` must contain readable files, even if the annotations name another directory.",
        why: "operator-sdk's format check always reads the directory with this name.",
        bad: "manifests/",
        good: "manifests/demo.clusterserviceversion.yaml",
        since: "0.1.0",
    }
    FMT_5 = {
        id: "FMT-5",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle format"),
        summary: "A file in `metadata` must contain the annotations.",
        why: "OLM finds the manifests, the package and the channels by the annotations.",
        bad: "metadata/notes.yaml",
        good: "metadata/annotations.yaml",
        since: "0.1.0",
    }
    FMT_6 = {
        id: "FMT-6",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle format"),
        summary: "The annotations for media type, manifests, metadata, package and channels must be present.",
        why: "opm and OLM read each of them when the bundle is added to a catalog.",
        bad: "annotations: {}",
        good: "annotations:\n  operators.operatorframework.io.bundle.package.v1: demo",
        since: "0.1.0",
    }
    FMT_7 = {
        id: "FMT-7",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle format"),
        summary: "The media type must match the manifests.",
        why: "OLM decides by the media type how to unpack the bundle.",
        bad: "operators.operatorframework.io.bundle.mediatype.v1: plain",
        good: "operators.operatorframework.io.bundle.mediatype.v1: registry+v1",
        since: "0.1.0",
    }
    FMT_8 = {
        id: "FMT-8",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle format"),
        summary: "The channel list must not be empty.",
        why: "A bundle without channels cannot be subscribed to.",
        bad: "operators.operatorframework.io.bundle.channels.v1: \"\"",
        good: "operators.operatorframework.io.bundle.channels.v1: stable",
        since: "0.1.0",
    }
    FMT_9 = {
        id: "FMT-9",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle format"),
        summary: "The default channel must not be empty if it is present.",
        why: "An empty default channel leaves the package without one, and Subscriptions without a channel fail.",
        bad: "operators.operatorframework.io.bundle.channel.default.v1:",
        good: "operators.operatorframework.io.bundle.channel.default.v1: stable",
        since: "0.1.0",
    }
    FMT_10 = {
        id: "FMT-10",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle format"),
        summary: "Files in `metadata` must not be empty. operator-sdk crashes on an empty file.",
        why: "operator-sdk dereferences a nil pointer on an empty document, so nothing is validated.",
        bad: "# only a comment",
        good: "dependencies: []",
        since: "0.1.0",
    }
}

/// Findings of the format rules. operator-sdk prints them as one finding, so the messages are joined only at the end.
#[derive(Debug, Default)]
pub struct Format {
    /// The findings, in the order in which they were made.
    pub findings: Vec<Finding>,
    /// operator-sdk crashes on this bundle. The string is the position.
    pub crash: Option<String>,
    /// True if there is a file with dependencies.
    pub has_dependencies: bool,
}

impl Format {
    fn add(&mut self, rule: &'static Rule, message: impl Into<String>, place: impl FnOnce(Finding) -> Finding) {
        self.findings.push(place(Finding::new(rule, Severity::Error, message)));
    }

    /// operator-sdk's single message for all findings.
    pub fn text(&self) -> Option<String> {
        let texts: Vec<&str> = self.findings.iter().map(|finding| finding.message.as_str()).collect();
        (!texts.is_empty()).then(|| format!("Bundle validation errors: {}", texts.join(",")))
    }

    /// operator-sdk's log of the format check, without times.
    pub fn log(&self) -> String {
        let failed = |rule: &Rule| self.findings.iter().any(|finding| finding.rule == rule.id);
        let mut lines = Vec::new();
        let directories = [("manifests", &FMT_2), ("metadata", &FMT_3)];
        for (name, _) in directories.iter().filter(|(_, rule)| !failed(rule)) {
            lines.push(format!("Found {name} directory"));
        }
        if lines.len() == directories.len() {
            lines.push("Getting mediaType info from manifests directory".to_owned());
            if !failed(&FMT_5) {
                lines.push("Found annotations file".to_owned());
            }
            let dependencies = match self.has_dependencies {
                true => "Found dependencies file",
                false => "Could not find optional dependencies file",
            };
            lines.push(dependencies.to_owned());
        }
        lines
            .iter()
            .map(|line| format!("level=debug msg=\"{line}\" name=bundle-test\n"))
            .collect()
    }

    /// The findings with operator-sdk's single message on the first of them.
    pub fn into_checked(self, root: &str) -> Vec<Checked> {
        let text = self.text();
        let mut reference = text.map(|text| format!("error validating format in {root}: {text}"));
        self.findings
            .into_iter()
            .map(|finding| Checked {
                finding,
                reference: reference.take(),
                on_request: false,
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
        format.add(&FMT_2, "Unable to locate manifests directory", |finding| {
            finding
                .file("manifests")
                .hint("a bundle has its manifests in `manifests/`")
        });
    }
    if !is_real("metadata") {
        format.add(&FMT_3, "Unable to locate metadata directory", |finding| {
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
            format.add(&FMT_5, "Could not find annotations file", |finding| {
                finding
                    .file("metadata")
                    .hint("metadata/annotations.yaml must hold an `annotations:` map")
            });
        }
        Some(file) => annotations(file, &media_type, &mut format),
    }
    format.has_dependencies = files.dependencies.is_some();
    if let Some(file) = &files.dependencies {
        format
            .findings
            .extend(dependencies::check(&file.path, &file.node, &file.content));
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
            format.add(&FMT_4, problem.message, |finding| finding.file("manifests"));
            String::new()
        }
    }
}

/// One metadata file with its decoded content.
struct MetadataFile {
    path: String,
    node: yaml::Node,
    content: Value,
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
            format.add(&FMT_6, format!("Missing annotation {key:?}"), |finding| {
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
        let hint = format!("the manifests are {media_type:?}: change the annotation or the manifests");
        format.add(&FMT_7, text, |finding| place(finding, MEDIA_TYPE, &hint));
    }
    if value(CHANNELS).is_empty() {
        format.add(
            &FMT_8,
            format!("Expecting annotation {CHANNELS:?} to have non-empty value"),
            |finding| place(finding, CHANNELS, "list the channels, separated by commas"),
        );
    }
    if values.contains_key(DEFAULT_CHANNEL) && value(DEFAULT_CHANNEL).is_empty() {
        format.add(
            &FMT_9,
            format!("Expecting annotation {DEFAULT_CHANNEL:?} to have non-empty value"),
            |finding| place(finding, DEFAULT_CHANNEL, "name a channel, or leave the annotation out"),
        );
    }
}
