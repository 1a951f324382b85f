//! Releases the references to a catalog when this host stops serving it.
//!
//! The catalog ends with the process. While a Subscription refers to a deleted catalog, or a CatalogSource to an
//! address that does not answer, OLM resolves nothing else in the namespace. So the CatalogSource is deleted. Each
//! Subscription to it is deleted too, or refers to its previous catalog again. The installed operator needs neither. A
//! label on the CSV lets a later run recognize it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cluster_objects::is_executed;
use super::record;
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::object_ref::ObjectRef;
use crate::base::reporter::ProgressLog;
use crate::base::{kinds, names};
use crate::bundle::facts::BundleFacts;
use crate::kube::client::Cluster;
use crate::kube::late;
use olmkit::types::{InstallPlan, Subscription};

/// Time for OLM to finish a plan that it executes.
const PLAN_LIMIT: Duration = Duration::from_secs(30);

/// The polling interval.
const INTERVAL: Duration = Duration::from_millis(200);

/// Releases the references to the catalog of this bundle, if it was served from a host or was not created yet.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub async fn release(cluster: &Cluster, bundle: &BundleFacts, progress: &mut ProgressLog<'_>) -> Result<(), Error> {
    let namespace = cluster.namespace.as_str();
    let catalog = names::catalog_source(&bundle.package);
    let source = ObjectRef::namespaced(kinds::catalog_source(), namespace, &catalog);
    let found = cluster.get(&source).await?;
    if found.as_ref().is_some_and(|source| !served_from_host(source)) {
        return Ok(());
    }
    let subscriptions: Vec<Subscription> = cluster
        .list_readable(kinds::subscription(), Some(namespace), None)
        .await?;
    let followers = subscriptions
        .iter()
        .filter(|subscription| subscription.spec.source == catalog && subscription.spec.source_namespace == namespace);
    let (mut removed, mut plan_is_removed) = (Vec::new(), false);
    if found.is_some() {
        removed.push("CatalogSource");
    }
    for subscription in followers {
        let name = subscription.metadata.name.as_deref().unwrap_or_default();
        let object = ObjectRef::namespaced(kinds::subscription(), namespace, name);
        match followed_before(subscription) {
            Some(spec) => {
                let annotations = json!({names::FOLLOWED_BEFORE_ANNOTATION: null, names::DIGEST_ANNOTATION: null});
                let patch = json!({"metadata": {"annotations": annotations}, "spec": spec});
                cluster.merge(&object, &patch).await?;
                progress.done(format!("{object}: follows its catalog again"));
            }
            None => {
                let plans = settled_plans(cluster, bundle, progress).await?;
                record_crds(cluster, bundle, &plans, progress).await?;
                for plan in &plans {
                    plan_is_removed |= drop_stuck_plan(cluster, bundle, plan).await?;
                }
                mark(cluster, bundle).await?;
                cluster.delete(&object).await?;
                removed.push("Subscription");
            }
        }
    }
    cluster.delete(&source).await?;
    if plan_is_removed {
        remove_late_csv(cluster, bundle).await?;
    }
    if !removed.is_empty() {
        progress.done(format!(
            "{} removed: this host stops serving the catalog, which the operator does not need",
            removed.join(" and ")
        ));
    }
    Ok(())
}

/// The plans for the bundle, after OLM has stopped executing them or a time limit has passed: plans are deleted with
/// their Subscription, but objects that OLM is about to create still appear, and would have no owner. There can be
/// several plans: OLM resolves again if it fails to record its plan in the Subscription.
async fn settled_plans(
    cluster: &Cluster,
    bundle: &BundleFacts,
    progress: &mut ProgressLog<'_>,
) -> Result<Vec<InstallPlan>, Error> {
    let began = Instant::now();
    loop {
        let mut plans: Vec<InstallPlan> = cluster
            .list_readable(kinds::install_plan(), Some(&cluster.namespace), None)
            .await?;
        plans.retain(|plan| {
            let csvs = &plan.spec.cluster_service_version_names;
            csvs.iter().any(|name| name == bundle.csv_name())
        });
        let Some(plan) = plans.iter().find(|plan| is_executed(plan)) else {
            return Ok(plans);
        };
        if began.elapsed() > PLAN_LIMIT {
            return Ok(plans);
        }
        let name = plan.metadata.name.as_deref().unwrap_or_default();
        progress.waiting(format!("InstallPlan {name}, which OLM executes"));
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Removes an InstallPlan that OLM fails to execute or does not finish: without its Subscription a later retry would
/// still create a CSV, which would then have no owner. A plan that also serves other operators is kept. Returns whether
/// a plan was removed that had created no CSV.
async fn drop_stuck_plan(cluster: &Cluster, bundle: &BundleFacts, plan: &InstallPlan) -> Result<bool, Error> {
    let is_stuck = plan.is_retried() || is_executed(plan);
    if !is_stuck || plan.spec.cluster_service_version_names.len() != 1 {
        return Ok(false);
    }
    let namespace = cluster.namespace.as_str();
    let csv = ObjectRef::namespaced(kinds::cluster_service_version(), namespace, bundle.csv_name());
    let has_csv = cluster.get(&csv).await?.is_some();
    let name = plan.metadata.name.as_deref().unwrap_or_default();
    cluster
        .delete(&ObjectRef::namespaced(kinds::install_plan(), namespace, name))
        .await?;
    Ok(!has_csv)
}

/// Removes the CSV that OLM created if it was in the middle of executing the plan that is removed now.
async fn remove_late_csv(cluster: &Cluster, bundle: &BundleFacts) -> Result<(), Error> {
    let csv = ObjectRef::namespaced(kinds::cluster_service_version(), &cluster.namespace, bundle.csv_name());
    late::remove(cluster, Instant::now(), async || {
        let found = cluster.get(&csv).await?;
        Ok(found.map(|_| csv.clone()).into_iter().collect())
    })
    .await?;
    Ok(())
}

/// Labels the bundle's CSV, so that a later run recognizes it.
async fn mark(cluster: &Cluster, bundle: &BundleFacts) -> Result<(), Error> {
    let csv = ObjectRef::namespaced(kinds::cluster_service_version(), &cluster.namespace, bundle.csv_name());
    if cluster.get(&csv).await?.is_some() {
        let label = json!({"metadata": {"labels": {names::RELEASED_LABEL: names::released_value(&bundle.digest)}}});
        cluster.merge(&csv, &label).await?;
    }
    Ok(())
}

/// Records which CRDs the plans created, before they go with their Subscription.
async fn record_crds(
    cluster: &Cluster,
    bundle: &BundleFacts,
    plans: &[InstallPlan],
    progress: &mut ProgressLog<'_>,
) -> Result<(), Error> {
    if !record::write(cluster, &bundle.package, bundle.csv_name(), plans).await? {
        progress.done(format!(
            "Operator {}: no permission to record the new CRDs in it; cleanup will keep them",
            names::operator(&bundle.package, &cluster.namespace)
        ));
    }
    Ok(())
}

fn served_from_host(source: &Value) -> bool {
    let annotations = source.pointer("/metadata/annotations");
    annotations.is_some_and(|found| text(found, &pointer(names::SERVED_FROM_ANNOTATION)) == "host")
}

/// An annotation's name as a JSON pointer.
fn pointer(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The part of a Subscription's spec that an upgrade changed, as it was.
fn followed_before(subscription: &Subscription) -> Option<Value> {
    let annotations = subscription.metadata.annotations.as_ref()?;
    serde_json::from_str(annotations.get(names::FOLLOWED_BEFORE_ANNOTATION)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_catalog_of_a_host_is_released() {
        let source = |place: &str| json!({"metadata": {"annotations": {names::SERVED_FROM_ANNOTATION: place}}});
        assert!(served_from_host(&source("host")));
        assert!(!served_from_host(&source("pod")));
        assert!(!served_from_host(&json!({"metadata": {}})));
    }

    #[test]
    fn a_subscription_remembers_what_it_followed() {
        let before =
            json!({"source": "community", "sourceNamespace": "olm", "channel": "", "installPlanApproval": "Automatic"});
        let annotations = json!({names::FOLLOWED_BEFORE_ANNOTATION: before.to_string()});
        let subscription: Subscription =
            serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap();
        assert_eq!(followed_before(&subscription), Some(before));
        assert_eq!(followed_before(&Subscription::default()), None);
    }
}
