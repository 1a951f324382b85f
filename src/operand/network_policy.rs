//! The NetworkPolicy.
use k8s_openapi::{
    api::networking::v1::{
        NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
        util::intstr::IntOrString,
    },
};

use super::{MEMCACHED, label_selector, metadata};
use crate::api::v1alpha1::Memcached;

/// Lets only pods of `namespaces` connect to the servers. Kubernetes labels each namespace with its name.
pub fn network_policy(memcached: &Memcached, namespaces: &[String]) -> NetworkPolicy {
    let peer = NetworkPolicyPeer {
        namespace_selector: Some(LabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: "kubernetes.io/metadata.name".to_owned(),
                operator: "In".to_owned(),
                values: Some(namespaces.to_vec()),
            }]),
            ..LabelSelector::default()
        }),
        ..NetworkPolicyPeer::default()
    };
    let rule = NetworkPolicyIngressRule {
        from: Some(vec![peer]),
        ports: Some(vec![NetworkPolicyPort {
            port: Some(IntOrString::String(MEMCACHED.to_owned())),
            protocol: Some("TCP".to_owned()),
            ..NetworkPolicyPort::default()
        }]),
    };
    NetworkPolicy {
        metadata: metadata(memcached),
        spec: Some(NetworkPolicySpec {
            // A selector needs at least one name. Without a rule the policy rejects all clients.
            ingress: Some(if namespaces.is_empty() { Vec::new() } else { vec![rule] }),
            pod_selector: Some(label_selector(memcached)),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ..NetworkPolicySpec::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operand::fixtures::memcached;

    #[test]
    fn only_the_namespaces_of_the_list() {
        insta::assert_json_snapshot!(network_policy(
            &memcached(&json!({})),
            &["shop".to_owned(), "web".to_owned()]
        ));
    }

    #[test]
    fn an_empty_list_lets_nobody_in() {
        let policy = network_policy(&memcached(&json!({})), &[]);
        assert_eq!(policy.spec.unwrap().ingress, Some(Vec::new()));
    }
}
