//! The base of the ClusterServiceVersion: the settings and the data from types, before a bundle adds deployments and
//! permissions.

use olmkit_base::object::SetAt as _;
use std::collections::BTreeMap;

use base64::Engine;
use serde_json::{Map, Value, json};

use super::{Api, Error, InstallMode, Package, Project};
use crate::schema::display_name;

impl Project {
    /// The base CSV in `config/manifests/bases/<name>.clusterserviceversion.yaml`.
    pub(crate) fn base(&self) -> Result<Value, Error> {
        let mut base = base(&self.name, &self.package)?;
        base.set_at(&["metadata", "name"], format!("{}.v{}", self.name, self.version).into());
        base.set_at(&["spec", "version"], self.version.clone().into());
        let mut owned: Vec<Value> = self.apis.iter().flat_map(owned).collect();
        owned.sort_by(|one, other| key(one).cmp(&key(other)));
        base.set_at(&["spec", "customresourcedefinitions"], json!({"owned": owned}));
        base.set_at(
            &["metadata", "annotations", "containerImage"],
            self.image.clone().into(),
        );
        if self.package.suggested_namespace.is_none() {
            base.set_at(
                &["metadata", "annotations", "operatorframework.io/suggested-namespace"],
                self.namespace.clone().into(),
            );
        }
        Ok(base)
    }
}

fn key(owned: &Value) -> (Option<&str>, Option<&str>) {
    (
        owned.get("name").and_then(Value::as_str),
        owned.get("version").and_then(Value::as_str),
    )
}

fn owned(api: &Api) -> Vec<Value> {
    let names = &api.crd.spec.names;
    api.presentations
        .iter()
        .map(|presentation| {
            let mut entry = json!({
                "kind": names.kind,
                "name": format!("{}.{}", names.plural, api.crd.spec.group),
                "version": presentation.version,
                "displayName": presentation.display_name.clone().unwrap_or_else(|| display_name(&names.kind)),
                "description": presentation
                    .description
                    .clone()
                    .or_else(|| documented(api, &presentation.version))
                    .unwrap_or_else(|| format!("{} is the Schema for the {} API", names.kind, names.plural)),
            });
            let mut resources = presentation.resources.clone();
            resources.sort();
            for (field, value) in [
                ("resources", json!(resources)),
                ("specDescriptors", json!(presentation.descriptors.spec)),
                ("statusDescriptors", json!(presentation.descriptors.status)),
            ] {
                if value.as_array().is_some_and(|list| !list.is_empty()) {
                    entry.set_at(&[field], value);
                }
            }
            entry
        })
        .collect()
}

/// The value of `#[kube(doc = "…")]` for a version of a kind; without it kube-derive writes a sentence without content.
fn documented(api: &Api, version: &str) -> Option<String> {
    let version = api.crd.spec.versions.iter().find(|served| served.name == version)?;
    let schema = version.schema.as_ref()?.open_api_v3_schema.as_ref()?;
    let description = schema.description.clone()?;
    (!description.is_empty() && !description.starts_with("Auto-generated derived type")).then_some(description)
}

/// A base CSV only from settings, without kinds: name `<name>.v0.0.0`, as operator-sdk writes it. `generate bundle
/// --version` sets name and version.
///
/// # Errors
/// When a setting is wrong: an icon whose content was not read.
pub fn base(name: &str, package: &Package) -> Result<Value, Error> {
    let mut spec = Map::new();
    let mut set = |field: &str, value: Value| {
        spec.insert(field.to_owned(), value);
    };
    set("displayName", package.display_name.clone().into());
    set("description", package.description.clone().into());
    if let Some((media_type, content)) = package.icon() {
        let data = base64::engine::general_purpose::STANDARD.encode(content);
        set("icon", json!([{"base64data": data, "mediatype": media_type}]));
    } else if let Some(icon) = &package.icon {
        return Err(Error::Setting {
            setting: "icon".into(),
            reason: format!("{icon} was not read; use Package::load"),
        });
    }
    if let Some(provider) = &package.provider {
        set("provider", json!(provider));
    }
    for (field, value) in [
        ("maintainers", json!(package.maintainers)),
        ("keywords", json!(package.keywords)),
        ("links", json!(package.links)),
    ] {
        if value.as_array().is_some_and(|list| !list.is_empty()) {
            set(field, value);
        }
    }
    set(
        "maturity",
        package.maturity.clone().unwrap_or_else(|| "alpha".into()).into(),
    );
    if let Some(version) = &package.min_kube_version {
        set("minKubeVersion", version.clone().into());
    }
    let modes: Vec<Value> = InstallMode::ALL
        .into_iter()
        .map(|mode| json!({"type": mode.as_str(), "supported": package.install_modes.contains(&mode)}))
        .collect();
    set("installModes", Value::Array(modes));
    set(
        "install",
        json!({"strategy": "deployment", "spec": {"deployments": []}}),
    );
    set("version", "0.0.0".into());
    if let Some(replaces) = &package.upgrade.replaces {
        set("replaces", full_name(name, replaces).into());
    }
    if !package.upgrade.skips.is_empty() {
        set(
            "skips",
            package
                .upgrade
                .skips
                .iter()
                .map(|skipped| full_name(name, skipped))
                .collect(),
        );
    }
    let mut metadata = json!({
        "name": format!("{name}.v0.0.0"),
        "namespace": "placeholder",
        "annotations": annotations(package),
    });
    if !package.labels.is_empty() {
        metadata.set_at(&["labels"], json!(package.labels));
    }
    Ok(json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": metadata,
        "spec": spec,
    }))
}

fn annotations(package: &Package) -> BTreeMap<String, String> {
    let mut annotations = package.annotations.clone();
    let mut set = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            annotations.entry(key.to_owned()).or_insert(value);
        }
    };
    set("alm-examples", Some("[]".into()));
    set(
        "capabilities",
        Some(package.capabilities.clone().unwrap_or_else(|| "Basic Install".into())),
    );
    set(
        "categories",
        Some(package.categories.join(", ")).filter(|joined| !joined.is_empty()),
    );
    set("description", package.summary.clone());
    set("repository", package.repository.clone());
    set("support", package.support.clone());
    set("olm.skipRange", package.upgrade.skip_range.clone());
    set(
        "operatorframework.io/suggested-namespace",
        package.suggested_namespace.clone(),
    );
    annotations
}

/// `memcached-operator.v0.0.1` for `0.0.1`. A full name is not changed.
fn full_name(package: &str, version: &str) -> String {
    if version.starts_with(|first: char| first.is_ascii_digit()) {
        format!("{package}.v{version}")
    } else {
        version.to_owned()
    }
}
