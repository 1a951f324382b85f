//! Projections of objects that are not children, such as the pods of a Deployment.
use std::sync::Arc;

use crate::{
    ObjectKey,
    cache::{Cache, Index},
};

/// A projection, with the object that it belongs to.
pub type Entry<T> = (ObjectKey, Arc<T>);

/// The projections of one kind.
pub struct Observed<T> {
    pub cache: Cache<Entry<T>>,
    by_object: Index<ObjectKey>,
}

impl<T: Send + Sync + 'static> Observed<T> {
    pub fn new() -> Self {
        let cache: Cache<Entry<T>> = Cache::default();
        let by_object = cache.index(|(object, _): &Entry<T>| vec![object.clone()]);
        Self { cache, by_object }
    }

    /// The projections that belong to `object`, sorted by name.
    pub fn of(&self, object: &ObjectKey) -> Vec<Arc<T>> {
        let keys = self.by_object.keys(object);
        let found = keys.iter().filter_map(|key| self.cache.get(key));
        found.map(|entry| Arc::clone(&entry.1)).collect()
    }
}
