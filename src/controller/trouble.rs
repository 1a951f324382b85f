//! Why servers do not start, in words for the status.
//!
//! A Deployment that is stuck says only that it is. Its pods say why: the image cannot be pulled, the program crashes,
//! no node has room. They are read once, when the Deployment gives up; the watch keeps no more of them than their names.
use k8s_openapi::api::core::v1::Pod;

/// The first pod's trouble, by name: `pod sample-x: ImagePullBackOff (image memcached:nope)`.
pub fn trouble(pods: &[Pod]) -> Option<String> {
    let mut found: Vec<String> = pods.iter().filter_map(trouble_of).collect();
    found.sort();
    found.into_iter().next()
}

fn trouble_of(pod: &Pod) -> Option<String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let status = pod.status.as_ref()?;
    let waiting = status.container_statuses.iter().flatten().find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        // The two alternate with each try to pull: one word for both, or the status would be written each time.
        let reason = match waiting.reason.as_deref()? {
            "ErrImagePull" => "ImagePullBackOff",
            "ContainerCreating" | "PodInitializing" => return None,
            reason => reason,
        };
        Some(format!("pod {name}: {reason} (image {})", container.image))
    });
    waiting.or_else(|| {
        let unscheduled = status
            .conditions
            .iter()
            .flatten()
            .find(|found| found.type_ == "PodScheduled" && found.status == "False")?;
        let message = unscheduled.message.as_deref().unwrap_or("no message");
        Some(format!("pod {name}: not scheduled: {message}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, status: Value) -> Pod {
        serde_json::from_value(json!({ "metadata": { "name": name }, "status": status })).unwrap()
    }

    fn waiting(name: &str, reason: &str) -> Pod {
        let container = json!({ "name": "memcached", "image": "memcached:nope", "imageID": "", "ready": false,
            "restartCount": 0, "state": { "waiting": { "reason": reason } } });
        pod(name, json!({ "containerStatuses": [container] }))
    }

    #[test]
    fn the_first_trouble_is_told() {
        let pods = [
            waiting("b", "CrashLoopBackOff"),
            waiting("a", "ErrImagePull"),
            waiting("0", "ContainerCreating"),
        ];
        assert_eq!(
            trouble(&pods).as_deref(),
            Some("pod a: ImagePullBackOff (image memcached:nope)")
        );
        assert_eq!(trouble(&[]), None);
    }

    #[test]
    fn a_pod_without_a_node_says_so() {
        let condition = json!({ "type": "PodScheduled", "status": "False", "message": "0/1 nodes are available" });
        let found = trouble(&[pod("a", json!({ "conditions": [condition] }))]);
        assert_eq!(found.as_deref(), Some("pod a: not scheduled: 0/1 nodes are available"));
    }
}
