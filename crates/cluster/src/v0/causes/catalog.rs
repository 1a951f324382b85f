//! Causes in a catalog.

use k8s_openapi::api::core::v1::Pod;

use crate::base::cause::{Cause, Code};
use crate::base::object_ref::ObjectRef;
use crate::base::{kinds, names};
use crate::observe::observation::Observation;
use crate::observe::pods::{Trouble, trouble};
use crate::v0::preflight;
use olmkit::types::{CatalogSource, Subscription};

/// The catalog that a Subscription names, and the other catalogs in reach.
pub fn of_subscription(subscription: &Subscription, seen: &Observation) -> Vec<Cause> {
    let (namespace, name) = (&subscription.spec.source_namespace, &subscription.spec.source);
    let mut causes = match seen.catalog(namespace, name) {
        None => vec![
            Cause::lasting(
                Code::CatalogMissing,
                format!(
                    "does not exist, and Subscription {} refers to it",
                    subscription.metadata.name.as_deref().unwrap_or_default()
                ),
                "create the CatalogSource, or change source and sourceNamespace of the Subscription",
            )
            .on(ObjectRef::namespaced(kinds::catalog_source(), namespace, name)),
        ],
        Some(catalog) => of_catalog(catalog, seen),
    };
    causes.extend(preflight::catalogs_beside(seen, name));
    causes
}

/// Causes of one catalog. Empty if OLM is connected to it.
pub fn of_catalog(catalog: &CatalogSource, seen: &Observation) -> Vec<Cause> {
    let namespace = catalog.metadata.namespace.as_deref().unwrap_or_default();
    let name = catalog.metadata.name.as_deref().unwrap_or_default();
    let object = || ObjectRef::namespaced(kinds::catalog_source(), namespace, name);
    // OLM writes SpecInvalidError before it sets an address, and clears it with the next sync.
    if !catalog.status.reason.is_empty() && catalog.spec.image.is_empty() && catalog.spec.address.is_empty() {
        return vec![
            Cause::lasting(
                Code::CatalogInvalid,
                format!("{}: {}", catalog.status.reason, catalog.status.message),
                "set spec.image to a catalog image, or spec.address to a server",
            )
            .on(object()),
        ];
    }
    if catalog.is_ready() {
        return Vec::new();
    }
    let mut causes: Vec<Cause> = seen
        .pods
        .iter()
        .filter(|pod| serves(pod, namespace, name))
        .filter_map(|pod| of_pod(pod, seen))
        .collect();
    if causes.is_empty() && !catalog.connection().is_empty() {
        let address = catalog
            .status
            .connection_state
            .as_ref()
            .map(|state| state.address.clone())
            .unwrap_or_default();
        let from_host = catalog
            .metadata
            .annotations
            .as_ref()
            .and_then(|found| found.get(names::SERVED_FROM_ANNOTATION))
            .is_some_and(|place| place == "host");
        let remedy = if from_host {
            "pass an address of this host that the cluster can reach (--serve-from-host=ADDRESS), or serve from a pod (--helper-image IMAGE)"
        } else {
            "check that a gRPC server listens there, that the name resolves in the cluster, and that no NetworkPolicy blocks it"
        };
        causes.push(
            Cause::passing(
                Code::CatalogUnreachable,
                format!("OLM cannot connect to {address} ({})", catalog.connection()),
                remedy,
            )
            .on(object())
            .likely(if from_host {
                "the cluster cannot reach this host at that address, or the serving process has ended"
            } else {
                "no server listens there"
            }),
        );
    }
    causes
}

/// Returns true if a pod serves that catalog: OLM's own label, or this tool's.
fn serves(pod: &Pod, namespace: &str, catalog: &str) -> bool {
    let label = |key: &str| {
        pod.metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(key))
            .map(String::as_str)
    };
    pod.metadata.namespace.as_deref() == Some(namespace)
        && (label("olm.catalogSource") == Some(catalog) || label(names::CATALOG_LABEL) == Some(catalog))
}

fn of_pod(pod: &Pod, seen: &Observation) -> Option<Cause> {
    let found = trouble(pod, &seen.events)?;
    let image = found.image.clone();
    let cause = match found.kind {
        Trouble::ImagePull => Cause::lasting(
            Code::CatalogImagePull,
            format!("the node cannot pull the catalog image {image}: {}", found.message),
            "push the image, or correct the reference; for a private registry name the pull secret in the CatalogSource's spec.secrets",
        ),
        Trouble::Crash => Cause::lasting(
            Code::CatalogPodCrash,
            format!("the catalog pod keeps restarting: {}", found.message),
            "see the log below; olmkit catalog validate checks the content",
        ),
        Trouble::Unschedulable => Cause::passing(
            Code::PodUnschedulable,
            found.message.clone(),
            "free resources on a node, or add a node",
        ),
        Trouble::Refused | Trouble::NotReady => Cause::passing(
            Code::CatalogPodCrash,
            format!("the catalog pod does not become ready: {}", found.message),
            "see the log below",
        ),
    };
    Some(cause.on(found.pod).evidence(found.evidence))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Each package would list each catalog that a tenant has created.
    #[test]
    fn countless_catalogs_are_not_listed_for_each_subscription() {
        let catalog = |number: usize| {
            let value = json!({"metadata": {"name": format!("c{number}"), "namespace": "shop"}, "spec": {},
                "status": {"connectionState": {"lastObservedState": "TRANSIENT_FAILURE"}}});
            serde_json::from_value(value).unwrap()
        };
        let seen = Observation {
            namespace: "shop".to_owned(),
            catalogs: (0..3_000).map(catalog).collect(),
            ..Observation::default()
        };
        let spec = json!({"name": "p", "source": "none", "sourceNamespace": "shop"});
        let subscription = json!({"metadata": {"name": "s", "namespace": "shop"}, "spec": spec});
        let causes = of_subscription(&serde_json::from_value(subscription).unwrap(), &seen);
        assert_eq!(causes.len(), 11);
        assert!(
            causes[10].message.ends_with("; 2990 more catalogs are not usable"),
            "{}",
            causes[10].message
        );
    }
}
