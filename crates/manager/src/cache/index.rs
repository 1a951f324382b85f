//! Objects of a cache, by something in them.
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::ObjectKey;

/// The keys of the objects of a [`Cache`](super::Cache), by values that a function finds in them. Made by
/// [`Cache::index`](super::Cache::index). Clones are the same index.
pub struct Index<I> {
    keys: Arc<Mutex<BTreeMap<I, Keys>>>,
}

/// Number of keys up to which a sorted list takes the place of a set, which takes half a kilobyte for the first.
const FEW: usize = 8;

/// The keys with one value.
enum Keys {
    /// Sorted.
    Few(Vec<ObjectKey>),
    Many(BTreeSet<ObjectKey>),
}

impl Keys {
    fn insert(&mut self, key: &ObjectKey) {
        match self {
            Self::Few(keys) => {
                let Err(place) = keys.binary_search(key) else { return };
                if keys.len() < FEW {
                    keys.reserve_exact(1);
                    keys.insert(place, key.clone());
                } else {
                    let all = keys.drain(..).chain([key.clone()]).collect();
                    *self = Self::Many(all);
                }
            }
            Self::Many(keys) => {
                keys.insert(key.clone());
            }
        }
    }

    /// Removes `key`. Returns true if no other is left.
    fn remove(&mut self, key: &ObjectKey) -> bool {
        match self {
            Self::Few(keys) => {
                keys.retain(|known| known != key);
                keys.is_empty()
            }
            Self::Many(keys) => {
                keys.remove(key);
                keys.is_empty()
            }
        }
    }

    fn all(&self) -> Vec<ObjectKey> {
        match self {
            Self::Few(keys) => keys.clone(),
            Self::Many(keys) => keys.iter().cloned().collect(),
        }
    }
}

impl<I> Clone for Index<I> {
    fn clone(&self) -> Self {
        Self {
            keys: Arc::clone(&self.keys),
        }
    }
}

impl<I: Ord> Index<I> {
    /// The keys of the objects with `value`, sorted.
    pub fn keys(&self, value: &I) -> Vec<ObjectKey> {
        self.lock().get(value).map(Keys::all).unwrap_or_default()
    }

    /// Adds the object `key` to `after` instead of `before`.
    fn replace(&self, key: &ObjectKey, before: Vec<I>, after: Vec<I>) {
        let mut keys = self.lock();
        for value in before {
            if keys.get_mut(&value).is_some_and(|keys| keys.remove(key)) {
                keys.remove(&value);
            }
        }
        for value in after {
            let keys = keys.entry(value).or_insert(Keys::Few(Vec::new()));
            keys.insert(key);
        }
    }

    /// A poisoned lock is safe to use: each change is a few map operations.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<I, Keys>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Called with each change of an object: its key, the object before, and after.
pub(super) type Follower<T> = Box<dyn Fn(&ObjectKey, Option<&T>, Option<&T>) + Send + Sync>;

/// An empty index by what `values` finds, and what keeps it current.
pub(super) fn index<T, I>(values: impl Fn(&T) -> Vec<I> + Send + Sync + 'static) -> (Index<I>, Follower<T>)
where
    I: Ord + Send + 'static,
{
    let index = Index { keys: Arc::default() };
    let followed = index.clone();
    // The values are found again rather than kept, which would take memory for each object.
    let follow = move |key: &ObjectKey, before: Option<&T>, after: Option<&T>| {
        let find = |side: Option<&T>| side.map(&values).unwrap_or_default();
        let (before, after) = (find(before), find(after));
        if before != after {
            followed.replace(key, before, after);
        }
    };
    (index, Box::new(follow))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::cache::{Cache, Revision};

    fn pod(name: &str, version: u64, nodes: &[&str]) -> (Pod, Vec<String>) {
        let metadata = json!({ "namespace": "ns", "name": name, "uid": name, "resourceVersion": version.to_string() });
        let pod = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        (pod, nodes.iter().map(|node| (*node).to_owned()).collect())
    }

    fn apply(cache: &Cache<Vec<String>>, (pod, nodes): (Pod, Vec<String>)) {
        cache.apply(Revision::new(&pod), Some(Arc::new(nodes)), None, "");
    }

    fn names(index: &Index<String>, node: &str) -> Vec<String> {
        let keys = index.keys(&node.to_owned());
        keys.into_iter().map(|key| key.name.to_string()).collect()
    }

    #[test]
    fn it_follows_whatever_changes_the_cache() {
        let cache = Cache::default();
        apply(&cache, pod("b", 1, &["one"]));
        let index = cache.index(|nodes: &Vec<String>| nodes.clone());
        assert_eq!(names(&index, "one"), ["b"], "the earlier index");
        apply(&cache, pod("a", 2, &["one", "two"]));
        assert_eq!(names(&index, "one"), ["a", "b"], "sorted");
        apply(&cache, pod("b", 3, &["two"]));
        assert_eq!(
            (names(&index, "one"), names(&index, "two")),
            (vec!["a".to_owned()], vec!["a".to_owned(), "b".to_owned()])
        );
        // An own write, and its event.
        let (written, nodes) = pod("a", 4, &["three"]);
        cache.written(&written, nodes);
        assert_eq!(
            (names(&index, "one").len(), names(&index, "three")),
            (0, vec!["a".to_owned()])
        );
        apply(&cache, pod("a", 4, &["three"]));
        assert_eq!(names(&index, "three"), ["a"]);
        // Projected to nothing, deleted, deleted by this process, and no longer listed.
        let (gone, _) = pod("a", 5, &[]);
        cache.apply(Revision::new(&gone), None, None, "");
        assert_eq!(names(&index, "three").len(), 0);
        cache.remove(&Revision::new(&pod("b", 6, &[]).0), "");
        assert_eq!(names(&index, "two").len(), 0);
        apply(&cache, pod("c", 7, &["one"]));
        cache.deleted(&ObjectKey::new("ns", "c"), "c");
        assert_eq!(names(&index, "one").len(), 0);
        apply(&cache, pod("d", 8, &["one"]));
        cache.retain(&HashSet::new(), None, Instant::now(), 0);
        assert_eq!(names(&index, "one").len(), 0);
        assert!(index.lock().is_empty(), "deleted objects leave no entries");
    }

    #[test]
    fn two_indices_of_one_cache_are_independent() {
        let cache = Cache::default();
        let by_node = cache.index(|nodes: &Vec<String>| nodes.clone());
        let by_number = cache.index(|nodes: &Vec<String>| vec![nodes.len()]);
        apply(&cache, pod("a", 1, &["one", "one"]));
        assert_eq!(names(&by_node, "one"), ["a"]);
        assert_eq!(by_number.keys(&2), [ObjectKey::new("ns", "a")]);
        apply(&cache, pod("a", 2, &["one"]));
        assert_eq!(names(&by_node, "one"), ["a"]);
        assert_eq!((by_number.keys(&2).len(), by_number.keys(&1).len()), (0, 1));
    }
}
