//! Projections of watched objects.
//!
//! Of a Deployment, Service or budget: the applied fields, and the fields that the status needs. Of a pod: its name and its
//! owner. What is read at each reconcile only is kept [`Packed`]; `samples` holds what such objects have in common.
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{
    Resource, ResourceExt,
    core::{DeserializeGuard, PartialObjectMeta},
};
use kube_manager::{
    ObjectKey, drift,
    packed::{Packed, Sample},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::applied::{Applied, SERVERS};
use crate::{api::v1alpha1::Memcached, operand};

/// The annotation that holds the fingerprint of what was applied: it distinguishes a changed
/// configuration from drift, and makes the operator apply again when a field is no longer desired.
pub const FINGERPRINT: &str = "cache.example.com/applied-configuration";

/// The annotation with which users pause the reconciles of a Memcached; its value is `true`.
pub const PAUSED: &str = "cache.example.com/paused";

/// Projection of a managed object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Child {
    /// Distinguishes the object from a later one of the same name.
    pub uid: String,
    /// The UID of the owner that controls it.
    pub controller: Option<String>,
    /// It is being deleted.
    pub deleting: bool,
    /// Labels, annotations, owner references and spec.
    content: Value,
}

/// A Service and a budget.
impl Sample for Child {
    const SAMPLE: &'static str = concat!(
        include_str!("samples/service.json"),
        include_str!("samples/budget.json")
    );
}

impl Child {
    /// The projection of `object`.
    pub fn of<K: Resource + Serialize>(object: &K) -> Self {
        let meta = object.meta();
        let mut whole = serde_json::to_value(object).unwrap_or_default();
        let spec = whole.get_mut("spec").map(Value::take).unwrap_or_default();
        let metadata = json!({
            "annotations": meta.annotations,
            "labels": meta.labels,
            "name": meta.name,
            "namespace": meta.namespace,
            "ownerReferences": meta.owner_references,
        });
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            controller: controller_of(meta).map(|owner| owner.uid.clone()),
            deleting: meta.deletion_timestamp.is_some(),
            content: json!({ "metadata": metadata, "spec": spec }),
        }
    }

    /// What is compared, as text, with the operator's own annotations only: controllers of Kubernetes count in others.
    pub fn content(&self) -> String {
        let mut content = self.content.clone();
        if let Some(annotations) = content
            .pointer_mut("/metadata/annotations")
            .and_then(Value::as_object_mut)
        {
            annotations.retain(|name, _| name.starts_with("cache.example.com/"));
        }
        content.to_string()
    }

    /// Whether the pods would have to be replaced to reach `desired`.
    pub fn replaces_pods(&self, desired: &Value) -> bool {
        let template = |object: &Value| object.pointer("/spec/template").cloned().unwrap_or_default();
        drift::differs(&template(desired), &template(&self.content)).is_some()
    }

    /// The path of the first field that differs from `desired`.
    pub fn differs(&self, desired: &Value) -> Option<String> {
        let mut wanted = Map::new();
        for part in ["metadata", "spec"] {
            wanted.extend(desired.get(part).map(|value| (part.to_owned(), value.clone())));
        }
        drift::differs(&Value::Object(wanted), &self.content)
    }

    /// Whether only annotations have to be written to reach `desired`.
    pub fn differs_in_annotations_only(&self, mut desired: Value) -> bool {
        if let Some(metadata) = desired.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("annotations");
        }
        self.differs(&desired).is_none()
    }

    /// One field, by JSON pointer.
    pub fn field(&self, pointer: &str) -> Option<&Value> {
        self.content.pointer(pointer)
    }

    /// The fingerprint of what was applied last.
    pub fn fingerprint(&self) -> Option<&str> {
        self.content
            .get("metadata")?
            .get("annotations")?
            .get(FINGERPRINT)?
            .as_str()
    }
}

/// The owner reference of the controller among the owners.
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references
        .iter()
        .flatten()
        .find(|owner| owner.controller == Some(true))
}

/// Projection of a Deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeploymentState {
    /// The applied fields.
    pub child: Child,
    /// `metadata.generation`.
    pub generation: i64,
    /// `status.observedGeneration`.
    pub observed_generation: i64,
    /// Pods that exist.
    pub replicas: i32,
    /// Pods of the newest template.
    pub updated: i32,
    /// Pods that are ready.
    pub ready: i32,
    /// Pods that have been ready long enough.
    pub available: i32,
    /// The image in the template.
    pub image: Option<String>,
    /// By its condition, the last rollout has finished. That stays so when servers are lost.
    pub rolled_out: bool,
    /// Why the Deployment cannot create or replace pods: reason and message of its condition.
    pub failure: Option<(String, String)>,
}

impl Sample for DeploymentState {
    const SAMPLE: &'static str = include_str!("samples/deployment.json");
}

impl From<DeploymentState> for Child {
    fn from(state: DeploymentState) -> Self {
        state.child
    }
}

impl DeploymentState {
    /// The number of servers that the Deployment asks for: an admission webhook may have changed it.
    pub fn wanted(&self) -> i32 {
        let replicas = self.child.field("/spec/replicas").and_then(Value::as_i64);
        replicas.and_then(|replicas| replicas.try_into().ok()).unwrap_or(1)
    }

    /// Whether all servers are of the newest template, run and had time to warm up.
    pub fn is_complete(&self) -> bool {
        let wanted = self.wanted();
        self.observed_generation >= self.generation
            && self.updated == self.replicas
            && self.updated >= wanted
            && self.available >= wanted
    }

    /// Whether a rollout has not finished; servers that were lost after it are not one.
    pub fn is_underway(&self) -> bool {
        let current = self.observed_generation >= self.generation;
        let was_complete = current && self.rolled_out && self.updated == self.replicas;
        !self.is_complete() && !was_complete
    }

    /// What it says of the template that was applied last; objects that 0.1.0 made do not.
    pub fn applied(&self) -> Option<Applied> {
        let annotations = self.child.field("/metadata/annotations")?;
        annotations.get(SERVERS)?.as_str()?.parse().ok()
    }

    /// The projection of `deployment`.
    pub fn of(deployment: &Deployment) -> Self {
        let status = deployment.status.clone().unwrap_or_default();
        let containers = deployment
            .spec
            .as_ref()
            .and_then(|spec| spec.template.spec.as_ref())
            .map(|pod| &pod.containers);
        let image = containers
            .into_iter()
            .flatten()
            .find(|container| container.name == operand::MEMCACHED);
        let condition = |type_: &str, value: &str| {
            status
                .conditions
                .iter()
                .flatten()
                .find(|found| found.type_ == type_ && found.status == value)
        };
        let failure = condition("ReplicaFailure", "True")
            .or_else(|| {
                condition("Progressing", "False")
                    .filter(|found| found.reason.as_deref() == Some("ProgressDeadlineExceeded"))
            })
            .map(|found| {
                (
                    found.reason.clone().unwrap_or_default(),
                    found.message.clone().unwrap_or_default(),
                )
            });
        Self {
            child: Child::of(deployment),
            generation: deployment.metadata.generation.unwrap_or(0),
            observed_generation: status.observed_generation.unwrap_or(0),
            replicas: status.replicas.unwrap_or(0),
            updated: status.updated_replicas.unwrap_or(0),
            ready: status.ready_replicas.unwrap_or(0),
            available: status.available_replicas.unwrap_or(0),
            image: image.and_then(|container| container.image.clone()),
            rolled_out: condition("Progressing", "True")
                .is_some_and(|found| found.reason.as_deref() == Some("NewReplicaSetAvailable")),
            failure,
        }
    }
}

impl Sample for Memcached {
    const SAMPLE: &'static str = include_str!("samples/memcached.json");
}

/// A watched Memcached.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The object, without managed fields and kubectl's last-applied annotation.
    Readable(Packed<Memcached>),
    /// It cannot be deserialized: a newer version of the operator may have written it.
    Unreadable {
        /// Its metadata.
        metadata: Box<ObjectMeta>,
        /// Why.
        error: String,
    },
}

impl Subject {
    /// The projection of what the watch delivered.
    pub fn of(guard: DeserializeGuard<Memcached>) -> Self {
        match guard.0 {
            Ok(memcached) => Self::readable(memcached),
            Err(invalid) => Self::Unreadable {
                metadata: Box::new(ObjectMeta {
                    managed_fields: None,
                    ..invalid.metadata
                }),
                error: invalid.error,
            },
        }
    }

    /// The projection of `memcached`.
    pub fn readable(mut memcached: Memcached) -> Self {
        memcached.metadata.managed_fields = None;
        if let Some(annotations) = &mut memcached.metadata.annotations {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
        Self::Readable(Packed::of(&memcached))
    }

    /// The object, if it is readable.
    pub fn memcached(&self) -> Option<Memcached> {
        match self {
            Self::Readable(memcached) => memcached.unpack(),
            Self::Unreadable { .. } => None,
        }
    }

    /// Its UID.
    pub fn uid(&self) -> Option<String> {
        match self {
            Self::Readable(memcached) => memcached.unpack()?.metadata.uid,
            Self::Unreadable { metadata, .. } => metadata.uid.clone(),
        }
    }
}

/// Whether both are the same but for the status and what changes with each write.
pub fn same_but_status(one: &Memcached, other: &Memcached) -> bool {
    one.spec == other.spec && same_metadata(&one.metadata, &other.metadata)
}

/// Whether both are the same but for what changes with each write.
pub fn same_metadata(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    one.uid == other.uid
        && one.labels == other.labels
        && one.annotations == other.annotations
        && one.finalizers == other.finalizers
        && one.owner_references == other.owner_references
        && one.deletion_timestamp.is_some() == other.deletion_timestamp.is_some()
}

/// Whether users asked the operator to leave `memcached` alone.
pub fn is_paused(memcached: &Memcached) -> bool {
    memcached.annotations().get(PAUSED).is_some_and(|value| value == "true")
}

/// Projection of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The Memcached that it belongs to.
    pub owner: ObjectKey,
    /// It is being deleted.
    pub terminating: bool,
}

impl Server {
    /// The projection of `pod`; `None` if it is not a server of a Memcached.
    ///
    /// Labels alone do not make a pod a server: anyone can set them. It has to be controlled by a ReplicaSet of the
    /// Deployment, whose name the Deployment controller makes from the Deployment's name and a label of the pod.
    pub fn of(pod: &PartialObjectMeta<Pod>) -> Option<Self> {
        let labels = pod.metadata.labels.as_ref()?;
        let name = labels.get(operand::OWNER)?;
        let replica_set = format!("{name}-{}", labels.get("pod-template-hash")?);
        let controller = controller_of(&pod.metadata)?;
        (controller.kind == "ReplicaSet" && controller.name == replica_set).then(|| Self {
            owner: ObjectKey::new(pod.metadata.namespace.clone().unwrap_or_default(), name),
            terminating: pod.metadata.deletion_timestamp.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operand::fixtures::memcached;

    fn pod(value: Value) -> PartialObjectMeta<Pod> {
        serde_json::from_value(json!({ "metadata": value })).unwrap()
    }

    #[test]
    fn a_server_is_controlled_by_a_replica_set_of_the_deployment() {
        let labels = json!({ "memcached_cr": "sample", "pod-template-hash": "abc" });
        let owned_by = |kind: &str, name: &str| {
            let owner =
                json!([{ "apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1", "controller": true }]);
            Server::of(&pod(
                json!({ "name": "p", "namespace": "cache", "labels": labels, "ownerReferences": owner }),
            ))
        };
        let server = Server {
            owner: ObjectKey::new("cache", "sample"),
            terminating: false,
        };
        assert_eq!(owned_by("ReplicaSet", "sample-abc"), Some(server));
        assert_eq!(owned_by("ReplicaSet", "other-abc"), None);
        assert_eq!(owned_by("StatefulSet", "sample-abc"), None);
        assert_eq!(Server::of(&pod(json!({ "name": "p", "labels": labels }))), None);
    }

    #[test]
    fn a_child_keeps_the_compared_fields() {
        let memcached = memcached(&json!({ "size": 2 }));
        let mut deployment = operand::deployment(&memcached, "memcached:1.6");
        let desired = serde_json::to_value(&deployment).unwrap();
        assert_eq!(Child::of(&deployment).differs(&desired), None);
        deployment.spec.as_mut().unwrap().replicas = Some(5);
        assert_eq!(
            Child::of(&deployment).differs(&desired).as_deref(),
            Some(".spec.replicas")
        );
        deployment.metadata.owner_references = None;
        let path = Child::of(&deployment).differs(&desired).unwrap();
        assert!(path.starts_with(".metadata.ownerReferences"), "{path}");
    }
}
