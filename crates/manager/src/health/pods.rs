//! Failures of pods.
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};

use crate::conditions;

/// The cause that keeps a pod from becoming ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFailure {
    /// In CamelCase, such as `ImagePullBackOff`.
    pub reason: String,
    /// For users, such as `pod web-x: ImagePullBackOff (image web:nope)`.
    pub message: String,
}

impl PodFailure {
    /// Images and messages can be long. Conditions do not repeat more than this.
    pub(super) fn new(reason: &str, message: &str) -> Self {
        Self {
            reason: conditions::shorten(reason),
            message: conditions::shorten(message),
        }
    }
}

/// The cause that keeps `pod` from becoming ready: its image cannot be pulled, its program ends, or no node has room for it. `None`
/// for a pod that is ready, starts without problems or is being deleted.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_manager::health::pod_failure;
///
/// assert_eq!(pod_failure(&Pod::default()), None);
/// ```
pub fn pod_failure(pod: &Pod) -> Option<PodFailure> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let status = pod.status.as_ref()?;
    let condition = |kind: &str, value: &str| {
        let mut conditions = status.conditions.iter().flatten();
        conditions.find(|found| found.type_ == kind && found.status == value)
    };
    if pod.metadata.deletion_timestamp.is_some() || condition("Ready", "True").is_some() {
        return None;
    }
    let init = status.init_container_statuses.iter().flatten();
    let mut containers = init.chain(status.container_statuses.iter().flatten());
    if let Some((reason, detail)) = containers.find_map(container_failure) {
        let message = format!("pod {name}: {reason} ({detail})");
        return Some(PodFailure::new(&reason, &message));
    }
    let unscheduled = condition("PodScheduled", "False")?;
    let why = unscheduled.message.as_deref().unwrap_or("no message");
    let reason = unscheduled.reason.as_deref().unwrap_or("Unschedulable");
    Some(PodFailure::new(reason, &format!("pod {name}: not scheduled: {why}")))
}

/// Reason and detail of a container that does not run.
fn container_failure(container: &ContainerStatus) -> Option<(String, String)> {
    let state = container.state.as_ref();
    let waiting = state.and_then(|state| state.waiting.as_ref()?.reason.as_deref());
    // The termination message, or the end of the log if the container has `terminationMessagePolicy: FallbackToLogsOnError`.
    let last_line = |text: &str| Some(text.trim_end().rsplit('\n').next()?.trim().to_owned());
    let ended = |state: Option<&ContainerState>| {
        let ended = state?.terminated.as_ref().filter(|ended| ended.exit_code != 0)?;
        let line = ended
            .message
            .as_deref()
            .and_then(last_line)
            .filter(|line| !line.is_empty());
        let line = line.map(|line| format!(": {line}")).unwrap_or_default();
        Some((
            ended.reason.clone().unwrap_or_else(|| "Error".to_owned()),
            format!("exit code {}{line}", ended.exit_code),
        ))
    };
    let last = || ended(state).or_else(|| ended(container.last_state.as_ref()));
    match waiting {
        Some("ContainerCreating" | "PodInitializing") | None => {
            let (reason, end) = last()?;
            Some((reason, format!("container {} ended with {end}", container.name)))
        }
        // A memory limit that is too low stays the cause while the kubelet waits.
        Some("CrashLoopBackOff") => Some(match last() {
            Some((reason, end)) if reason == "OOMKilled" => {
                (reason, format!("container {} ended with {end}", container.name))
            }
            Some((reason, end)) => (
                "CrashLoopBackOff".to_owned(),
                format!("container {}: {reason}, {end}", container.name),
            ),
            None => ("CrashLoopBackOff".to_owned(), format!("container {}", container.name)),
        }),
        // The two alternate with each pull.
        Some("ErrImagePull" | "ImagePullBackOff") => {
            Some(("ImagePullBackOff".to_owned(), format!("image {}", container.image)))
        }
        Some(reason) => Some((reason.to_owned(), format!("image {}", container.image))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn failure(status: Value) -> Option<(String, String)> {
        let pod = serde_json::from_value(json!({ "metadata": { "name": "a" }, "status": status })).unwrap();
        pod_failure(&pod).map(|failure| (failure.reason, failure.message))
    }

    fn container(state: Value, last: Value) -> Value {
        json!({ "containerStatuses": [{ "name": "web", "image": "web:1", "imageID": "", "ready": false, "restartCount": 1,
            "state": state, "lastState": last }] })
    }

    fn waiting(reason: &str) -> Value {
        container(json!({ "waiting": { "reason": reason } }), json!({}))
    }

    #[test]
    fn the_cause_is_the_containers() {
        let pull = (
            "ImagePullBackOff".to_owned(),
            "pod a: ImagePullBackOff (image web:1)".to_owned(),
        );
        assert_eq!(failure(waiting("ErrImagePull")), Some(pull.clone()));
        assert_eq!(failure(waiting("ImagePullBackOff")), Some(pull));
        assert_eq!(failure(waiting("ContainerCreating")), None);
        let killed = json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled" } });
        let looping = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
        assert_eq!(
            failure(container(looping, killed.clone())).unwrap().1,
            "pod a: OOMKilled (container web ended with exit code 137)"
        );
        let running = json!({ "running": {} });
        assert_eq!(failure(container(running.clone(), killed)).unwrap().0, "OOMKilled");
        assert_eq!(failure(container(running, json!({}))), None);
    }

    /// A log has more lines than the cause.
    #[test]
    fn the_last_line_of_the_termination_message_is_reported() {
        let looping = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
        let ended = json!({ "terminated": { "exitCode": 71, "reason": "Error", "message": "starting\nbind(): Permission denied\n" } });
        assert_eq!(
            failure(container(looping, ended)).unwrap().1,
            "pod a: CrashLoopBackOff (container web: Error, exit code 71: bind(): Permission denied)"
        );
    }

    #[test]
    fn long_images_are_shortened() {
        let mut status = waiting("InvalidImageName");
        status["containerStatuses"][0]["image"] = "x".repeat(1 << 20).into();
        let (reason, message) = failure(status).unwrap();
        assert_eq!((reason.as_str(), message.len()), ("InvalidImageName", 2048));
    }

    #[test]
    fn ready_pods_have_none_and_unscheduled_ones_the_schedulers() {
        let condition =
            |kind: &str, status: &str| json!({ "type": kind, "status": status, "message": "0/1 nodes are available" });
        let mut ready = waiting("ImagePullBackOff");
        ready["conditions"] = json!([condition("Ready", "True")]);
        assert_eq!(failure(ready), None);
        let unscheduled = failure(json!({ "conditions": [condition("PodScheduled", "False")] })).unwrap();
        assert_eq!(unscheduled.0, "Unschedulable");
        assert_eq!(unscheduled.1, "pod a: not scheduled: 0/1 nodes are available");
    }
}
