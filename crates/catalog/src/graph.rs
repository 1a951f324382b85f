//! The heads of a channel. [`super::resolver`] follows its upgrade edges.

use std::collections::BTreeSet;

use super::model::ChannelEntry;

/// The heads of a channel: entries that no other entry replaces or skips, sorted. `skipRange` does not count. A sound
/// channel has exactly one.
pub fn heads(entries: &[ChannelEntry]) -> Vec<&str> {
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for entry in entries {
        if !entry.replaces.is_empty() {
            named.insert(&entry.replaces);
        }
        named.extend(entry.skips.iter().map(String::as_str));
    }
    let mut heads: Vec<&str> = entries
        .iter()
        .map(|entry| entry.name.as_str())
        .filter(|name| !named.contains(name))
        .collect();
    heads.sort_unstable();
    heads
}
