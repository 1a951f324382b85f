//! The committed bundles, and catalogs of them.

use std::path::{Path, PathBuf};

use olmkit::catalog::model::{Blob, Catalog};
use olmkit::catalog::{load, render};
use serde_json::{Value, json};

pub(crate) const PACKAGE: &str = "memcached-operator";
pub(crate) const CHANNEL: &str = "alpha";

/// A bundle directory and what its ClusterServiceVersion says.
pub(crate) struct Bundle {
    directory: PathBuf,
    /// `memcached-operator.v0.1.0`
    pub name: String,
    replaces: Option<String>,
    /// The image of memcached servers.
    pub operand_image: String,
}

/// The newest committed release and the current bundle, which replaces it.
pub(crate) fn both() -> (Bundle, Bundle) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let releases = std::fs::read_dir(root.join("releases")).unwrap().map(|entry| entry.unwrap().path().join("bundle"));
    let old = releases.filter(|path| path.is_dir()).map(Bundle::read).max_by(|a, b| a.name.cmp(&b.name)).unwrap();
    let new = Bundle::read(root.join("bundle"));
    assert_eq!(new.replaces.as_ref(), Some(&old.name), "the current bundle replaces the newest release");
    assert_ne!(old.operand_image, new.operand_image, "the versions differ visibly");
    (old, new)
}

impl Bundle {
    fn read(directory: PathBuf) -> Self {
        let manifests = std::fs::read_dir(directory.join("manifests")).unwrap().map(|entry| entry.unwrap().path());
        let csv = manifests.into_iter().find(|path| path.to_string_lossy().ends_with(".clusterserviceversion.yaml")).unwrap();
        let csv: Value = serde_yaml::from_str(&std::fs::read_to_string(csv).unwrap()).unwrap();
        let containers = csv.pointer("/spec/install/spec/deployments/0/spec/template/spec/containers").unwrap();
        let variables = containers.as_array().unwrap().iter().flat_map(|container| container["env"].as_array().unwrap());
        let image = variables.into_iter().find(|variable| variable["name"] == "RELATED_IMAGE_MEMCACHED").unwrap();
        Self {
            directory,
            name: csv["metadata"]["name"].as_str().unwrap().to_owned(),
            replaces: csv["spec"]["replaces"].as_str().map(str::to_owned),
            operand_image: image["value"].as_str().unwrap().to_owned(),
        }
    }
}

/// A catalog with one channel of these bundles, all inline.
pub(crate) fn catalog(bundles: &[&Bundle]) -> Catalog {
    let entries: Vec<Value> = bundles
        .iter()
        .map(|bundle| match &bundle.replaces {
            Some(replaces) => json!({"name": bundle.name, "replaces": replaces}),
            None => json!({"name": bundle.name}),
        })
        .collect();
    let package = json!({"schema": "olm.package", "name": PACKAGE, "defaultChannel": CHANNEL});
    let channel = json!({"schema": "olm.channel", "package": PACKAGE, "name": CHANNEL, "entries": entries});
    let mut catalog: Catalog = load::text(&format!("{package}\n{channel}\n")).unwrap().into_iter().collect();
    for bundle in bundles {
        catalog.push(Blob::Bundle(render::bundle::directory(&bundle.directory, "").unwrap()));
    }
    catalog
}
