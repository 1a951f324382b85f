//! The first phase: packages, channels and bundles find each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rayon::prelude::*;

use super::bundle::bundle_facts;
use super::deprecation::{Told, deprecations};
use super::{Problem, quoted};
use crate::catalog::model::{Bundle, Catalog, Channel, ChannelEntry, Origin, Package};
use crate::object::{Version, dns1123_label_problems};

/// What a bundle blob says, read by type.
#[derive(Debug, Clone)]
pub struct BundleFacts<'c> {
    /// The blob.
    pub bundle: &'c Bundle,
    /// Its version; zero if it cannot be read.
    pub version: Version,
    /// Its release; mostly empty.
    pub release: String,
    /// Number of `olm.package` properties; none if the properties cannot be read.
    pub packages: Option<usize>,
    /// What users are told, if it is deprecated.
    pub deprecation: Option<Told<'c>>,
}

/// A channel with its entries.
#[derive(Debug)]
pub struct ChannelFacts<'c> {
    /// The blob; none for the channel that opm makes up for a default channel that does not exist.
    pub blob: Option<&'c Channel>,
    /// Its name.
    pub name: &'c str,
    /// The first entry of each name.
    pub entries: Vec<&'c ChannelEntry>,
    /// What users are told, if it is deprecated.
    pub deprecation: Option<Told<'c>>,
}

/// A package with everything that belongs to it.
#[derive(Debug)]
pub struct PackageFacts<'c> {
    /// The blob.
    pub blob: &'c Package,
    /// Channels by name.
    pub channels: BTreeMap<&'c str, ChannelFacts<'c>>,
    /// Bundles by name.
    pub bundles: BTreeMap<&'c str, BundleFacts<'c>>,
    /// What users are told, if it is deprecated.
    pub deprecation: Option<Told<'c>>,
}

/// A catalog whose parts have found each other.
#[derive(Debug, Default)]
pub struct Model<'c> {
    /// Packages by name.
    pub packages: BTreeMap<&'c str, PackageFacts<'c>>,
    /// What did not fit, in opm's order: the first is what it stops at.
    pub problems: Vec<Problem>,
}

/// Builds the model of a catalog.
pub fn build(catalog: &Catalog) -> Model<'_> {
    let mut model = Model::default();
    packages(&mut model, &catalog.packages);
    let checked_last = channels(&mut model, &catalog.channels);
    let missing = bundles(&mut model, &catalog.bundles, checked_last);
    for (package, entries) in missing {
        if !entries.is_empty() {
            let names: Vec<&str> = entries.into_iter().collect();
            let message = format!(
                "no olm.bundle blobs found in package {} for olm.channel entries [{}]",
                quoted(package),
                names.join(" ")
            );
            let origin = model
                .packages
                .get(package)
                .map(|package| package.blob.origin.clone())
                .unwrap_or_default();
            model.problems.push(
                Problem::error("catalog-entry-without-bundle", message, &origin)
                    .of(package)
                    .hint("add the bundles with `catalog add`, or take the entries out"),
            );
        }
    }
    made_up_default_channels(&mut model);
    deprecations(&mut model, &catalog.deprecations);
    model
}

fn packages<'c>(model: &mut Model<'c>, packages: &'c [Package]) {
    for package in packages {
        let name = package.name.as_str();
        let mut report = |rule, message: String| {
            model
                .problems
                .push(Problem::error(rule, message, &package.origin).at("/name").of(name));
        };
        if name.is_empty() {
            report("catalog-package-name", "config contains package with no name".into());
            continue;
        }
        if model.packages.contains_key(name) {
            report(
                "catalog-package-duplicate",
                format!("duplicate package {}", quoted(name)),
            );
            continue;
        }
        let problems = dns1123_label_problems(name);
        if !problems.is_empty() {
            let message = format!("invalid package name {}: [{}]", quoted(name), problems.join(" "));
            report("catalog-package-name", message);
        }
        model.packages.insert(
            name,
            PackageFacts {
                blob: package,
                channels: BTreeMap::new(),
                bundles: BTreeMap::new(),
                deprecation: None,
            },
        );
    }
}

/// Names of entries by package, of the last channel of each that was read: opm looks at no other.
type Entries<'c> = BTreeMap<&'c str, BTreeSet<&'c str>>;

fn channels<'c>(model: &mut Model<'c>, channels: &'c [Channel]) -> Entries<'c> {
    let mut last = Entries::new();
    for channel in channels {
        let (package, name) = (channel.package.as_str(), channel.name.as_str());
        let report = |rule, message: String, pointer: String| {
            Problem::error(rule, message, &channel.origin)
                .at(pointer)
                .of(format!("{package}/{name}"))
        };
        let Some(facts) = model.packages.get_mut(package) else {
            let message = format!("unknown package {} for channel {}", quoted(package), quoted(name));
            model.problems.push(
                report("catalog-unknown-package", message, "/package".into())
                    .hint("a catalog needs an olm.package blob for each package: see `catalog init`"),
            );
            continue;
        };
        if name.is_empty() {
            let message = format!("package {} contains channel with no name", quoted(package));
            model
                .problems
                .push(report("catalog-channel-name", message, "/name".into()));
            continue;
        }
        if facts.channels.contains_key(name) {
            let message = format!("package {} has duplicate channel {}", quoted(package), quoted(name));
            model
                .problems
                .push(report("catalog-channel-duplicate", message, "/name".into()));
            continue;
        }
        let mut names = BTreeSet::new();
        let mut entries = Vec::new();
        for (index, entry) in channel.entries().iter().enumerate() {
            if names.insert(entry.name.as_str()) {
                entries.push(entry);
            } else {
                let message = format!(
                    "invalid package {}, channel {}: duplicate entry {}",
                    quoted(package),
                    quoted(name),
                    quoted(&entry.name)
                );
                model.problems.push(report(
                    "catalog-entry-duplicate",
                    message,
                    format!("/entries/{index}/name"),
                ));
            }
        }
        last.insert(package, names);
        facts.channels.insert(
            name,
            ChannelFacts {
                blob: Some(channel),
                name,
                entries,
                deprecation: None,
            },
        );
    }
    last
}

fn bundles<'c>(model: &mut Model<'c>, bundles: &'c [Bundle], mut missing: Entries<'c>) -> Entries<'c> {
    // Reading properties is the costly part, and no bundle needs another for it.
    let read: Vec<(BundleFacts<'c>, Vec<Problem>)> = bundles.par_iter().map(bundle_facts).collect();
    // In how many channels of a package a name occurs is asked for every bundle.
    let mut entries: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for (name, package) in &model.packages {
        let names = package
            .channels
            .values()
            .flat_map(|channel| &channel.entries)
            .map(|entry| entry.name.as_str());
        entries.insert(name, names.collect());
    }
    for (facts, problems) in read {
        let bundle = facts.bundle;
        let (package, name) = (bundle.package.as_str(), bundle.name.as_str());
        let report =
            |rule, message: String, pointer: &str| Problem::error(rule, message, &bundle.origin).at(pointer).of(name);
        if package.is_empty() {
            let message = format!("package name must be set for bundle {}", quoted(name));
            model
                .problems
                .push(report("catalog-bundle-package", message, "/package"));
            continue;
        }
        let Some(package_facts) = model.packages.get_mut(package) else {
            let message = format!("unknown package {} for bundle {}", quoted(package), quoted(name));
            model.problems.push(
                report("catalog-unknown-package", message, "/package")
                    .hint("a catalog needs an olm.package blob for each package: see `catalog init`"),
            );
            continue;
        };
        if package_facts.bundles.contains_key(name) {
            let message = format!("package {} has duplicate bundle {}", quoted(package), quoted(name));
            model
                .problems
                .push(report("catalog-bundle-duplicate", message, "/name"));
            continue;
        }
        model.problems.extend(problems);
        if let Some(missing) = missing.get_mut(package) {
            missing.remove(name);
        }
        if !entries.get(package).is_some_and(|entries| entries.contains(name)) {
            let message = format!(
                "package {}, bundle {} not found in any channel entries",
                quoted(package),
                quoted(name)
            );
            model.problems.push(
                report("catalog-bundle-without-channel", message, "/name")
                    .hint("name it in the entries of an olm.channel blob, or take it out"),
            );
        }
        package_facts.bundles.insert(name, facts);
    }
    missing
}

fn made_up_default_channels(model: &mut Model<'_>) {
    for package in model.packages.values_mut() {
        let default = package.blob.default_channel.as_str();
        if !default.is_empty() && !package.channels.contains_key(default) {
            let facts = ChannelFacts {
                blob: None,
                name: default,
                entries: Vec::new(),
                deprecation: None,
            };
            package.channels.insert(default, facts);
        }
    }
}

/// The origin of a channel, or of its package where opm makes the channel up.
pub fn channel_origin<'m>(package: &'m PackageFacts<'_>, channel: &'m ChannelFacts<'_>) -> &'m Origin {
    channel.blob.map_or(&package.blob.origin, |blob| &blob.origin)
}
