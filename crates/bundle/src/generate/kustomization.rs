//! Directories that are kustomizations.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::origin::Origin;
use super::{Notice, Weight};
use olmkit_base::limits;
use olmkit_base::object::shell_word;
use olmkit_yaml as yaml;

/// File names that make a directory a kustomization.
const FILES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// Fields of a kustomization that leave objects unchanged.
const PLAIN: [&str; 5] = ["apiVersion", "kind", "metadata", "resources", "bases"];

/// The file that makes a directory a kustomization.
pub(super) fn file_of(folder: &Path) -> Option<PathBuf> {
    FILES.iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// Returns true if a file makes its directory a kustomization.
pub(super) fn is_one(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| FILES.contains(&name))
}

/// Returns true if a field has only patches that let cert-manager inject its authority. OLM injects its own, so nothing is lost.
fn injects_authority(field: &str, value: &Value) -> bool {
    let injects = |entry: &Value| {
        let patch = entry.get("patch").and_then(Value::as_str)?;
        let patch = yaml::parse_document(patch.as_bytes()).ok()?.root.to_json().ok()?;
        let is_plain = patch
            .as_object()?
            .keys()
            .all(|key| matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
        let metadata = patch.get("metadata")?.as_object()?;
        let has_others = metadata
            .keys()
            .any(|key| !matches!(key.as_str(), "name" | "annotations"));
        let annotations = metadata.get("annotations")?.as_object()?;
        Some(is_plain && !has_others && annotations.keys().all(|key| key.starts_with("cert-manager.io/")))
    };
    field == "patches"
        && value
            .as_array()
            .is_some_and(|entries| entries.iter().all(|entry| injects(entry) == Some(true)))
}

/// Reports that the files below a directory were read without the changes of their kustomizations.
pub(super) fn ignored(directory: &Path, kustomizations: &[PathBuf]) -> Option<Notice> {
    let (file, fields) = kustomizations.iter().find_map(|file| {
        let settings = settings(file)?;
        let fields = settings
            .as_object()?
            .iter()
            .filter(|(key, value)| !PLAIN.contains(&key.as_str()) && !injects_authority(key, value));
        let fields: Vec<&str> = fields.map(|(key, _)| key.as_str()).collect();
        (!fields.is_empty()).then(|| (file, fields.join(", ")))
    })?;
    let usual = [
        directory.to_owned(),
        directory.join("manifests"),
        directory.join("default"),
    ];
    let build = usual.into_iter().find(|folder| file_of(folder).is_some());
    let build = build.or_else(|| file.parent().map(Path::to_owned))?;
    let build = build.display().to_string();
    let build = shell_word(&build);
    Some(Notice {
        weight: Weight::Loss,
        origin: Origin {
            file: Some(file.clone()),
            line: 0,
        },
        object: "Kustomization".into(),
        message: format!("is not applied ({fields}): names, patches and images are not those that kustomize would set"),
        hint: format!(
            "Run `kustomize build {build} | olmkit generate bundle`, or `olmkit generate bundle --kustomize {build}`."
        ),
    })
}

/// The settings in a kustomization file, which may omit its kind.
pub(super) fn settings(path: &Path) -> Option<Value> {
    let bytes = limits::read_file(path, &limits::SETTINGS_FILE).ok()?;
    yaml::parse(&bytes).ok()?.to_json().ok()
}
