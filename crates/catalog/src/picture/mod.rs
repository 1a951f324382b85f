//! Channels as a picture: Graphviz text, or SVG drawn here.

mod dot;
mod rows;
mod svg;

use std::collections::{BTreeMap, BTreeSet};

pub use dot::dot;
pub use svg::svg;

use super::graph;
use super::model::{BUNDLE, CHANNEL, Catalog, Channel, ChannelEntry, PACKAGE};
use super::resolver::{self, Resolver};
use super::selection::{self, Selection, Versions};
use olmkit_base::object::Version;

/// Colour of edges that OLM v0 ignores.
const IGNORED: &str = "red";
/// Color of deprecated items.
const DEPRECATED: &str = "orange";

/// The facts that decide which upgrades OLM v0 takes.
struct V0<'c> {
    versions: Versions<'c>,
    /// Package and name of each bundle with the property `olm.deprecated`.
    deprecated: BTreeSet<(&'c str, &'c str)>,
}

/// The selected channels, sorted by package and name, and the marks for edges that OLM v0 ignores.
fn drawn<'c>(catalog: &'c Catalog, selection: &Selection) -> Result<(Vec<Channel>, Option<V0<'c>>), String> {
    let versions = match selection.v0_semantics || selection.minimum_edge.is_some() {
        true => selection::versions(catalog)?,
        false => Versions::new(),
    };
    let mut channels = selection.channels(catalog, &versions)?;
    channels.sort_by(|left, right| (&left.package, &left.name).cmp(&(&right.package, &right.name)));
    let v0 = selection.v0_semantics.then(|| V0 {
        versions,
        deprecated: catalog
            .bundles
            .iter()
            .filter(|bundle| resolver::is_deprecated(bundle))
            .map(|bundle| (bundle.package.as_str(), bundle.name.as_str()))
            .collect(),
    });
    Ok((channels, v0))
}

/// The entries that an entry replaces or skips.
fn sources(entry: &ChannelEntry) -> impl Iterator<Item = &str> {
    let replaces = Some(entry.replaces.as_str()).filter(|name| !name.is_empty());
    entry.skips.iter().map(String::as_str).chain(replaces)
}

/// Schemas and names of deprecated items, by package.
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

/// Highlighted entries of a channel.
struct Marks<'c> {
    /// In order.
    heads: Vec<&'c str>,
    skipped: BTreeSet<&'c str>,
    /// Named as a source, and not in the channel.
    absent: BTreeSet<&'c str>,
    deprecated: Option<&'c BTreeSet<(&'c str, &'c str)>>,
    channel: &'c str,
    /// The upgrade that OLM v0 takes from each name, if ignored edges are marked.
    upgrades: Option<BTreeMap<&'c str, &'c str>>,
}

impl<'c> Marks<'c> {
    fn new(deprecated: &'c Deprecated<'c>, channel: &'c Channel, v0: Option<&V0<'_>>) -> Self {
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
            upgrades: v0.map(|v0| upgrades(channel, v0)),
        }
    }

    /// Returns true if OLM v0 never takes an edge. Always false unless ignored edges are marked.
    fn is_ignored(&self, from: &str, to: &str) -> bool {
        self.upgrades
            .as_ref()
            .is_some_and(|upgrades| upgrades.get(from).is_none_or(|next| *next != to))
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

/// The upgrade that OLM v0 takes from each name in a channel. None if it rejects the channel.
fn upgrades<'c>(channel: &'c Channel, v0: &V0<'_>) -> BTreeMap<&'c str, &'c str> {
    let entries: Vec<&ChannelEntry> = channel.entries().iter().collect();
    let names = entries.iter().copied().flat_map(sources);
    let installed = names.map(|name| {
        (
            name,
            v0.versions
                .get(name)
                .cloned()
                .or_else(|| resolver::version_in_name(name)),
        )
    });
    let installed: BTreeMap<&str, Option<Version>> = installed.collect();
    let name = channel.name.as_str();
    let deprecated = entries.iter().map(|entry| entry.name.as_str());
    let deprecated = deprecated
        .filter(|name| v0.deprecated.contains(&(channel.package.as_str(), *name)))
        .collect();
    let ordered = Resolver::new(&channel.package, &[resolver::Channel { name, entries }], deprecated);
    let taken = ordered
        .map(|resolver| resolver.upgrades(&installed))
        .unwrap_or_default();
    taken
        .into_iter()
        .map(|(from, edge)| (from, edge.to.entry.name.as_str()))
        .collect()
}

#[cfg(test)]
mod tests;
