//! The part of a Deployment or StatefulSet that the status is about.
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::PodTemplateSpec,
};
use kube::ResourceExt as _;

use crate::{api::v1alpha1::Workload, operand};

/// The servers of one workload, as its controller counts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replicas {
    /// The kind of the workload.
    pub workload: Workload,
    /// Servers that the workload asks for.
    pub wanted: i32,
    /// Servers that exist.
    pub all: i32,
    /// Servers of the newest template.
    pub updated: i32,
    /// Servers that are ready.
    pub ready: i32,
    /// Servers that have been ready long enough for clients to find them.
    pub available: i32,
    /// The controller has seen the spec.
    pub is_current: bool,
    /// The last rollout has finished. That stays so when servers are lost.
    pub rolled_out: bool,
    /// Why the controller cannot make or replace pods: reason and message.
    pub failure: Option<(String, String)>,
    /// The image of the newest template.
    pub image: Option<String>,
}

impl Replicas {
    /// Returns true if there are `size` servers, all of the newest template.
    pub fn are_complete(&self, size: i32) -> bool {
        self.is_current && self.wanted == size && self.all == self.updated && self.all == size
    }
}

impl From<Deployment> for Replicas {
    fn from(deployment: Deployment) -> Self {
        let status = deployment.status.clone().unwrap_or_default();
        let progressing = condition(&deployment, "Progressing");
        let spec = deployment.spec.as_ref();
        Self {
            workload: Workload::Deployment,
            wanted: spec.and_then(|spec| spec.replicas).unwrap_or(1),
            all: status.replicas.unwrap_or(0),
            updated: status.updated_replicas.unwrap_or(0),
            ready: status.ready_replicas.unwrap_or(0),
            available: status.available_replicas.unwrap_or(0),
            is_current: status.observed_generation >= deployment.metadata.generation,
            rolled_out: progressing.is_some_and(|(_, reason, _)| reason == "NewReplicaSetAvailable"),
            failure: failure(&deployment),
            image: spec.and_then(|spec| image(&spec.template)),
        }
    }
}

impl From<StatefulSet> for Replicas {
    fn from(set: StatefulSet) -> Self {
        let (spec, status) = (set.spec.unwrap_or_default(), set.status.unwrap_or_default());
        let rolled_out = status.current_revision == status.update_revision;
        Self {
            workload: Workload::StatefulSet,
            wanted: spec.replicas.unwrap_or(1),
            all: status.replicas,
            // The controller does not count a server that is being deleted, even if its replacement has the same template.
            updated: match rolled_out {
                true => status.replicas,
                false => status.updated_replicas.unwrap_or(0),
            },
            ready: status.ready_replicas.unwrap_or(0),
            available: status.available_replicas.unwrap_or(0),
            is_current: status.observed_generation >= set.metadata.generation,
            rolled_out,
            failure: None,
            image: image(&spec.template),
        }
    }
}

fn image(template: &PodTemplateSpec) -> Option<String> {
    let mut containers = template.spec.iter().flat_map(|pod| &pod.containers);
    containers
        .find(|container| container.name == operand::MEMCACHED)?
        .image
        .clone()
}

/// Status, reason and message of a condition.
fn condition(deployment: &Deployment, kind: &str) -> Option<(String, String, String)> {
    let mut conditions = deployment
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let found = conditions.find(|condition| condition.type_ == kind)?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Some((found.status.clone(), text(&found.reason), text(&found.message)))
}

/// Why the Deployment cannot make or replace pods: reason and message.
fn failure(deployment: &Deployment) -> Option<(String, String)> {
    let (spec, status) = (deployment.spec.as_ref(), deployment.status.as_ref());
    let is_paused = spec.and_then(|spec| spec.paused) == Some(true);
    // A paused Deployment still adds and removes servers.
    if is_paused && status.is_some_and(|status| status.replicas != status.updated_replicas) {
        let name = deployment.name_any();
        let message = format!("the Deployment is paused; run kubectl rollout resume deployment/{name}");
        return Some(("DeploymentPaused".to_owned(), message));
    }
    let refused = condition(deployment, "ReplicaFailure").filter(|(status, ..)| status == "True");
    let late = || condition(deployment, "Progressing").filter(|(_, reason, _)| reason == "ProgressDeadlineExceeded");
    refused.or_else(late).map(|(_, reason, message)| (reason, message))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A StatefulSet that wants three servers.
    fn set(status: Value) -> Replicas {
        let template = json!({ "spec": { "containers": [{ "name": "memcached", "image": "m:1" }] } });
        let spec = json!({ "replicas": 3, "selector": {}, "serviceName": "sample", "template": template });
        let set = json!({ "metadata": { "name": "sample", "generation": 2 }, "spec": spec, "status": status });
        serde_json::from_value::<StatefulSet>(set).unwrap().into()
    }

    #[test]
    fn a_paused_deployment_does_not_replace_servers() {
        let deployment = |updated: i32| {
            let spec = json!({ "replicas": 3, "selector": {}, "template": {}, "paused": true });
            let status = json!({ "replicas": 3, "updatedReplicas": updated });
            let deployment = json!({ "metadata": { "name": "sample" }, "spec": spec, "status": status });
            Replicas::from(serde_json::from_value::<Deployment>(deployment).unwrap()).failure
        };
        assert_eq!(deployment(0).unwrap().0, "DeploymentPaused");
        assert_eq!(deployment(3), None);
    }

    #[test]
    fn a_set_is_complete_when_its_revision_is() {
        let status = |revision: &str, updated: i32| {
            json!({ "observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "availableReplicas": 2,
                "updatedReplicas": updated, "currentRevision": "a", "updateRevision": revision })
        };
        let done = set(status("a", 3));
        assert!(done.are_complete(3) && !done.are_complete(4));
        assert_eq!((done.ready, done.available, done.image.as_deref()), (3, 2, Some("m:1")));
        assert!(set(status("a", 2)).are_complete(3), "a server that is being deleted");
        assert!(!set(status("b", 3)).rolled_out && !set(status("b", 1)).are_complete(3));
        let unseen = json!({ "observedGeneration": 1, "replicas": 3 });
        assert!(!set(unseen).are_complete(3));
    }
}
