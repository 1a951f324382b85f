//! The upgrade graph of a channel.

use std::collections::{BTreeMap, BTreeSet};

use super::model::ChannelEntry;

/// The heads of a channel: entries that no other entry replaces or skips, sorted. `skipRange` does not count. A sound
/// channel has exactly one.
pub fn heads(entries: &[ChannelEntry]) -> Vec<&str> {
    heads_of(&entries.iter().collect::<Vec<_>>())
}

fn heads_of<'e>(entries: &[&'e ChannelEntry]) -> Vec<&'e str> {
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

/// The entries on the chain of `replaces` from the channel's head down.
pub fn chain<'e>(entries: &[&'e ChannelEntry]) -> BTreeSet<&'e str> {
    let mut by_name: BTreeMap<&str, &ChannelEntry> = BTreeMap::new();
    for entry in entries {
        by_name.entry(&entry.name).or_insert(entry);
    }
    let mut chain = BTreeSet::new();
    let mut current = heads_of(entries).first().and_then(|head| by_name.get(head));
    while let Some(entry) = current.filter(|entry| chain.insert(entry.name.as_str())) {
        current = by_name.get(entry.replaces.as_str());
    }
    chain
}

/// For each bundle that something replaces or skips: the entry that OLM v0 upgrades it to, when `skipRange` is left out.
/// That is the first in `entries` (ordered from the highest version down) that lies on the chain of `replaces` from the
/// head, else the first of all.
pub fn upgrades<'e>(entries: &[&'e ChannelEntry]) -> BTreeMap<&'e str, &'e str> {
    let chain = chain(entries);
    let (on, off): (Vec<&ChannelEntry>, Vec<&ChannelEntry>) = entries
        .iter()
        .copied()
        .partition(|entry| chain.contains(entry.name.as_str()));
    let mut upgrades = BTreeMap::new();
    for entry in on.into_iter().chain(off) {
        let from = entry
            .skips
            .iter()
            .chain(Some(&entry.replaces).filter(|replaces| !replaces.is_empty()));
        for from in from {
            upgrades.entry(from.as_str()).or_insert(entry.name.as_str());
        }
    }
    upgrades
}
