//! `catalog diff`: what came, went and changed between two catalogs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::graph;
use super::model::{Bundle, Catalog, ChannelEntry};
use super::property;

/// How something differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Only in the new catalog.
    Added,
    /// Only in the old one.
    Removed,
    /// In both, and not the same.
    Changed,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Change {
    /// The package it is in.
    pub package: String,
    /// What differs: `package`, `channel p`, `edge a -> b in p`, `bundle b`, `deprecation of …`.
    pub what: String,
    /// How.
    pub kind: Kind,
    /// From what to what, for changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl std::fmt::Display for Change {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = match self.kind {
            Kind::Added => '+',
            Kind::Removed => '-',
            Kind::Changed => '~',
        };
        write!(formatter, "{sign} {}: {}", self.package, self.what)?;
        match &self.detail {
            Some(detail) => write!(formatter, ": {detail}"),
            None => Ok(()),
        }
    }
}

/// Facts about a catalog: by package and thing, what is said about it.
type Facts = BTreeMap<(String, String), String>;

/// All differences, sorted.
pub fn between(old: &Catalog, new: &Catalog) -> Vec<Change> {
    let (old, new) = (facts(old), facts(new));
    let keys: BTreeSet<&(String, String)> = old.keys().chain(new.keys()).collect();
    let mut changes: Vec<Change> = keys
        .into_iter()
        .filter_map(|key| {
            let (package, what) = key.clone();
            let (kind, detail) = match (old.get(key), new.get(key)) {
                (None, Some(_)) => (Kind::Added, None),
                (Some(_), None) => (Kind::Removed, None),
                (Some(before), Some(after)) if before != after => (Kind::Changed, Some(format!("{before} -> {after}"))),
                _ => return None,
            };
            Some(Change {
                package,
                what,
                kind,
                detail,
            })
        })
        .collect();
    changes.sort();
    changes
}

fn facts(catalog: &Catalog) -> Facts {
    let mut facts = Facts::new();
    for package in &catalog.packages {
        let mut say = |what: &str, value: String| facts.insert((package.name.clone(), what.to_owned()), value);
        say("package", String::new());
        say("default channel", package.default_channel.clone());
        say("description", fingerprint(&package.description));
        say(
            "icon",
            package
                .icon
                .as_ref()
                .and_then(|icon| icon.data.as_deref())
                .map(fingerprint)
                .unwrap_or_default(),
        );
    }
    for channel in &catalog.channels {
        let name = &channel.name;
        let mut say = |what: String, value: String| facts.insert((channel.package.clone(), what), value);
        say(format!("channel {name}"), String::new());
        say(format!("head of {name}"), graph::heads(channel.entries()).join(", "));
        for entry in channel.entries() {
            say(format!("entry {} in {name}", entry.name), String::new());
            for (from, edge) in edges(entry) {
                say(format!("edge {from} -> {} in {name}", entry.name), edge.to_owned());
            }
        }
    }
    for bundle in &catalog.bundles {
        let mut say = |what: &str, value: String| {
            facts.insert((bundle.package.clone(), format!("{what} {}", bundle.name)), value);
        };
        say("bundle", version(bundle));
        say("image of", bundle.image.clone());
        let properties: BTreeSet<_> = bundle
            .properties
            .iter()
            .map(|property| (property.kind.as_str(), property.value.as_deref()))
            .collect();
        say("properties of", fingerprint(&format!("{properties:?}")));
        let images: BTreeSet<&str> = bundle.related_images.iter().map(|image| image.image.as_str()).collect();
        say("related images of", fingerprint(&format!("{images:?}")));
    }
    for blob in &catalog.deprecations {
        for entry in blob.entries.iter().flatten() {
            let kind = entry.schema.trim_start_matches("olm.");
            let what = format!("deprecation of {kind} {}", entry.name).trim_end().to_owned();
            facts.insert((blob.package.clone(), what), entry.message.clone());
        }
    }
    facts
}

/// Where the edges of an entry come from.
fn edges(entry: &ChannelEntry) -> Vec<(&str, &'static str)> {
    let mut edges: Vec<(&str, &'static str)> = entry.skips.iter().map(|skip| (skip.as_str(), "skips")).collect();
    if !entry.replaces.is_empty() {
        edges.push((&entry.replaces, "replaces"));
    }
    if !entry.skip_range.is_empty() {
        edges.push((&entry.skip_range, "skipRange"));
    }
    edges
}

fn version(bundle: &Bundle) -> String {
    let packages = property::parse(bundle).unwrap_or_default();
    packages.first().map(|own| own.version.clone()).unwrap_or_default()
}

/// Long texts are compared by a short name.
fn fingerprint(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let digest = crate::image::Digest::of(text.as_bytes());
    digest.hex().get(..12).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::load;

    const OLD: &str = "{\"schema\":\"olm.package\",\"name\":\"p\",\"defaultChannel\":\"c\"}\
        {\"schema\":\"olm.channel\",\"package\":\"p\",\"name\":\"c\",\"entries\":[{\"name\":\"p.v1\"}]}";

    #[test]
    fn heads_edges_and_entries_are_told() {
        let new = OLD.replace(
            "[{\"name\":\"p.v1\"}]",
            "[{\"name\":\"p.v1\"},{\"name\":\"p.v2\",\"replaces\":\"p.v1\"}]",
        );
        let read = |text: &str| load::text(text).unwrap().into_iter().collect();
        let changes: Vec<String> = between(&read(OLD), &read(&new))
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            changes,
            [
                "+ p: edge p.v1 -> p.v2 in c",
                "+ p: entry p.v2 in c",
                "~ p: head of c: p.v1 -> p.v2"
            ]
        );
        assert_eq!(between(&read(OLD), &read(OLD)), []);
    }
}
