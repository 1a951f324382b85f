//! The Service.
use k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{MEMCACHED, metadata, selector};
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operand::fixtures::memcached;

    #[test]
    fn headless_on_the_container_port() {
        insta::assert_json_snapshot!(service(&memcached(&json!({ "containerPort": 11212 }))));
    }
}
