//! Objects that OLM leaves after a ClusterServiceVersion is deleted: cluster roles and their bindings, the binding in
//! kube-system for webhooks, and the Operator object; and the objects that olmkit created for a catalog.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::options::Options;
use super::scope::Scope;
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::object_ref::ObjectRef;
use crate::base::{kinds, names};
use crate::kube::client::Cluster;
use crate::kube::origin::Origin;
use crate::kube::owned;
use crate::kube::removal::Kept;
use crate::v0::cluster_objects;

/// Objects that nothing else removes.
#[derive(Debug, Default)]
pub struct Residue {
    /// Left by the CSVs.
    pub of_csvs: Vec<ObjectRef>,
    /// Left by the catalogs.
    pub of_catalogs: Vec<ObjectRef>,
    /// The Operator object.
    pub operators: Vec<ObjectRef>,
    /// Cluster-scoped objects from the package's bundles that are kept.
    pub kept: Vec<Kept>,
    /// Those of them that have OLM's label of the package.
    pub labelled: Vec<ObjectRef>,
}

/// Finds the residue. OLM labels the cluster-scoped objects of a CSV, and those in other namespaces, because owner
/// references cannot cross namespaces.
///
/// # Errors
/// [`Error::Request`].
pub async fn find(cluster: &Cluster, scope: &Scope, options: &Options) -> Result<Residue, Error> {
    let mut residue = Residue {
        of_csvs: of_csvs(cluster, scope).await?,
        ..Residue::default()
    };
    of_bundles(cluster, scope, options, &mut residue).await?;
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
                    residue.of_catalogs.push(ObjectRef::from_object(&kind, &object));
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

/// Objects that OLM created for the CSVs.
async fn of_csvs(cluster: &Cluster, scope: &Scope) -> Result<Vec<ObjectRef>, Error> {
    let mut found = Vec::new();
    for place in owned::places() {
        let selector = place.names_owner.then_some(owned::OWNER);
        for object in cluster.list(place.kind.clone(), place.namespace, selector).await? {
            if owned_by(&object, scope) || (!place.names_owner && is_of_server(&object, scope)) {
                found.push(ObjectRef::from_object(&place.kind, &object));
            }
        }
    }
    Ok(found)
}

/// Cluster-scoped objects from the package's bundles, except those with an owner.
async fn of_bundles(cluster: &Cluster, scope: &Scope, options: &Options, residue: &mut Residue) -> Result<(), Error> {
    let label = names::component_label(&options.package, &scope.namespace);
    for kind in cluster_objects::kinds() {
        for object in cluster.list(kind.clone(), None, Some(owned::MANAGED)).await? {
            let reference = ObjectRef::from_object(&kind, &object);
            if residue.of_csvs.contains(&reference) {
                continue;
            }
            match disposition(&object, &reference, &label, scope) {
                Disposition::Delete => residue.of_csvs.push(reference),
                Disposition::Keep(why) => {
                    if object
                        .pointer("/metadata/labels")
                        .is_some_and(|labels| labels.get(&label).is_some())
                    {
                        residue.labelled.push(reference.clone());
                    }
                    residue.kept.push(Kept::new(reference, why.to_owned()));
                }
                Disposition::Unrelated => {}
            }
        }
    }
    Ok(())
}

/// Objects that OLM wrote after their plan was deleted.
///
/// # Errors
/// [`Error::Request`].
pub async fn of_plans(cluster: &Cluster, scope: &Scope, options: &Options) -> Result<Vec<ObjectRef>, Error> {
    let planned = planned(scope);
    if planned.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = Residue {
        of_csvs: of_csvs(cluster, scope).await?,
        ..Residue::default()
    };
    of_bundles(cluster, scope, options, &mut found).await?;
    found.of_csvs.retain(|object| planned.contains(object));
    Ok(found.of_csvs)
}

/// The objects that the package's plans create. OLM can create them again shortly after their plan is complete: its
/// controller (`syncInstallPlans`) may begin one more sync before its cache has the plan's last status, and executes
/// all steps again.
fn planned(scope: &Scope) -> Vec<ObjectRef> {
    let steps = cluster_objects::steps(&scope.plans, |csv| scope.csv_names.contains(csv));
    steps.map(|(object, _)| object).collect()
}

/// Outcome for an object.
#[derive(Debug, PartialEq, Eq)]
enum Disposition {
    Delete,
    /// It comes from a bundle of the package, but other packages use it too.
    Keep(&'static str),
    /// It does not come from a bundle of the package, or OLM removes it.
    Unrelated,
}

/// Decides about an object that may come from a bundle of the package. Objects that OLM created for a CSV name the kind
/// of their owner. On PriorityClasses OLM writes that too.
fn disposition(object: &Value, reference: &ObjectRef, label: &str, scope: &Scope) -> Disposition {
    let Some(labels) = object.pointer("/metadata/labels").and_then(Value::as_object) else {
        return Disposition::Unrelated;
    };
    let by_olm = labels.contains_key(owned::MANAGED);
    let of_csv = labels.contains_key(owned::OWNER_KIND) && reference.kind != kinds::priority_class();
    let shared = labels
        .keys()
        .any(|key| key != label && scope.labels_elsewhere.contains(key) && key.starts_with(names::COMPONENT));
    let owner = labels.get(owned::OWNER).and_then(Value::as_str).unwrap_or_default();
    let ours = scope.csv_names.contains(owner) || scope.replaced.contains(owner);
    // OLM names the version on existing objects too. The same version in another namespace shares them.
    let owned = ours && !scope.elsewhere.contains(owner);
    let labelled = labels.contains_key(label) || owned;
    if !by_olm || of_csv {
        return Disposition::Unrelated;
    }
    match (shared, is_created(object, reference, labelled, scope)) {
        (false, true) => Disposition::Delete,
        (true, _) if labelled || ours => {
            Disposition::Keep("another namespace has an installation with the same object")
        }
        _ if ours && !owned => Disposition::Keep("another namespace has an installation with the same object"),
        _ if labelled => Disposition::Keep("it was not created for this package"),
        _ => Disposition::Unrelated,
    }
}

/// Returns true if it was created for the package: by the record, because a plan created it, or, without a record, by
/// its labels. Labels alone are no evidence, because OLM writes them on everything that it overwrites.
fn is_created(object: &Value, reference: &ObjectRef, labelled: bool, scope: &Scope) -> bool {
    let origin = Origin::from_object(object);
    let recorded = scope.recorded.get(&cluster_objects::record_key(reference));
    let planned = is_planned(&origin, reference, scope);
    recorded == Some(&origin.uid) || (origin.is_olms_alone() && (planned || (labelled && scope.recorded.is_empty())))
}

/// Returns true if a plan's steps show that it created the object for the package. A pending step is inconclusive: OLM
/// may have executed it in its current sync. Then the object's metadata decides, as for a `Present` step.
fn is_planned(origin: &Origin, reference: &ObjectRef, scope: &Scope) -> bool {
    scope.plans.iter().any(|plan| {
        let mut steps = cluster_objects::steps([plan], |csv| scope.csv_names.contains(csv));
        steps.any(|(object, step)| {
            let status = match step.status.as_str() {
                _ if cluster_objects::is_due(step, plan) => "Present",
                status => status,
            };
            // Plans for the same version in other namespaces are also `Present`, regardless of which of them created
            // it.
            let is_certain = status == "Created" || !scope.elsewhere.contains(&step.resolving);
            object == *reference && is_certain && origin.is_created_by(status, plan)
        })
    })
}

/// The catalogs whose pods are deleted: removed ones, and the package's own even if its CatalogSource was never created
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
    label(owned::OWNER_KIND) == "ClusterServiceVersion"
        && label(owned::OWNER_NAMESPACE) == scope.namespace
        && scope.csv_names.contains(label(owned::OWNER))
}

/// Returns true if OLM created a binding in kube-system for an operator of the namespace that serves webhooks or an
/// API, unless that operator is kept. OLM 0.46 sets no owner on it (`installCertRequirementsForDeployment`), so its
/// name, its service account and its author decide.
fn is_of_server(binding: &Value, scope: &Scope) -> bool {
    let name = text(binding, "/metadata/name");
    let subjects = binding.get("subjects").and_then(Value::as_array);
    let is_of_namespace = |subject: &Value| text(subject, "/namespace") == scope.namespace;
    let deployment = name.strip_suffix("-service-auth-reader");
    deployment.is_some_and(|deployment| !scope.deployments_kept.contains(deployment))
        && text(binding, "/roleRef/name") == "extension-apiserver-authentication-reader"
        && text(binding, "/metadata/labels/olm.managed") == "true"
        && subjects.is_some_and(|subjects| !subjects.is_empty() && subjects.iter().all(is_of_namespace))
        && Origin::from_object(binding).authors.iter().eq(["olm.install"])
}

/// The ClusterRoles that OLM creates for an OperatorGroup. It deletes them with the group, except those that it was
/// about to write.
///
/// # Errors
/// [`Error::Request`].
pub async fn of_groups(cluster: &Cluster, scope: &Scope) -> Result<Vec<ObjectRef>, Error> {
    let mut found = Vec::new();
    for group in &scope.groups {
        let selector = format!(
            "{}={},{}=OperatorGroup,{}={}",
            owned::OWNER,
            group.name,
            owned::OWNER_KIND,
            owned::OWNER_NAMESPACE,
            scope.namespace
        );
        let roles = cluster.list(kinds::cluster_role(), None, Some(&selector)).await?;
        found.extend(
            roles
                .iter()
                .map(|role| ObjectRef::from_object(&kinds::cluster_role(), role)),
        );
    }
    Ok(found)
}

/// The ClusterRoles that OLM creates for users of an API: `<CRD>-<version>-admin` and so on. OLM deletes them with the
/// CRD. If the CRD is kept, only olmkit can remove them.
///
/// # Errors
/// [`Error::Request`].
pub async fn of_apis(cluster: &Cluster, scope: &Scope) -> Result<Vec<ObjectRef>, Error> {
    if scope.unserved_crds.is_empty() {
        return Ok(Vec::new());
    }
    let roles = cluster.list(kinds::cluster_role(), None, Some(owned::MANAGED)).await?;
    let of_apis = roles.iter().filter(|role| is_of_api(role, &scope.unserved_crds));
    Ok(of_apis
        .map(|role| ObjectRef::from_object(&kinds::cluster_role(), role))
        .collect())
}

/// Returns true if OLM created a ClusterRole for the users of one of these CRDs.
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

/// Label prefix of the roles that an OperatorGroup's roles aggregate.
const AGGREGATION: &str = "olm.opgroup.permissions/aggregate-to-";

/// Suffixes of the roles that OLM creates.
const PURPOSES: [&str; 4] = ["admin", "edit", "view", "crdview"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LABEL: &str = "operators.coreos.com/cache.shop";

    /// Returns true if a ClusterRole with these labels, by this author, came with a bundle.
    fn brought_by(author: &str, labels: Value, scope: &Scope) -> bool {
        disposition_of(author, labels, scope) == Disposition::Delete
    }

    fn disposition_of(author: &str, labels: Value, scope: &Scope) -> Disposition {
        let role = json!({"metadata": {"name": "cache-viewer", "uid": "u1", "labels": labels,
            "managedFields": [{"manager": author, "fieldsV1": {"f:rules": {}}}]}});
        disposition(
            &role,
            &ObjectRef::cluster(kinds::cluster_role(), "cache-viewer"),
            LABEL,
            scope,
        )
    }

    fn brought(labels: Value, scope: &Scope) -> bool {
        brought_by("catalog", labels, scope)
    }

    #[test]
    fn objects_that_olm_created_belong_to_the_package() {
        let scope = Scope {
            namespace: "shop".into(),
            csv_names: BTreeSet::from(["cache.v2".to_owned()]),
            ..Scope::default()
        };
        let owned = |owner: &str, kind: &str, namespace: &str| {
            let labels = json!({"olm.owner": owner, "olm.owner.kind": kind, "olm.owner.namespace": namespace});
            owned_by(&json!({"metadata": {"name": "role", "labels": labels}}), &scope)
        };
        assert!(owned("cache.v2", "ClusterServiceVersion", "shop"));
        assert!(!owned("cache.v2", "ClusterServiceVersion", "other"));
        assert!(!owned("other.v1", "ClusterServiceVersion", "shop"));
        assert!(!owned("cache.v2", "OperatorGroup", "shop"));
        assert!(!owned_by(&json!({"metadata": {"name": "role"}}), &scope));
    }

    #[test]
    fn bindings_of_webhooks_go_with_their_operator() {
        let scope = Scope {
            namespace: "shop".into(),
            deployments_kept: BTreeSet::from(["other".to_owned()]),
            ..Scope::default()
        };
        let binding = |name: &str, namespace: &str, author: &str| {
            json!({
                "metadata": {
                    "name": name,
                    "labels": {"olm.managed": "true"},
                    "managedFields": [{"manager": author, "fieldsV1": {"f:metadata": {}, "f:roleRef": {}, "f:subjects": {}}}],
                },
                "roleRef": {"kind": "Role", "name": "extension-apiserver-authentication-reader"},
                "subjects": [{"kind": "ServiceAccount", "name": "cache", "namespace": namespace}],
            })
        };
        let ours = "cache-service-auth-reader";
        assert!(is_of_server(&binding(ours, "shop", "olm.install"), &scope));
        assert!(!is_of_server(&binding(ours, "market", "olm.install"), &scope));
        assert!(!is_of_server(&binding(ours, "shop", "kubectl"), &scope));
        assert!(!is_of_server(
            &binding("other-service-auth-reader", "shop", "olm.install"),
            &scope
        ));
        let mut to_others = binding(ours, "shop", "olm.install");
        to_others["roleRef"]["name"] = json!("some-role");
        assert!(!is_of_server(&to_others, &scope));
    }

    #[test]
    fn overwritten_objects_belong_to_the_package_only_without_other_writers() {
        let mut scope = Scope {
            csv_names: BTreeSet::from(["cache.v2".to_owned()]),
            replaced: BTreeSet::from(["cache.v1".to_owned()]),
            ..Scope::default()
        };
        let by = |owner: &str| json!({"olm.managed": "true", "olm.owner": owner});
        for version in ["cache.v1", "cache.v2"] {
            assert!(brought(by(version), &scope), "{version}");
            assert!(!brought_by("kubectl", by(version), &scope), "{version}");
        }
        assert!(!brought(by("other.v1"), &scope));
        // The same version in another namespace shares the bundle's cluster-scoped objects.
        scope.elsewhere.insert("cache.v2".to_owned());
        assert!(!brought(by("cache.v2"), &scope));
        assert!(brought(by("cache.v1"), &scope));
        // With a record, labels do not count.
        scope.recorded.insert("things.example.com".into(), "u0".into());
        assert!(!brought(by("cache.v1"), &scope));
        scope.recorded.insert("ClusterRole/cache-viewer".into(), "u1".into());
        assert!(brought_by("kubectl", by("cache.v1"), &scope));
        scope.recorded.insert("ClusterRole/cache-viewer".into(), "u2".into());
        assert!(!brought(by("cache.v1"), &scope), "created again by a user");
    }

    #[test]
    fn kept_objects_have_a_reason() {
        let mut scope = Scope {
            csv_names: BTreeSet::from(["cache.v2".to_owned()]),
            ..Scope::default()
        };
        let owned = json!({"olm.managed": "true", "olm.owner": "cache.v2"});
        let labelled = json!({"olm.managed": "true", LABEL: ""});
        for labels in [&owned, &labelled] {
            let disposition = disposition_of("kubectl", labels.clone(), &scope);
            assert_eq!(
                disposition,
                Disposition::Keep("it was not created for this package"),
                "{labels}"
            );
        }
        let of_others = json!({"olm.managed": "true", "olm.owner": "other.v1"});
        assert_eq!(disposition_of("kubectl", of_others, &scope), Disposition::Unrelated);
        // OLM's own, which it removes.
        let of_csv = json!({"olm.managed": "true", "olm.owner": "cache.v2", "olm.owner.kind": "ClusterServiceVersion"});
        assert_eq!(disposition_of("kubectl", of_csv, &scope), Disposition::Unrelated);
        let elsewhere = Disposition::Keep("another namespace has an installation with the same object");
        scope.elsewhere.insert("cache.v2".to_owned());
        assert_eq!(disposition_of("catalog", owned, &scope), elsewhere);
        let other = "operators.coreos.com/cache.market";
        scope.labels_elsewhere.insert(other.to_owned());
        let shared = json!({"olm.managed": "true", LABEL: "", other: ""});
        assert_eq!(disposition_of("catalog", shared, &scope), elsewhere);
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
    fn objects_of_a_bundle_are_deleted_unless_another_installation_has_them() {
        let mut scope = Scope::default();
        let labelled = json!({"olm.managed": "true", LABEL: ""});
        assert!(brought(labelled.clone(), &scope));
        assert!(!brought_by("helm", labelled, &scope));
        assert!(!brought(json!({"olm.managed": "true"}), &scope));
        assert!(!brought(json!({LABEL: ""}), &scope), "not OLM's");
        let other = "operators.coreos.com/cache.market";
        let shared = json!({"olm.managed": "true", LABEL: "", other: ""});
        assert!(
            brought(shared.clone(), &scope),
            "objects in other namespaces are deleted"
        );
        scope.labels_elsewhere.insert(other.to_owned());
        assert!(!brought(shared, &scope));
    }

    /// A package whose plan has such a step for ClusterRole `cache-viewer`.
    fn with_plan(phase: &str, message: &str, status: &str) -> Scope {
        let conditions = match phase {
            "Complete" => {
                json!([{"type": "Installed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:20Z"}])
            }
            _ => json!([]),
        };
        let resource = json!({"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "cache-viewer"});
        let plan = json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:10Z"},
            "spec": {"approved": true},
            "status": {"phase": phase, "message": message, "conditions": conditions,
                "plan": [{"resolving": "cache.v2", "status": status, "resource": resource}]},
        });
        Scope {
            csv_names: BTreeSet::from(["cache.v2".to_owned()]),
            // An earlier version was recorded, this one was not.
            recorded: [("things.example.com".to_owned(), "u0".to_owned())].into(),
            plans: vec![serde_json::from_value(plan).unwrap()],
            ..Scope::default()
        }
    }

    /// Returns true if a ClusterRole that this author created at this second is deleted.
    fn goes(scope: &Scope, author: &str, second: u8) -> bool {
        let role = json!({"metadata": {
            "name": "cache-viewer",
            "uid": "u1",
            "labels": {"olm.managed": "true"},
            "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
            "managedFields": [{"manager": author, "fieldsV1": {"f:rules": {}}}],
        }});
        let reference = ObjectRef::cluster(kinds::cluster_role(), "cache-viewer");
        disposition(&role, &reference, LABEL, scope) == Disposition::Delete
    }

    #[test]
    fn objects_of_a_plan_are_deleted_although_olm_did_not_record_them() {
        for status in ["Created", "Present"] {
            let scope = with_plan("Complete", "", status);
            assert!(goes(&scope, "catalog", 11), "{status}");
            assert!(!goes(&scope, "catalog", 9), "{status}: it stood before the plan");
            assert!(!goes(&scope, "kubectl", 11), "{status}");
        }
        assert!(!goes(&with_plan("Complete", "", "Unknown"), "catalog", 11));
    }

    #[test]
    fn objects_of_an_unfinished_plan_are_deleted() {
        let retried = "retrying execution due to error: x";
        for (message, status) in [("", "Unknown"), ("", "NotPresent"), ("", ""), (retried, "NotPresent")] {
            let mut scope = with_plan("Installing", message, status);
            assert!(goes(&scope, "catalog", 11), "{status}");
            assert!(!goes(&scope, "catalog", 9), "{status}: it stood before the plan");
            assert!(!goes(&scope, "kubectl", 11), "{status}");
            assert_eq!(planned(&scope).len(), 1, "{status}: OLM may still create it");
            // The plan of the other one may have created it.
            scope.elsewhere.insert("cache.v2".to_owned());
            assert!(!goes(&scope, "catalog", 11), "{status}");
        }
    }

    #[test]
    fn objects_that_a_complete_plan_creates_again_are_found() {
        for (phase, status) in [
            ("Installing", "Created"),
            ("Complete", "Created"),
            ("Complete", "Present"),
        ] {
            let scope = with_plan(phase, "", status);
            assert_eq!(planned(&scope).len(), 1, "{phase} {status}");
        }
    }

    #[test]
    fn steps_for_other_packages_count_for_nothing() {
        let mut scope = with_plan("Installing", "", "NotPresent");
        scope.csv_names = BTreeSet::from(["other.v1".to_owned()]);
        assert!(!goes(&scope, "catalog", 11));
        assert!(planned(&scope).is_empty());
    }
}
