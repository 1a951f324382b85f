//! What OLM leaves behind when a ClusterServiceVersion goes: cluster roles and their bindings, the binding in kube-system
//! that webhooks get, and the Operator object; and what this tool made beside a catalog.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::super::client::{Cluster, ObjectRef};
use super::super::facts::text;
use super::super::kinds;
use super::super::{Error, cluster_objects, names};
use super::{Kept, Options, Scope};

/// Objects that nothing else removes.
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
        kinds::priority_class(),
        kinds::mutating_webhook_configuration(),
        kinds::validating_webhook_configuration(),
    ];
    for kind in cluster_kinds {
        for object in cluster.list(kind.clone(), None, Some("olm.owner")).await? {
            if owned_by(&object, scope) {
                residue.of_csvs.push(ObjectRef::of(&kind, &object));
            }
        }
    }
    for object in cluster
        .list(kinds::role_binding(), Some("kube-system"), Some("olm.owner"))
        .await?
    {
        if owned_by(&object, scope) {
            residue.of_csvs.push(ObjectRef::of(&kinds::role_binding(), &object));
        }
    }
    of_bundles(cluster, scope, options, &mut residue.of_csvs).await?;
    let catalogs = served(scope, options);
    if !catalogs.is_empty() {
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
                if catalog.is_some_and(|found| catalogs.contains(found)) {
                    residue.of_catalogs.push(ObjectRef::of(&kind, &object));
                }
            }
        }
    }
    residue.operators.push(ObjectRef::cluster(
        kinds::operator(),
        &names::operator(&options.package, &scope.namespace),
    ));
    Ok(residue)
}

/// What the package's bundles brought for the whole cluster, beside what names its owner.
async fn of_bundles(
    cluster: &Cluster,
    scope: &Scope,
    options: &Options,
    residue: &mut Vec<ObjectRef>,
) -> Result<(), Error> {
    let label = names::component_label(&options.package, &scope.namespace);
    for kind in cluster_objects::kinds() {
        for object in cluster.list(kind.clone(), None, Some("olm.managed")).await? {
            let reference = ObjectRef::of(&kind, &object);
            if !residue.contains(&reference)
                && brought(&object, &label, scope.cluster_objects.contains(&reference), scope)
            {
                residue.push(reference);
            }
        }
    }
    Ok(())
}

/// Whether an object came with a bundle of the package: by OLM's component label, or because a plan created it. What OLM made
/// itself for a CSV says so by the kind of its owner.
fn brought(object: &Value, label: &str, planned: bool, scope: &Scope) -> bool {
    let Some(labels) = object.pointer("/metadata/labels").and_then(Value::as_object) else {
        return false;
    };
    let by_olm = labels.contains_key("olm.managed");
    let of_csv = labels.contains_key("olm.owner.kind");
    let created = planned && !labels.contains_key("olm.owner");
    let shared = labels
        .keys()
        .any(|key| key != label && scope.labels_elsewhere.contains(key) && key.starts_with(names::COMPONENT));
    by_olm && !of_csv && !shared && (created || labels.contains_key(label))
}

/// The catalogs whose pods go: those that are removed, and the package's own even when its CatalogSource was never made
/// because the run was interrupted before.
fn served<'a>(scope: &'a Scope, options: &Options) -> BTreeSet<Cow<'a, str>> {
    let mut catalogs: BTreeSet<Cow<str>> = scope.catalogs.iter().map(|found| found.name.as_str().into()).collect();
    let own = names::catalog_source(&options.package);
    let is_kept = |kept: &Kept| kept.object.kind == kinds::catalog_source() && kept.object.name == own;
    if !scope.kept.iter().any(is_kept) {
        catalogs.insert(own.into());
    }
    catalogs
}

fn owned_by(object: &Value, scope: &Scope) -> bool {
    let label = |name: &str| {
        object
            .pointer("/metadata/labels")
            .and_then(|labels| labels.get(name))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let owner = label("olm.owner");
    match label("olm.owner.kind") {
        "ClusterServiceVersion" => label("olm.owner.namespace") == scope.namespace && scope.csv_names.contains(owner),
        // What a bundle holds itself, such as ClusterRoles for users of its API, says neither kind nor namespace of its owner.
        "" => (scope.csv_names.contains(owner) || scope.replaced.contains(owner)) && !scope.elsewhere.contains(owner),
        _ => false,
    }
}

/// The ClusterRoles that OLM makes for an OperatorGroup. It removes them with the group, but not those that it was about to
/// write.
///
/// # Errors
/// [`Error::Request`].
pub async fn of_groups(cluster: &Cluster, scope: &Scope) -> Result<Vec<ObjectRef>, Error> {
    let mut found = Vec::new();
    for group in &scope.groups {
        let selector = format!(
            "olm.owner={},olm.owner.kind=OperatorGroup,olm.owner.namespace={}",
            group.name, scope.namespace
        );
        let roles = cluster.list(kinds::cluster_role(), None, Some(&selector)).await?;
        found.extend(roles.iter().map(|role| ObjectRef::of(&kinds::cluster_role(), role)));
    }
    Ok(found)
}

/// The ClusterRoles that OLM makes for the users of an API: `<CRD>-<version>-admin` and so on. They go with the CRD; where that
/// stays, nobody else removes them.
///
/// # Errors
/// [`Error::Request`].
pub async fn of_apis(cluster: &Cluster, scope: &Scope) -> Result<Vec<ObjectRef>, Error> {
    if scope.unserved_crds.is_empty() {
        return Ok(Vec::new());
    }
    let roles = cluster.list(kinds::cluster_role(), None, Some("olm.managed")).await?;
    let of_apis = roles.iter().filter(|role| is_of_api(role, &scope.unserved_crds));
    Ok(of_apis
        .map(|role| ObjectRef::of(&kinds::cluster_role(), role))
        .collect())
}

/// Whether OLM made a ClusterRole for the users of one of these CRDs.
fn is_of_api(role: &Value, crds: &BTreeSet<String>) -> bool {
    let labels = role.pointer("/metadata/labels").and_then(Value::as_object);
    let by_olm = labels.is_some_and(|labels| labels.keys().any(|key| key.starts_with(AGGREGATION)));
    let parts = text(role, "/metadata/name")
        .rsplit_once('-')
        .and_then(|(rest, purpose)| {
            let (crd, _version) = rest.rsplit_once('-')?;
            Some((crd, purpose))
        });
    by_olm && parts.is_some_and(|(crd, purpose)| crds.contains(crd) && PURPOSES.contains(&purpose))
}

/// How OLM's labels begin on roles that an OperatorGroup's roles are made of.
const AGGREGATION: &str = "olm.opgroup.permissions/aggregate-to-";

/// For whom OLM makes roles.
const PURPOSES: [&str; 4] = ["admin", "edit", "view", "crdview"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owned(labels: Value, scope: &Scope) -> bool {
        owned_by(&json!({"metadata": {"name": "role", "labels": labels}}), scope)
    }

    #[test]
    fn what_olm_made_or_took_from_the_bundle_belongs_to_the_package() {
        let mut scope = Scope {
            namespace: "shop".into(),
            csv_names: BTreeSet::from(["cache.v2".to_owned()]),
            replaced: BTreeSet::from(["cache.v1".to_owned()]),
            ..Scope::default()
        };
        let made = |namespace: &str| json!({"olm.owner": "cache.v2", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": namespace});
        assert!(owned(made("shop"), &scope));
        assert!(!owned(made("other"), &scope));
        for version in ["cache.v1", "cache.v2"] {
            assert!(owned(json!({"olm.owner": version}), &scope), "{version}");
        }
        assert!(!owned(json!({"olm.owner": "other.v1"}), &scope));
        assert!(!owned(json!({}), &scope));
        let group = json!({"olm.owner": "cache.v2", "olm.owner.kind": "OperatorGroup", "olm.owner.namespace": "shop"});
        assert!(!owned(group, &scope));
        // The same version in another namespace shares the objects that a bundle holds for the whole cluster.
        scope.elsewhere.insert("cache.v2".to_owned());
        assert!(!owned(json!({"olm.owner": "cache.v2"}), &scope));
        assert!(owned(made("shop"), &scope));
    }

    #[test]
    fn roles_for_the_users_of_a_definition_that_stays_go() {
        let crds = BTreeSet::from(["things.shop.example.com".to_owned()]);
        let role = |name: &str, label: &str| json!({"metadata": {"name": name, "labels": {label: "true"}}});
        let olm = "olm.opgroup.permissions/aggregate-to-1a2b-admin";
        assert!(is_of_api(&role("things.shop.example.com-v1-admin", olm), &crds));
        assert!(is_of_api(&role("things.shop.example.com-v1alpha1-crdview", olm), &crds));
        assert!(!is_of_api(&role("things.shop.example.com-v1-owner", olm), &crds));
        assert!(!is_of_api(&role("others.shop.example.com-v1-admin", olm), &crds));
        assert!(!is_of_api(&role("things.shop.example.com-v1-admin", "app"), &crds));
    }

    #[test]
    fn what_a_bundle_brought_goes_unless_another_installation_has_it_too() {
        let label = "operators.coreos.com/cache.shop";
        let mut scope = Scope::default();
        let role = |labels: Value| json!({"metadata": {"name": "cache-viewer", "labels": labels}});
        let labelled = role(json!({"olm.managed": "true", label: ""}));
        assert!(brought(&labelled, label, false, &scope));
        assert!(brought(&role(json!({"olm.managed": "true"})), label, true, &scope));
        assert!(!brought(&role(json!({"olm.managed": "true"})), label, false, &scope));
        assert!(!brought(&role(json!({label: ""})), label, false, &scope), "not OLM's");
        let other = "operators.coreos.com/cache.market";
        let shared = role(json!({"olm.managed": "true", label: "", other: ""}));
        assert!(brought(&shared, label, false, &scope), "what was elsewhere is gone");
        scope.labels_elsewhere.insert(other.to_owned());
        assert!(!brought(&shared, label, false, &scope));
    }
}
