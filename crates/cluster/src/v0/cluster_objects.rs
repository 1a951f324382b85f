//! Cluster-scoped objects of a bundle, such as ClusterRoles for users of its API.
//!
//! OLM creates these objects without recording their owner: it labels them with their version only if they existed
//! before, and owner references cannot cross namespaces. Its InstallPlans record it, but are deleted with the
//! Subscription. So the commands record the objects that a plan created, as they do for CRDs, and `cleanup` finds them
//! again after any number of upgrades. They also put OLM's component label on each object: that lists it in the
//! Operator object, and helps if the credentials cannot write the record. Objects that existed before a plan are kept,
//! although OLM overwrites them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::base::error::Error;
use crate::base::json::text;
use crate::base::kinds::{self, Kind};
use crate::base::names;
use crate::base::object_ref::ObjectRef;
use crate::base::reporter::ProgressLog;
use crate::kube::client::Cluster;
use crate::kube::origin::{Origin, Record};
use crate::kube::path::is_segment;
use crate::observe::observation::Observation;
use olmkit::types::{InstallPlan, InstallPlanStep};

/// The kinds. CRDs are handled elsewhere, because they have custom resources.
pub fn kinds() -> [Kind; 3] {
    [
        kinds::cluster_role(),
        kinds::cluster_role_binding(),
        kinds::priority_class(),
    ]
}

/// The steps of plans for these CSVs, with their objects.
pub fn steps<'a>(
    plans: impl IntoIterator<Item = &'a InstallPlan>,
    is_ours: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (ObjectRef, &'a InstallPlanStep)> {
    let steps = plans.into_iter().flat_map(|plan| &plan.status.plan);
    steps
        .filter(move |step| is_ours(&step.resolving))
        .filter_map(|step| Some((object_of(step)?, step)))
}

/// Returns true if OLM may still execute a step: it is pending in a plan that has not ended. OLM writes the status of
/// all steps only at the end, so the object can exist already.
pub fn is_due(step: &InstallPlanStep, plan: &InstallPlan) -> bool {
    is_open(plan) && matches!(step.status.as_str(), "" | "Unknown" | "NotPresent")
}

/// The object of a step, if it is of one of the [`kinds`].
pub fn object_of(step: &InstallPlanStep) -> Option<ObjectRef> {
    let is_same = |kind: &Kind| kind.group == step.resource.group && kind.kind == step.resource.kind;
    let kind = kinds().into_iter().find(is_same)?;
    // OLM copies the name from the bundle before the API server rejects it.
    is_segment(&step.resource.name).then(|| ObjectRef::cluster(kind, &step.resource.name))
}

/// The origin of an object. `None` if it does not exist, or the credentials cannot read it.
///
/// # Errors
/// [`Error::Request`].
pub async fn origin(cluster: &Cluster, object: &ObjectRef) -> Result<Option<Origin>, Error> {
    match cluster.get(object).await {
        Ok(found) if object.kind == kinds::custom_resource_definition() => Ok(found.as_ref().map(Origin::of_crd)),
        Ok(found) => Ok(found.as_ref().map(Origin::from_object)),
        // Then the label is the only evidence, if the credentials can write it.
        Err(error) if error.code() == Some(403) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Time that a plan may still take after its CSV has Succeeded: an operator can run before the last objects of its
/// bundle exist.
pub const PLAN_LIMIT: Duration = Duration::from_secs(20);

/// Waits until OLM has done the last step of the plans that install these CSVs, for [`PLAN_LIMIT`] at most. Returns
/// true if it had to wait.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub async fn complete(
    cluster: &Cluster,
    is_ours: impl Fn(&str) -> bool,
    limit: Duration,
    seen: &mut Observation,
    progress: &mut ProgressLog<'_>,
) -> Result<bool, Error> {
    let (began, limit) = (Instant::now(), limit.min(PLAN_LIMIT));
    let mut waited = false;
    while let Some(plan) = seen.install_plans.iter().find(|plan| is_installing(plan, &is_ours))
        && began.elapsed() < limit
    {
        let name = plan.metadata.name.as_deref().unwrap_or_default();
        progress.waiting(format!("InstallPlan {name}, which OLM carries out"));
        tokio::time::sleep(Duration::from_millis(200)).await;
        seen.refresh(cluster).await?;
        waited = true;
    }
    Ok(waited)
}

/// Objects that plans created for a CSV of the package, for its record; without those that the credentials cannot read.
///
/// # Errors
/// [`Error::Request`].
pub async fn brought(cluster: &Cluster, plans: &[InstallPlan], csv: &str) -> Result<Record, Error> {
    let mut found = Record::new();
    for plan in plans {
        for (object, step) in steps([plan], |resolving| resolving == csv) {
            let origin = origin(cluster, &object).await?;
            if let Some(origin) = origin.filter(|origin| origin.is_created_by(&step.status, plan)) {
                found.insert(record_key(&object), origin.uid);
            }
        }
    }
    Ok(found)
}

/// The name of an object in the record of its package.
pub fn record_key(object: &ObjectRef) -> String {
    format!("{}/{}", object.kind.kind, object.name)
}

/// Labels the objects that plans created for a CSV of the package, or overwrote, in which case OLM replaces the labels.
/// A missing permission does not prevent the installation: for the API server, labeling a ClusterRole requires the
/// permission to grant all its rules.
///
/// # Errors
/// [`Error::Request`].
pub async fn label(
    cluster: &Cluster,
    package: &str,
    csv: &str,
    seen: &Observation,
    progress: &mut ProgressLog<'_>,
) -> Result<(), Error> {
    let label = json!({"metadata": {"labels": {names::component_label(package, &seen.namespace): ""}}});
    let is_written = |step: &InstallPlanStep| matches!(step.status.as_str(), "Created" | "Present");
    let steps = steps(&seen.install_plans, |resolving| resolving == csv);
    for (object, _) in steps.filter(|(_, step)| is_written(step)) {
        match label_one(cluster, &object, &label).await {
            Err(error) if error.code() == Some(403) => progress.done(format!(
                "{object}: no permission to label it; cleanup keeps it if the plan that created it is deleted"
            )),
            other => other?,
        }
    }
    Ok(())
}

async fn label_one(cluster: &Cluster, object: &ObjectRef, label: &Value) -> Result<(), Error> {
    let found = cluster.get(object).await?;
    let is_olms = |found: &Value| {
        text(found, "/metadata/labels/olm.managed") == "true" && Origin::from_object(found).is_olms_alone()
    };
    if found.as_ref().is_some_and(is_olms) {
        cluster.merge(object, label).await?;
    }
    Ok(())
}

/// Returns true if OLM executes a plan: it is approved and has not ended. One that fails rests between two attempts.
pub fn is_executed(plan: &InstallPlan) -> bool {
    is_open(plan) && !plan.is_retried()
}

/// Returns true if a plan is approved and has not ended.
fn is_open(plan: &InstallPlan) -> bool {
    plan.spec.approved && !matches!(plan.status.phase.as_str(), "Complete" | "Failed")
}

fn is_installing(plan: &InstallPlan, is_ours: impl Fn(&str) -> bool) -> bool {
    is_executed(plan) && plan.spec.cluster_service_version_names.iter().any(|name| is_ours(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn olm_executes_an_approved_plan_until_it_ends_or_fails() {
        let plan = |approved: bool, phase: &str, message: &str| -> InstallPlan {
            let status = json!({"phase": phase, "message": message});
            serde_json::from_value(json!({"spec": {"approved": approved}, "status": status})).unwrap()
        };
        assert!(!is_executed(&plan(false, "RequiresApproval", "")));
        assert!(is_executed(&plan(true, "RequiresApproval", "")));
        assert!(is_executed(&plan(true, "Installing", "")));
        assert!(!is_executed(&plan(
            true,
            "Installing",
            "retrying execution due to error: x"
        )));
        assert!(!is_executed(&plan(true, "Complete", "")));
        assert!(!is_executed(&plan(true, "Failed", "")));
    }

    #[test]
    fn only_steps_for_the_csv_and_the_whole_cluster_count() {
        let step = |csv: &str, status: &str, kind: &str, name: &str| json!({"resolving": csv, "status": status, "resource": {"group": "rbac.authorization.k8s.io", "version": "v1", "kind": kind, "name": name}});
        let plan: InstallPlan = serde_json::from_value(json!({"status": {"plan": [
            step("cache.v1", "Created", "ClusterRole", "cache-viewer"),
            step("cache.v1", "Present", "ClusterRole", "view"),
            step("cache.v1", "Created", "Role", "cache"),
            step("other.v1", "Created", "ClusterRole", "other-viewer"),
        ]}}))
        .unwrap();
        let found: Vec<_> = steps([&plan], |csv| csv == "cache.v1").collect();
        let names: Vec<_> = found
            .iter()
            .map(|(object, step)| (&*object.name, &*step.status))
            .collect();
        assert_eq!(names, [("cache-viewer", "Created"), ("view", "Present")]);
    }

    #[test]
    fn a_step_is_due_until_it_is_done_or_its_plan_has_ended() {
        let is_due = |approved: bool, phase: &str, message: &str, status: &str| {
            let plan = json!({"spec": {"approved": approved}, "status": {"phase": phase, "message": message}});
            let step = json!({"status": status});
            is_due(
                &serde_json::from_value(step).unwrap(),
                &serde_json::from_value(plan).unwrap(),
            )
        };
        for status in ["", "Unknown", "NotPresent"] {
            assert!(is_due(true, "Installing", "", status));
            assert!(is_due(true, "Installing", "retrying execution due to error: x", status));
            assert!(!is_due(false, "RequiresApproval", "", status));
            assert!(!is_due(true, "Complete", "", status));
            assert!(!is_due(true, "Failed", "", status));
        }
        assert!(!is_due(true, "Installing", "", "Created"));
        assert!(!is_due(true, "Installing", "", "Present"));
    }
}
