//! Labels of managed objects.
use std::collections::BTreeMap;

use kube::ResourceExt;

use crate::api::v1alpha1::Memcached;

/// The label with the Memcached's name that the tutorials use.
pub const OWNER: &str = "memcached_cr";
/// The recommended label with the Memcached's name.
pub const INSTANCE: &str = "app.kubernetes.io/instance";
/// The label selector of the operator's watches.
pub const MANAGED_BY_SELECTOR: &str = "app.kubernetes.io/managed-by=memcached-operator";

const NAME: &str = "app.kubernetes.io/name";

/// The labels that are the same for all.
const FIXED: [(&str, &str); 3] = [
    ("app.kubernetes.io/component", "cache"),
    ("app.kubernetes.io/managed-by", "memcached-operator"),
    ("app.kubernetes.io/part-of", "memcached-operator"),
];

/// The labels by which the Deployment, the Service and the budget select pods.
///
/// They hold the object's own name, so that two Memcacheds in a namespace never share a pod, and no version: a
/// Deployment's selector cannot change, and an image has to.
pub fn selector(memcached: &Memcached) -> BTreeMap<String, String> {
    let name = memcached.name_any();
    [(NAME, "memcached"), (INSTANCE, &name), (OWNER, &name)]
        .map(owned)
        .into()
}

/// The selector in the text form of `status.selector`.
pub fn selector_text(memcached: &Memcached) -> String {
    let pairs: Vec<String> = selector(memcached)
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(",")
}

/// Returns true if the objects of a Memcached have a label of this name.
pub fn is_label(name: &str) -> bool {
    [NAME, INSTANCE, OWNER].contains(&name) || FIXED.iter().any(|(known, _)| *known == name)
}

/// The labels of all objects and pods of a Memcached.
pub fn labels(memcached: &Memcached) -> BTreeMap<String, String> {
    let mut labels = selector(memcached);
    labels.extend(FIXED.map(owned));
    labels
}

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operand::fixtures::memcached;

    #[test]
    fn the_watch_selector_is_one_of_the_labels() {
        let (key, value) = MANAGED_BY_SELECTOR.split_once('=').unwrap();
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
