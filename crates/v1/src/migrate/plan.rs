//! The objects of OLM v1 that would replace Subscriptions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Installation, text};
use crate::VersionRange;

/// The label by which a ClusterExtension selects its catalog.
const NAME_LABEL: &str = "olm.operatorframework.io/metadata.name";

/// The ClusterCatalogs and ClusterExtensions that would replace Subscriptions, without those that have no catalog
/// image. Each ClusterExtension has its package's name, so omit those that [`assess`](super::assess) finds in conflict.
/// Two CatalogSources of one name and different images become two ClusterCatalogs, the later one with its namespace in
/// the name.
#[must_use]
pub fn plan(installations: &[Installation<'_>]) -> Vec<Value> {
    let mut catalogs: BTreeMap<String, Value> = BTreeMap::new();
    let mut extensions = Vec::new();
    for installation in installations {
        let Some(spec) = installation.catalog.and_then(catalog_spec) else {
            continue;
        };
        let (name, namespace) = (
            text(installation.subscription, "/spec/source"),
            text(installation.subscription, "/spec/sourceNamespace"),
        );
        let mut name = name.to_owned();
        while catalogs.get(&name).is_some_and(|other| *other != spec) {
            name = format!("{name}-{namespace}");
        }
        extensions.push(extension(installation, &name));
        catalogs.insert(name, spec);
    }
    let catalogs = catalogs.into_iter().map(|(name, spec)| {
        json!({
            "apiVersion": "olm.operatorframework.io/v1",
            "kind": "ClusterCatalog",
            "metadata": {"name": name, "labels": {NAME_LABEL: name}},
            "spec": spec,
        })
    });
    catalogs.chain(extensions).collect()
}

/// The ClusterCatalog for a CatalogSource with an image.
fn catalog_spec(catalog: &Value) -> Option<Value> {
    let image = Some(text(catalog, "/spec/image")).filter(|image| !image.is_empty())?;
    let mut source = json!({"ref": image});
    // OLM v1 rejects an interval for immutable sources.
    let interval = text(catalog, "/spec/updateStrategy/registryPoll/interval");
    if let Some(minutes) = minutes(interval).filter(|_| !image.contains('@')) {
        set(&mut source, "pollIntervalMinutes", minutes.into());
    }
    let mut spec = json!({"source": {"type": "Image", "image": source}});
    let priority = catalog.pointer("/spec/priority").and_then(Value::as_i64);
    if let Some(priority) = priority.filter(|priority| *priority != 0) {
        let within = priority.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
        set(&mut spec, "priority", within.into());
    }
    Some(spec)
}

fn extension(installation: &Installation<'_>, catalog: &str) -> Value {
    let Installation { subscription, csv, .. } = *installation;
    let package = text(subscription, "/spec/name");
    let mut filter = json!({
        "packageName": package,
        "upgradeConstraintPolicy": "CatalogProvided",
        "selector": {"matchLabels": {NAME_LABEL: catalog}},
    });
    let channel = text(subscription, "/spec/channel");
    if !channel.is_empty() {
        set(&mut filter, "channels", json!([channel]));
    }
    let version = csv.map(|csv| text(csv, "/spec/version")).unwrap_or_default();
    let manual = text(subscription, "/spec/installPlanApproval") == "Manual";
    if manual && VersionRange::parse(version).is_ok() {
        set(&mut filter, "version", version.into());
    }
    let mut spec = json!({
        "namespace": text(subscription, "/metadata/namespace"),
        "source": {"sourceType": "Catalog", "catalog": filter},
    });
    let mut config = subscription.pointer("/spec/config").cloned().unwrap_or_default();
    if let Some(fields) = config.as_object_mut() {
        fields.remove("selector");
        if !fields.is_empty() {
            let inline = json!({"configType": "Inline", "inline": {"deploymentConfig": config}});
            set(&mut spec, "config", inline);
        }
    }
    json!({
        "apiVersion": "olm.operatorframework.io/v1",
        "kind": "ClusterExtension",
        "metadata": {"name": package},
        "spec": spec,
    })
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

/// An interval such as `1h30m` in whole minutes, at least one. `None` for other strings.
fn minutes(interval: &str) -> Option<u64> {
    const MINUTE: u64 = 60_000_000_000;
    let nanoseconds = u64::try_from(olmkit_go::time::parse_duration(interval).ok()?).ok()?;
    (nanoseconds > 0).then(|| nanoseconds.div_ceil(MINUTE))
}
