//! What is left behind on purpose when this host stops serving a catalog.
//!
//! The catalog is gone with the process, and as long as a Subscription refers to a catalog that is gone, or a CatalogSource to
//! an address that does not answer, OLM resolves nothing else in the namespace. So the CatalogSource goes, and each
//! Subscription to it goes too, or follows again what it followed before; the installed operator needs neither. A label on
//! the CSV lets a later run know what it is.

use serde_json::{Value, json};

use super::client::{Cluster, ObjectRef};
use super::facts::{BundleFacts, text};
use super::narrator::Story;
use super::{Error, kinds, names};
use crate::types::{InstallPlan, Subscription};

/// Releases what refers to the catalog of this bundle, if it was served from a host or was not made yet.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub async fn release(cluster: &Cluster, bundle: &BundleFacts, story: &mut Story<'_>) -> Result<(), Error> {
    let namespace = cluster.namespace.as_str();
    let catalog = names::catalog_source(&bundle.package);
    let source = ObjectRef::namespaced(kinds::catalog_source(), namespace, &catalog);
    let found = cluster.get(&source).await?;
    if found.as_ref().is_some_and(|source| !served_from_host(source)) {
        return Ok(());
    }
    let subscriptions: Vec<Subscription> = cluster.list_as(kinds::subscription(), Some(namespace), None).await?;
    let followers = subscriptions
        .iter()
        .filter(|subscription| subscription.spec.source == catalog && subscription.spec.source_namespace == namespace);
    let mut removed = Vec::new();
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
                story.done(format!("{object}: follows its catalog again"));
            }
            None => {
                drop_stuck_plan(cluster, subscription).await?;
                mark(cluster, bundle).await?;
                cluster.delete(&object).await?;
                removed.push("Subscription");
            }
        }
    }
    cluster.delete(&source).await?;
    if !removed.is_empty() {
        story.done(format!(
            "{} removed: this host stops serving the catalog, the operator does not need it",
            removed.join(" and ")
        ));
    }
    Ok(())
}

/// Removes a plan that OLM fails to carry out: without its Subscription it would still bring a CSV at a later try, which
/// then belonged to nobody. One that goes on is left for OLM to finish. One for other operators too is theirs.
async fn drop_stuck_plan(cluster: &Cluster, subscription: &Subscription) -> Result<(), Error> {
    let Some(reference) = &subscription.status.install_plan_ref else {
        return Ok(());
    };
    let namespace = cluster.namespace.as_str();
    let plans: Vec<InstallPlan> = cluster.list_as(kinds::install_plan(), Some(namespace), None).await?;
    let is_stuck = |plan: &InstallPlan| {
        plan.metadata.name.as_ref() == Some(&reference.name)
            && plan.is_retried()
            && plan.spec.cluster_service_version_names.len() == 1
    };
    if plans.iter().any(is_stuck) {
        let object = ObjectRef::namespaced(kinds::install_plan(), namespace, &reference.name);
        cluster.delete(&object).await?;
    }
    Ok(())
}

/// Puts the label on the bundle's CSV that tells a later run what it is.
async fn mark(cluster: &Cluster, bundle: &BundleFacts) -> Result<(), Error> {
    let csv = ObjectRef::namespaced(kinds::cluster_service_version(), &cluster.namespace, bundle.csv_name());
    if cluster.get(&csv).await?.is_some() {
        let label = json!({"metadata": {"labels": {names::RELEASED_LABEL: names::released_value(&bundle.digest)}}});
        cluster.merge(&csv, &label).await?;
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
