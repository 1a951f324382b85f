//! The PodDisruptionBudget.
use k8s_openapi::{
    api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{label_selector, metadata, selector};
use crate::api::v1alpha1::Memcached;

/// Returns true if the Memcached has a budget. One has no effect on fewer than two servers.
pub fn has_budget(memcached: &Memcached) -> bool {
    let given = memcached.spec.disruption_budget.as_ref();
    memcached.spec.size > 1 && given.is_none_or(|given| given.enabled)
}

/// The budget, which lets voluntary disruptions remove one server at a time, unless the user sets another number.
///
/// Kubernetes counts each ready server as healthy. `warming` servers are ready, but clients still fill them, so the budget counts them as
/// disrupted.
pub fn budget(memcached: &Memcached, warming: i32) -> PodDisruptionBudget {
    let given = memcached.spec.disruption_budget.as_ref();
    let most = given.and_then(|given| given.max_unavailable.clone());
    let most = match most.unwrap_or(IntOrString::Int(1)) {
        IntOrString::Int(most) => IntOrString::Int((most - warming).max(0)),
        IntOrString::String(_) if warming > 0 => IntOrString::Int(0),
        percentage => percentage,
    };
    PodDisruptionBudget {
        metadata: metadata(memcached),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(most),
            // A server that is not ready holds no cache worth protecting, and must not block the drain of its node.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            selector: Some(label_selector(selector(memcached))),
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
        insta::assert_json_snapshot!(budget(&memcached(&json!({ "size": 2 })), 0));
    }

    #[test]
    fn another_number_or_none() {
        let with = |given| memcached(&json!({ "size": 9, "disruptionBudget": given }));
        let most = |given| budget(&with(given), 0).spec.unwrap().max_unavailable.unwrap();
        assert_eq!(
            most(json!({ "maxUnavailable": "25%" })),
            IntOrString::String("25%".to_owned())
        );
        assert_eq!(most(json!({ "maxUnavailable": 2 })), IntOrString::Int(2));
        assert_eq!(most(json!({})), IntOrString::Int(1));
        let warming = |given, warming| budget(&with(given), warming).spec.unwrap().max_unavailable.unwrap();
        assert_eq!(warming(json!({}), 2), IntOrString::Int(0));
        assert_eq!(warming(json!({ "maxUnavailable": 3 }), 2), IntOrString::Int(1));
        assert_eq!(warming(json!({ "maxUnavailable": "25%" }), 1), IntOrString::Int(0));
        assert!(has_budget(&with(json!({}))) && has_budget(&with(json!({ "enabled": true }))));
        assert!(!has_budget(&with(json!({ "enabled": false }))) && !has_budget(&memcached(&json!({ "size": 1 }))));
    }
}
