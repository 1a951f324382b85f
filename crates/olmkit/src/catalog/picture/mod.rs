//! Channels as a picture: Graphviz text, or SVG drawn here.

mod dot;
mod rows;
mod svg;

use std::collections::BTreeSet;

pub use dot::dot;
pub use svg::svg;

use super::graph;
use super::model::{BUNDLE, CHANNEL, Catalog, Channel, ChannelEntry, PACKAGE};

/// Colour of what is deprecated.
const DEPRECATED: &str = "orange";

/// What is drawn.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'s> {
    /// Only this package.
    pub package: Option<&'s str>,
    /// Only channels of this name.
    pub channel: Option<&'s str>,
}

/// The selected channels, sorted by package and name.
fn channels<'c>(catalog: &'c Catalog, selection: Selection<'_>) -> Vec<&'c Channel> {
    let mut channels: Vec<_> = catalog
        .channels
        .iter()
        .filter(|channel| selection.package.is_none_or(|package| channel.package == package))
        .filter(|channel| selection.channel.is_none_or(|name| channel.name == name))
        .collect();
    channels.sort_by(|left, right| (&left.package, &left.name).cmp(&(&right.package, &right.name)));
    channels
}

/// What an entry replaces or skips.
fn sources(entry: &ChannelEntry) -> impl Iterator<Item = &str> {
    let replaces = Some(entry.replaces.as_str()).filter(|name| !name.is_empty());
    entry.skips.iter().map(String::as_str).chain(replaces)
}

/// Which entries of a channel stand out.
struct Marks<'c> {
    heads: Vec<&'c str>,
    skipped: BTreeSet<&'c str>,
    /// Named as a source, and not in the channel.
    absent: BTreeSet<&'c str>,
    deprecated: BTreeSet<(&'c str, &'c str)>,
    channel: &'c str,
}

impl<'c> Marks<'c> {
    fn of(catalog: &'c Catalog, channel: &'c Channel) -> Self {
        let entries = channel.entries();
        let known: BTreeSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let deprecations = catalog
            .deprecations
            .iter()
            .filter(|deprecation| deprecation.package == channel.package);
        Marks {
            heads: graph::heads(entries),
            skipped: entries
                .iter()
                .flat_map(|entry| &entry.skips)
                .map(String::as_str)
                .collect(),
            absent: entries
                .iter()
                .flat_map(sources)
                .filter(|name| !known.contains(name))
                .collect(),
            deprecated: deprecations
                .flat_map(|deprecation| deprecation.entries.iter().flatten())
                .map(|entry| (entry.schema.as_str(), entry.name.as_str()))
                .collect(),
            channel: &channel.name,
        }
    }

    /// The colour of an entry.
    fn entry(&self, name: &str) -> &'static str {
        if self.deprecated.contains(&(BUNDLE, name)) {
            DEPRECATED
        } else if self.heads.contains(&name) {
            "lightgreen"
        } else if self.skipped.contains(name) {
            "lightgray"
        } else {
            "white"
        }
    }

    /// The colour of the channel itself.
    fn channel(&self) -> &'static str {
        if self.deprecated.contains(&(PACKAGE, "")) || self.deprecated.contains(&(CHANNEL, self.channel)) {
            DEPRECATED
        } else {
            "white"
        }
    }
}

#[cfg(test)]
mod tests;
