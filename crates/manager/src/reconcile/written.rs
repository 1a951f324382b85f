//! Writes of this process, whose events bring no news.
use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use crate::cache::digest;

/// Maximum number of pending events.
const MOST: usize = 4096;

/// Digests of the versions of objects that this process wrote, until their events arrive.
#[derive(Default)]
pub struct OwnWrites(Mutex<HashSet<u64>>);

impl OwnWrites {
    pub fn note(&self, version: Option<&str>) {
        let mut versions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if versions.len() >= MOST {
            versions.clear();
        }
        versions.extend(version.map(|version| digest(Some(version))));
    }

    /// Returns true once for the digest of each version.
    pub fn is_own(&self, version: u64) -> bool {
        let mut versions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        versions.remove(&version)
    }
}
