//! States of objects.
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use kube::Resource;
use serde_json::Value;

use crate::ObjectKey;

/// Identifies one state of one object.
pub(crate) struct Revision {
    pub(crate) key: ObjectKey,
    pub(super) uid: Option<String>,
    pub(super) version: u64,
}

impl Revision {
    pub(crate) fn new<K: Resource>(object: &K) -> Self {
        Self {
            key: ObjectKey::of(object),
            uid: object.meta().uid.clone(),
            version: version(object),
        }
    }

    /// The state of the object `key` with this UID and resource version.
    pub(crate) fn from_parts(key: ObjectKey, uid: Option<String>, version: &str) -> Self {
        Self {
            key,
            uid,
            version: number(version),
        }
    }

    /// The state of an object that the API server sent. `None` if it has no name.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        let text = |name: &str| object.get("metadata")?.get(name)?.as_str();
        let key = ObjectKey::new(text("namespace").unwrap_or_default(), text("name")?);
        let uid = text("uid").map(str::to_owned);
        Some(Self::from_parts(key, uid, text("resourceVersion").unwrap_or_default()))
    }

    pub(super) fn known<T>(&self, object: Arc<T>) -> CachedObject<T> {
        CachedObject {
            object,
            version: self.version,
            uid: digest(self.uid.as_deref()),
        }
    }
}

/// The resource version of `object` as a number, which orders the versions of one kind; 0 if it is none.
pub fn version<K: Resource>(object: &K) -> u64 {
    object.meta().resource_version.as_deref().map_or(0, number)
}

/// A resource version as a number; 0 if it is none.
pub(crate) fn number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

/// A cached object.
pub(super) struct CachedObject<T> {
    pub(super) object: Arc<T>,
    /// Its resource version; 0 if unknown.
    pub(super) version: u64,
    /// A digest of its UID.
    pub(super) uid: u64,
}

/// A digest of a UID or resource version, which takes less room.
pub(crate) fn digest(text: Option<&str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
