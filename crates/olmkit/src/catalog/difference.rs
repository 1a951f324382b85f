//! `catalog diff`: what came, went and changed between two catalogs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::graph;
use super::model::{Bundle, Catalog, ChannelEntry, PROPERTY_GVK, PROPERTY_GVK_REQUIRED, PROPERTY_PACKAGE_REQUIRED};
use super::property;
use crate::limits;
use crate::object::UntrustedText;

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
    /// What differs: `package`, `channel p`, `edge a -> b in p`, `bundle b`, `olm.gvk … of b`, `deprecation of …`.
    pub what: String,
    /// How.
    pub kind: Kind,
    /// From what to what, for changes of short texts.
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
        let (package, what) = (UntrustedText::new(&self.package), UntrustedText::new(&self.what));
        write!(formatter, "{sign} {package}: {what}")?;
        match &self.detail {
            Some(detail) => write!(formatter, ": {}", UntrustedText::new(detail)),
            None => Ok(()),
        }
    }
}

/// What is said about a thing.
#[derive(Debug, PartialEq, Eq)]
enum Fact {
    /// What can be shown.
    Text(String),
    /// The digest of what is too long to be shown.
    Long(String),
}

impl Fact {
    fn of(text: &str) -> Self {
        /// Longer texts are not shown, in bytes.
        const SHOWN: usize = 120;
        if text.len() > SHOWN {
            Fact::Long(sha256(text))
        } else {
            Fact::Text(text.to_owned())
        }
    }
}

fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(text);
    digest
        .iter()
        .fold("sha256:".to_owned(), |hex, byte| format!("{hex}{byte:02x}"))
}

/// Facts about a catalog: by package and thing, what is said about it.
type Facts = BTreeMap<(String, String), Fact>;

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
                (Some(Fact::Text(before)), Some(Fact::Text(after))) if before != after => {
                    (Kind::Changed, Some(format!("{} -> {}", shown(before), shown(after))))
                }
                (Some(before), Some(after)) if before != after => (Kind::Changed, None),
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

fn shown(text: &str) -> &str {
    if text.is_empty() { "nothing" } else { text }
}

/// A name as facts have it, each of which repeats names. A long one is shortened, and stays different from others.
fn named(name: &str) -> String {
    let short = limits::name(name);
    if short.len() < name.len() {
        return format!("{short} ({})", sha256(name));
    }
    short
}

fn facts(catalog: &Catalog) -> Facts {
    let mut facts = Facts::new();
    for package in &catalog.packages {
        let mut say = |what: &str, value: &str| facts.insert((named(&package.name), what.to_owned()), Fact::of(value));
        say("package", "");
        say("default channel", &package.default_channel);
        say("description", &package.description);
        let icon = package.icon.as_ref();
        say("icon", icon.and_then(|icon| icon.data.as_deref()).unwrap_or_default());
    }
    for channel in &catalog.channels {
        let name = &named(&channel.name);
        let mut say = |what: String, value: &str| facts.insert((named(&channel.package), what), Fact::of(value));
        say(format!("channel {name}"), "");
        say(format!("head of {name}"), &graph::heads(channel.entries()).join(", "));
        for entry in channel.entries() {
            say(format!("entry {} in {name}", named(&entry.name)), "");
            for (from, edge) in edges(entry) {
                say(
                    format!("edge {} -> {} in {name}", named(from), named(&entry.name)),
                    edge,
                );
            }
        }
    }
    for bundle in &catalog.bundles {
        let mut say = |what: &str, value: &str| {
            facts.insert(
                (named(&bundle.package), format!("{what} {}", named(&bundle.name))),
                Fact::of(value),
            );
        };
        say("bundle", &version(bundle));
        say("image of", &bundle.image);
        for (kind, values) in properties(bundle) {
            match (values.as_slice(), kind) {
                // There may be many, and each says something by itself.
                (values, PROPERTY_GVK | PROPERTY_GVK_REQUIRED | PROPERTY_PACKAGE_REQUIRED) => {
                    for value in values {
                        say(&format!("{kind} {} of", named(value)), "");
                    }
                }
                (values, kind) => say(&format!("{kind} of"), &values.join(" ")),
            }
        }
        for image in &bundle.related_images {
            say(&format!("related image {} of", named(&image.image)), "");
        }
    }
    for blob in &catalog.deprecations {
        for entry in blob.entries.iter().flatten() {
            let kind = entry.schema.trim_start_matches("olm.");
            let what = format!("deprecation of {kind} {}", named(&entry.name))
                .trim_end()
                .to_owned();
            facts.insert((named(&blob.package), what), Fact::of(&entry.message));
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

/// Values of a bundle's properties by their type, sorted.
fn properties(bundle: &Bundle) -> BTreeMap<&str, Vec<&str>> {
    let mut properties: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for property in &bundle.properties {
        let values = properties.entry(&property.kind).or_default();
        values.push(property.value.as_deref().unwrap_or_default());
    }
    for values in properties.values_mut() {
        values.sort_unstable();
    }
    properties
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

    #[test]
    fn bundles_differ_by_property_and_image() {
        let bundle = |version: &str, kind: &str, image: &str, long: &str| -> Catalog {
            let text = format!(
                "{{\"schema\":\"olm.bundle\",\"package\":\"p\",\"name\":\"p.v1\",\"image\":\"r.io/p:v1\",\"properties\":[\
                 {{\"type\":\"olm.package\",\"value\":{{\"packageName\":\"p\",\"version\":\"{version}\"}}}},\
                 {{\"type\":\"olm.gvk\",\"value\":{{\"group\":\"g\",\"kind\":\"{kind}\",\"version\":\"v1\"}}}},\
                 {{\"type\":\"olm.csv.metadata\",\"value\":{{\"description\":\"{long}\"}}}}],\
                 \"relatedImages\":[{{\"name\":\"a\",\"image\":\"{image}\"}}]}}"
            );
            load::text(&text).unwrap().into_iter().collect()
        };
        let old = bundle("1.0.0", "A", "r.io/a:v1", &"x".repeat(200));
        let new = bundle("1.0.1", "B", "r.io/a:v2", &"y".repeat(200));
        let changes: Vec<String> = between(&old, &new).iter().map(ToString::to_string).collect();
        assert_eq!(
            changes,
            [
                "~ p: bundle p.v1: 1.0.0 -> 1.0.1",
                "~ p: olm.csv.metadata of p.v1",
                "- p: olm.gvk {\"group\":\"g\",\"kind\":\"A\",\"version\":\"v1\"} of p.v1",
                "+ p: olm.gvk {\"group\":\"g\",\"kind\":\"B\",\"version\":\"v1\"} of p.v1",
                "~ p: olm.package of p.v1: {\"packageName\":\"p\",\"version\":\"1.0.0\"} -> \
                 {\"packageName\":\"p\",\"version\":\"1.0.1\"}",
                "- p: related image r.io/a:v1 of p.v1",
                "+ p: related image r.io/a:v2 of p.v1",
            ]
        );
    }
}
