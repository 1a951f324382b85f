//! Bundle images: the manifests and metadata of one version of an operator, nothing to run.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::recipe::Recipe;
use crate::error::Error;
use crate::layer::LayerBuilder;
use crate::read::read_limited;
use crate::spec::Platform;
use olmkit::files::Directory;
use olmkit::go::structs::decode::decode;
use olmkit::yaml;

/// The largest annotations file that is read.
const ANNOTATIONS_LIMIT: u64 = 1 << 20;
const MANIFESTS: &str = "operators.operatorframework.io.bundle.manifests.v1";
const METADATA: &str = "operators.operatorframework.io.bundle.metadata.v1";
const PACKAGE: &str = "operators.operatorframework.io.bundle.package.v1";
const SCORECARD: &str = "operators.operatorframework.io.test.config.v1";

/// The labels of a bundle image, copied from `metadata/annotations.yaml` so that the two cannot differ. OLM reads the
/// file in the cluster. The labels are for tools that inspect an image without unpacking it.
pub fn bundle_labels(directory: &Path) -> Result<BTreeMap<String, String>, Error> {
    let path = directory.join("metadata/annotations.yaml");
    if !path.is_file() {
        return Err(Error::Missing {
            what: "metadata/annotations.yaml".to_owned(),
            place: directory.display().to_string(),
            hint: ": give a bundle directory, such as `olmkit generate bundle` makes".to_owned(),
        });
    }
    let bytes = read_limited(&path, ANNOTATIONS_LIMIT)?;
    let refused = |reason: String| Error::Refused {
        what: path.display().to_string(),
        reason,
    };
    let document: serde_json::Value = yaml::parse(&bytes)
        .and_then(|node| node.to_json())
        .map_err(|error| refused(error.to_string()))?;
    // As OLM and operator-sdk read the file: `true` and `1` are the strings "true" and "1".
    let typed = decode(&document, "AnnotationMetadata", true).map_err(|error| refused(error.message))?;
    let annotations = typed
        .get("annotations")
        .and_then(serde_json::Value::as_object)
        .ok_or_else(|| refused("it needs a map named \"annotations\"".to_owned()))?;
    let mut labels = BTreeMap::new();
    for (key, value) in annotations {
        labels.insert(key.clone(), value.as_str().unwrap_or_default().to_owned());
    }
    if labels.get(PACKAGE).is_none_or(String::is_empty) {
        return Err(refused(format!("it must name the package in {PACKAGE}")));
    }
    Ok(labels)
}

/// The recipe of a bundle image for a bundle directory: `manifests/`, `metadata/` and, if there, the scorecard's
/// configuration, each at the place that the annotations name.
///
/// Two things are checked because OLM could not unpack the image otherwise: no directory exists below the manifests
/// and only one file called `annotations.yaml`.
pub fn bundle_recipe(directory: &Path, platform: Platform, time: u64) -> Result<Recipe, Error> {
    check_links(directory)?;
    let labels = bundle_labels(directory)?;
    let place = |key: &str, default: &str| -> Result<PathBuf, Error> {
        let value = labels.get(key).map_or(default, String::as_str);
        relative(value).ok_or_else(|| Error::Refused {
            what: directory.join("metadata/annotations.yaml").display().to_string(),
            reason: format!("{key} must be a path inside the bundle, not {value:?}"),
        })
    };
    let manifests = place(MANIFESTS, "manifests/")?;
    let mut layer = LayerBuilder::new();
    for (key, default, required) in [
        (MANIFESTS, "manifests/", true),
        (METADATA, "metadata/", true),
        (SCORECARD, "tests/scorecard/", false),
    ] {
        let path = place(key, default)?;
        let source = directory.join(&path);
        if required || source.is_dir() {
            layer.tree(&source, &path.to_string_lossy())?;
        }
    }
    check_unpackable(&layer, &manifests, directory)?;
    let mut recipe = Recipe::new(platform, time);
    recipe.config.labels = labels;
    recipe.layers.push(("olmkit image build bundle".to_owned(), layer));
    Ok(recipe)
}

/// A link that leads out of a bundle or catalog leads to a file of another machine when the image is read.
pub(super) fn check_links(directory: &Path) -> Result<(), Error> {
    let check = Directory::open(directory).and_then(|directory| directory.check());
    check.map_err(Error::file("read", directory))
}

/// The path if it is relative and stays below where it starts, without `.` components.
fn relative(text: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for component in Path::new(text).components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!path.as_os_str().is_empty()).then_some(path)
}

fn check_unpackable(layer: &LayerBuilder, manifests: &Path, directory: &Path) -> Result<(), Error> {
    let refused = |reason: String| {
        Err(Error::Refused {
            what: format!("bundle {}", directory.display()),
            reason,
        })
    };
    let below = |path: &Path| {
        path.strip_prefix(manifests)
            .is_ok_and(|rest| rest.components().count() > 1)
    };
    if let Some(path) = layer.paths().find(|path| below(Path::new(path))) {
        return refused(format!(
            "{path} is in a directory below the manifests, where OLM cannot unpack it"
        ));
    }
    let annotations: Vec<&str> = layer
        .paths()
        .filter(|path| {
            Path::new(path)
                .file_name()
                .is_some_and(|name| name == "annotations.yaml")
        })
        .collect();
    if annotations.len() > 1 {
        let all = annotations.join(", ");
        return refused(format!(
            "it contains several files named annotations.yaml ({all}); OLM uses the last one"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANNOTATIONS: &str = "annotations:\n  operators.operatorframework.io.bundle.manifests.v1: manifests/\n  \
        operators.operatorframework.io.bundle.package.v1: memcached-operator\n";

    fn bundle(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn labels_and_content_come_from_the_directory() {
        let folder = bundle(&[
            ("manifests/a.yaml", "a"),
            ("metadata/annotations.yaml", ANNOTATIONS),
            ("tests/scorecard/config.yaml", "c"),
            ("ignored.txt", "i"),
        ]);
        let recipe = bundle_recipe(folder.path(), Platform::host(), 0).unwrap();
        assert_eq!(recipe.config.labels[PACKAGE], "memcached-operator");
        let paths: Vec<&str> = recipe.layers[0].1.paths().collect();
        let expected = [
            "manifests",
            "manifests/a.yaml",
            "metadata",
            "metadata/annotations.yaml",
            "tests",
            "tests/scorecard",
            "tests/scorecard/config.yaml",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn labels_are_text_as_operator_sdk_reads_it() {
        let annotations = format!("{ANNOTATIONS}  certified: true\n  number: 1\n  empty:\n");
        let folder = bundle(&[("manifests/a.yaml", "a"), ("metadata/annotations.yaml", &annotations)]);
        let labels = bundle_labels(folder.path()).unwrap();
        let read = ["certified", "number", "empty"].map(|key| labels[key].as_str());
        assert_eq!(read, ["true", "1", ""]);
        let list = bundle(&[("metadata/annotations.yaml", &format!("{ANNOTATIONS}  list: [a]\n"))]);
        assert!(bundle_labels(list.path()).is_err());
    }

    #[test]
    fn bundles_that_olm_cannot_unpack_are_rejected() {
        let nested = bundle(&[
            ("manifests/crds/a.yaml", "a"),
            ("metadata/annotations.yaml", ANNOTATIONS),
        ]);
        let message = bundle_recipe(nested.path(), Platform::host(), 0)
            .unwrap_err()
            .to_string();
        assert!(message.contains("manifests/crds/a.yaml"), "{message}");
        let twice = bundle(&[
            ("manifests/annotations.yaml", "a"),
            ("metadata/annotations.yaml", ANNOTATIONS),
        ]);
        let message = bundle_recipe(twice.path(), Platform::host(), 0)
            .unwrap_err()
            .to_string();
        assert!(message.contains("several files named annotations.yaml"), "{message}");
        let outside = ANNOTATIONS.replace("manifests/", "../manifests/");
        let outside = bundle(&[("manifests/a.yaml", "a"), ("metadata/annotations.yaml", &outside)]);
        assert!(bundle_recipe(outside.path(), Platform::host(), 0).is_err());
    }
}
