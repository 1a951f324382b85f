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

use super::{MEMCACHED, OPERATOR, label_selector, metadata, selector};
use crate::api::v1alpha1::Memcached;

/// Lets only pods of `namespaces` connect to the servers, and the operator's pods if `operator` names its namespace.
pub fn network_policy(memcached: &Memcached, namespaces: &[String], operator: Option<&str>) -> NetworkPolicy {
    let labels = label_selector([("app.kubernetes.io/name".to_owned(), OPERATOR.to_owned())].into());
    let operator = operator.map(|namespace| pods(&[namespace.to_owned()], Some(labels)));
    // A selector needs at least one name.
    let clients = (!namespaces.is_empty()).then(|| pods(namespaces, None));
    let peers: Vec<_> = clients.into_iter().chain(operator).collect();
    let rule = (!peers.is_empty()).then(|| NetworkPolicyIngressRule {
        from: Some(peers),
        ports: Some(vec![NetworkPolicyPort {
            port: Some(IntOrString::String(MEMCACHED.to_owned())),
            protocol: Some("TCP".to_owned()),
            ..NetworkPolicyPort::default()
        }]),
    });
    NetworkPolicy {
        metadata: metadata(memcached),
        spec: Some(NetworkPolicySpec {
            // Without a rule the policy rejects all clients.
            ingress: Some(rule.into_iter().collect()),
            pod_selector: Some(label_selector(selector(memcached))),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ..NetworkPolicySpec::default()
        }),
    }
}

/// The pods with these labels in `namespaces`. Kubernetes labels each namespace with its name.
fn pods(namespaces: &[String], labels: Option<LabelSelector>) -> NetworkPolicyPeer {
    let names = LabelSelectorRequirement {
        key: "kubernetes.io/metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: Some(namespaces.to_vec()),
    };
    NetworkPolicyPeer {
        namespace_selector: Some(LabelSelector {
            match_expressions: Some(vec![names]),
            ..LabelSelector::default()
        }),
        pod_selector: labels,
        ..NetworkPolicyPeer::default()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::operand::fixtures::memcached;

    #[test]
    fn only_the_namespaces_of_the_list() {
        insta::assert_json_snapshot!(network_policy(
            &memcached(&json!({})),
            &["shop".to_owned(), "web".to_owned()],
            None
        ));
    }

    #[test]
    fn an_empty_list_lets_nobody_in() {
        let policy = network_policy(&memcached(&json!({})), &[], None);
        assert_eq!(policy.spec.unwrap().ingress, Some(Vec::new()));
    }
    /// Other pods of the operator's namespace are clients as any other.
    #[test]
    fn the_operator_is_let_in_by_its_labels() {
        let policy = network_policy(&memcached(&json!({})), &[], Some("system"));
        let peers = serde_json::to_value(policy.spec.unwrap().ingress).unwrap();
        let peers = peers.pointer("/0/from").and_then(Value::as_array).unwrap();
        assert_eq!(peers.len(), 1);
        let values = peers[0].pointer("/namespaceSelector/matchExpressions/0/values");
        assert_eq!(values, Some(&json!(["system"])));
        let wanted = peers[0]["podSelector"]["matchLabels"].as_object().unwrap();
        assert!(!wanted.is_empty());
        for (file, pods) in [
            ("config/manager/manager.yaml", "/spec/template/metadata/labels"),
            (
                "bundle/manifests/memcached-operator.clusterserviceversion.yaml",
                "/spec/install/spec/deployments/0/spec/template/metadata/labels",
            ),
        ] {
            let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
            let documents = serde_yaml::Deserializer::from_str(&text);
            let mut documents = documents.map(|document| <Value as serde::Deserialize>::deserialize(document).unwrap());
            let labels = documents.find_map(|document| document.pointer(pods).cloned()).unwrap();
            for (label, value) in wanted {
                assert_eq!(&labels[label], value, "{file}");
            }
        }
    }
}
