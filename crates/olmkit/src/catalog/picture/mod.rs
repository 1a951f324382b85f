//! Channels as a picture: Graphviz text, or SVG drawn here.

mod dot;
mod rows;
mod svg;

use std::collections::{BTreeMap, BTreeSet};

pub use dot::dot;
pub use svg::svg;

use super::graph;
use super::model::{BUNDLE, CHANNEL, Catalog, Channel, ChannelEntry, PACKAGE};
use super::selection::{self, Reach, Selection, Versions};

/// Colour of edges that OLM v0 ignores.
const IGNORED: &str = "red";
/// Colour of what is deprecated.
const DEPRECATED: &str = "orange";

/// The selected channels, sorted by package and name, and the versions where the way of OLM v0 is to be marked.
fn drawn<'c>(catalog: &'c Catalog, selection: &Selection) -> Result<(Vec<Channel>, Option<Versions<'c>>), String> {
    let versions = match selection.v0_semantics || selection.minimum_edge.is_some() {
        true => selection::versions(catalog)?,
        false => Versions::new(),
    };
    let mut channels = selection.channels(catalog, &versions)?;
    channels.sort_by(|left, right| (&left.package, &left.name).cmp(&(&right.package, &right.name)));
    Ok((channels, selection.v0_semantics.then_some(versions)))
}

/// What an entry replaces or skips.
fn sources(entry: &ChannelEntry) -> impl Iterator<Item = &str> {
    let replaces = Some(entry.replaces.as_str()).filter(|name| !name.is_empty());
    entry.skips.iter().map(String::as_str).chain(replaces)
}

/// Schemas and names of what is deprecated, by package.
type Deprecated<'c> = BTreeMap<&'c str, BTreeSet<(&'c str, &'c str)>>;

fn deprecated(catalog: &Catalog) -> Deprecated<'_> {
    let mut deprecated = Deprecated::new();
    for blob in &catalog.deprecations {
        let entries = blob.entries.iter().flatten();
        let names = entries.map(|entry| (entry.schema.as_str(), entry.name.as_str()));
        deprecated.entry(&blob.package).or_default().extend(names);
    }
    deprecated
}

/// Which entries of a channel stand out.
struct Marks<'c> {
    /// In order.
    heads: Vec<&'c str>,
    skipped: BTreeSet<&'c str>,
    /// Named as a source, and not in the channel.
    absent: BTreeSet<&'c str>,
    deprecated: Option<&'c BTreeSet<(&'c str, &'c str)>>,
    channel: &'c str,
    /// How OLM v0 goes, where that is to be seen.
    reach: Option<Reach<'c>>,
}

impl<'c> Marks<'c> {
    fn of(deprecated: &'c Deprecated<'c>, channel: &'c Channel, v0: Option<&Versions<'_>>) -> Self {
        let entries = channel.entries();
        let known: BTreeSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
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
            deprecated: deprecated.get(channel.package.as_str()),
            channel: &channel.name,
            reach: v0.map(|versions| Reach::of(entries, versions)),
        }
    }

    /// Whether OLM v0 never takes an edge, as far as that is to be seen.
    fn is_ignored(&self, from: &str, to: &str, replaces: bool) -> bool {
        self.reach
            .as_ref()
            .is_some_and(|reach| !reach.follows(from, to, replaces))
    }

    /// The colour of an entry.
    fn entry(&self, name: &str) -> &'static str {
        if self.is_deprecated(BUNDLE, name) {
            DEPRECATED
        } else if self.heads.binary_search(&name).is_ok() {
            "lightgreen"
        } else if self.skipped.contains(name) {
            "lightgray"
        } else {
            "white"
        }
    }

    /// The colour of the channel itself.
    fn channel(&self) -> &'static str {
        if self.is_deprecated(PACKAGE, "") || self.is_deprecated(CHANNEL, self.channel) {
            DEPRECATED
        } else {
            "white"
        }
    }

    fn is_deprecated(&self, schema: &str, name: &str) -> bool {
        self.deprecated.is_some_and(|set| set.contains(&(schema, name)))
    }
}

#[cfg(test)]
mod tests;
