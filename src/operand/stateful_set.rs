//! The StatefulSet that runs servers with names that stay.
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};
use kube::ResourceExt as _;

use super::{label_selector, metadata, pod::template, selector};
use crate::api::v1alpha1::Memcached;

/// The StatefulSet of `memcached`, whose servers run `image`.
///
/// The Service gives each server a DNS name. Servers start and stop at the same time when the size changes, because no server waits for
/// another. A rollout replaces one server at a time.
pub fn stateful_set(memcached: &Memcached, image: &str) -> StatefulSet {
    StatefulSet {
        metadata: metadata(memcached),
        spec: Some(StatefulSetSpec {
            replicas: Some(memcached.spec.size),
            min_ready_seconds: Some(memcached.spec.warm_up_seconds),
            pod_management_policy: Some("Parallel".to_owned()),
            selector: label_selector(selector(memcached)),
            service_name: Some(memcached.name_any()),
            template: template(memcached, image, "controller-revision-hash"),
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("RollingUpdate".to_owned()),
                ..StatefulSetUpdateStrategy::default()
            }),
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::operand::{deployment, fixtures::memcached};

    #[test]
    fn with_defaults() {
        let mut set =
            serde_json::to_value(stateful_set(&memcached(&json!({ "size": 2 })), "memcached:1.6.39")).unwrap();
        let template = set["spec"]["template"].take();
        insta::assert_json_snapshot!(set);
        // The Deployment's pods differ only in the label of their template.
        let deployment =
            serde_json::to_value(deployment(&memcached(&json!({ "size": 2 })), "memcached:1.6.39")).unwrap();
        let keys = |template: &Value| template["spec"]["topologySpreadConstraints"][0]["matchLabelKeys"].clone();
        let mut other = deployment["spec"]["template"].clone();
        assert_eq!(keys(&template), json!(["controller-revision-hash"]));
        other["spec"]["topologySpreadConstraints"][0]["matchLabelKeys"] = keys(&template);
        assert_eq!(template, other);
    }
}
