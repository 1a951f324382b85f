//! The list of servers with stable names, for clients that take a static list.
use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kube::ResourceExt as _;

use super::{MEMCACHED, OPERATOR, metadata};
use crate::api::v1alpha1::Memcached;

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
    let mut map = ConfigMap {
        metadata: metadata(memcached),
        data: Some([("servers".to_owned(), servers(memcached).join(","))].into()),
        ..ConfigMap::default()
    };
    map.metadata.name = Some(list_name(memcached));
    map
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
    let mut secret = Secret {
        metadata: metadata(memcached),
        data: Some(BTreeMap::from(data)),
        type_: Some("servicebinding.io/memcached".to_owned()),
        ..Secret::default()
    };
    secret.metadata.name = Some(binding_name(memcached));
    secret
}

fn host(memcached: &Memcached) -> String {
    let namespace = memcached.namespace().unwrap_or_default();
    format!("{}.{namespace}.svc", memcached.name_any())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operand::fixtures::memcached;

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
}
