//! Manifests for OLM v1: pure functions of a request.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::base::names;
use crate::bundle::facts::BundleFacts;

/// Label with the name of a catalog. catalogd's webhook sets it; where there is no webhook a selector would find nothing.
pub(super) const METADATA_NAME: &str = "olm.operatorframework.io/metadata.name";

/// The longest value of a label, and so of each name that becomes one.
const LONGEST_LABEL: usize = 63;

/// The selector of all objects that operator-controller has created for a ClusterExtension.
pub(super) fn owned_by(extension: &str) -> String {
    format!("olm.operatorframework.io/owner-kind=ClusterExtension,olm.operatorframework.io/owner-name={extension}")
}

/// The ClusterCatalog that is created for a package.
#[must_use]
pub fn catalog_name(package: &str) -> String {
    names::catalog_source(package)
}

/// Returns true if OLM v1 can label objects with the names that are derived from a package.
///
/// # Errors
/// The name that is too long.
pub(super) fn check_names(package: &str) -> Result<(), String> {
    names::check("package", package)?;
    let name = catalog_name(package);
    if name.len() > LONGEST_LABEL {
        return Err(format!(
            "package {package:?}: its catalog would be called {name}, and OLM v1 labels catalogs with their names, which end at {LONGEST_LABEL} characters"
        ));
    }
    Ok(())
}

/// `spec.source.catalog.upgradeConstraintPolicy`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Only upgrades for which a catalog has an edge.
    CatalogProvided,
    /// Any version, older ones too.
    SelfCertified,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Policy::CatalogProvided => "CatalogProvided",
            Policy::SelfCertified => "SelfCertified",
        })
    }
}

/// A ClusterCatalog of one image, by digest: its content never changes under the same name.
pub(super) fn cluster_catalog(package: &str, image: &str) -> Value {
    let name = catalog_name(package);
    let mut labels = names::labels(package);
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(METADATA_NAME.into(), name.clone().into());
    }
    json!({
        "apiVersion": "olm.operatorframework.io/v1",
        "kind": "ClusterCatalog",
        "metadata": {"name": name, "labels": labels},
        "spec": {"source": {"type": "Image", "image": {"ref": image}}},
    })
}

/// A ClusterExtension that is wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted<'w> {
    pub name: &'w str,
    pub package: &'w str,
    pub namespace: &'w str,
    /// The catalog. `None` for any.
    pub catalog: Option<&'w str>,
    pub version: Option<&'w str>,
    pub channels: &'w [String],
    pub policy: Option<Policy>,
    /// `spec.config.inline`. Null for none.
    pub config: Value,
    /// True if CRDs are upgraded whatever they become.
    pub any_crd: bool,
    pub annotations: Vec<(&'w str, String)>,
}

/// Its manifest.
pub(super) fn cluster_extension(wanted: &Wanted<'_>) -> Value {
    let mut catalog = json!({"packageName": wanted.package});
    let mut add = |key: &str, value: Value| {
        if let Some(catalog) = catalog.as_object_mut() {
            catalog.insert(key.to_owned(), value);
        }
    };
    if let Some(name) = wanted.catalog {
        add("selector", json!({"matchLabels": {METADATA_NAME: name}}));
    }
    if let Some(version) = wanted.version {
        add("version", version.into());
    }
    if !wanted.channels.is_empty() {
        add("channels", json!(wanted.channels));
    }
    if let Some(policy) = wanted.policy {
        add("upgradeConstraintPolicy", policy.to_string().into());
    }
    let mut spec = json!({"namespace": wanted.namespace, "source": {"sourceType": "Catalog", "catalog": catalog}});
    if let Some(spec) = spec.as_object_mut() {
        if !wanted.config.is_null() {
            spec.insert(
                "config".into(),
                json!({"configType": "Inline", "inline": wanted.config}),
            );
        }
        if wanted.any_crd {
            spec.insert(
                "install".into(),
                json!({"preflight": {"crdUpgradeSafety": {"enforcement": "None"}}}),
            );
        }
    }
    let mut metadata = json!({"name": wanted.name, "labels": names::labels(wanted.package)});
    if let (Some(metadata), false) = (metadata.as_object_mut(), wanted.annotations.is_empty()) {
        let annotations = wanted.annotations.iter();
        let annotations: Map<String, Value> = annotations
            .map(|(key, value)| ((*key).to_owned(), value.as_str().into()))
            .collect();
        metadata.insert("annotations".into(), annotations.into());
    }
    json!({
        "apiVersion": "olm.operatorframework.io/v1",
        "kind": "ClusterExtension",
        "metadata": metadata,
        "spec": spec,
    })
}

/// The ClusterExtension for a local bundle: its exact version, only from its own catalog.
pub(super) fn for_bundle(bundle: &BundleFacts, namespace: &str, config: Value) -> Value {
    let version = version(bundle);
    cluster_extension(&Wanted {
        name: &bundle.package,
        package: &bundle.package,
        namespace,
        catalog: Some(&catalog_name(&bundle.package)),
        version: Some(&version),
        config,
        annotations: vec![(names::DIGEST_ANNOTATION, bundle.digest.clone())],
        ..Wanted::default()
    })
}

/// The bundle's version in its property `olm.package`, which OLM v1 compares.
pub(super) fn version(bundle: &BundleFacts) -> String {
    let properties = bundle.blob.get("properties").and_then(Value::as_array);
    let package = properties
        .into_iter()
        .flatten()
        .find(|property| crate::base::json::text(property, "/type") == "olm.package");
    package
        .map(|property| crate::base::json::text(property, "/value/version").to_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec.namespace` is required up to OLM v1 1.11. Later releases may make it optional, and accept it.
    #[test]
    fn every_cluster_extension_has_a_namespace() {
        let facts = cluster_extension(&Wanted {
            namespace: "shop",
            ..Wanted::default()
        });
        assert_eq!(facts["spec"]["namespace"], "shop");
    }

    #[test]
    fn only_what_is_asked_for_is_written() {
        let plain = cluster_extension(&Wanted {
            name: "cache",
            package: "cache",
            namespace: "shop",
            ..Wanted::default()
        });
        assert_eq!(
            plain["spec"],
            json!({"namespace": "shop", "source": {"sourceType": "Catalog", "catalog": {"packageName": "cache"}}})
        );
        let all = cluster_extension(&Wanted {
            name: "cache",
            package: "cache",
            namespace: "shop",
            catalog: Some("ours"),
            version: Some(">=1.0"),
            channels: &["stable".to_owned()],
            policy: Some(Policy::SelfCertified),
            config: json!({"watchNamespace": "shop"}),
            any_crd: true,
            annotations: vec![("a", "b".into())],
        });
        assert_eq!(
            all["spec"],
            json!({
                "namespace": "shop",
                "source": {"sourceType": "Catalog", "catalog": {
                    "packageName": "cache",
                    "selector": {"matchLabels": {METADATA_NAME: "ours"}},
                    "version": ">=1.0",
                    "channels": ["stable"],
                    "upgradeConstraintPolicy": "SelfCertified",
                }},
                "config": {"configType": "Inline", "inline": {"watchNamespace": "shop"}},
                "install": {"preflight": {"crdUpgradeSafety": {"enforcement": "None"}}},
            })
        );
        assert_eq!(all["metadata"]["annotations"], json!({"a": "b"}));
    }

    #[test]
    fn a_catalog_has_the_label_that_selects_it() {
        let catalog = cluster_catalog("cache", "registry.test/cache@sha256:0");
        assert_eq!(catalog["metadata"]["name"], "cache-catalog");
        assert_eq!(catalog["metadata"]["labels"][METADATA_NAME], "cache-catalog");
        assert_eq!(catalog["metadata"]["labels"][names::MANAGED_BY.0], names::MANAGED_BY.1);
        assert_eq!(check_names(&"p".repeat(55)), Ok(()));
        assert!(check_names(&"p".repeat(56)).unwrap_err().contains("63 characters"));
    }
}
