//! The Deployment that runs the servers.
use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{
    label_selector, metadata,
    pod::{MIN_READY_SECONDS, template},
};
use crate::api::v1alpha1::Memcached;

/// A rollout without progress for this long is reported as stuck. Pulling memcached's image takes seconds.
const PROGRESS_DEADLINE_SECONDS: i32 = 120;

/// The Deployment of `memcached`, whose servers run `image`.
///
/// It removes an old server before it starts a new one, so there are never more than `size` servers: otherwise clients
/// that resolve the Service would spread their keys over too many.
pub fn deployment(memcached: &Memcached, image: &str) -> Deployment {
    Deployment {
        metadata: metadata(memcached),
        spec: Some(DeploymentSpec {
            replicas: Some(memcached.spec.size),
            min_ready_seconds: Some(MIN_READY_SECONDS),
            progress_deadline_seconds: Some(PROGRESS_DEADLINE_SECONDS),
            selector: label_selector(memcached),
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
}
