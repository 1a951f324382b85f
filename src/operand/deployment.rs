//! The Deployment that runs the servers.
use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{
    label_selector, metadata,
    pod::{deadline_seconds, template},
    selector,
};
use crate::api::v1alpha1::Memcached;

/// The Deployment of `memcached`, whose servers run `image`.
///
/// It removes an old server before it starts a new one, so there are never more than `size` servers: otherwise clients
/// that resolve the Service would spread their keys over too many.
pub fn deployment(memcached: &Memcached, image: &str) -> Deployment {
    Deployment {
        metadata: metadata(memcached),
        spec: Some(DeploymentSpec {
            replicas: Some(memcached.spec.size),
            min_ready_seconds: Some(memcached.spec.warm_up_seconds),
            progress_deadline_seconds: Some(deadline_seconds(&memcached.spec)),
            selector: label_selector(selector(memcached)),
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: Some(IntOrString::Int(0)),
                    max_unavailable: Some(IntOrString::Int(1)),
                }),
            }),
            template: template(memcached, image, "pod-template-hash"),
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operand::fixtures::memcached;

    #[test]
    fn with_defaults() {
        insta::assert_json_snapshot!(deployment(
            &memcached(&json!({ "size": 2 })),
            "docker.io/library/memcached:1.6.39"
        ));
    }

    /// The API server rejects a deadline that is not longer than the warm-up.
    #[test]
    fn the_deadline_follows_the_warm_up() {
        let spec = |seconds| {
            deployment(&memcached(&json!({ "warmUpSeconds": seconds })), "m:1")
                .spec
                .unwrap()
        };
        for seconds in [0, 10, 3600] {
            let spec = spec(seconds);
            assert_eq!(spec.min_ready_seconds, Some(seconds));
            assert!(spec.progress_deadline_seconds > spec.min_ready_seconds);
        }
    }
}
