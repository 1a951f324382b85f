//! Location of OLM's manifests: the chart directory of OLM's repository or module, or a directory with the manifests of
//! a release (`crds.yaml`, `olm.yaml`).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::objects::{self, Settings};
use crate::base::error::Error;
use crate::base::json::text;
use olmkit::{limits, yaml};

/// OLM's objects, ready to be applied.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    /// Version, if the source names one.
    pub version: Option<String>,
    /// Custom resource definitions.
    pub crds: Vec<Value>,
    /// Everything else, in the order of creation.
    pub objects: Vec<Value>,
}

/// Images that replace those in a release's manifests.
#[derive(Clone, Debug, Default)]
pub struct Images {
    /// OLM itself.
    pub olm: Option<String>,
    /// Image for unpacking bundles.
    pub opm: Option<String>,
    /// Image with `cp` and `cpb`.
    pub util: Option<String>,
}

/// Reads a source. A chart's templates are not rendered: its CRDs are used, and the other objects come from
/// [`objects::all`].
///
/// # Errors
/// [`Error::File`], [`Error::Manifest`], [`Error::Usage`] if the directory is neither.
pub fn read(directory: &Path, settings: &Settings, images: &Images, with_catalogs: bool) -> Result<Manifests, Error> {
    if directory.join("Chart.yaml").is_file() {
        let crds = read_folder(&directory.join("crds"))?;
        return Ok(Manifests {
            version: Some(settings.version.clone()),
            crds,
            objects: objects::all(settings),
        });
    }
    let all = read_folder(directory)?;
    let (crds, mut objects): (Vec<Value>, Vec<Value>) = all
        .into_iter()
        .partition(|object| text(object, "/kind") == "CustomResourceDefinition");
    if crds.is_empty()
        || !objects
            .iter()
            .any(|object| text(object, "/kind") == "Deployment" && text(object, "/metadata/name") == "olm-operator")
    {
        return Err(Error::Usage(format!(
            "{} contains neither OLM's chart (Chart.yaml and crds/) nor the manifests of a release (crds.yaml and olm.yaml)",
            directory.display()
        )));
    }
    if !with_catalogs {
        objects.retain(|object| text(object, "/kind") != "CatalogSource");
    }
    for object in &mut objects {
        replace_images(object, images);
    }
    let version = objects.iter().find_map(|object| {
        (text(object, "/metadata/name") == "packageserver")
            .then(|| {
                object
                    .pointer("/metadata/labels")?
                    .get("olm.version")?
                    .as_str()
                    .map(str::to_owned)
            })
            .flatten()
    });
    Ok(Manifests { version, crds, objects })
}

/// The version in a path such as `…/operator-lifecycle-manager@v0.46.0/deploy/chart`.
pub fn version_in_path(directory: &Path) -> Option<String> {
    directory.components().rev().find_map(|part| {
        let (_, version) = part.as_os_str().to_str()?.rsplit_once("@v")?;
        semver::Version::parse(version).ok().map(|version| version.to_string())
    })
}

/// SHA-256 over the names and contents of the YAML files in a directory, so that a release can be pinned.
///
/// # Errors
/// [`Error::File`].
pub fn checksum(directory: &Path) -> Result<String, Error> {
    let mut hash = Sha256::new();
    for path in yaml_files(directory)? {
        let content = read_file(&path)?;
        hash.update(
            path.file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
        );
        hash.update([0]);
        hash.update(Sha256::digest(&content));
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn yaml_files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let wrap = |source| Error::File {
        path: directory.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(wrap)? {
        let path = entry.map_err(wrap)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read_file(path: &Path) -> Result<Vec<u8>, Error> {
    limits::read_file(path, &limits::OLM_MANIFESTS).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })
}

fn read_folder(directory: &Path) -> Result<Vec<Value>, Error> {
    let mut objects = Vec::new();
    for path in yaml_files(directory)? {
        let content = read_file(&path)?;
        for document in yaml::documents(&content) {
            let fault = |message: String| Error::Manifest {
                object: path.display().to_string(),
                message,
            };
            let value = document
                .map_err(|error| fault(error.to_string()))?
                .to_json()
                .map_err(|error| fault(error.to_string()))?;
            if !value.is_null() {
                objects.push(value);
            }
        }
    }
    Ok(objects)
}

/// Puts other images into the Deployments of a release, the CSV's among them, and into the flags that name images.
fn replace_images(object: &mut Value, images: &Images) {
    match object {
        Value::Object(map) => {
            let is_container = map.contains_key("command") || map.contains_key("args");
            if let (Some(Value::String(image)), true) = (map.get_mut("image"), is_container)
                && let Some(olm) = images.olm.as_ref().filter(|_| is_olm(image))
            {
                image.clone_from(olm);
            }
            if let Some(Value::Array(arguments)) = map.get_mut("args") {
                replace_flags(arguments, images);
            }
            map.values_mut().for_each(|value| replace_images(value, images));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| replace_images(value, images)),
        _ => {}
    }
}

fn is_olm(image: &str) -> bool {
    let repository = image.split('@').next().unwrap_or_default();
    repository
        .rsplit('/')
        .next()
        .is_some_and(|last| last.split(':').next() == Some("olm"))
}

fn replace_flags(arguments: &mut [Value], images: &Images) {
    let mut after_util = false;
    for argument in arguments {
        let Value::String(text) = argument else { continue };
        if let (Some(opm), true) = (&images.opm, text.starts_with("--opmImage=")) {
            *text = format!("--opmImage={opm}");
        }
        if let Some(util) = images.util.as_ref().or(images.olm.as_ref()) {
            if after_util {
                text.clone_from(util);
            } else if text.starts_with("--util-image=") {
                *text = format!("--util-image={util}");
            }
        }
        after_util = text == "--util-image";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_modules_folder_tells_the_version() {
        let path = Path::new("/m/operator-lifecycle-manager@v0.46.0/deploy/chart");
        assert_eq!(version_in_path(path).as_deref(), Some("0.46.0"));
        assert_eq!(version_in_path(Path::new("/m/olm/deploy/chart")), None);
    }

    #[test]
    fn a_file_that_never_ends_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("olm.yaml")).unwrap();
        for result in [read_folder(folder.path()).map(drop), checksum(folder.path()).map(drop)] {
            let error = result.unwrap_err();
            assert!(
                matches!(&error, Error::File { source, .. } if source.to_string() == "not a regular file"),
                "{error}"
            );
        }
    }

    #[test]
    fn images_and_flags_are_replaced() {
        let mut object = json!({"spec": {"containers": [{
            "image": "quay.io/operator-framework/olm@sha256:aa",
            "args": ["--namespace", "olm", "--opmImage=quay.io/operator-framework/opm:latest", "--util-image", "quay.io/operator-framework/olm@sha256:aa"],
        }]}});
        let images = Images {
            olm: Some("r/olm:1".into()),
            opm: Some("r/opm:1".into()),
            util: None,
        };
        replace_images(&mut object, &images);
        assert_eq!(
            object,
            json!({"spec": {"containers": [{"image": "r/olm:1", "args": ["--namespace", "olm", "--opmImage=r/opm:1", "--util-image", "r/olm:1"]}]}})
        );
    }
}
