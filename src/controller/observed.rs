//! Projections of watched objects.
//!
//! Of a Deployment, Service or budget: the applied fields, and the fields that the status needs. Of a pod: its name and its
//! owner. What is read at each reconcile only is kept [`Packed`]; `samples` holds what such objects have in common.
//!
//! Anyone who may create objects can make them large and label them as the operator's. So every projection is bounded, and
//! of an object that no Memcached owns its names and its owner are kept.
use std::collections::BTreeMap;

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{
    Resource, ResourceExt,
    core::{DeserializeGuard, PartialObjectMeta},
};
use kube_manager::{
    ObjectKey, drift, explain,
    packed::{Packed, Sample},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    applied::{Applied, SERVERS},
    ownership::{applied_by_us, is_memcached},
};
use crate::{api::v1alpha1::Memcached, operand};

/// The annotation that holds the fingerprint of what was applied: it distinguishes a changed
/// configuration from drift, and makes the operator apply again when a field is no longer desired.
pub const FINGERPRINT: &str = "cache.example.com/applied-configuration";

/// The annotation with which users pause the reconciles of a Memcached; its value is `true`.
pub const PAUSED: &str = "cache.example.com/paused";

/// Longer strings are kept as digests. Names, labels and images are shorter.
const TEXT: usize = 1 << 10;
/// Of longer lists and maps so many entries are kept.
const ENTRIES: usize = 64;
/// A larger spec is not kept. That of a Deployment of the operator has 3 kB.
const SPEC: usize = 16 << 10;
/// A larger Memcached is not reconciled.
const MEMCACHED: usize = 64 << 10;

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
        let content = if may_be_owned(meta) {
            let mut whole = serde_json::to_value(object).unwrap_or_default();
            let mut spec = whole.get_mut("spec").map(Value::take).unwrap_or_default();
            bound(&mut spec);
            if spec.to_string().len() > SPEC {
                spec = Value::Null;
            }
            let metadata = json!({
                "annotations": own_annotations(meta),
                "labels": own_labels(meta),
                "name": meta.name,
                "namespace": meta.namespace,
                "ownerReferences": controller_of(meta).map(|owner| [owner]),
            });
            json!({ "metadata": metadata, "spec": spec })
        } else {
            json!({ "metadata": { "name": meta.name, "namespace": meta.namespace } })
        };
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            controller: controller_of(meta)
                .filter(|owner| owner.uid.len() <= 64)
                .map(|owner| owner.uid.clone()),
            deleting: meta.deletion_timestamp.is_some(),
            content,
        }
    }

    /// What is compared, as text. Annotations of others do not count: controllers of Kubernetes count in them.
    pub fn content(&self) -> String {
        self.content.to_string()
    }

    /// Returns true if the pods would have to be replaced to reach `desired`.
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

    /// Returns true if only annotations have to be written to reach `desired`.
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

/// Returns true if a Memcached owns the object, or an earlier one did.
fn may_be_owned(meta: &ObjectMeta) -> bool {
    match controller_of(meta) {
        Some(owner) => is_memcached(owner),
        None => applied_by_us(meta),
    }
}

/// The annotations of the operator: no others are applied or read.
fn own_annotations(meta: &ObjectMeta) -> BTreeMap<&String, &String> {
    let annotations = meta.annotations.iter().flatten();
    annotations
        .filter(|(name, text)| name.starts_with("cache.example.com/") && name.len() + text.len() <= TEXT)
        .take(ENTRIES)
        .collect()
}

/// The labels of the operator.
fn own_labels(meta: &ObjectMeta) -> BTreeMap<&String, &String> {
    let labels = meta.labels.iter().flatten();
    labels.filter(|(name, _)| operand::is_label(name)).collect()
}

/// Shortens what is too long to be the operator's, so that it still differs from what is.
fn bound(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > TEXT => {
            let digest = drift::fingerprint(value);
            *value = format!("{digest} in place of a long text").into();
        }
        Value::Array(entries) => {
            entries.truncate(ENTRIES);
            entries.iter_mut().for_each(bound);
        }
        Value::Object(fields) => {
            if fields.len() > ENTRIES || fields.keys().any(|name| name.len() > TEXT) {
                let kept = std::mem::take(fields)
                    .into_iter()
                    .filter(|(name, _)| name.len() <= TEXT);
                fields.extend(kept.take(ENTRIES));
            }
            fields.values_mut().for_each(bound);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The beginning of a text.
fn short(text: &str) -> String {
    let mut end = text.len().min(TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
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

    /// Returns true if all servers are of the newest template, run and had time to warm up.
    pub fn is_complete(&self) -> bool {
        let wanted = self.wanted();
        self.observed_generation >= self.generation
            && self.updated == self.replicas
            && self.updated >= wanted
            && self.available >= wanted
    }

    /// Returns true if a rollout has not finished; servers that were lost after it are not one.
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
        let is_owned = may_be_owned(&deployment.metadata);
        let failure = condition("ReplicaFailure", "True")
            .or_else(|| {
                condition("Progressing", "False")
                    .filter(|found| found.reason.as_deref() == Some("ProgressDeadlineExceeded"))
            })
            .filter(|_| is_owned)
            .map(|found| {
                let text = |text: &Option<String>| short(text.as_deref().unwrap_or_default());
                (text(&found.reason), text(&found.message))
            });
        Self {
            child: Child::of(deployment),
            generation: deployment.metadata.generation.unwrap_or(0),
            observed_generation: status.observed_generation.unwrap_or(0),
            replicas: status.replicas.unwrap_or(0),
            updated: status.updated_replicas.unwrap_or(0),
            ready: status.ready_replicas.unwrap_or(0),
            available: status.available_replicas.unwrap_or(0),
            image: image
                .filter(|_| is_owned)
                .and_then(|container| container.image.as_deref())
                .map(short),
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
    /// The object, with the operator's own annotations.
    Readable(Packed<Memcached>),
    /// It cannot be deserialized, since a newer version of the operator may have written it, or is too large.
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
            Err(invalid) => Self::unreadable(&invalid.metadata, explain::mismatch(&invalid.error)),
        }
    }

    /// The projection of `memcached`. Labels, owners and the annotations of others have no meaning for the operator.
    pub fn readable(mut memcached: Memcached) -> Self {
        let annotations = own_annotations(&memcached.metadata);
        let annotations: BTreeMap<String, String> = annotations
            .into_iter()
            .map(|(name, text)| (name.clone(), text.clone()))
            .collect();
        let metadata = &mut memcached.metadata;
        metadata.annotations = (!annotations.is_empty()).then_some(annotations);
        (metadata.managed_fields, metadata.labels, metadata.owner_references) = (None, None, None);
        let size = serde_json::to_vec(&memcached).map_or(usize::MAX, |text| text.len());
        if size > MEMCACHED {
            return Self::unreadable(&memcached.metadata, format!("it is larger than {MEMCACHED} bytes"));
        }
        Self::Readable(Packed::of(&memcached))
    }

    fn unreadable(metadata: &ObjectMeta, error: String) -> Self {
        let finalizers = metadata.finalizers.as_ref();
        let is_short = |finalizers: &&Vec<String>| finalizers.iter().map(String::len).sum::<usize>() <= SPEC;
        Self::Unreadable {
            metadata: Box::new(ObjectMeta {
                name: metadata.name.clone(),
                namespace: metadata.namespace.clone(),
                uid: metadata.uid.clone(),
                generation: metadata.generation,
                resource_version: metadata.resource_version.clone(),
                deletion_timestamp: metadata.deletion_timestamp.clone(),
                // With too many of them the operator does not touch them.
                finalizers: finalizers.filter(is_short).cloned(),
                ..ObjectMeta::default()
            }),
            error: short(&error),
        }
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

/// Returns true if both are the same but for the status and what changes with each write.
pub fn same_but_status(one: &Memcached, other: &Memcached) -> bool {
    one.spec == other.spec && same_metadata(&one.metadata, &other.metadata)
}

/// Returns true if both are the same but for what changes with each write.
pub fn same_metadata(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    one.uid == other.uid
        && one.labels == other.labels
        && one.annotations == other.annotations
        && one.finalizers == other.finalizers
        && one.owner_references == other.owner_references
        && one.deletion_timestamp.is_some() == other.deletion_timestamp.is_some()
}

/// Returns true if users asked the operator to leave `memcached` alone.
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
        // Without its owner it is not one of the operator's.
        deployment.metadata.owner_references = None;
        let foreign = Child::of(&deployment);
        assert_eq!((foreign.controller.as_ref(), foreign.field("/spec")), (None, None));
        assert!(foreign.differs(&desired).is_some());
    }

    /// As a tenant can make it, in each way: large in annotations, labels, a list, a text, names, conditions, owners.
    fn large(owned: bool, index: usize) -> Deployment {
        let memcached = memcached(&json!({ "size": 2 }));
        let mut deployment = serde_json::to_value(operand::deployment(&memcached, "memcached:1.6")).unwrap();
        if !owned {
            deployment["metadata"]["ownerReferences"] = Value::Null;
        }
        let text = |size: usize| {
            let mut random = fastrand::Rng::with_seed(index as u64);
            (0..size).map(|_| random.alphanumeric()).collect::<String>()
        };
        let many = |value: &dyn Fn(String) -> Value| {
            (0..1000)
                .map(|n| value(format!("{n}-{}", text(100))))
                .collect::<Vec<_>>()
        };
        let names = || (0..10_000).map(|n| (format!("x.example.com/{n}-{}", text(80)), Value::from("x")));
        match index % 6 {
            0 => deployment["metadata"]["annotations"]["x"] = text(1 << 20).into(),
            1 => deployment["metadata"]["annotations"][FINGERPRINT] = text(1 << 20).into(),
            2 => deployment["metadata"]["labels"]
                .as_object_mut()
                .unwrap()
                .extend(names()),
            3 => {
                let env = many(&|name| json!({ "name": name, "value": name.repeat(9) }));
                deployment["spec"]["template"]["spec"]["containers"][0]["env"] = env.into();
            }
            4 => deployment["spec"]["template"]["spec"]["nodeSelector"] = Value::Object(names().collect()),
            _ => {
                let condition = json!([{ "type": "ReplicaFailure", "status": "True", "message": text(1 << 20) }]);
                deployment["status"] = json!({ "conditions": condition });
                deployment["spec"]["template"]["spec"]["containers"][0]["image"] = text(1 << 20).into();
            }
        }
        serde_json::from_value(deployment).unwrap()
    }

    /// 500 MB of Deployments of a megabyte with the operator's label.
    #[test]
    fn large_objects_of_tenants_take_little_memory() {
        for (owned, most) in [(false, 512), (true, 20 << 10)] {
            let packed = (0..48).map(|index| {
                let deployment = large(owned, index);
                let size = Packed::of(&DeploymentState::of(&deployment)).size();
                assert!(size <= most, "{index}: {size} bytes");
                size
            });
            let all: usize = packed.sum();
            assert!(all / 48 * 500 < 10 << 20, "{all} bytes of 48");
        }
    }

    /// One that fits a large object is not among them.
    #[test]
    fn an_object_with_large_parts_of_others_still_settles() {
        let memcached = memcached(&json!({ "size": 2 }));
        let desired = serde_json::to_value(operand::deployment(&memcached, "memcached:1.6")).unwrap();
        for index in [0, 2] {
            assert_eq!(Child::of(&large(true, index)).differs(&desired), None, "{index}");
        }
    }

    #[test]
    fn a_large_memcached_is_left_alone_and_takes_little_memory() {
        let mut object = memcached(&json!({ "size": 2 }));
        let annotations = BTreeMap::from([
            ("x".to_owned(), "x".repeat(1 << 20)),
            (PAUSED.to_owned(), "true".to_owned()),
        ]);
        object.metadata.annotations = Some(annotations);
        let Subject::Readable(packed) = Subject::readable(object.clone()) else {
            panic!("not readable");
        };
        assert!(packed.size() < 4 << 10, "{} bytes", packed.size());
        assert!(is_paused(&packed.unpack().unwrap()));
        object.metadata.finalizers = Some((0..20_000).map(|n| format!("x.example.com/{n}")).collect());
        let Subject::Unreadable { metadata, error } = Subject::readable(object) else {
            panic!("readable");
        };
        assert_eq!(
            (metadata.finalizers, error.as_str()),
            (None, "it is larger than 65536 bytes")
        );
    }
}
