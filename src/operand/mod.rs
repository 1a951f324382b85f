//! The managed objects of a Memcached: pure functions from the Memcached to its workload, Service, budget and list of servers.
//! They contain only the fields that the operator manages. Other clients may set all others.
mod clients;
mod container;
mod workload;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{ResourceExt, api::ObjectMeta};

pub use clients::{binding, binding_name, list_name, network_policy, server_list, servers, service};
pub use container::resources;
pub use workload::{budget, deadline_seconds, deployment, has_budget, stateful_set};

use crate::api::v1alpha1::Memcached;

/// Name of the container and of its port.
pub const MEMCACHED: &str = "memcached";

/// The operator as value of labels.
const OPERATOR: &str = "memcached-operator";

/// The label with the Memcached's name that the tutorials use.
pub const OWNER: &str = "memcached_cr";

/// The label selector of the pods of all Memcacheds.
pub const SERVERS: &str = "app.kubernetes.io/managed-by=memcached-operator";

/// The annotation of pods that change their memory in place: a fingerprint of everything else that their template follows from, and the
/// memory with which they started.
pub const IN_PLACE: &str = "cache.example.com/resize-in-place";

/// The labels by which the workload, the Service and the budget select pods.
///
/// They hold the object's name, so that two Memcacheds in a namespace never share a pod, and no version, because a Deployment's
/// selector cannot change.
pub fn selector(memcached: &Memcached) -> BTreeMap<String, String> {
    let name = memcached.name_any();
    let labels = [
        ("app.kubernetes.io/name", MEMCACHED),
        ("app.kubernetes.io/instance", &name),
        (OWNER, &name),
    ];
    labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// Labels as the objects contain them.
fn label_selector(labels: BTreeMap<String, String>) -> LabelSelector {
    LabelSelector {
        match_labels: Some(labels),
        ..LabelSelector::default()
    }
}

/// The selector in the text form of `status.selector`.
pub fn selector_text(memcached: &Memcached) -> String {
    let labels = selector(memcached).into_iter();
    let pairs: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

/// The labels of all objects and pods of a Memcached.
pub fn labels(memcached: &Memcached) -> BTreeMap<String, String> {
    let more = [
        ("app.kubernetes.io/component", "cache"),
        ("app.kubernetes.io/managed-by", OPERATOR),
        ("app.kubernetes.io/part-of", OPERATOR),
    ];
    let more = more.map(|(key, value)| (key.to_owned(), value.to_owned()));
    selector(memcached).into_iter().chain(more).collect()
}

/// Metadata of an object with the name of the Memcached.
fn metadata(memcached: &Memcached) -> ObjectMeta {
    named(memcached, memcached.name_any())
}

fn named(memcached: &Memcached, name: String) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        labels: Some(labels(memcached)),
        ..ObjectMeta::default()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{fixtures::memcached, *};

    #[test]
    fn the_watch_selector_is_one_of_the_labels() {
        let (key, value) = SERVERS.split_once('=').unwrap();
        assert_eq!(labels(&memcached(&json!({})))[key], value);
    }

    #[test]
    fn the_selector_is_part_of_the_labels_and_holds_no_version() {
        let object = memcached(&json!({ "image": "memcached:1.6.39" }));
        let labels = labels(&object);
        for (key, value) in selector(&object) {
            assert_eq!(labels[&key], value);
        }
        assert!(!selector_text(&object).contains("1.6"));
        assert_eq!(
            selector_text(&object),
            "app.kubernetes.io/instance=sample,app.kubernetes.io/name=memcached,memcached_cr=sample"
        );
    }
}
