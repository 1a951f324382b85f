//! What OLM leaves behind when a ClusterServiceVersion goes: cluster roles and their bindings, the binding in kube-system
//! that webhooks get, and the Operator object; and what this tool made beside a catalog.

use serde_json::Value;

use super::super::client::{Cluster, ObjectRef};
use super::super::facts::text;
use super::super::kinds::{self, Kind};
use super::super::{Error, names};
use super::{Options, Scope};

/// Objects that nobody else removes.
#[derive(Debug, Default)]
pub struct Residue {
    /// Left by the CSVs.
    pub of_csvs: Vec<ObjectRef>,
    /// Left by the catalogs.
    pub of_catalogs: Vec<ObjectRef>,
    /// The Operator object.
    pub operators: Vec<ObjectRef>,
}

/// Finds the residue. OLM labels what it makes for a CSV in the cluster or in other namespaces, since owner references
/// cannot reach there.
///
/// # Errors
/// [`Error::Request`].
pub async fn find(cluster: &Cluster, scope: &Scope, options: &Options) -> Result<Residue, Error> {
    let mut residue = Residue::default();
    let cluster_kinds = [
        kinds::cluster_role(),
        kinds::cluster_role_binding(),
        kinds::mutating_webhook_configuration(),
        kinds::validating_webhook_configuration(),
    ];
    for kind in cluster_kinds {
        for object in cluster.list(kind.clone(), None, Some("olm.owner")).await? {
            if owned_by(&object, scope) {
                residue.of_csvs.push(reference(&kind, &object));
            }
        }
    }
    for object in cluster
        .list(kinds::role_binding(), Some("kube-system"), Some("olm.owner"))
        .await?
    {
        if owned_by(&object, scope) {
            residue.of_csvs.push(reference(&kinds::role_binding(), &object));
        }
    }
    if !scope.catalogs.is_empty() {
        let selector = format!(
            "{},{}={}",
            names::CATALOG_LABEL,
            names::MANAGED_BY.0,
            names::MANAGED_BY.1
        );
        for kind in [
            kinds::deployment(),
            kinds::service(),
            kinds::config_map(),
            kinds::network_policy(),
        ] {
            for object in cluster
                .list(kind.clone(), Some(&scope.namespace), Some(&selector))
                .await?
            {
                let catalog = object
                    .pointer("/metadata/labels")
                    .and_then(|labels| labels.get(names::CATALOG_LABEL))
                    .and_then(Value::as_str);
                if scope.catalogs.iter().any(|found| Some(found.name.as_str()) == catalog) {
                    residue.of_catalogs.push(reference(&kind, &object));
                }
            }
        }
    }
    residue.operators.push(ObjectRef::cluster(
        kinds::operator(),
        &format!("{}.{}", options.package, scope.namespace),
    ));
    Ok(residue)
}

fn owned_by(object: &Value, scope: &Scope) -> bool {
    let label = |name: &str| {
        object
            .pointer("/metadata/labels")
            .and_then(|labels| labels.get(name))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    label("olm.owner.kind") == "ClusterServiceVersion"
        && label("olm.owner.namespace") == scope.namespace
        && scope.csv_names.contains(label("olm.owner"))
}

fn reference(kind: &Kind, object: &Value) -> ObjectRef {
    ObjectRef {
        kind: kind.clone(),
        namespace: object
            .pointer("/metadata/namespace")
            .and_then(Value::as_str)
            .map(str::to_owned),
        name: text(object, "/metadata/name").to_owned(),
    }
}
