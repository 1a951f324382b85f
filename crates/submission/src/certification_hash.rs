//! The hash by which preflight's result and the certification pipeline identify the tested bundle.

use std::collections::BTreeMap;
use std::io;

use md5::{Digest, Md5};

use crate::files::{Files, join};
use crate::repository::Repository;

/// The `certification_hash` of preflight 1.21.0 for the image that the pipeline builds of a bundle: over the files below `manifests`
/// and `metadata/annotations.yaml`, which are all that preflight takes out of the image.
///
/// # Errors
/// A file cannot be read, or is larger than the limit.
pub fn certification_hash(repository: &Repository, operator: &str, version: &str) -> io::Result<String> {
    let files = repository.files();
    let root = format!("operators/{operator}/{version}");
    // If several files have the same content, preflight keeps the last one.
    let mut paths = BTreeMap::new();
    for path in tested(files, &root) {
        paths.insert(md5(&files.read(&join(&root, &path))?), path);
    }
    let lines: String = paths.iter().map(|(hash, path)| format!("{hash}  ./{path}\n")).collect();
    Ok(md5(lines.as_bytes()))
}

/// The files of a bundle that preflight hashes, in its order.
fn tested(files: &dyn Files, root: &str) -> Vec<String> {
    let manifests = files.list(&join(root, "manifests")).into_iter();
    let manifests = manifests.filter(|name| name != "Dockerfile");
    let mut paths: Vec<String> = manifests.map(|name| join("manifests", &name)).collect();
    paths.push("metadata/annotations.yaml".to_owned());
    paths.retain(|path| files.is_file(&join(root, path)));
    paths
}

fn md5(content: &[u8]) -> String {
    let bytes = Md5::digest(content);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Memory;

    #[test]
    fn the_hash_is_that_of_preflight() {
        let files = [
            ("manifests/one.yaml", "a: 1\n"),
            ("manifests/two.yaml", "a: 1\n"),
            ("manifests/z.yaml", "b: 2\n"),
            ("manifests/Dockerfile", "FROM scratch\n"),
            ("metadata/annotations.yaml", "annotations: {}\n"),
            // Not in the image, or not unpacked from it.
            ("manifests/more/x.yaml", "c: 3\n"),
            ("metadata/dependencies.yaml", "dependencies: []\n"),
            ("tests/scorecard/config.yaml", "stages: []\n"),
            ("release-config.yaml", "catalog_templates: []\n"),
        ];
        let files: Memory = files
            .iter()
            .map(|(path, text)| (format!("operators/hello/0.0.1/{path}"), text.as_bytes().to_vec()))
            .collect();
        let repository = Repository::new(Arc::new(files));
        let hash = certification_hash(&repository, "hello", "0.0.1").expect("all files are there");
        // Computed by preflight's own function over the five files.
        assert_eq!(hash, "1fed161e4d6c742b4c0bd88d137ed2b3");
    }
}
