//! Why servers do not start, for the status.
//!
//! A stuck Deployment does not show the cause. Its pods do: the image cannot be pulled, the program crashes, no node has
//! room. They are listed once, when the Deployment exceeds its deadline; the cache holds only their names.
use k8s_openapi::api::core::v1::Pod;

/// The problem of the first pod by name: `pod sample-x: ImagePullBackOff (image memcached:nope)`.
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
        // The two alternate with each pull: use one for both, or each pull would write the status.
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
    fn the_first_problem_is_reported() {
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
    fn an_unscheduled_pod_is_reported() {
        let condition = json!({ "type": "PodScheduled", "status": "False", "message": "0/1 nodes are available" });
        let found = trouble(&[pod("a", json!({ "conditions": [condition] }))]);
        assert_eq!(found.as_deref(), Some("pod a: not scheduled: 0/1 nodes are available"));
    }
}
