//! A small valid bundle, and copies of it with changes.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Its ClusterServiceVersion.
pub const CSV: &str = "manifests/demo.clusterserviceversion.yaml";
/// Its CustomResourceDefinition.
pub const CRD: &str = "manifests/demo.example.com_widgets.yaml";
/// An additional Service.
pub const SERVICE: &str = "manifests/demo-metrics_v1_service.yaml";
/// Its annotations.
pub const ANNOTATIONS: &str = "metadata/annotations.yaml";
/// A digest for image references.
pub const DIGEST: &str = "@sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// Directory of the bundle.
pub fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/data/demo-bundle"))
}

/// A directory with a copy of the bundle in `demo`, changed file by file: (file, text, replacement).
pub fn folder(changes: &[(&str, &str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("folder");
    copy(folder.path(), "demo", changes);
    folder
}

/// Copies the bundle to a directory and changes it. A change with an empty old text appends, and creates the file if
/// it does not exist.
pub fn copy(folder: &Path, name: &str, changes: &[(&str, &str, &str)]) {
    let source = path();
    for directory in ["manifests", "metadata"] {
        let target = folder.join(name).join(directory);
        fs::create_dir_all(&target).expect("directory");
        for entry in fs::read_dir(source.join(directory)).expect("listing") {
            let path = entry.expect("entry").path();
            fs::copy(&path, target.join(path.file_name().expect("name"))).expect("copy");
        }
    }
    for (file, from, to) in changes {
        let path = folder.join(name).join(file);
        if from.is_empty() {
            let text = fs::read_to_string(&path).unwrap_or_default();
            fs::write(&path, text + to).expect("write");
            continue;
        }
        let text = fs::read_to_string(&path).expect("file");
        assert!(text.contains(from), "{file} has no {from:?}");
        fs::write(&path, text.replacen(from, to, 1)).expect("write");
    }
}

/// Copies the bundle to a directory and renames it to `name`, so that copies do not conflict.
pub fn copy_renamed(folder: &Path, name: &str, changes: &[(&str, &str, &str)]) {
    copy(folder, name, changes);
    for directory in ["manifests", "metadata"] {
        for entry in fs::read_dir(folder.join(name).join(directory)).expect("listing") {
            let path = entry.expect("entry").path();
            let text = fs::read_to_string(&path).expect("file");
            fs::write(&path, text.replace("demo", name)).expect("write");
        }
    }
}
