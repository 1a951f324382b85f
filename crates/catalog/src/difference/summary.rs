//! The differences of each package in a few lines: heads, bundles, deprecations and images.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde::Serialize;

use super::{Change, Kind, Thing, between, named, title, version};
use crate::model::{Bundle, Catalog};
use olmkit_base::limits;
use olmkit_base::object::UntrustedText;
use olmkit_diagnostics::counted;

/// The differences of one package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageChange {
    /// The package.
    pub package: String,
    /// True if the package is new, removed or changed.
    pub change: Kind,
    /// The default channel, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_channel: Option<Replacement>,
    /// Channels whose head differs, and channels that are new or removed.
    pub heads: Vec<Head>,
    /// Bundles that differ.
    pub bundles: Bundles,
    /// Deprecations that differ.
    pub deprecations: Vec<Deprecation>,
    /// Images that the package did not use before.
    pub new_images: Vec<String>,
    /// Images that the package no longer uses.
    pub removed_images: Vec<String>,
    /// Every difference.
    pub changes: Vec<Change>,
}

/// A value that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replacement {
    /// The old value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A channel with another head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Head {
    /// The channel.
    pub channel: String,
    /// True if the channel is new, removed or has another head.
    pub change: Kind,
    /// Old and new head.
    #[serde(flatten)]
    pub head: Replacement,
}

/// The bundles of a package that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Bundles {
    /// New bundles.
    pub added: Vec<NamedBundle>,
    /// Removed bundles.
    pub removed: Vec<NamedBundle>,
    /// Bundles that both catalogs contain.
    pub changed: Vec<ChangedBundle>,
}

/// A bundle that only one of the catalogs contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedBundle {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// A bundle that differs between the catalogs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedBundle {
    /// Its name.
    pub name: String,
    /// The parts that differ: `version`, `image`, `related images` and types of properties.
    pub parts: BTreeSet<String>,
}

/// A deprecation that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Deprecation {
    /// True if it is new, removed or has another message.
    pub change: Kind,
    /// The schema of the deprecated blob.
    pub schema: String,
    /// Its name, empty for the package.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The message, the old one of a removed deprecation.
    pub message: String,
}

/// The differences between two catalogs by package, sorted by name. With `package`, only those of this package.
pub fn by_package(old: &Catalog, new: &Catalog, package: Option<&str>) -> Vec<PackageChange> {
    let mut packages: BTreeMap<String, Vec<Change>> = BTreeMap::new();
    let wanted = package.map(named);
    for change in between(old, new) {
        if wanted.as_ref().is_none_or(|wanted| *wanted == change.package) {
            packages.entry(change.package.clone()).or_default().push(change);
        }
    }
    let (old, new) = (Contents::new(old), Contents::new(new));
    packages
        .into_iter()
        .map(|(package, changes)| summarize(package, changes, &old, &new))
        .collect()
}

/// The parts of a catalog that a summary looks up.
#[derive(Default)]
struct Contents {
    images: BTreeMap<String, BTreeSet<String>>,
    versions: BTreeMap<(String, String), String>,
    messages: BTreeMap<(String, String, String), String>,
}

impl Contents {
    fn new(catalog: &Catalog) -> Self {
        let mut contents = Contents::default();
        for bundle in &catalog.bundles {
            let package = named(&bundle.package);
            let images = contents.images.entry(package.clone()).or_default();
            images.extend(images_of(bundle).map(named));
            contents
                .versions
                .insert((package, named(&bundle.name)), version(bundle));
        }
        for blob in &catalog.deprecations {
            for entry in blob.entries.iter().flatten() {
                let key = (named(&blob.package), named(&entry.schema), named(&entry.name));
                contents.messages.insert(key, limits::message(&entry.message));
            }
        }
        contents
    }

    fn images(&self, package: &str) -> impl Iterator<Item = &String> {
        self.images.get(package).into_iter().flatten()
    }

    fn has_image(&self, package: &str, image: &str) -> bool {
        self.images.get(package).is_some_and(|images| images.contains(image))
    }
}

fn images_of(bundle: &Bundle) -> impl Iterator<Item = &str> {
    let related = bundle.related_images.iter().map(|image| image.image.as_str());
    related.chain([bundle.image.as_str()]).filter(|image| !image.is_empty())
}

fn summarize(package: String, changes: Vec<Change>, old: &Contents, new: &Contents) -> PackageChange {
    let mut summary = PackageChange {
        change: Kind::Changed,
        default_channel: None,
        heads: Vec::new(),
        bundles: Bundles::default(),
        deprecations: Vec::new(),
        new_images: only_in(new, old, &package),
        removed_images: only_in(old, new, &package),
        changes: Vec::new(),
        package,
    };
    let mut changed: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let package = summary.package.as_str();
    let named = |contents: &Contents, name: &str| NamedBundle {
        name: name.to_owned(),
        version: contents
            .versions
            .get(&(package.to_owned(), name.to_owned()))
            .cloned()
            .unwrap_or_default(),
    };
    for change in &changes {
        let replacement = || Replacement {
            before: change.before.clone(),
            after: change.after.clone(),
        };
        match (&change.what, change.change) {
            (Thing::Package, kind) => summary.change = kind,
            (Thing::DefaultChannel, _) => summary.default_channel = Some(replacement()),
            (Thing::Head { channel }, kind) => summary.heads.push(Head {
                channel: channel.clone(),
                change: kind,
                head: replacement(),
            }),
            (Thing::Bundle { bundle }, Kind::Added) => summary.bundles.added.push(named(new, bundle)),
            (Thing::Bundle { bundle }, Kind::Removed) => summary.bundles.removed.push(named(old, bundle)),
            (Thing::Deprecation { schema, name }, kind) => {
                let contents = if kind == Kind::Removed { old } else { new };
                let key = (package.to_owned(), schema.clone(), name.clone());
                summary.deprecations.push(Deprecation {
                    change: kind,
                    schema: schema.clone(),
                    name: name.clone(),
                    message: contents.messages.get(&key).cloned().unwrap_or_default(),
                });
            }
            _ => {}
        }
        if let (Some(bundle), Some(part)) = (change.what.bundle(), part(&change.what)) {
            changed.entry(bundle).or_default().insert(part);
        }
    }
    let one_sided: BTreeSet<&str> = summary.bundles.one_sided().collect();
    summary.bundles.changed = changed
        .into_iter()
        .filter(|(name, _)| !one_sided.contains(name))
        .map(|(name, parts)| ChangedBundle {
            name: name.to_owned(),
            parts,
        })
        .collect();
    summary.changes = changes;
    summary
}

/// The images of a package in one catalog that the other one does not contain for it.
fn only_in(catalog: &Contents, other: &Contents, package: &str) -> Vec<String> {
    let images = catalog.images(package);
    images
        .filter(|image| !other.has_image(package, image))
        .cloned()
        .collect()
}

/// The part of a bundle that a difference is about.
fn part(thing: &Thing) -> Option<String> {
    match thing {
        Thing::Bundle { .. } => Some("version".to_owned()),
        Thing::Image { .. } => Some("image".to_owned()),
        Thing::RelatedImage { .. } => Some("related images".to_owned()),
        Thing::Property { property, .. } => Some(property.clone()),
        _ => None,
    }
}

impl Bundles {
    /// The names of the bundles that one catalog only contains.
    fn one_sided(&self) -> impl Iterator<Item = &str> {
        self.added
            .iter()
            .chain(&self.removed)
            .map(|bundle| bundle.name.as_str())
    }
}

/// Names that a line of a summary lists, unless all are wanted.
const LISTED: usize = 3;

/// Writes the differences of each package in a few lines. With `all`, each line lists all names. Otherwise it lists the first ones.
///
/// # Errors
/// The writer fails.
pub fn write_summary(packages: &[PackageChange], all: bool, out: &mut dyn Write) -> io::Result<()> {
    for package in packages {
        writeln!(
            out,
            "{} {}",
            package.change.sign(),
            UntrustedText::new(title(&package.package))
        )?;
        for line in package.lines(if all { usize::MAX } else { LISTED }) {
            writeln!(out, "    {}", UntrustedText::new(&line))?;
        }
    }
    Ok(())
}

impl PackageChange {
    fn lines(&self, listed: usize) -> Vec<String> {
        if self.change == Kind::Removed {
            return Vec::new();
        }
        let mut lines = Vec::new();
        if let Some(channel) = &self.default_channel {
            lines.push(format!("default channel: {}", channel.text()));
        }
        lines.extend(self.heads.iter().map(Head::text));
        lines.extend(self.bundle_lines(listed));
        lines.extend(self.edge_lines(listed));
        lines.extend(self.deprecation_lines(listed));
        let changed = |thing: &Thing| self.change == Kind::Changed && self.changes.iter().any(|it| it.what == *thing);
        let texts = [(Thing::Description, "description"), (Thing::Icon, "icon")];
        lines.extend(
            texts
                .iter()
                .filter(|(thing, _)| changed(thing))
                .map(|(_, name)| format!("{name} changed")),
        );
        lines.extend(self.other_lines(listed));
        let images: Vec<&str> = self.new_images.iter().map(String::as_str).collect();
        lines.extend(list("new image", &images, listed));
        // Removed images are only counted, because mirrors do not need them.
        if !self.removed_images.is_empty() {
            lines.push(format!(
                "no longer used: {}",
                counted(self.removed_images.len(), "image")
            ));
        }
        lines
    }

    /// Custom blobs, and properties of the package and its channels.
    fn other_lines(&self, listed: usize) -> Vec<String> {
        let of = |kind: Kind| -> Vec<String> {
            let changes = self.changes.iter().filter(|change| change.change == kind);
            let is_other = |thing: &&Thing| {
                matches!(
                    thing,
                    Thing::CustomBlob { .. } | Thing::PackageProperty { .. } | Thing::ChannelProperty { .. }
                )
            };
            let others = changes.map(|change| &change.what).filter(is_other);
            others.map(ToString::to_string).collect()
        };
        [
            (Kind::Added, "new"),
            (Kind::Removed, "removed"),
            (Kind::Changed, "changed"),
        ]
        .into_iter()
        .filter_map(|(kind, word)| {
            let items = of(kind);
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            (!items.is_empty()).then(|| format!("{word}: {}", first(&items, listed)))
        })
        .collect()
    }

    fn bundle_lines(&self, listed: usize) -> Vec<String> {
        let names = |bundles: &[NamedBundle]| -> Vec<String> {
            let name = |bundle: &NamedBundle| match bundle.version.as_str() {
                version if version.is_empty() || bundle.name.ends_with(version) => bundle.name.clone(),
                version => format!("{} ({version})", bundle.name),
            };
            bundles.iter().map(name).collect()
        };
        let changed: Vec<String> = self
            .bundles
            .changed
            .iter()
            .map(|bundle| {
                let parts: Vec<&str> = bundle.parts.iter().map(String::as_str).collect();
                format!("{} ({})", bundle.name, parts.join(", "))
            })
            .collect();
        let all = [
            ("new bundle", names(&self.bundles.added)),
            ("removed bundle", names(&self.bundles.removed)),
            ("changed bundle", changed),
        ];
        let lines = all.iter().filter_map(|(noun, names)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            list(noun, &names, listed)
        });
        lines.collect()
    }

    /// Upgrade edges between bundles that both catalogs contain. Other edges follow from the bundles.
    fn edge_lines(&self, listed: usize) -> Vec<String> {
        let one_sided: BTreeSet<&str> = self.bundles.one_sided().collect();
        let new_channels: BTreeSet<&str> = self
            .heads
            .iter()
            .filter(|head| head.change != Kind::Changed)
            .map(|head| head.channel.as_str())
            .collect();
        let mut edges: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for change in &self.changes {
            let Thing::Edge { channel, from, to } = &change.what else {
                continue;
            };
            let follows = one_sided.contains(from.as_str()) || one_sided.contains(to.as_str());
            if !follows && !new_channels.contains(channel.as_str()) {
                let text = format!("{}{from} -> {to}", change.change.sign());
                edges.entry(channel).or_default().push(text);
            }
        }
        let lines = edges.iter().filter_map(|(channel, edges)| {
            let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
            list(&format!("changed edge in {channel}"), &edges, listed)
        });
        lines.collect()
    }

    fn deprecation_lines(&self, listed: usize) -> Vec<String> {
        let mut lines: Vec<String> = self.deprecations.iter().map(Deprecation::text).collect();
        if let Some(rest) = lines.len().checked_sub(listed).filter(|rest| *rest > 0) {
            lines.truncate(listed);
            lines.push(format!("{rest} more deprecations"));
        }
        lines
    }
}

impl Replacement {
    fn text(&self) -> String {
        let text = |value: &Option<String>| super::shown(value.as_deref().unwrap_or_default()).to_owned();
        match (&self.before, &self.after) {
            (None, after) => text(after),
            (before, after) => format!("{} -> {}", text(before), text(after)),
        }
    }
}

impl Head {
    fn text(&self) -> String {
        let Head { channel, change, head } = self;
        match change {
            Kind::Added => format!("new channel {channel}: head {}", head.text()),
            Kind::Removed => format!("removed channel {channel}"),
            Kind::Changed => format!("head of {channel}: {}", head.text()),
        }
    }
}

impl Deprecation {
    fn text(&self) -> String {
        let what = format!("{} {}", self.schema.trim_start_matches("olm."), self.name);
        let what = what.trim_end();
        match self.change {
            Kind::Added => format!("deprecated {what}: {}", self.message),
            Kind::Removed => format!("no longer deprecated: {what}"),
            Kind::Changed => format!("new deprecation message of {what}: {}", self.message),
        }
    }
}

/// A line that counts names and lists the first ones.
fn list(noun: &str, names: &[&str], listed: usize) -> Option<String> {
    let (head, tail) = noun
        .split_once(" in ")
        .map_or((noun, String::new()), |(head, tail)| (head, format!(" in {tail}")));
    (!names.is_empty()).then(|| format!("{}{tail}: {}", counted(names.len(), head), first(names, listed)))
}

/// The first names, and the number of the others.
fn first(names: &[&str], listed: usize) -> String {
    let shown = names.get(..listed).unwrap_or(names);
    let rest = match names.len() - shown.len() {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    format!("{}{rest}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load;

    fn catalog(bundles: &[(&str, &str)], rest: &str) -> Catalog {
        let mut text = String::from(
            "schema: olm.package\nname: p\ndefaultChannel: c\n---\nschema: olm.channel\npackage: p\nname: c\nentries:\n",
        );
        let mut last = String::new();
        for (version, _) in bundles {
            text.push_str(&format!("- name: p.v{version}\n{last}"));
            last = format!("  replaces: p.v{version}\n");
        }
        for (version, image) in bundles {
            text.push_str(&format!(
                "---\nschema: olm.bundle\npackage: p\nname: p.v{version}\nimage: r.io/b:v{version}\nrelatedImages: [{{name: a, \
                 image: {image}}}]\nproperties: [{{type: olm.package, value: {{packageName: p, version: {version}}}}}]\n"
            ));
        }
        load::text(&(text + rest)).unwrap().into_iter().collect()
    }

    const DEPRECATED: &str = "---\nschema: olm.deprecations\npackage: p\nentries:\n- {message: use v2, reference: {schema: olm.bundle, \
                              name: p.v1.0.0}}\n";

    fn text(old: &Catalog, new: &Catalog, all: bool) -> String {
        let mut out = Vec::new();
        write_summary(&by_package(old, new, None), all, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_release_is_a_few_lines() {
        let old = catalog(&[("1.0.0", "r.io/a:v1"), ("1.1.0", "r.io/a:v1")], "");
        let new = catalog(
            &[("1.0.0", "r.io/a:v1"), ("1.1.0", "r.io/a:v2"), ("2.0.0", "r.io/a:v2")],
            DEPRECATED,
        );
        assert_eq!(
            text(&old, &new, false),
            "~ p\n    head of c: p.v1.1.0 -> p.v2.0.0\n    1 new bundle: p.v2.0.0\n    \
             1 changed bundle: p.v1.1.0 (related images)\n    deprecated bundle p.v1.0.0: use v2\n    \
             2 new images: r.io/a:v2, r.io/b:v2.0.0\n"
        );
        assert_eq!(text(&new, &new, false), "");
    }

    #[test]
    fn a_new_package_names_its_channels_and_a_removed_one_itself() {
        let new = catalog(&[("1.0.0", "r.io/a:v1")], "");
        let empty = Catalog::default();
        assert_eq!(
            text(&empty, &new, false),
            "+ p\n    default channel: c\n    new channel c: head p.v1.0.0\n    1 new bundle: p.v1.0.0\n    \
             2 new images: r.io/a:v1, r.io/b:v1.0.0\n"
        );
        assert_eq!(text(&new, &empty, false), "- p\n");
    }

    #[test]
    fn an_edge_between_known_bundles_is_a_change_of_its_channel() {
        let bundles = [("1.0.0", "r.io/a:v1"), ("1.1.0", "r.io/a:v1")];
        let old = catalog(&bundles, "");
        let mut new = old.clone();
        let entries = new.channels[0].entries.as_mut().unwrap();
        entries[1].replaces.clear();
        entries[1].skip_range = "<1.1.0".into();
        assert_eq!(
            text(&old, &new, false),
            "~ p\n    head of c: p.v1.1.0 -> p.v1.0.0, p.v1.1.0\n    \
             2 changed edges in c: +<1.1.0 -> p.v1.1.0, -p.v1.0.0 -> p.v1.1.0\n"
        );
    }

    #[test]
    fn long_lists_are_cut_unless_all_are_wanted() {
        let bundles: Vec<(String, String)> = (0..6).map(|n| (format!("1.{n}.0"), format!("r.io/a:v{n}"))).collect();
        let bundles: Vec<(&str, &str)> = bundles.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let (old, new) = (catalog(&bundles[..1], ""), catalog(&bundles, ""));
        let short = text(&old, &new, false);
        assert!(
            short.contains("5 new bundles: p.v1.1.0, p.v1.2.0, p.v1.3.0 and 2 more\n"),
            "{short}"
        );
        let all = text(&old, &new, true);
        assert!(all.contains("p.v1.4.0, p.v1.5.0\n"), "{all}");
    }

    #[test]
    fn programs_get_every_difference_with_its_parts() {
        let old = catalog(&[("1.0.0", "r.io/a:v1")], "");
        let new = catalog(&[("1.0.0", "r.io/a:v1"), ("1.1.0", "r.io/a:v1")], DEPRECATED);
        let json = serde_json::to_value(by_package(&old, &new, Some("p"))).unwrap();
        let package = &json[0];
        assert_eq!(package["change"], "changed");
        assert_eq!(
            package["heads"],
            serde_json::json!([{"channel": "c", "change": "changed", "before": "p.v1.0.0", "after": "p.v1.1.0"}])
        );
        assert_eq!(
            package["bundles"]["added"],
            serde_json::json!([{"name": "p.v1.1.0", "version": "1.1.0"}])
        );
        assert_eq!(package["deprecations"][0]["message"], "use v2");
        let edge = serde_json::json!({"package": "p", "what": {"kind": "edge", "channel": "c", "from": "p.v1.0.0", "to": "p.v1.1.0"},
            "change": "added", "after": "replaces"});
        assert!(package["changes"].as_array().unwrap().contains(&edge), "{package}");
        assert_eq!(by_package(&old, &new, Some("q")), []);
    }
}
