//! Causes in pods and Deployments.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};
use olmkit::object::selector;
use serde_json::json;

use super::health::available;
use super::observation::Observation;
use crate::base::cause::{Cause, Code};
use crate::base::kinds;
use crate::base::object_ref::ObjectRef;

/// Reasons why a pod does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// An image cannot be pulled.
    ImagePull,
    /// A container keeps exiting.
    Crash,
    /// It cannot be scheduled.
    Unschedulable,
    /// A container cannot be created as specified.
    Refused,
    /// It runs and is not ready.
    NotReady,
}

/// A pod's trouble with its evidence.
#[derive(Clone, Debug)]
pub struct PodTrouble {
    /// The kind of trouble.
    pub kind: Trouble,
    /// The pod.
    pub pod: ObjectRef,
    /// The container, empty for the whole pod.
    pub container: String,
    /// Its image.
    pub image: String,
    /// The message of the runtime or the scheduler.
    pub message: String,
    /// Events.
    pub evidence: Vec<String>,
}

/// The worst trouble of a pod, `None` when it is ready, completed, terminating or starting.
pub fn trouble(pod: &Pod, events: &[Event]) -> Option<PodTrouble> {
    let status = pod.status.as_ref()?;
    if pod.metadata.deletion_timestamp.is_some() || matches!(status.phase.as_deref(), Some("Succeeded")) {
        return None;
    }
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let found = |kind, container: &str, image: &str, message: String| PodTrouble {
        kind,
        pod: ObjectRef::namespaced(
            kinds::pod(),
            pod.metadata.namespace.as_deref().unwrap_or_default(),
            name,
        ),
        container: container.to_owned(),
        image: image.to_owned(),
        message,
        evidence: warnings(events, "Pod", name),
    };
    let containers = status
        .init_container_statuses
        .iter()
        .flatten()
        .chain(status.container_statuses.iter().flatten());
    for container in containers {
        if let Some((kind, message)) = container_trouble(container) {
            return Some(found(kind, &container.name, &container.image, message));
        }
    }
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let condition = |kind: &str| {
        conditions
            .iter()
            .find(|condition| condition.type_ == kind && condition.status == "False")
    };
    if let Some(scheduled) = condition("PodScheduled") {
        return Some(found(
            Trouble::Unschedulable,
            "",
            "",
            scheduled.message.clone().unwrap_or_default(),
        ));
    }
    let running = status
        .container_statuses
        .iter()
        .flatten()
        .all(|container| container.state.as_ref().is_some_and(|state| state.running.is_some()));
    let unready = status
        .container_statuses
        .iter()
        .flatten()
        .find(|container| !container.ready)?;
    let probes = warnings(events, "Pod", name)
        .into_iter()
        .find(|line| line.contains("probe failed"))?;
    running.then(|| found(Trouble::NotReady, &unready.name, &unready.image, probes))
}

fn container_trouble(container: &ContainerStatus) -> Option<(Trouble, String)> {
    let state = container.state.as_ref()?;
    let ended = |status: &ContainerStatus| {
        let last = status
            .last_state
            .as_ref()
            .and_then(|last| last.terminated.as_ref())
            .or(status.state.as_ref()?.terminated.as_ref())?;
        let reason = last.reason.clone().unwrap_or_default();
        Some(format!(
            "container {} ended with exit code {} ({reason}), {} restarts",
            status.name, last.exit_code, status.restart_count
        ))
    };
    if let Some(waiting) = &state.waiting {
        let message = waiting.message.clone().unwrap_or_default();
        return match waiting.reason.as_deref().unwrap_or_default() {
            "ImagePullBackOff"
            | "ErrImagePull"
            | "InvalidImageName"
            | "ErrImageNeverPull"
            | "RegistryUnavailable"
            | "SignatureValidationFailed" => Some((Trouble::ImagePull, message)),
            "CrashLoopBackOff" => Some((Trouble::Crash, ended(container).unwrap_or(message))),
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
                Some((Trouble::Refused, message))
            }
            _ => None,
        };
    }
    // Between two restarts a crashing container shows as terminated or even running.
    let failed = state.terminated.as_ref().is_some_and(|ended| ended.exit_code != 0);
    (failed && container.restart_count > 0 || container.restart_count >= 2 && !container.ready)
        .then(|| ended(container).map(|message| (Trouble::Crash, message)))
        .flatten()
}

/// The warnings about an object, newest last, at most five.
pub fn warnings(events: &[Event], kind: &str, name: &str) -> Vec<String> {
    let mut found: Vec<&Event> = events
        .iter()
        .filter(|event| {
            event.involved_object.kind.as_deref() == Some(kind) && event.involved_object.name.as_deref() == Some(name)
        })
        .collect();
    found.sort_by_key(|event| event.last_timestamp.as_ref().map(|time| time.0));
    let mut lines: Vec<String> = found
        .iter()
        .map(|event| {
            format!(
                "{}: {}",
                event.reason.as_deref().unwrap_or_default(),
                event.message.as_deref().unwrap_or_default().trim()
            )
        })
        .collect();
    lines.dedup();
    lines.split_off(lines.len().saturating_sub(5))
}

/// Causes why a Deployment is not available. Empty if it is. `what` names its owner.
pub fn of_deployment(deployment: &Deployment, seen: &Observation) -> Vec<Cause> {
    if settled(deployment) {
        return Vec::new();
    }
    let (namespace, name) = (
        deployment.metadata.namespace.as_deref().unwrap_or_default(),
        deployment.metadata.name.as_deref().unwrap_or_default(),
    );
    let object = ObjectRef::namespaced(kinds::deployment(), namespace, name);
    let conditions = deployment
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let condition = |kind: &str, status: &str| {
        conditions
            .iter()
            .find(|found| found.type_ == kind && found.status == status)
    };
    if let Some(failure) = condition("ReplicaFailure", "True") {
        return vec![
            Cause::lasting(
                Code::PodRejected,
                format!("its pods are refused: {}", failure.message.as_deref().unwrap_or_default()),
                "change the Deployment in the CSV to meet the namespace's requirements (pod security, quota, limits), or install in another namespace",
            )
            .on(object),
        ];
    }
    let mut causes: Vec<Cause> = seen
        .pods
        .iter()
        .filter(|pod| selects(deployment, pod))
        .filter_map(|pod| trouble(pod, &seen.events))
        .map(of_operator_pod)
        .collect();
    if causes.is_empty() {
        let stuck = condition("Progressing", "False");
        let unavailable = condition("Available", "False");
        let message = stuck
            .or(unavailable)
            .and_then(|found| found.message.clone())
            .unwrap_or_else(|| "no pod is available yet".into());
        let remedy = format!("inspect its pods: kubectl -n {namespace} describe deployment {name}");
        let cause = if stuck.is_some() {
            Cause::lasting(Code::DeploymentUnavailable, message, remedy)
        } else {
            Cause::passing(Code::DeploymentUnavailable, message, remedy)
        };
        causes.push(cause.on(object));
    }
    causes
}

/// Causes why the Deployment that serves a catalog is not available.
pub fn of_catalog_deployment(deployment: &Deployment, seen: &Observation) -> Vec<Cause> {
    of_deployment(deployment, seen)
        .into_iter()
        .map(|cause| {
            let (code, remedy) = match cause.code {
                Code::OperatorImagePull => (Code::CatalogImagePull, "name an image with /bin/opm that the nodes can pull (--helper-image), with --pull-secret-name if it is private; or serve from this host (--serve-from-host)".to_owned()),
                Code::PodRejected if cause.object.as_ref().is_some_and(|object| object.kind == kinds::pod()) => (Code::CatalogPodCrash, "the image must contain /bin/opm, which serves a catalog".to_owned()),
                Code::OperatorCrashLoop | Code::OperatorNotReady => (Code::CatalogPodCrash, "the image must contain /bin/opm, which serves a catalog; its log is below".to_owned()),
                other => (other, cause.remedy.clone()),
            };
            Cause { code, remedy, ..cause }
        })
        .collect()
}

/// As OLM tests it: the status is current, all replicas are of the current template, and enough are available.
fn settled(deployment: &Deployment) -> bool {
    let Some(status) = &deployment.status else { return false };
    let current = status.observed_generation.unwrap_or(0) >= deployment.metadata.generation.unwrap_or(0);
    current && status.replicas.unwrap_or(0) <= status.updated_replicas.unwrap_or(0) && available(deployment)
}

fn of_operator_pod(found: PodTrouble) -> Cause {
    let PodTrouble {
        kind,
        pod,
        container,
        image,
        message,
        evidence,
    } = found;
    let cause = match kind {
        Trouble::ImagePull => Cause::lasting(
            Code::OperatorImagePull,
            format!("the node cannot pull {image}: {message}"),
            "push the image, or correct the reference in the CSV's Deployment and install the bundle again; for a private registry the namespace's ServiceAccount needs an image pull secret",
        ),
        Trouble::Crash => Cause::lasting(
            Code::OperatorCrashLoop,
            message,
            format!(
                "see its log: kubectl -n {} logs {} -c {container} --previous",
                pod.namespace.as_deref().unwrap_or_default(),
                pod.name
            ),
        ),
        Trouble::Unschedulable => Cause::passing(
            Code::PodUnschedulable,
            message,
            "free resources on a node, or lower the requests in the CSV's Deployment",
        ),
        Trouble::Refused => Cause::lasting(
            Code::PodRejected,
            message,
            "correct what the container refers to (Secrets, ConfigMaps, users) in the CSV's Deployment",
        ),
        Trouble::NotReady => Cause::passing(
            Code::OperatorNotReady,
            format!("container {container} runs but is not ready: {message}"),
            "check that the probe's port and path match what the operator serves",
        ),
    };
    cause.on(pod).evidence(evidence)
}

/// Returns true if a Deployment's selector matches a pod.
fn selects(deployment: &Deployment, pod: &Pod) -> bool {
    let Some(selector) = deployment.spec.as_ref().map(|spec| &spec.selector) else {
        return false;
    };
    // An empty selector would match every pod. The API server rejects it.
    let is_empty = selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty);
    let labels = json!(pod.metadata.labels);
    pod.metadata.namespace == deployment.metadata.namespace
        && !is_empty
        && selector::selects(Some(&json!(selector)), labels.as_object())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_deployment_selects_pods_by_labels_and_expressions() {
        let pod = json!({"metadata": {"namespace": "a", "labels": {"app": "x", "tier": "web"}}});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let selects_pod = |selector: Value| {
            let spec = json!({"selector": selector, "template": {}});
            let deployment = json!({"metadata": {"namespace": "a"}, "spec": spec});
            selects(&serde_json::from_value(deployment).unwrap(), &pod)
        };
        let not_web = json!([{"key": "tier", "operator": "NotIn", "values": ["web"]}]);
        assert!(selects_pod(json!({"matchLabels": {"app": "x"}})));
        assert!(selects_pod(
            json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]})
        ));
        assert!(!selects_pod(
            json!({"matchLabels": {"app": "x"}, "matchExpressions": not_web})
        ));
        assert!(!selects_pod(json!({"matchLabels": {"app": "y"}})));
        assert!(!selects_pod(json!({"matchLabels": {}})));
    }
}
