//! State of a test's pod, and the reason why it waits.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Event, Pod};

use super::objects::{TEST, UNTAR};
use crate::observe::pods::{self, Trouble};

/// State of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The test has ended: its log is its result.
    Ended,
    /// It will never run. The message is the reason.
    Lost(String),
    /// It may still run. The message describes its progress.
    Waiting(String),
}

/// Determines the state of a pod.
pub fn pod_state(pod: &Pod, events: &[Event]) -> State {
    let Some(status) = &pod.status else {
        return State::Waiting("the pod has no status yet: no scheduler or node has processed it".to_owned());
    };
    let test = state(status.container_statuses.as_deref(), TEST);
    if test.is_some_and(|state| state.terminated.is_some()) {
        return State::Ended;
    }
    if let Some(ended) =
        state(status.init_container_statuses.as_deref(), UNTAR).and_then(|state| state.terminated.as_ref())
        && ended.exit_code != 0
    {
        return State::Lost(format!(
            "init container {UNTAR} ended with exit code {}; its image needs sh, cat and tar, --untar-image names another",
            ended.exit_code
        ));
    }
    if status.phase.as_deref() == Some("Failed") {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        return State::Lost(format!(
            "the pod failed before the test ended: {} {}",
            text(&status.reason),
            text(&status.message)
        ));
    }
    if let Some(trouble) = pods::trouble(pod, events) {
        return State::Waiting(troubled(&trouble));
    }
    let waiting = test.and_then(|state| state.waiting.as_ref());
    State::Waiting(match waiting {
        _ if test.is_some_and(|state| state.running.is_some()) => "the test runs and has not ended".to_owned(),
        Some(waiting) => format!(
            "the container waits: {}{}",
            waiting.reason.as_deref().unwrap_or("no reason given"),
            waiting
                .message
                .as_ref()
                .map(|text| format!(" ({text})"))
                .unwrap_or_default()
        ),
        None => format!("the pod is {}", status.phase.as_deref().unwrap_or("without a phase")),
    })
}

fn state<'a>(containers: Option<&'a [ContainerStatus]>, name: &str) -> Option<&'a ContainerState> {
    let found = containers?.iter().find(|container| container.name == name);
    found?.state.as_ref()
}

/// The reason why a pod does not run, with the fix.
fn troubled(trouble: &pods::PodTrouble) -> String {
    let (what, way_out) = match trouble.kind {
        Trouble::ImagePull => (
            format!("the node cannot pull {}", trouble.image),
            "check the image's name; a private one needs a pull secret in the pod's service account (--service-account)",
        ),
        Trouble::Unschedulable => (
            "the pod cannot be scheduled".to_owned(),
            "free resources, or see the node's taints",
        ),
        Trouble::Refused => (
            format!("container {} cannot be created", trouble.container),
            "an image that runs as root needs --pod-security legacy",
        ),
        Trouble::Crash => (format!("container {} keeps exiting", trouble.container), "see its log"),
        Trouble::NotReady => (format!("container {} is not ready", trouble.container), "see its log"),
    };
    format!("{what}: {}; {way_out}", trouble.message)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "n"}, "status": status})).unwrap()
    }

    fn test_container(state: Value) -> Value {
        json!({"phase": "Pending", "containerStatuses": [
            {"name": TEST, "image": "example.com/test:1", "imageID": "", "ready": false, "restartCount": 0, "state": state},
        ]})
    }

    #[test]
    fn a_test_has_ended_when_its_container_has() {
        let ended = test_container(json!({"terminated": {"exitCode": 1}}));
        assert_eq!(pod_state(&pod(ended), &[]), State::Ended);
    }

    #[test]
    fn a_waiting_pod_is_reported_with_cause_and_fix() {
        let waits = |state: Value| match pod_state(&pod(test_container(state)), &[]) {
            State::Waiting(text) => text,
            other => panic!("{other:?}"),
        };
        let text = waits(json!({"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}));
        assert!(
            text.contains("cannot pull example.com/test:1: not found") && text.contains("pull secret"),
            "{text}"
        );
        let text =
            waits(json!({"waiting": {"reason": "CreateContainerConfigError", "message": "image will run as root"}}));
        assert!(
            text.contains("image will run as root") && text.contains("--pod-security legacy"),
            "{text}"
        );
        let text = waits(json!({"waiting": {"reason": "ContainerCreating"}}));
        assert_eq!(text, "the container waits: ContainerCreating");
        assert_eq!(waits(json!({"running": {}})), "the test runs and has not ended");
    }

    #[test]
    fn a_pod_that_no_node_takes_waits() {
        let status = json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"},
        ]});
        let State::Waiting(text) = pod_state(&pod(status), &[]) else {
            panic!()
        };
        assert!(
            text.starts_with("the pod cannot be scheduled: 0/1 nodes are available"),
            "{text}"
        );
    }

    #[test]
    fn a_pod_that_cannot_run_any_more_is_lost() {
        let failed = json!({"phase": "Failed", "reason": "Evicted", "message": "disk pressure"});
        let State::Lost(text) = pod_state(&pod(failed), &[]) else {
            panic!()
        };
        assert!(text.ends_with("Evicted disk pressure"), "{text}");
        let untar = json!({"phase": "Pending", "initContainerStatuses": [
            {"name": UNTAR, "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 127}}},
        ]});
        let State::Lost(text) = pod_state(&pod(untar), &[]) else {
            panic!()
        };
        assert!(
            text.contains("exit code 127") && text.contains("--untar-image"),
            "{text}"
        );
    }
}
