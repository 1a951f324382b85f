//! Finds a bundle's annotations, and the manifest directory that they name.

use std::collections::BTreeMap;

use super::tree::{Entry, Tree};
use super::typed_yaml;
use olmkit_diagnostics::{Finding, Origin, Severity, define_rules};
use olmkit_go::filepath;

define_rules! {
    LOC_1 = {
        id: "LOC-1",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle loader"),
        summary: "metadata/annotations.yaml must contain a string map under `annotations`.",
        why: "operator-sdk and OLM read package, channels and directories from there. Without them the bundle cannot be loaded.",
        bad: "annotations:\n- package: demo",
        good: "annotations:\n  operators.operatorframework.io.bundle.package.v1: demo",
        since: "0.1.0",
    }
    LOC_3 = {
        id: "LOC-3",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("bundle loader"),
        summary: "A file in the bundle must contain the annotations.",
        why: "Package and channels are named nowhere else, so no catalog could place the bundle.",
        bad: "demo/\n  manifests/",
        good: "demo/\n  manifests/\n  metadata/annotations.yaml",
        since: "0.1.0",
    }
}

/// The prefix of all bundle annotations.
pub const PREFIX: &str = "operators.operatorframework.io.bundle.";
/// The annotation with the type of the bundle's manifests.
pub const MEDIA_TYPE: &str = "operators.operatorframework.io.bundle.mediatype.v1";
/// The annotation that names the directory of the manifests.
pub const MANIFESTS: &str = "operators.operatorframework.io.bundle.manifests.v1";
/// The annotation that names the directory of the metadata.
pub const METADATA: &str = "operators.operatorframework.io.bundle.metadata.v1";
/// The annotation that names the package.
pub const PACKAGE: &str = "operators.operatorframework.io.bundle.package.v1";
/// The annotation that lists the channels, separated by commas.
pub const CHANNELS: &str = "operators.operatorframework.io.bundle.channels.v1";
/// The annotation that names the package's default channel.
pub const DEFAULT_CHANNEL: &str = "operators.operatorframework.io.bundle.channel.default.v1";

const USUAL_FILE: &str = "metadata/annotations.yaml";

/// The annotations of a bundle.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
    /// The file they are in, relative to the bundle root.
    pub file: String,
}

impl Metadata {
    /// The value of an annotation.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// The manifests directory relative to the bundle root, cleaned. It can point outside the bundle.
    pub fn manifests_dir(&self) -> String {
        let named = self.get(MANIFESTS).unwrap_or("manifests/");
        filepath::join(".", &filepath::clean(named))
    }
}

/// Finds the annotations: in the usual file, else in the first file of the bundle that has some.
pub(super) fn find(tree: &Tree, root: &str) -> Result<Metadata, Box<Finding>> {
    if matches!(tree.entry("metadata"), Some(Entry::File(_))) {
        let path = filepath::join(root, USUAL_FILE);
        return Err(Box::new(
            Finding::from_rule(&LOC_1, format!("open {path}: not a directory")).file("metadata"),
        ));
    }
    match tree.entry(USUAL_FILE) {
        Some(Entry::File(bytes)) => match annotations_of(bytes) {
            Ok(annotations) if !annotations.is_empty() => {
                return Ok(Metadata {
                    annotations,
                    file: USUAL_FILE.to_string(),
                });
            }
            Ok(_) => {}
            Err(mut problem) => {
                let path = filepath::join(root, USUAL_FILE);
                problem.message = format!(
                    "error unmarshalling potential bundle metadata {path}: {}",
                    problem.message
                );
                problem.rule = LOC_1.id;
                return Err(Box::new(problem.file(USUAL_FILE).hint(
                    "`annotations:` must be a map of strings; quote values that look like numbers, and put every key on its own line",
                )));
            }
        },
        Some(Entry::Unreadable(reason)) if !reason.contains("No such file") => {
            let path = filepath::join(root, USUAL_FILE);
            return Err(Box::new(
                Finding::from_rule(&LOC_1, format!("read {path}: {reason}")).file(USUAL_FILE),
            ));
        }
        Some(Entry::Directory | Entry::LinkedDirectory) => {
            let path = filepath::join(root, USUAL_FILE);
            return Err(Box::new(
                Finding::from_rule(&LOC_1, format!("read {path}: is a directory")).file(USUAL_FILE),
            ));
        }
        _ => {}
    }
    for (path, entry) in tree.walk("") {
        // The whole path is checked, so nothing is found in a bundle that is given as `../somewhere`.
        let Entry::File(bytes) = entry else { continue };
        if filepath::join(root, &path).starts_with('.') {
            continue;
        }
        match annotations_of(bytes) {
            Ok(annotations) if !annotations.is_empty() => {
                return Ok(Metadata {
                    annotations,
                    file: path,
                });
            }
            _ => {}
        }
    }
    let hint = if tree.file(USUAL_FILE).is_some() {
        "the file needs a map `annotations` of strings; `olmkit generate bundle` writes it"
    } else {
        "a bundle needs metadata/annotations.yaml with an `annotations:` map; `olmkit generate bundle` writes it"
    };
    let problem = Finding::from_rule(&LOC_3, format!("metadata not found in {root}"));
    Err(Box::new(problem.file(USUAL_FILE).hint(hint)))
}

fn annotations_of(bytes: &[u8]) -> Result<BTreeMap<String, String>, Box<Finding>> {
    let decoded = typed_yaml(bytes, "AnnotationMetadata")?;
    let annotations = decoded.get("annotations").and_then(serde_json::Value::as_object);
    Ok(annotations
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| value.as_str().map(|value| (key.clone(), value.to_string())))
        .collect())
}
