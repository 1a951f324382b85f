//! The PodDisruptionBudget.
use k8s_openapi::{
    api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};

use super::{metadata, selector};
use crate::api::v1alpha1::Memcached;

/// The budget, which lets voluntary disruptions remove one server at a time. `None` for fewer than two servers, where it
/// would have no effect.
pub fn budget(memcached: &Memcached) -> Option<PodDisruptionBudget> {
    (memcached.spec.size > 1).then(|| PodDisruptionBudget {
        metadata: metadata(memcached),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            // A server that is not ready holds no cache worth protecting, and must not block the drain of its node.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            selector: Some(LabelSelector {
                match_labels: Some(selector(memcached)),
                ..LabelSelector::default()
            }),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operand::fixtures::memcached;

    #[test]
    fn only_for_more_than_one_server() {
        assert!(budget(&memcached(&json!({ "size": 0 }))).is_none());
        assert!(budget(&memcached(&json!({ "size": 1 }))).is_none());
        let budget = budget(&memcached(&json!({ "size": 2 })));
        let spec = budget.as_ref().and_then(|budget| budget.spec.as_ref()).unwrap();
        assert_eq!(spec.unhealthy_pod_eviction_policy.as_deref(), Some("AlwaysAllow"));
        insta::assert_json_snapshot!(budget);
    }
}
