//! The facts about a bundle that the operations need, read once from its manifests.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::base::error::Error;
use crate::base::json::text;
use crate::base::names;
use crate::kube::client;
use olmkit::types::DeployedCsv;

/// A bundle, ready to be checked against a cluster and installed.
#[derive(Clone, Debug, Default)]
pub struct BundleFacts {
    /// The package, from the annotations.
    pub package: String,
    /// The ClusterServiceVersion.
    pub csv: DeployedCsv,
    /// Every manifest, the CSV among them.
    pub manifests: Vec<Value>,
    /// The `olm.bundle` blob of a file-based catalog, with the manifests in it when the bundle is a directory.
    pub blob: Value,
    /// The image that the bundle was read from. `None` for a directory.
    pub image: Option<String>,
    /// Bytes of the manifests after OLM has unpacked the image.
    pub unpacked_size: usize,
    /// SHA-256 of the manifests, to detect that a bundle of the same version changed.
    pub digest: String,
}

impl BundleFacts {
    /// Collects the facts.
    ///
    /// # Errors
    /// [`Error::Bundle`] if there is not exactly one ClusterServiceVersion, the package has no name, or objects cannot
    /// be named after one of them.
    pub fn new(package: &str, manifests: Vec<Value>, blob: Value, image: Option<String>) -> Result<Self, Error> {
        let csvs: Vec<&Value> = manifests
            .iter()
            .filter(|manifest| text(manifest, "/kind") == "ClusterServiceVersion")
            .collect();
        let [csv] = csvs.as_slice() else {
            return Err(Error::Bundle(format!(
                "a bundle must contain exactly one ClusterServiceVersion, this one contains {}",
                csvs.len()
            )));
        };
        if package.is_empty() {
            return Err(Error::Bundle(
                "metadata/annotations.yaml does not name the package (operators.operatorframework.io.bundle.package.v1)".into(),
            ));
        }
        let csv: DeployedCsv = client::read("ClusterServiceVersion", (*csv).clone())?;
        if csv.name().is_empty() {
            return Err(Error::Bundle("the ClusterServiceVersion has no metadata.name".into()));
        }
        names::check("package", package).map_err(Error::Bundle)?;
        names::check("ClusterServiceVersion", csv.name()).map_err(Error::Bundle)?;
        let digest = digest(&manifests);
        Ok(BundleFacts {
            package: package.to_owned(),
            csv,
            manifests,
            blob,
            image,
            unpacked_size: 0,
            digest,
        })
    }

    /// Name of the CSV, for example `memcached-operator.v0.0.1`.
    pub fn csv_name(&self) -> &str {
        self.csv.name()
    }

    /// A file-based catalog with only this bundle: package, channel with one entry, bundle.
    pub fn catalog(&self, channel: &str, replaces: Option<&str>) -> Vec<Value> {
        let mut entry = json!({"name": self.csv_name()});
        if let (Some(replaces), Some(entry)) = (replaces, entry.as_object_mut()) {
            entry.insert("replaces".into(), replaces.into());
        }
        vec![
            json!({"schema": "olm.package", "name": self.package, "defaultChannel": channel}),
            json!({"schema": "olm.channel", "package": self.package, "name": channel, "entries": [entry]}),
            self.blob.clone(),
        ]
    }

    /// The CRDs in the bundle by name.
    pub fn crds(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.manifests
            .iter()
            .filter(|manifest| text(manifest, "/kind") == "CustomResourceDefinition")
            .map(|manifest| (text(manifest, "/metadata/name"), manifest))
    }

    /// `apiVersion kind` of every manifest other than the CSV.
    pub fn kinds(&self) -> BTreeSet<(String, String)> {
        self.manifests
            .iter()
            .map(|manifest| {
                (
                    text(manifest, "/apiVersion").to_owned(),
                    text(manifest, "/kind").to_owned(),
                )
            })
            .filter(|(_, kind)| kind != "ClusterServiceVersion")
            .collect()
    }
}

fn digest(manifests: &[Value]) -> String {
    let mut texts: Vec<String> = manifests.iter().map(Value::to_string).collect();
    texts.sort();
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
