//! `catalog diff`: lists added, removed and changed items between two catalogs.

mod summary;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::graph;
use super::model::{
    Bundle, Catalog, ChannelEntry, PROPERTY_GVK, PROPERTY_GVK_REQUIRED, PROPERTY_PACKAGE_REQUIRED, Property,
};
use super::property;
use olmkit_base::limits;
use olmkit_base::object::UntrustedText;

pub use summary::{
    Bundles, ChangedBundle, Deprecation, Head, NamedBundle, PackageChange, Replacement, by_package, write_summary,
};

/// Kind of a difference.
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

/// A part of a package that can differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Thing {
    /// The package itself.
    Package,
    /// Its default channel.
    DefaultChannel,
    /// Its description.
    Description,
    /// Its icon.
    Icon,
    /// A property of the package.
    PackageProperty {
        /// The property's type.
        #[serde(rename = "type")]
        property: String,
    },
    /// A channel.
    Channel {
        /// Its name.
        channel: String,
    },
    /// A property of a channel.
    ChannelProperty {
        /// The channel.
        channel: String,
        /// The property's type.
        #[serde(rename = "type")]
        property: String,
    },
    /// The head of a channel.
    Head {
        /// The channel.
        channel: String,
    },
    /// An entry of a channel.
    Entry {
        /// The channel.
        channel: String,
        /// The bundle that the entry names.
        entry: String,
    },
    /// An upgrade edge.
    Edge {
        /// The channel.
        channel: String,
        /// The bundle, or the `skipRange`, that the edge starts from.
        from: String,
        /// The bundle that it leads to.
        to: String,
    },
    /// A bundle. Its value is the version.
    Bundle {
        /// Its name.
        bundle: String,
    },
    /// The image of a bundle.
    Image {
        /// The bundle.
        bundle: String,
    },
    /// A property of a bundle.
    Property {
        /// The bundle.
        bundle: String,
        /// The property's type.
        #[serde(rename = "type")]
        property: String,
        /// The value, for types of which a bundle may have several.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<String>,
    },
    /// A related image of a bundle.
    RelatedImage {
        /// The bundle.
        bundle: String,
        /// The image.
        image: String,
    },
    /// The deprecation of the package, a channel or a bundle. Its value is the message.
    Deprecation {
        /// The schema of the deprecated blob.
        schema: String,
        /// Its name, empty for the package.
        name: String,
    },
    /// The blobs of a custom schema with one name.
    CustomBlob {
        /// The schema.
        schema: String,
        /// Their name, which may be empty.
        name: String,
    },
}

impl Thing {
    /// The bundle that it belongs to.
    fn bundle(&self) -> Option<&str> {
        match self {
            Thing::Bundle { bundle }
            | Thing::Image { bundle }
            | Thing::Property { bundle, .. }
            | Thing::RelatedImage { bundle, .. } => Some(bundle),
            _ => None,
        }
    }
}

impl std::fmt::Display for Thing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Thing::Package => formatter.write_str("package"),
            Thing::DefaultChannel => formatter.write_str("default channel"),
            Thing::Description => formatter.write_str("description"),
            Thing::Icon => formatter.write_str("icon"),
            Thing::PackageProperty { property } => write!(formatter, "{property} of the package"),
            Thing::ChannelProperty { channel, property } => write!(formatter, "{property} of channel {channel}"),
            Thing::Channel { channel } => write!(formatter, "channel {channel}"),
            Thing::Head { channel } => write!(formatter, "head of {channel}"),
            Thing::Entry { channel, entry } => write!(formatter, "entry {entry} in {channel}"),
            Thing::Edge { channel, from, to } => write!(formatter, "edge {from} -> {to} in {channel}"),
            Thing::Bundle { bundle } => write!(formatter, "bundle {bundle}"),
            Thing::Image { bundle } => write!(formatter, "image of {bundle}"),
            Thing::Property {
                bundle,
                property,
                value: Some(value),
            } => write!(formatter, "{property} {value} of {bundle}"),
            Thing::Property { bundle, property, .. } => write!(formatter, "{property} of {bundle}"),
            Thing::RelatedImage { bundle, image } => write!(formatter, "related image {image} of {bundle}"),
            Thing::Deprecation { schema, name } => {
                let text = format!("deprecation of {} {name}", schema.trim_start_matches("olm."));
                formatter.write_str(text.trim_end())
            }
            Thing::CustomBlob { schema, name } => formatter.write_str(format!("blob {schema} {name}").trim_end()),
        }
    }
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The package.
    pub package: String,
    /// The part of the package that differs.
    pub what: Thing,
    /// Kind of the difference.
    pub change: Kind,
    /// The old value, if there is one that is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The new value, if there is one that is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl std::fmt::Display for Change {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (package, what) = (title(&self.package), self.what.to_string());
        let (package, what) = (UntrustedText::new(package), UntrustedText::new(&what));
        write!(formatter, "{} {package}: {what}", self.change.sign())?;
        match (self.change, &self.before, &self.after) {
            (Kind::Changed, Some(before), Some(after)) => {
                let detail = format!("{} -> {}", shown(before), shown(after));
                write!(formatter, ": {}", UntrustedText::new(&detail))
            }
            _ => Ok(()),
        }
    }
}

impl Kind {
    /// `+`, `-` or `~`.
    fn sign(self) -> char {
        match self {
            Kind::Added => '+',
            Kind::Removed => '-',
            Kind::Changed => '~',
        }
    }
}

/// The value of a thing.
#[derive(Debug, PartialEq, Eq)]
enum Fact {
    /// A short value.
    Text(String),
    /// The digest of a long value.
    Long(String),
}

impl Fact {
    fn parse(text: &str) -> Self {
        /// Longer strings are not shown, in bytes.
        const SHOWN: usize = 120;
        if text.len() > SHOWN {
            Fact::Long(sha256(text))
        } else {
            Fact::Text(text.to_owned())
        }
    }

    /// The value as a change shows it.
    fn text(&self) -> Option<String> {
        match self {
            Fact::Text(text) => Some(text.clone()),
            Fact::Long(_) => None,
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

/// The values of a catalog by package and thing.
type Facts = BTreeMap<(String, Thing), Fact>;

/// All differences, sorted by package and text.
pub fn between(old: &Catalog, new: &Catalog) -> Vec<Change> {
    let (old, new) = (facts(old), facts(new));
    let keys: BTreeSet<&(String, Thing)> = old.keys().chain(new.keys()).collect();
    let mut changes: Vec<Change> = keys
        .into_iter()
        .filter_map(|key| {
            let (package, what) = key.clone();
            let (before, after) = (old.get(key), new.get(key));
            let change = match (before, after) {
                (None, Some(_)) => Kind::Added,
                (Some(_), None) => Kind::Removed,
                (before, after) if before != after => Kind::Changed,
                _ => return None,
            };
            Some(Change {
                package,
                what,
                change,
                before: before.and_then(Fact::text),
                after: after.and_then(Fact::text),
            })
        })
        .collect();
    changes.sort_by_cached_key(|change| (change.package.clone(), change.what.to_string(), change.change));
    changes
}

/// The name of a package in text. Custom blobs may have none.
fn title(package: &str) -> &str {
    if package.is_empty() {
        "without a package"
    } else {
        package
    }
}

fn shown(text: &str) -> &str {
    if text.is_empty() { "nothing" } else { text }
}

/// A name in facts, which repeat names. A long one is shortened, and remains distinguishable.
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
        let mut add = |what, value: &str| facts.insert((named(&package.name), what), Fact::parse(value));
        add(Thing::Package, "");
        add(Thing::DefaultChannel, &package.default_channel);
        add(Thing::Description, &package.description);
        let icon = package.icon.as_ref();
        let icon = icon.map(|icon| format!("{} {}", icon.data.as_deref().unwrap_or_default(), icon.media_type));
        add(Thing::Icon, icon.unwrap_or_default().trim());
        for (kind, values) in properties(&package.properties) {
            let property = named(kind);
            add(Thing::PackageProperty { property }, &values.join(" "));
        }
    }
    for channel in &catalog.channels {
        let name = || named(&channel.name);
        let mut add = |what, value: &str| facts.insert((named(&channel.package), what), Fact::parse(value));
        add(Thing::Channel { channel: name() }, "");
        for (kind, values) in properties(&channel.properties) {
            let what = Thing::ChannelProperty {
                channel: name(),
                property: named(kind),
            };
            add(what, &values.join(" "));
        }
        add(
            Thing::Head { channel: name() },
            &graph::heads(channel.entries()).join(", "),
        );
        for entry in channel.entries() {
            let own = || named(&entry.name);
            add(
                Thing::Entry {
                    channel: name(),
                    entry: own(),
                },
                "",
            );
            for (from, edge) in edges(entry) {
                add(
                    Thing::Edge {
                        channel: name(),
                        from: named(from),
                        to: own(),
                    },
                    edge,
                );
            }
        }
    }
    for bundle in &catalog.bundles {
        let own = || named(&bundle.name);
        let mut add = |what, value: &str| facts.insert((named(&bundle.package), what), Fact::parse(value));
        add(Thing::Bundle { bundle: own() }, &version(bundle));
        add(Thing::Image { bundle: own() }, &bundle.image);
        for (kind, values) in properties(&bundle.properties) {
            let property = |value| Thing::Property {
                bundle: own(),
                property: named(kind),
                value,
            };
            match kind {
                // A bundle may have many of these, and each has an independent meaning.
                PROPERTY_GVK | PROPERTY_GVK_REQUIRED | PROPERTY_PACKAGE_REQUIRED => {
                    for value in values {
                        add(property(Some(named(value))), "");
                    }
                }
                _ => {
                    add(property(None), &values.join(" "));
                }
            }
        }
        for image in &bundle.related_images {
            add(
                Thing::RelatedImage {
                    bundle: own(),
                    image: named(&image.image),
                },
                "",
            );
        }
    }
    for blob in &catalog.deprecations {
        for entry in blob.entries.iter().flatten() {
            let what = Thing::Deprecation {
                schema: named(&entry.schema),
                name: named(&entry.name),
            };
            facts.insert((named(&blob.package), what), Fact::parse(&entry.message));
        }
    }
    let mut customs: BTreeMap<(&str, &str, &str), BTreeSet<&str>> = BTreeMap::new();
    for blob in &catalog.customs {
        let key = (blob.package.as_str(), blob.schema.as_str(), blob.name.as_str());
        customs.entry(key).or_default().insert(&blob.json);
    }
    for ((package, schema, name), blobs) in customs {
        let what = Thing::CustomBlob {
            schema: named(schema),
            name: named(name),
        };
        let text: Vec<&str> = blobs.into_iter().collect();
        facts.insert((named(package), what), Fact::Long(sha256(&text.join("\n"))));
    }
    facts
}

/// Sources of an entry's edges.
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

/// Values of properties by their type, sorted.
fn properties(list: &[Property]) -> BTreeMap<&str, Vec<&str>> {
    let mut properties: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for property in list {
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
    use crate::load;

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
    fn custom_blobs_and_properties_differ_too() {
        let old: Catalog = load::text(OLD).unwrap().into_iter().collect();
        let with = |rest: &str| -> Vec<String> {
            let new: Catalog = load::text(&format!("{OLD}{rest}")).unwrap().into_iter().collect();
            between(&old, &new).iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            with(
                "{\"schema\":\"x.lifecycle\",\"package\":\"p\",\"name\":\"l\",\"end\":1}{\"schema\":\"x.all\",\"end\":1}"
            ),
            ["+ without a package: blob x.all", "+ p: blob x.lifecycle l"]
        );
        let replaced = |from: &str, to: &str| -> Vec<String> {
            let text = OLD.replace(from, to);
            assert_ne!(text, OLD);
            let new: Catalog = load::text(&text).unwrap().into_iter().collect();
            between(&old, &new).iter().map(ToString::to_string).collect()
        };
        let property = "\"properties\":[{\"type\":\"x\",\"value\":1}]";
        assert_eq!(
            replaced(
                "\"defaultChannel\":\"c\"",
                &format!("\"defaultChannel\":\"c\",{property}")
            ),
            ["+ p: x of the package"]
        );
        assert_eq!(
            replaced("\"entries\"", &format!("{property},\"entries\"")),
            ["+ p: x of channel c"]
        );
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
