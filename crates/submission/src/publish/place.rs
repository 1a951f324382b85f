//! Adds a bundle to its operator's directory.

use std::sync::Arc;

use olmkit::bundle::load::{Entry, Tree};

use super::{PublishError, is_sound};
use crate::bundle::Bundle;
use crate::files::Memory;
use crate::overlay::Changes;
use crate::python::text::shown;
use crate::repository::Repository;

/// A bundle in its directory.
pub struct Placed {
    /// The operator.
    pub operator: String,
    /// The version.
    pub version: String,
    /// The files to write.
    pub changes: Changes,
    /// Files of the bundle's directory that are not part of it, such as a Dockerfile.
    pub left_out: Vec<String>,
}

/// The directories of a bundle.
const FOLDERS: [&str; 3] = ["manifests/", "metadata/", "tests/"];
const RELEASE_CONFIG: &str = "release-config.yaml";

impl Placed {
    /// Returns true if the bundle has no template to be added to.
    pub fn has_no_release_config(&self) -> bool {
        let end = format!("/{RELEASE_CONFIG}");
        !self.changes.keys().any(|path| path.ends_with(&end))
    }
}

/// Places a bundle as `operators/PACKAGE/VERSION`. `release_config` replaces the bundle's own `release-config.yaml`.
///
/// # Errors
/// The bundle has no package or version, or exists already.
pub fn place(repository: &Repository, bundle: &Tree, release_config: Option<Vec<u8>>) -> Result<Placed, PublishError> {
    let mut files = Vec::new();
    let mut left_out = Vec::new();
    for (path, entry) in bundle.walk("") {
        match entry {
            Entry::File(bytes) if FOLDERS.iter().any(|directory| path.starts_with(directory)) => {
                files.push((path, bytes.to_vec()));
            }
            Entry::File(bytes) if path == RELEASE_CONFIG && release_config.is_none() => {
                files.push((path, bytes.to_vec()));
            }
            Entry::File(_) if path == RELEASE_CONFIG => {}
            Entry::Directory => {}
            _ => left_out.push(path),
        }
    }
    files.extend(release_config.map(|bytes| (RELEASE_CONFIG.to_owned(), bytes)));
    let (operator, version) = names(&files)?;
    if repository.has_bundle(&operator, &version) {
        let problem = format!("operators/{operator}/{version} already exists; a released bundle must not change");
        return Err(PublishError::Refused(problem));
    }
    let directory = format!("operators/{operator}/{version}");
    if !repository.files().list(&directory).is_empty() {
        let problem = format!("{directory} already exists, but it is not a bundle; remove it first");
        return Err(PublishError::Refused(problem));
    }
    let place = |(path, bytes): (String, Vec<u8>)| (format!("{directory}/{path}"), Some(bytes));
    Ok(Placed {
        changes: files.into_iter().map(place).collect(),
        operator,
        version,
        left_out,
    })
}

/// Package and version of a bundle.
fn names(files: &[(String, Vec<u8>)]) -> Result<(String, String), PublishError> {
    // The pipeline's reader requires a repository around the bundle.
    let inside = files
        .iter()
        .map(|(path, bytes)| (format!("operators/a/0/{path}"), bytes.clone()));
    let bundle = Bundle::new(Arc::new(inside.collect::<Memory>()), "a", "0".to_owned());
    let unplaced = |raise: crate::python::Raise| match PublishError::from(raise) {
        PublishError::Settings { place, text } => PublishError::Settings {
            place: place.replace("operators/a/0", "BUNDLE"),
            text: text.replace("operators/a/0", "BUNDLE"),
        },
        other => other,
    };
    let package = bundle.package().map_err(unplaced)?;
    let csv = bundle.csv().map_err(unplaced)?;
    let spec = csv.view().get_or("spec", &crate::python::EMPTY).map_err(unplaced)?;
    let version = spec.get("version").map_err(unplaced)?;
    let version = if version.is_none() {
        String::new()
    } else {
        shown(version.node)
    };
    for (what, name) in [
        ("package of metadata/annotations.yaml", &package),
        ("spec.version", &version),
    ] {
        if !is_sound(name) {
            let problem = format!("the {what} is {name:?}, which cannot be a directory name; set it");
            return Err(PublishError::Refused(problem));
        }
    }
    Ok((package, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "manifests/a.clusterserviceversion.yaml";
    const ANNOTATIONS: &str = "annotations:\n  operators.operatorframework.io.bundle.package.v1: hello\n";

    fn placed(repository: &[(&str, &str)], csv: &str) -> Result<Placed, PublishError> {
        let repository: Memory = repository.iter().copied().collect();
        let files = [
            (CSV, csv),
            ("metadata/annotations.yaml", ANNOTATIONS),
            ("Dockerfile", "FROM scratch\n"),
            (RELEASE_CONFIG, "catalog_templates: []\n"),
        ];
        let tree = Tree::from_files(files.map(|(path, text)| (path, text.as_bytes().to_vec())));
        place(&Repository::new(Arc::new(repository)), &tree, None)
    }

    #[test]
    fn a_bundle_is_placed_by_package_and_version() {
        let placed = placed(&[], "metadata: {name: hello.v0.0.1}\nspec: {version: 0.0.1}\n").unwrap();
        assert_eq!((placed.operator.as_str(), placed.version.as_str()), ("hello", "0.0.1"));
        let paths: Vec<&str> = placed.changes.keys().map(String::as_str).collect();
        let directory = "operators/hello/0.0.1";
        let wanted = [CSV, "metadata/annotations.yaml", RELEASE_CONFIG].map(|path| format!("{directory}/{path}"));
        assert_eq!(paths, wanted);
        assert_eq!(placed.left_out, ["Dockerfile"]);
    }

    #[test]
    fn existing_bundles_and_unsafe_names_are_rejected() {
        let there = [
            ("operators/hello/0.0.1/manifests/a", ""),
            ("operators/hello/0.0.1/metadata/a", ""),
        ];
        let spec = |version: &str| format!("metadata: {{name: hello.v0.0.1}}\nspec: {{version: {version}}}\n");
        let refused = |files: &[(&str, &str)], csv: &str| placed(files, csv).err().map(|error| error.to_string());
        for (files, csv, wanted) in [
            (&there[..], spec("0.0.1"), "already exists"),
            (&there[..1], spec("0.0.1"), "already exists"),
            (&[], spec("../../x"), "cannot be a directory name"),
            (&[], spec("''"), "cannot be a directory name"),
            (
                &[],
                "spec: [\n".to_owned(),
                "BUNDLE/manifests/a.clusterserviceversion.yaml:2",
            ),
        ] {
            let problem = refused(files, &csv);
            assert!(
                problem.as_ref().is_some_and(|problem| problem.contains(wanted)),
                "{csv}: {problem:?}"
            );
        }
    }
}
