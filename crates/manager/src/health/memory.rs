//! The memory of running containers.
use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Pod, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity,
};

use super::PodFailure;

/// The memory of a container in bytes. Kubernetes 1.33 and later can change it while the container runs, with
/// [`Context::resize`](crate::reconcile::Context::resize).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerMemory {
    /// Request and limit in the pod's spec.
    pub asked: (i64, i64),
    /// The limit that the kubelet applies. After a change of the spec it is the former one for some time.
    pub limit: i64,
    /// Address of the pod and ID of the container, if the container is ready.
    pub running: Option<(String, String)>,
    /// Why the kubelet does not apply the spec, such as `ResizeDeferred` and `ResizeInfeasible`.
    pub failure: Option<PodFailure>,
}

/// The memory of the container `name` in `pod`. `None` if it has no memory limit.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_manager::health::container_memory;
///
/// let pod = serde_json::json!({ "spec": { "containers": [{ "name": "web", "resources": { "limits": { "memory": "1Ki" } } }] } });
/// let pod: Pod = serde_json::from_value(pod).unwrap();
/// assert_eq!(container_memory(&pod, "web").unwrap().limit, 1024);
/// ```
pub fn container_memory(pod: &Pod, name: &str) -> Option<ContainerMemory> {
    let mut containers = pod.spec.as_ref()?.containers.iter();
    let container = containers.find(|container| container.name == name)?;
    let asked = memory(container.resources.as_ref()?)?;
    let status = pod.status.as_ref();
    let mut statuses = status
        .and_then(|status| status.container_statuses.as_ref())
        .into_iter()
        .flatten();
    let running = statuses.find(|status| status.name == name);
    let applied = running.as_ref().and_then(|running| memory(running.resources.as_ref()?));
    let mut conditions = status
        .and_then(|status| status.conditions.as_ref())
        .into_iter()
        .flatten();
    let failure = conditions.find_map(|condition| {
        // While the kubelet applies the spec, the condition has no reason.
        let reason = condition
            .reason
            .as_ref()
            .filter(|_| condition.type_.starts_with("PodResize"))?;
        let pod = pod.metadata.name.as_deref().unwrap_or_default();
        let message = condition.message.as_deref().unwrap_or("no message");
        Some(PodFailure::new(
            &format!("Resize{reason}"),
            &format!("pod {pod}: {message}"),
        ))
    });
    let ready = running.filter(|running| running.ready);
    Some(ContainerMemory {
        asked,
        running: ready.and_then(|ready| Some((status?.pod_ip.clone()?, ready.container_id.clone()?))),
        limit: applied.map_or(asked.1, |(_, limit)| limit),
        failure,
    })
}

/// Request and limit of the memory in bytes. `None` without a limit.
pub fn memory(resources: &ResourceRequirements) -> Option<(i64, i64)> {
    let bytes = |map: &Option<BTreeMap<String, Quantity>>| {
        let amount = olmkit_go::quantity::Quantity::parse(&map.as_ref()?.get("memory")?.0);
        amount.ok()?.integer()
    };
    let limit = bytes(&resources.limits)?;
    Some((bytes(&resources.requests).unwrap_or(limit), limit))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn resized(condition: &Value) -> ContainerMemory {
        let of = |memory: &str| json!({ "requests": { "memory": "64Mi" }, "limits": { "memory": memory } });
        let status = json!({ "name": "web", "image": "web:1", "imageID": "", "ready": true, "restartCount": 0, "containerID": "c1",
            "resources": of("128Mi") });
        let pod = json!({ "metadata": { "name": "a" },
            "spec": { "containers": [{ "name": "sidecar" }, { "name": "web", "resources": of("1Gi") }] },
            "status": { "podIP": "10.0.0.1", "conditions": [condition], "containerStatuses": [status] } });
        container_memory(&serde_json::from_value(pod).unwrap(), "web").unwrap()
    }

    #[test]
    fn a_resize_that_the_kubelet_does_not_apply_has_a_cause() {
        let condition = |kind: &str, reason: Value| json!({ "type": kind, "status": "True", "reason": reason, "message": "no room" });
        let deferred = resized(&condition("PodResizePending", json!("Deferred")));
        assert_eq!((deferred.asked, deferred.limit), ((64 << 20, 1 << 30), 128 << 20));
        assert_eq!(deferred.running, Some(("10.0.0.1".to_owned(), "c1".to_owned())));
        let failure = deferred.failure.unwrap();
        assert_eq!(
            (failure.reason.as_str(), failure.message.as_str()),
            ("ResizeDeferred", "pod a: no room")
        );
        let reason = |kind, reason| resized(&condition(kind, reason)).failure.map(|failure| failure.reason);
        assert_eq!(
            reason("PodResizeInProgress", json!("Error")).as_deref(),
            Some("ResizeError")
        );
        assert_eq!(reason("PodResizeInProgress", Value::Null), None);
        assert_eq!(reason("Ready", json!("Other")), None);
    }
}
