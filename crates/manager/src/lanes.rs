//! Keys that wait, by tenant: the tenants take turns.
use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
};

use crate::ObjectKey;

/// A key of a queue.
pub trait QueueKey: Clone + Eq + Hash {
    /// Among whose keys workers alternate. Empty if the key has none.
    fn tenant(&self) -> &str {
        ""
    }
}

impl QueueKey for ObjectKey {
    fn tenant(&self) -> &str {
        &self.namespace
    }
}

impl QueueKey for String {}

impl QueueKey for &str {}

/// Keys by tenant, the tenants in turn.
pub(crate) struct Lanes<K> {
    keys: HashMap<String, VecDeque<K>>,
    turns: VecDeque<String>,
    /// Number of keys.
    pub(crate) len: usize,
}

impl<K> Default for Lanes<K> {
    fn default() -> Self {
        Self {
            keys: HashMap::new(),
            turns: VecDeque::new(),
            len: 0,
        }
    }
}

impl<K: QueueKey> Lanes<K> {
    /// Adds `key` behind the others of its tenant.
    pub(crate) fn push(&mut self, key: K) {
        let tenant = key.tenant();
        self.len += 1;
        if let Some(keys) = self.keys.get_mut(tenant) {
            keys.push_back(key);
            return;
        }
        self.turns.push_back(tenant.to_owned());
        self.keys.insert(tenant.to_owned(), VecDeque::from([key]));
    }

    /// The oldest key of the next tenant that is `free`. The tenant moves to the end.
    pub(crate) fn pop(&mut self, free: impl Fn(&str) -> bool) -> Option<K> {
        let turn = self.turns.iter().position(|tenant| free(tenant))?;
        let tenant = self.turns.remove(turn)?;
        let keys = self.keys.get_mut(&tenant)?;
        let key = keys.pop_front()?;
        self.len -= 1;
        if keys.is_empty() {
            self.keys.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        Some(key)
    }

    /// Removes `key`.
    pub(crate) fn remove(&mut self, key: &K) {
        let tenant = key.tenant();
        let Some(keys) = self.keys.get_mut(tenant) else { return };
        let before = keys.len();
        keys.retain(|known| known != key);
        self.len -= before - keys.len();
        if keys.is_empty() {
            self.keys.remove(tenant);
            self.turns.retain(|known| known != tenant);
        }
    }
}
