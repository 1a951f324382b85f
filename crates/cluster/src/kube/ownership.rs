//! Ownership of objects whose name a command needs.
//!
//! Names such as `<package>-catalog` are not reserved. An existing object with such a name that olmkit did not create
//! for this package is not changed, and the command stops before it changes anything.

use serde_json::Value;

use super::client::Cluster;
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::names;
use crate::base::object_ref::ObjectRef;
use crate::base::reporter::ProgressLog;

/// Creates or changes an object that olmkit owns, but no other.
///
/// # Errors
/// [`Error::NameTaken`] for an object with another owner, [`Error::Manifest`], [`Error::Request`].
pub async fn apply(cluster: &Cluster, manifest: &Value) -> Result<ObjectRef, Error> {
    let object = cluster.reference(manifest).await?;
    let labels = manifest.pointer("/metadata/labels").cloned().unwrap_or_default();
    let taken = |author| Error::NameTaken {
        object: object.clone(),
        author,
    };
    let Some(found) = cluster.get(&object).await? else {
        // Without force: if another client creates the object in this moment, it owns the fields, and the API server
        // reports a conflict.
        return match cluster.apply_unowned(manifest).await {
            Ok(_) => Ok(object),
            Err(error) if error.code() == Some(409) => Err(taken("another client has just created it".into())),
            Err(error) => Err(error),
        };
    };
    if !is_ours(&found, &labels) {
        return Err(taken(author(&found)));
    }
    let mut manifest = manifest.clone();
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
        // Exactly this object or none: another one may replace it at any time.
        metadata.insert("uid".into(), text(&found, "/metadata/uid").into());
    }
    cluster.apply(&manifest).await?;
    Ok(object)
}

/// Applies a manifest, unless its name belongs to an object with another owner, and reports it.
pub async fn create(cluster: &Cluster, manifest: &Value, progress: &mut ProgressLog<'_>) -> Result<ObjectRef, Error> {
    let object = apply(cluster, manifest).await?;
    progress.done(format!("{object}: created"));
    Ok(object)
}

/// Returns true if olmkit or operator-sdk created an object for the package in these labels.
pub fn is_ours(object: &Value, labels: &Value) -> bool {
    let label = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    let found = object.pointer("/metadata/labels").cloned().unwrap_or_default();
    let is_olmkits = label(&found, names::MANAGED_BY.0).as_deref() == Some(names::MANAGED_BY.1)
        && label(&found, names::PACKAGE_LABEL) == label(labels, names::PACKAGE_LABEL);
    is_olmkits || is_of_operator_sdk(object)
}

/// Returns true if operator-sdk created a CatalogSource for one bundle, which it marks with an annotation.
fn is_of_operator_sdk(object: &Value) -> bool {
    let annotations = object.pointer("/metadata/annotations");
    text(object, "/kind") == "CatalogSource"
        && text(object, "/spec/publisher") == "operator-sdk"
        && annotations.is_some_and(|found| found.get(names::INJECTED_BUNDLES_ANNOTATION).is_some())
}

/// The creator of an object according to its metadata.
pub fn author(object: &Value) -> String {
    let label = |name: &str| {
        let labels = object.pointer("/metadata/labels")?;
        labels.get(name)?.as_str().map(str::to_owned)
    };
    if label(names::MANAGED_BY.0).as_deref() == Some(names::MANAGED_BY.1) {
        return match label(names::PACKAGE_LABEL) {
            Some(package) => format!("olmkit created it for package {package}"),
            None => "olmkit created it, but not for one package".into(),
        };
    }
    if let Some(manager) = label(names::MANAGED_BY.0) {
        return format!("{manager} manages it");
    }
    if let Some(owner) = object.pointer("/metadata/ownerReferences/0") {
        return format!("it belongs to {} {}", text(owner, "/kind"), text(owner, "/name"));
    }
    if let Some(owner) = label("olm.owner") {
        return format!("OLM made it for {owner}");
    }
    match creator(object) {
        Some(manager) => format!("{manager} created it"),
        None => "its author is not recorded".into(),
    }
}

/// The client that wrote the object's specification first.
fn creator(object: &Value) -> Option<&str> {
    let written = object.pointer("/metadata/managedFields")?.as_array()?;
    let of_object = written.iter().filter(|entry| text(entry, "/subresource").is_empty());
    let first = of_object.min_by_key(|entry| text(entry, "/time").to_owned())?;
    first.get("manager")?.as_str().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalog(metadata: Value, spec: Value) -> Value {
        json!({"kind": "CatalogSource", "metadata": metadata, "spec": spec})
    }

    #[test]
    fn only_what_was_made_for_the_package_is_ours() {
        let wanted = names::labels("cache");
        assert!(is_ours(&catalog(json!({"labels": wanted}), json!({})), &wanted));
        let other = names::labels("other");
        assert!(!is_ours(&catalog(json!({"labels": other}), json!({})), &wanted));
        let helm = json!({"labels": {names::MANAGED_BY.0: "Helm"}});
        assert!(!is_ours(&catalog(helm, json!({})), &wanted));
        assert!(!is_ours(&catalog(json!({}), json!({})), &wanted));
        let by_sdk = json!({"annotations": {names::INJECTED_BUNDLES_ANNOTATION: "[]"}});
        assert!(is_ours(
            &catalog(by_sdk.clone(), json!({"publisher": "operator-sdk"})),
            &wanted
        ));
        assert!(!is_ours(&catalog(by_sdk, json!({"publisher": "somebody"})), &wanted));
    }

    #[test]
    fn an_object_tells_whose_it_is() {
        let made_by = |metadata: Value| author(&json!({"metadata": metadata}));
        assert_eq!(
            made_by(json!({"labels": {names::MANAGED_BY.0: "Helm"}})),
            "Helm manages it"
        );
        assert_eq!(
            made_by(json!({"labels": names::labels("b")})),
            "olmkit created it for package b"
        );
        assert_eq!(
            made_by(json!({"ownerReferences": [{"kind": "Deployment", "name": "shop"}]})),
            "it belongs to Deployment shop"
        );
        assert_eq!(
            made_by(json!({"labels": {"olm.owner": "a.v1"}})),
            "OLM made it for a.v1"
        );
        let fields = json!([
            {"manager": "catalog", "time": "2026-01-02T00:00:00Z"},
            {"manager": "kube-controller-manager", "time": "2025-01-01T00:00:00Z", "subresource": "status"},
            {"manager": "kubectl-create", "time": "2026-01-01T00:00:00Z"},
        ]);
        assert_eq!(made_by(json!({"managedFields": fields})), "kubectl-create created it");
        assert_eq!(made_by(json!({})), "its author is not recorded");
    }
}
