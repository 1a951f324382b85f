//! The PodDisruptionBudget.
use k8s_openapi::{
    api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{label_selector, metadata};
use crate::api::v1alpha1::Memcached;

/// The budget, which lets voluntary disruptions remove one server at a time. It has no effect on fewer than two servers.
pub fn budget(memcached: &Memcached) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: metadata(memcached),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            // A server that is not ready holds no cache worth protecting, and must not block the drain of its node.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            selector: Some(label_selector(memcached)),
            ..PodDisruptionBudgetSpec::default()
        }),
        ..PodDisruptionBudget::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operand::fixtures::memcached;

    #[test]
    fn one_server_at_a_time() {
        insta::assert_json_snapshot!(budget(&memcached(&json!({ "size": 2 }))));
    }
}
