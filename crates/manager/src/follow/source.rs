//! Stores the objects of a watch.
use std::{collections::HashSet, sync::Arc};

use serde::Deserialize;
use tokio::time::Instant;

use crate::{
    ObjectKey,
    cache::{Cache, Change, Revision},
};

/// An object as the API server sent it.
pub struct RawObject<'a> {
    /// Its JSON.
    pub text: &'a [u8],
    /// Its name and state.
    pub revision: Revision,
    /// Its resource version, empty if it has none.
    pub version: String,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
}

impl<'a> RawObject<'a> {
    /// Reads only the parts of the metadata that tell objects and their states apart.
    pub fn new(text: &'a [u8]) -> serde_json::Result<Self> {
        let Head { metadata } = serde_json::from_slice(text)?;
        let version = metadata.resource_version.unwrap_or_default();
        let key = ObjectKey::new(
            metadata.namespace.unwrap_or_default(),
            metadata.name.unwrap_or_default(),
        );
        Ok(Self {
            text,
            revision: Revision::from_parts(key, metadata.uid, &version),
            version,
        })
    }
}

/// Takes the objects of one watch.
pub trait Sink: Send {
    /// A new list begins.
    fn rewind(&self);
    /// Takes an object that exists. `list` is the time at which its list began.
    fn store(&self, object: RawObject<'_>, list: Option<Instant>) -> serde_json::Result<()>;
    /// Takes an object that was deleted.
    fn remove(&self, object: RawObject<'_>);
    /// Takes the keys and the version of a complete list that began at `began`.
    fn retain(&self, listed: &HashSet<ObjectKey>, began: Instant, version: u64);
    /// All changes up to this version were delivered.
    fn reach(&self, version: u64);
}

/// Projects the JSON of objects and stores the projections in a cache.
pub struct TextSource<T, P, C> {
    pub cache: Cache<T>,
    pub scope: Option<String>,
    pub project: P,
    pub changed: C,
}

impl<T, P, C> TextSource<T, P, C> {
    fn scope(&self) -> &str {
        self.scope.as_deref().unwrap_or_default()
    }
}

impl<T, P, C> Sink for TextSource<T, P, C>
where
    T: Send + Sync,
    P: Fn(&[u8]) -> serde_json::Result<Option<T>> + Send,
    C: Fn(&ObjectKey, Change<T>) + Send,
{
    fn rewind(&self) {
        self.cache.rewind(self.scope());
    }

    fn store(&self, object: RawObject<'_>, list: Option<Instant>) -> serde_json::Result<()> {
        // A new list contains mostly known objects, and the answer to an own write may come before its event.
        let value = match self.cache.in_state(&object.revision) {
            Some(known) => Some(known),
            None => (self.project)(object.text)?.map(Arc::new),
        };
        let key = object.revision.key.clone();
        if let Some(change) = self.cache.apply(object.revision, value, list, self.scope()) {
            (self.changed)(&key, change);
        }
        Ok(())
    }

    fn remove(&self, object: RawObject<'_>) {
        if let Some(change) = self.cache.remove(&object.revision, self.scope()) {
            (self.changed)(&object.revision.key, change);
        }
    }

    fn retain(&self, listed: &HashSet<ObjectKey>, began: Instant, version: u64) {
        for (key, change) in self.cache.retain(listed, self.scope.as_deref(), began, version) {
            (self.changed)(&key, change);
        }
    }

    fn reach(&self, version: u64) {
        self.cache.reach(self.scope(), version);
    }
}
