//! Writes of this process, whose events bring no news.
use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

/// Maximum number of pending events.
const MOST: usize = 4096;

/// Versions of objects that this process wrote, until their events arrive.
#[derive(Default)]
pub struct OwnWrites(Mutex<HashSet<String>>);

impl OwnWrites {
    pub fn note(&self, version: Option<String>) {
        let mut versions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if versions.len() >= MOST {
            versions.clear();
        }
        versions.extend(version);
    }

    /// Returns true once for each version.
    pub fn is_own(&self, version: &str) -> bool {
        let mut versions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        versions.remove(version)
    }
}
