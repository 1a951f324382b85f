//! When two statuses, or two messages in them, count as equal.
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::api::v1alpha1::{AVAILABLE, DEGRADED, MemcachedStatus, PROGRESSING, READY};

/// A number for all that [`same`] compares.
pub fn digest(status: &MemcachedStatus) -> u64 {
    let mut hasher = DefaultHasher::new();
    // A status always serializes; if one did not, it would only be reconciled once more.
    serde_json::to_string(&ours(status))
        .unwrap_or_default()
        .hash(&mut hasher);
    hasher.finish()
}

/// Returns true if two messages differ in numbers only: ports, addresses, times, which change with each attempt.
pub fn similar(left: &str, right: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.split(|letter: char| letter.is_ascii_digit())
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    };
    words(left) == words(right)
}

/// Returns true if two statuses are equal. Conditions of other types are ignored.
pub fn same(left: &MemcachedStatus, right: &MemcachedStatus) -> bool {
    ours(left) == ours(right)
}

/// `status` without the conditions of others, in one order.
fn ours(status: &MemcachedStatus) -> MemcachedStatus {
    let mut status = status.clone();
    status
        .conditions
        .retain(|known| [READY, AVAILABLE, PROGRESSING, DEGRADED].contains(&known.type_.as_str()));
    status.conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    status
}
