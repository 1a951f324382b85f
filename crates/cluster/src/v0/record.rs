//! Cluster-scoped objects that were created for a package, recorded in the package's Operator object, which no bundle
//! can contain and which exists as long as the package.
//!
//! A completed plan lists the objects that it created. A plan that is deleted before does not: OLM's catalog operator
//! continues a sync that it has begun even if plan and Subscription are deleted, and creates objects for which it only
//! now received the permissions. The next plan finds these objects `Present`, or no plan is needed anymore. So the
//! objects of such a plan are recorded too, with the plan's time: objects that only OLM has written since that time
//! were created for the package.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{cluster_objects, crd_origin};
use crate::base::error::Error;
use crate::base::object_ref::ObjectRef;
use crate::base::{kinds, names};
use crate::kube::client::Cluster;
use crate::kube::crd::CrdState;
use crate::kube::origin::Record;
use crate::kube::path::is_segment;
use olmkit::types::{InstallPlan, InstallPlanStep};

/// Objects that a plan which has not ended may still create, by their names in a [`Record`], with the time of the plan.
type Unfinished = BTreeMap<String, Timestamp>;

/// Both annotations.
#[derive(Debug, Default, PartialEq)]
struct StoredRecord {
    created: Record,
    unfinished: Unfinished,
}

/// Reads the record of a package, with the later objects of its unfinished plans.
///
/// # Errors
/// [`Error::Request`].
pub async fn read(cluster: &Cluster, package: &str) -> Result<Record, Error> {
    let noted = noted(cluster, package).await?;
    let mut record = noted.created;
    for (key, since) in noted.unfinished {
        if let Some(uid) = created_since(cluster, &key, since).await? {
            record.insert(key, uid);
        }
    }
    Ok(record)
}

/// Records the objects that the plans in the namespace created for a CSV of the package, and those that unfinished
/// plans may still create. Returns whether it could be recorded.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub async fn write(cluster: &Cluster, package: &str, csv: &str, plans: &[InstallPlan]) -> Result<bool, Error> {
    let known = noted(cluster, package).await?;
    let mut new = StoredRecord {
        created: known.created.clone(),
        unfinished: known.unfinished.clone(),
    };
    new.created.extend(created_by(cluster, csv, plans).await?);
    for plan in plans {
        follow(cluster, csv, plan, &mut new).await?;
    }
    let StoredRecord { created, unfinished } = &mut new;
    unfinished.retain(|key, _| !created.contains_key(key));
    if new == known {
        return Ok(true);
    }
    let object = object(cluster, package);
    let manifest = json!({
        "apiVersion": object.kind.api_version(),
        "kind": object.kind.kind,
        "metadata": {"name": object.name, "annotations": annotations(&new)},
    });
    match cluster.apply(&manifest).await {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.code(), Some(403 | 404)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Objects that plans created for a CSV.
async fn created_by(cluster: &Cluster, csv: &str, plans: &[InstallPlan]) -> Result<Record, Error> {
    let mut crds = BTreeMap::new();
    let steps = plans.iter().flat_map(|plan| &plan.status.plan);
    let wanted = steps.filter(|step| step.resource.kind == CRD && step.resolving == csv);
    let wanted = wanted.filter(|step| is_segment(&step.resource.name));
    for step in wanted {
        let reference = ObjectRef::cluster(kinds::custom_resource_definition(), &step.resource.name);
        if let Some(found) = cluster.get(&reference).await? {
            crds.insert(step.resource.name.clone(), CrdState::from_crd(&found));
        }
    }
    let mut found = crd_origin::by_plans(plans, &crds, |resolving| resolving == csv);
    found.extend(cluster_objects::brought(cluster, plans, csv).await?);
    Ok(found)
}

/// Records objects that a plan may still create. A completed plan settles those of earlier plans.
async fn follow(cluster: &Cluster, csv: &str, plan: &InstallPlan, noted: &mut StoredRecord) -> Result<(), Error> {
    let Some(time) = plan.metadata.creation_timestamp.as_ref().map(|time| time.0) else {
        return Ok(());
    };
    let ended = plan.status.phase == "Complete";
    let steps = plan.status.plan.iter().filter(|step| step.resolving == csv);
    for key in steps.filter_map(key_of) {
        if !ended {
            noted.unfinished.entry(key).or_insert(time);
        } else if let Some(since) = noted.unfinished.remove(&key)
            && let Some(uid) = created_since(cluster, &key, since).await?
        {
            noted.created.insert(key, uid);
        }
    }
    Ok(())
}

/// The name of a step's object in the record, if it belongs to the whole cluster.
fn key_of(step: &InstallPlanStep) -> Option<String> {
    if step.resource.kind == CRD {
        return is_segment(&step.resource.name).then(|| step.resource.name.clone());
    }
    cluster_objects::object_of(step).map(|object| cluster_objects::record_key(&object))
}

/// The object that has this name in a record.
fn object_of(key: &str) -> Option<ObjectRef> {
    let Some((kind, name)) = key.split_once('/') else {
        return Some(ObjectRef::cluster(kinds::custom_resource_definition(), key));
    };
    let kind = cluster_objects::kinds().into_iter().find(|known| known.kind == kind)?;
    Some(ObjectRef::cluster(kind, name))
}

/// The UID of an object that only OLM has written, and not before this time.
async fn created_since(cluster: &Cluster, key: &str, since: Timestamp) -> Result<Option<String>, Error> {
    let Some(object) = object_of(key) else { return Ok(None) };
    let origin = cluster_objects::origin(cluster, &object).await?;
    Ok(origin
        .filter(|origin| origin.is_olms_alone() && origin.created >= Some(since))
        .map(|origin| origin.uid))
}

/// The kind whose objects a record names without their kind.
const CRD: &str = "CustomResourceDefinition";

async fn noted(cluster: &Cluster, package: &str) -> Result<StoredRecord, Error> {
    let found = match cluster.get(&object(cluster, package)).await {
        Ok(found) => found,
        // Accounts that see one namespace only: the plans remain.
        Err(error) if error.code() == Some(403) => None,
        Err(error) => return Err(error),
    };
    Ok(found.map(|found| of_annotations(&found)).unwrap_or_default())
}

fn of_annotations(operator: &Value) -> StoredRecord {
    let annotation = |name: &str| operator.pointer("/metadata/annotations")?.get(name)?.as_str();
    StoredRecord {
        created: annotation(names::CREATED_ANNOTATION)
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default(),
        unfinished: annotation(names::UNFINISHED_ANNOTATION)
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default(),
    }
}

fn annotations(noted: &StoredRecord) -> Map<String, Value> {
    let mut annotations = Map::new();
    let mut note = |name: &str, text: Option<String>| annotations.insert(name.to_owned(), text.into());
    note(names::CREATED_ANNOTATION, serde_json::to_string(&noted.created).ok());
    if !noted.unfinished.is_empty() {
        note(
            names::UNFINISHED_ANNOTATION,
            serde_json::to_string(&noted.unfinished).ok(),
        );
    }
    annotations
}

/// OLM's Operator object for the package.
fn object(cluster: &Cluster, package: &str) -> ObjectRef {
    ObjectRef::cluster(kinds::operator(), &names::operator(package, &cluster.namespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back() {
        let noted = StoredRecord {
            created: Record::from([("caches.example.com".to_owned(), "u1".to_owned())]),
            unfinished: Unfinished::from([(
                "ClusterRole/cache-viewer".to_owned(),
                "2026-01-01T00:00:10Z".parse().unwrap(),
            )]),
        };
        let operator = json!({"metadata": {"annotations": annotations(&noted)}});
        assert_eq!(of_annotations(&operator), noted);
        assert_eq!(of_annotations(&json!({"metadata": {}})), StoredRecord::default());
    }

    #[test]
    fn a_name_in_the_record_leads_to_its_object() {
        let step = |group: &str, kind: &str| -> InstallPlanStep {
            serde_json::from_value(json!({"resource": {"group": group, "kind": kind, "name": "x"}})).unwrap()
        };
        let crd = key_of(&step("apiextensions.k8s.io", CRD))
            .and_then(|key| object_of(&key))
            .unwrap();
        assert_eq!(crd, ObjectRef::cluster(kinds::custom_resource_definition(), "x"));
        let role = key_of(&step("rbac.authorization.k8s.io", "ClusterRole")).unwrap();
        assert_eq!(role, "ClusterRole/x");
        assert_eq!(object_of(&role), Some(ObjectRef::cluster(kinds::cluster_role(), "x")));
        assert_eq!(
            key_of(&step("rbac.authorization.k8s.io", "Role")),
            None,
            "it is deleted with its namespace"
        );
    }
}
