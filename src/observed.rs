//! The cluster as the operator sees it: the numbers of the workloads, the servers and their endpoints.
use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentCondition, StatefulSet},
        core::v1::{Pod, PodTemplateSpec},
        discovery::v1::EndpointSlice,
    },
    jiff::Timestamp,
};
use kube::ResourceExt as _;
use kube_manager::{
    ObjectKey,
    health::{ContainerMemory, PodFailure, container_memory, pod_failure},
};

use crate::{
    api::v1alpha1::{Memcached, Workload},
    operand,
};

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
        let spec = deployment.spec.as_ref();
        Self {
            workload: Workload::Deployment,
            wanted: spec.and_then(|spec| spec.replicas).unwrap_or(1),
            all: status.replicas.unwrap_or(0),
            updated: status.updated_replicas.unwrap_or(0),
            ready: status.ready_replicas.unwrap_or(0),
            available: status.available_replicas.unwrap_or(0),
            is_current: status.observed_generation >= deployment.metadata.generation,
            rolled_out: condition(&deployment, "Progressing")
                .is_some_and(|found| has_reason(found, "NewReplicaSetAvailable")),
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

fn condition<'d>(deployment: &'d Deployment, kind: &str) -> Option<&'d DeploymentCondition> {
    let mut conditions = deployment.status.as_ref()?.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == kind)
}

fn has_reason(condition: &DeploymentCondition, reason: &str) -> bool {
    condition.reason.as_deref() == Some(reason)
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
    let refused = condition(deployment, "ReplicaFailure").filter(|found| found.status == "True");
    let late = || condition(deployment, "Progressing").filter(|found| has_reason(found, "ProgressDeadlineExceeded"));
    let found = refused.or_else(late)?;
    let (reason, message) = (found.reason.clone(), found.message.clone());
    Some((reason.unwrap_or_default(), message.unwrap_or_default()))
}

/// Projection of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Name of the pod.
    pub name: String,
    /// The kind of the workload that controls the pod.
    pub workload: Workload,
    /// Why the pod is not ready, if there is a cause.
    pub failure: Option<PodFailure>,
    /// The memory of the container, if it changes in place.
    pub memory: Option<Box<ContainerMemory>>,
}

impl Server {
    /// The Memcached that `pod` belongs to, and the projection. `None` for a pod that is no server, or is being deleted.
    ///
    /// Any user can set labels. So the pod must be controlled by the StatefulSet, or by a ReplicaSet of the Deployment. The Deployment
    /// controller makes its name from the Deployment's name and a label of the pod.
    pub fn from_pod(pod: &Pod) -> Option<(ObjectKey, Self)> {
        let name = pod.labels().get(operand::OWNER)?;
        let mut owners = pod.owner_references().iter();
        let owner = owners.find(|owner| owner.controller == Some(true))?;
        let workload = match owner.kind.as_str() {
            "StatefulSet" if owner.name == *name => Workload::StatefulSet,
            "ReplicaSet" if owner.name == format!("{name}-{}", pod.labels().get("pod-template-hash")?) => {
                Workload::Deployment
            }
            _ => return None,
        };
        if pod.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let is_resizable = pod.annotations().contains_key(operand::IN_PLACE);
        let server = Self {
            name: pod.name_any(),
            workload,
            failure: pod_failure(pod),
            memory: container_memory(pod, operand::MEMCACHED)
                .filter(|_| is_resizable)
                .map(Box::new),
        };
        Some((
            ObjectKey::new(pod.namespace().unwrap_or_default(), name.as_str()),
            server,
        ))
    }
}

/// Projection of an EndpointSlice: the names of the ready pods that clients find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints(pub Vec<String>);

impl Endpoints {
    /// The Memcached that `slice` belongs to, and the projection. `None` for a slice that no Service controls: any user can set labels.
    pub fn from_slice(slice: &EndpointSlice) -> Option<(ObjectKey, Self)> {
        let mut owners = slice.owner_references().iter();
        let service = owners.find(|owner| owner.controller == Some(true) && owner.kind == "Service")?;
        let ready = slice.endpoints.iter().filter(|endpoint| {
            let conditions = endpoint.conditions.as_ref();
            conditions.and_then(|conditions| conditions.ready) != Some(false)
        });
        let pods = ready.filter_map(|endpoint| endpoint.target_ref.as_ref()?.name.clone());
        let key = ObjectKey::new(slice.namespace().unwrap_or_default(), service.name.clone());
        Some((key, Self(pods.collect())))
    }
}

/// The cluster as the operator sees it.
#[derive(Default)]
pub struct Observation {
    /// The workload of the Memcached.
    pub replicas: Option<Replicas>,
    /// The workload of the other kind, if there is one.
    pub former: Option<Replicas>,
    /// Its servers, sorted by name.
    pub servers: Vec<Arc<Server>>,
    /// The endpoints of its Service.
    pub endpoints: Vec<Arc<Endpoints>>,
    /// The published list of stable addresses.
    pub addresses: Vec<String>,
    /// The binding Secret exists.
    pub is_bound: bool,
    /// The time.
    pub now: Timestamp,
}

impl Observation {
    /// Returns true if servers of both kinds must run, because those of the new kind do not serve yet.
    pub fn is_migrating(&self, memcached: &Memcached) -> bool {
        let size = memcached.spec.size;
        let found = self.found();
        let of_kind =
            |server: &&Arc<Server>| server.workload == memcached.spec.workload && found.contains(&server.name);
        let serving = self.servers.iter().filter(of_kind).count();
        let serves = |replicas: &Replicas| replicas.are_complete(size) && replicas.available >= size;
        let can_take_over = self.replicas.as_ref().is_some_and(serves) && number(serving) >= size;
        self.former.is_some() && !can_take_over
    }

    /// The number of servers that have been ready for less than the warm-up time.
    pub fn warming(&self) -> i32 {
        let workloads = [&self.replicas, &self.former].into_iter().flatten();
        let warming = workloads.map(|replicas| (replicas.ready - replicas.available).max(0));
        warming.sum()
    }

    /// Names of the pods that clients find.
    fn found(&self) -> BTreeSet<&String> {
        self.endpoints.iter().flat_map(|slice| &slice.0).collect()
    }

    /// The numbers of all servers. They are 0 without a workload of the kind that the spec names.
    pub fn counts(&self) -> Counts<'_> {
        let Some(replicas) = &self.replicas else {
            return Counts::default();
        };
        let sum = |of: fn(&Replicas) -> i32| of(replicas) + self.former.as_ref().map_or(0, of);
        let (ready, found) = (sum(|replicas| replicas.ready), number(self.found().len()));
        Counts {
            replicas: Some(replicas),
            all: sum(|replicas| replicas.all),
            ready: ready.min(found),
            hidden: (ready - found).max(0),
        }
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The numbers of all servers.
#[derive(Clone, Copy, Default)]
pub struct Counts<'s> {
    /// Those of the kind that the spec names.
    pub replicas: Option<&'s Replicas>,
    /// Servers that exist.
    pub all: i32,
    /// Servers that are ready and that clients find.
    pub ready: i32,
    /// Ready servers that clients do not find, because the Service does not select them.
    pub hidden: i32,
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

    #[test]
    fn a_slice_counts_if_a_service_controls_it() {
        let of = |kind: &str, ready: Value| {
            let owner = json!([{ "apiVersion": "v1", "kind": kind, "name": "sample", "uid": "1", "controller": true }]);
            let endpoint = json!({ "addresses": ["10.0.0.1"], "conditions": { "ready": ready },
                "targetRef": { "kind": "Pod", "name": "p0" } });
            let slice = json!({ "metadata": { "namespace": "cache", "ownerReferences": owner }, "addressType": "IPv4",
                "endpoints": [endpoint] });
            Endpoints::from_slice(&serde_json::from_value(slice).unwrap())
        };
        let found = |pods: &[&str]| {
            let pods = pods.iter().map(|pod| (*pod).to_owned()).collect();
            Some((ObjectKey::new("cache", "sample"), Endpoints(pods)))
        };
        assert_eq!(of("Service", json!(true)), found(&["p0"]));
        assert_eq!(of("Service", json!(false)), found(&[]));
        assert_eq!(of("Endpoints", json!(true)), None);
    }

    #[test]
    fn a_server_is_controlled_by_the_workload() {
        let of = |kind: &str, name: &str| {
            let owner =
                json!([{ "apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1", "controller": true }]);
            let pod = json!({ "metadata": { "name": "p", "namespace": "cache", "ownerReferences": owner,
                "labels": { "memcached_cr": "sample", "pod-template-hash": "abc" } } });
            Server::from_pod(&serde_json::from_value(pod).unwrap()).map(|(owner, server)| (owner, server.name))
        };
        let sample = ObjectKey::new("cache", "sample");
        assert_eq!(of("ReplicaSet", "sample-abc"), Some((sample, "p".to_owned())));
        assert_eq!(of("ReplicaSet", "other-abc"), None);
        assert_eq!(of("StatefulSet", "sample-abc"), None);
        let stateful = of("StatefulSet", "sample").unwrap();
        assert_eq!(stateful.1, "p");
    }
}
