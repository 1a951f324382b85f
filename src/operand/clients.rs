//! How clients reach the servers: Service, list of servers, binding and NetworkPolicy.
use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::{
        core::v1::{ConfigMap, Secret, Service, ServicePort, ServiceSpec},
        networking::v1::{
            NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
        },
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
        util::intstr::IntOrString,
    },
};
use kube::ResourceExt as _;

use super::{MEMCACHED, OPERATOR, label_selector, metadata, named, selector};
use crate::api::v1alpha1::Memcached;

/// The headless Service: its name resolves to the addresses of all servers. A client that spreads keys over servers by
/// consistent hashing needs each address. Behind a single virtual address it would ask the wrong server.
pub fn service(memcached: &Memcached) -> Service {
    let port = ServicePort {
        name: Some(MEMCACHED.to_owned()),
        port: memcached.spec.container_port,
        protocol: Some("TCP".to_owned()),
        target_port: Some(IntOrString::String(MEMCACHED.to_owned())),
        ..ServicePort::default()
    };
    Service {
        metadata: metadata(memcached),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            ports: Some(vec![port]),
            selector: Some(selector(memcached)),
            type_: Some("ClusterIP".to_owned()),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// Addresses of the StatefulSet's servers, in the order of their ordinals. A server keeps its address when its pod is replaced.
pub fn servers(memcached: &Memcached) -> Vec<String> {
    let (name, host, port) = (memcached.name_any(), host(memcached), memcached.spec.container_port);
    let server = |ordinal| format!("{name}-{ordinal}.{host}:{port}");
    (0..memcached.spec.size).map(server).collect()
}

/// Name of the ConfigMap with the list of servers.
pub fn list_name(memcached: &Memcached) -> String {
    format!("{}-servers", memcached.name_any())
}

/// Name of the binding Secret.
pub fn binding_name(memcached: &Memcached) -> String {
    format!("{}-binding", memcached.name_any())
}

/// The ConfigMap with the list of servers.
pub fn server_list(memcached: &Memcached) -> ConfigMap {
    ConfigMap {
        metadata: named(memcached, list_name(memcached)),
        data: Some([("servers".to_owned(), servers(memcached).join(","))].into()),
        ..ConfigMap::default()
    }
}

/// The Secret that applications are bound to by the [Service Binding specification](https://servicebinding.io). It contains nothing
/// secret, but the specification requires this kind.
pub fn binding(memcached: &Memcached) -> Secret {
    let entries = [
        ("type", MEMCACHED.to_owned()),
        ("provider", OPERATOR.to_owned()),
        ("host", host(memcached)),
        ("port", memcached.spec.container_port.to_string()),
        ("servers", servers(memcached).join(",")),
    ];
    let data = entries.map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())));
    Secret {
        metadata: named(memcached, binding_name(memcached)),
        data: Some(BTreeMap::from(data)),
        type_: Some("servicebinding.io/memcached".to_owned()),
        ..Secret::default()
    }
}

fn host(memcached: &Memcached) -> String {
    let namespace = memcached.namespace().unwrap_or_default();
    format!("{}.{namespace}.svc", memcached.name_any())
}

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
    fn headless_on_the_container_port() {
        insta::assert_json_snapshot!(service(&memcached(&json!({ "containerPort": 11212 }))));
    }

    #[test]
    fn the_list_is_in_ordinal_order() {
        let servers = servers(&memcached(&json!({ "size": 11, "containerPort": 11212 })));
        assert_eq!(servers.len(), 11);
        assert_eq!(servers[0], "sample-0.sample.cache.svc:11212");
        assert_eq!(servers[10], "sample-10.sample.cache.svc:11212");
    }

    #[test]
    fn list_and_binding_agree() {
        let memcached = memcached(&json!({ "size": 2 }));
        let list = server_list(&memcached).data.unwrap()["servers"].clone();
        assert_eq!(list, "sample-0.sample.cache.svc:11211,sample-1.sample.cache.svc:11211");
        let secret = binding(&memcached);
        let text = |(key, value): (String, ByteString)| (key, String::from_utf8(value.0).unwrap());
        let data: BTreeMap<String, String> = secret.data.unwrap().into_iter().map(text).collect();
        let expected = [
            ("host", "sample.cache.svc"),
            ("port", "11211"),
            ("provider", "memcached-operator"),
            ("servers", &list),
            ("type", "memcached"),
        ];
        assert_eq!(
            data,
            expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
        );
        assert_eq!(secret.type_.as_deref(), Some("servicebinding.io/memcached"));
    }

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
