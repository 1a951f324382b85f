//! The managed objects of a Memcached: pure functions from the Memcached to its Deployment, Service and
//! PodDisruptionBudget. They contain only the fields that the operator manages; other clients may set all others.
mod budget;
mod deployment;
mod labels;
mod service;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};

pub use budget::budget;
pub use deployment::deployment;
pub use labels::{INSTANCE, MANAGED_BY_SELECTOR, OWNER, is_label, labels, selector, selector_text};
pub use service::service;

use crate::api::v1alpha1::Memcached;

/// Name of the container and of its port.
pub(crate) const MEMCACHED: &str = "memcached";

/// The metadata that all objects of `memcached` have: its name and namespace, the labels, and the owner reference by
/// which Kubernetes deletes them with it.
fn metadata(memcached: &Memcached) -> ObjectMeta {
    ObjectMeta {
        name: Some(memcached.name_any()),
        namespace: memcached.namespace(),
        labels: Some(labels(memcached)),
        owner_references: Some(memcached.controller_owner_ref(&()).map(blocking).into_iter().collect()),
        ..ObjectMeta::default()
    }
}

/// A foreground deletion of the owner waits for this object.
fn blocking(owner: OwnerReference) -> OwnerReference {
    OwnerReference {
        block_owner_deletion: Some(true),
        ..owner
    }
}

#[cfg(test)]
pub(crate) mod fixtures {
    use serde_json::{Value, json};

    use crate::api::v1alpha1::Memcached;

    /// The Memcached `cache/sample` with this spec.
    pub(crate) fn memcached(spec: &Value) -> Memcached {
        serde_json::from_value(json!({
            "apiVersion": "cache.example.com/v1alpha1",
            "kind": "Memcached",
            "metadata": { "name": "sample", "namespace": "cache", "uid": "11111111-2222", "generation": 1 },
            "spec": spec,
        }))
        .unwrap()
    }
}
