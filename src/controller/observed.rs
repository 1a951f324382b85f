//! Projections of watched objects.
//!
//! Of a Deployment, Service or budget: the applied fields, as compact JSON that is parsed for comparison, and the fields
//! that the status needs. Of a pod: its name and its owner.
use std::sync::Arc;

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{
    Resource, ResourceExt,
    core::{DeserializeGuard, PartialObjectMeta},
};
use kube_manager::{ObjectKey, drift};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{api::v1alpha1::Memcached, operand};

/// The annotation that holds the fingerprint of what was applied: it distinguishes a changed
/// configuration from drift, and makes the operator apply again when a field is no longer desired.
pub const FINGERPRINT: &str = "cache.example.com/applied-configuration";

/// The annotation with which users pause the reconciles of a Memcached; its value is `true`.
pub const PAUSED: &str = "cache.example.com/paused";

/// Projection of a managed object.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// Distinguishes the object from a later one of the same name.
    pub uid: String,
    /// The owner that controls it.
    pub controller: Option<OwnerReference>,
    /// It is being deleted.
    pub deleting: bool,
    /// Labels, annotations, owner references and spec as JSON.
    content: Box<str>,
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
            controller: controller_of(meta).cloned(),
            deleting: meta.deletion_timestamp.is_some(),
            content: json!({ "metadata": metadata, "spec": spec })
                .to_string()
                .into_boxed_str(),
        }
    }

    /// What is compared, as text.
    pub fn content(&self) -> &str {
        &self.content
    }

    /// Whether the pods would have to be replaced to reach `desired`.
    pub fn replaces_pods(&self, desired: &Value) -> bool {
        let live = self.field("/spec/template").unwrap_or(Value::Null);
        let wanted = desired.pointer("/spec/template").cloned().unwrap_or(Value::Null);
        drift::differs(&wanted, &live).is_some()
    }

    /// The path of the first field that differs from `desired`.
    pub fn differs(&self, desired: &Value) -> Option<String> {
        let live = serde_json::from_str(&self.content).unwrap_or(Value::Null);
        let mut wanted = Map::new();
        for part in ["metadata", "spec"] {
            wanted.extend(desired.get(part).map(|value| (part.to_owned(), value.clone())));
        }
        drift::differs(&Value::Object(wanted), &live)
    }

    /// One field, by JSON pointer.
    pub fn field(&self, pointer: &str) -> Option<Value> {
        let live: Value = serde_json::from_str(&self.content).ok()?;
        live.pointer(pointer).cloned()
    }

    /// The fingerprint of what was applied last.
    pub fn fingerprint(&self) -> Option<String> {
        // '/' in a pointer's segment is written ~1.
        let pointer = format!("/metadata/annotations/{}", FINGERPRINT.replace('/', "~1"));
        self.field(&pointer)?.as_str().map(str::to_owned)
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
#[derive(Clone, Debug, PartialEq)]
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
    /// Why the Deployment cannot create or replace pods: reason and message of its condition.
    pub failure: Option<(String, String)>,
}

impl DeploymentState {
    /// Whether `size` servers of the newest template run and had time to warm up.
    pub fn is_complete(&self, size: i32) -> bool {
        self.observed_generation >= self.generation
            && self.updated == self.replicas
            && self.updated >= size
            && self.available >= size
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
            failure,
        }
    }
}

/// A watched Memcached.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The object, without managed fields and kubectl's last-applied annotation.
    Readable(Arc<Memcached>),
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
        Self::Readable(Arc::new(memcached))
    }

    /// The object, if it is readable.
    pub fn memcached(&self) -> Option<&Arc<Memcached>> {
        match self {
            Self::Readable(memcached) => Some(memcached),
            Self::Unreadable { .. } => None,
        }
    }

    /// Its metadata.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Readable(memcached) => &memcached.metadata,
            Self::Unreadable { metadata, .. } => metadata,
        }
    }

    /// Whether both are the same but for the status and what changes with each write.
    pub fn same_but_status(&self, other: &Self) -> bool {
        let parts = |subject: &Self| {
            let meta = subject.metadata().clone();
            let deleting = meta.deletion_timestamp.is_some();
            (
                meta.uid,
                meta.labels,
                meta.annotations,
                meta.finalizers,
                meta.owner_references,
                deleting,
            )
        };
        let spec = |subject: &Self| match subject {
            Self::Readable(memcached) => Ok(memcached.spec.clone()),
            Self::Unreadable { error, .. } => Err(error.clone()),
        };
        parts(self) == parts(other) && spec(self) == spec(other)
    }
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
