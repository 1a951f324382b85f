//! The objects of a controller, as its cache keeps them.
use std::{marker::PhantomData, sync::Arc};

use kube::api::ObjectMeta;
use serde_json::Value;

use super::Object;
use crate::{
    ObjectKey,
    apply::hash,
    cache::{Change, digest},
    cause::Seen,
    compressed::{Compressed, Dictionary},
    manager::significant,
    samples::ObjectSample,
};

/// An object that is reconciled, as it was seen last: its compressed JSON, and results of functions that run often.
pub struct CachedObject<K> {
    text: Compressed,
    /// A digest of its UID.
    uid: u64,
    /// A digest of its resource version.
    pub version: u64,
    pub seen: Seen,
    /// A digest of everything but the status.
    content: u64,
    /// A digest of the status fields that the operator owns.
    status_fields: u64,
    /// The Secrets that the object refers to.
    pub references: Box<[ObjectKey]>,
    /// A sample for each gauge of the controller.
    pub samples: Box<[Option<ObjectSample>]>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Object> CachedObject<K> {
    /// The object without `managedFields`.
    pub fn read(&self) -> Option<Arc<K>> {
        let mut object: K = self.text.read()?;
        object.meta_mut().managed_fields = None;
        Some(Arc::new(object))
    }

    /// Returns true if `other` is an earlier or later state of this object.
    pub fn is(&self, other: &K) -> bool {
        self.uid == digest(other.meta().uid.as_deref())
    }

    /// The object's JSON, with `managedFields`.
    pub fn json(&self) -> Option<Value> {
        self.text.read()
    }
}

/// Returns true if more than the status of an object has changed.
pub fn is_relevant<K>(change: &Change<CachedObject<K>>) -> bool {
    differs(change, |object| object.content)
}

/// Returns true if another client has taken fields of the status that the operator has written.
pub fn lost_status<K>(change: &Change<CachedObject<K>>) -> bool {
    differs(change, |object| object.status_fields)
}

fn differs<K>(change: &Change<CachedObject<K>>, digest: impl Fn(&CachedObject<K>) -> u64) -> bool {
    change.before.as_deref().map(&digest) != change.after.as_deref().map(&digest)
}

/// The change with the objects themselves.
pub fn unpacked<K: Object>(change: &Change<CachedObject<K>>) -> Change<K> {
    let read = |side: &Option<Arc<CachedObject<K>>>| side.as_ref().and_then(|object| object.read());
    let after = read(&change.after);
    let before = match (&change.before, &change.after) {
        (Some(before), Some(now)) if Arc::ptr_eq(before, now) => after.clone(),
        _ => read(&change.before),
    };
    let listed = change.listed;
    Change { before, after, listed }
}

/// Finds the names of Secrets in an object.
pub type References<K> = Arc<dyn Fn(&K) -> Vec<String> + Send + Sync>;

/// Samples an object for a gauge.
pub type Sampler<K> = Box<dyn Fn(&K) -> Option<ObjectSample> + Send + Sync>;

/// Makes the cached form of objects.
pub struct Projection<K> {
    /// The field manager of the operator.
    pub manager: String,
    pub references: Option<References<K>>,
    pub samplers: Vec<Sampler<K>>,
    pub dictionary: Dictionary,
}

impl<K: Object> Projection<K> {
    /// The cached form of `object`, whose JSON is `text`.
    pub fn project(&self, object: &K, text: &[u8]) -> CachedObject<K> {
        let meta = object.meta();
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        let names = self.references.as_ref().map(|find| find(object)).unwrap_or_default();
        CachedObject {
            text: self.dictionary.compress(text),
            uid: digest(meta.uid.as_deref()),
            version: digest(meta.resource_version.as_deref()),
            seen: Seen::of(meta),
            content: hash(&significant(meta)),
            status_fields: self.status_fields(meta),
            references: names.into_iter().map(|name| ObjectKey::new(namespace, name)).collect(),
            samples: self.samplers.iter().map(|sample| sample(object)).collect(),
            kind: PhantomData,
        }
    }

    fn status_fields(&self, meta: &ObjectMeta) -> u64 {
        let mut entries = meta.managed_fields.iter().flatten();
        let own = entries.find(|entry| {
            entry.manager.as_deref() == Some(self.manager.as_str()) && entry.subresource.as_deref() == Some("status")
        });
        hash(&own.and_then(|entry| entry.fields_v1.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    fn cached(projection: &Projection<Pod>, changes: Value) -> Arc<CachedObject<Pod>> {
        let mut pod = json!({
            "metadata": { "name": "a", "namespace": "ns", "uid": "1", "resourceVersion": "7", "generation": 1 },
            "spec": { "containers": [{ "name": "main", "image": "i" }] },
        });
        let Value::Object(changes) = changes else {
            panic!("no object")
        };
        for (pointer, value) in changes {
            let path: Vec<&str> = pointer.split('.').collect();
            crate::apply::set(&mut pod, &path, value);
        }
        let text = pod.to_string();
        Arc::new(projection.project(&serde_json::from_str(&text).unwrap(), text.as_bytes()))
    }

    #[test]
    fn changes_of_the_status_are_told_from_others() {
        let projection = Projection {
            manager: "me".to_owned(),
            references: Some(Arc::new(|pod: &Pod| {
                pod.spec.iter().flat_map(|spec| spec.node_name.clone()).collect()
            })),
            samplers: Vec::new(),
            dictionary: Dictionary::default(),
        };
        let change = |before: Value, after: Value| Change {
            before: Some(cached(&projection, before)),
            after: Some(cached(&projection, after)),
            listed: false,
        };
        let entry = |manager: &str, field: &str| json!([{ "manager": manager, "subresource": "status", "fieldsType": "FieldsV1", "fieldsV1": { field: {} } }]);
        let status = json!({ "status.phase": "Running", "metadata.resourceVersion": "8" });
        assert!(!is_relevant(&change(json!({}), status)));
        for changed in [
            json!({ "metadata.generation": 2 }),
            json!({ "metadata.uid": "2" }),
            json!({ "metadata.labels.a": "b" }),
            json!({ "metadata.annotations.a": "b" }),
            json!({ "metadata.finalizers": ["a/b"] }),
            json!({ "metadata.deletionTimestamp": "2026-01-01T00:00:00Z" }),
        ] {
            assert!(is_relevant(&change(json!({}), changed.clone())), "{changed}");
        }
        let without = |version: &str| json!({ "metadata.generation": null, "metadata.resourceVersion": version });
        assert!(is_relevant(&change(without("7"), without("8"))), "it has no generation");
        let managed = |manager: &str, field: &str| json!({ "metadata.managedFields": entry(manager, field) });
        assert!(lost_status(&change(managed("me", "f:a"), managed("me", "f:b"))));
        assert!(!lost_status(&change(managed("other", "f:a"), managed("other", "f:b"))));

        let one = cached(
            &projection,
            json!({ "metadata.managedFields": entry("me", "f:a"), "spec.nodeName": "n" }),
        );
        assert_eq!(*one.references, [ObjectKey::new("ns", "n")]);
        let managed = one.json().unwrap()["metadata"]["managedFields"].take();
        assert_eq!(managed, entry("me", "f:a"));
        let read = one.read().unwrap();
        assert_eq!(read.metadata.name.as_deref(), Some("a"));
        assert_eq!(read.metadata.managed_fields, None);
    }
}
