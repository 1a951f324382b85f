//! Rules of our own: what opm accepts and users regret.

use std::collections::BTreeMap;

use super::Problem;
use super::model::{ChannelFacts, Model, PackageFacts, channel_origin};
use crate::catalog::graph;
use crate::catalog::model::{ChannelEntry, PROPERTY_BUNDLE_OBJECT, PROPERTY_CSV_METADATA};
use crate::object::Reference;
use crate::object::VersionRange;

/// Looks at every package.
pub fn give(model: &Model<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in model.packages.values() {
        bundles(package, &mut problems);
        for channel in package.channels.values() {
            let upgrades = upgrades(package, channel);
            for entry in &channel.entries {
                falling_version(package, channel, entry, &mut problems);
                ignored_edge(package, channel, entry, &upgrades, &mut problems);
                skip_range(package, channel, entry, &mut problems);
            }
        }
        differing_entries(package, &mut problems);
    }
    problems
}

fn bundles(package: &PackageFacts<'_>, problems: &mut Vec<Problem>) {
    for facts in package.bundles.values() {
        let bundle = facts.bundle;
        let has = |kind: &str| bundle.properties.iter().any(|property| property.kind == kind);
        let (inline, metadata) = (has(PROPERTY_BUNDLE_OBJECT), has(PROPERTY_CSV_METADATA));
        if !inline && !metadata && !bundle.image.is_empty() {
            let message = format!(
                "bundle {} has no olm.csv.metadata: consoles show neither name nor icon of it",
                bundle.name
            );
            problems.push(
                Problem::warning("catalog-no-metadata", message, &bundle.origin)
                    .at("/properties")
                    .of(&bundle.name)
                    .hint("render the bundle again with --migrate-level=bundle-object-to-csv-metadata"),
            );
        }
        if bundle.image.is_empty() {
            let message = format!(
                "bundle {} has no image, only inline manifests: OLM v1 cannot install it",
                bundle.name
            );
            problems.push(
                Problem::warning("catalog-inline", message, &bundle.origin)
                    .at("/image")
                    .of(&bundle.name),
            );
        } else if inline {
            let message = format!(
                "bundle {} carries its manifests inline although it has an image",
                bundle.name
            );
            problems.push(
                Problem::info("catalog-inline", message, &bundle.origin)
                    .at("/properties")
                    .of(&bundle.name)
                    .hint("--migrate-level=bundle-object-to-csv-metadata makes the catalog several times smaller"),
            );
        }
        if let Ok(reference) = Reference::parse(&bundle.image)
            && reference.digest().is_none()
        {
            let message = format!(
                "bundle {} is named by tag, {}: what it installs can change",
                bundle.name, bundle.image
            );
            problems.push(
                Problem::info("catalog-image-by-tag", message, &bundle.origin)
                    .at("/image")
                    .of(&bundle.name),
            );
        }
    }
}

fn at_entry(channel: &ChannelFacts<'_>, entry: &ChannelEntry, field: &str) -> String {
    let entries = channel.blob.map(|blob| blob.entries()).unwrap_or_default();
    let index = entries
        .iter()
        .position(|other| other.name == entry.name)
        .unwrap_or_default();
    format!("/entries/{index}/{field}")
}

/// An upgrade that leads to a lower version.
fn falling_version(
    package: &PackageFacts<'_>,
    channel: &ChannelFacts<'_>,
    entry: &ChannelEntry,
    problems: &mut Vec<Problem>,
) {
    let version = |name: &str| package.bundles.get(name).map(|bundle| &bundle.version);
    let (Some(new), Some(old)) = (version(&entry.name), version(&entry.replaces)) else {
        return;
    };
    if new < old {
        let message = format!(
            "{} ({new}) replaces {} ({old}): the upgrade lowers the version",
            entry.name, entry.replaces
        );
        problems.push(
            Problem::warning("catalog-version-falls", message, channel_origin(package, channel))
                .at(at_entry(channel, entry, "replaces"))
                .of(&entry.name),
        );
    }
}

/// Where OLM v0 upgrades each bundle of a channel to.
fn upgrades<'c>(package: &PackageFacts<'c>, channel: &ChannelFacts<'c>) -> BTreeMap<&'c str, &'c str> {
    let version = |name: &str| package.bundles.get(name).map(|bundle| &bundle.version);
    let mut entries = channel.entries.clone();
    entries.sort_by(|left, right| version(&right.name).cmp(&version(&left.name)));
    graph::upgrades(&entries)
}

/// From each bundle OLM v0 follows the edge that ends nearest to the head: a `replaces` further down is never taken.
fn ignored_edge(
    package: &PackageFacts<'_>,
    channel: &ChannelFacts<'_>,
    entry: &ChannelEntry,
    upgrades: &BTreeMap<&str, &str>,
    problems: &mut Vec<Problem>,
) {
    if entry.replaces.is_empty() || !package.bundles.contains_key(entry.replaces.as_str()) {
        return;
    }
    if let Some(nearer) = upgrades
        .get(entry.replaces.as_str())
        .filter(|nearer| **nearer != entry.name)
    {
        let message = format!(
            "OLM v0 never takes the edge from {} to {}: the one to {nearer} ends nearer to the head",
            entry.replaces, entry.name
        );
        problems.push(
            Problem::info("catalog-ignored-edge", message, channel_origin(package, channel))
                .at(at_entry(channel, entry, "replaces"))
                .of(&entry.name),
        );
    }
}

fn skip_range(
    package: &PackageFacts<'_>,
    channel: &ChannelFacts<'_>,
    entry: &ChannelEntry,
    problems: &mut Vec<Problem>,
) {
    let Ok(range) = VersionRange::parse(&entry.skip_range) else {
        return;
    };
    let Some(own) = package.bundles.get(entry.name.as_str()) else {
        return;
    };
    let mut report = |message: String, severity: fn(&'static str, String, &_) -> Problem| {
        problems.push(
            severity("catalog-skip-range-reach", message, channel_origin(package, channel))
                .at(at_entry(channel, entry, "skipRange"))
                .of(&entry.name),
        );
    };
    if range.contains(&own.version) {
        let message = format!(
            "the skipRange {:?} of {} contains its own version {}",
            entry.skip_range, entry.name, own.version
        );
        report(message, Problem::warning);
    } else if !package
        .bundles
        .values()
        .any(|other| other.version < own.version && range.contains(&other.version))
    {
        let message = format!(
            "the skipRange {:?} of {} reaches no earlier version that is in the catalog",
            entry.skip_range, entry.name
        );
        report(message, Problem::info);
    }
}

/// One bundle, in several channels, with different skip ranges: which upgrades work then depends on the channel.
fn differing_entries(package: &PackageFacts<'_>, problems: &mut Vec<Problem>) {
    let mut seen: BTreeMap<&str, (&ChannelFacts<'_>, &ChannelEntry)> = BTreeMap::new();
    for channel in package.channels.values() {
        for entry in &channel.entries {
            let (first_channel, first) = *seen.entry(&entry.name).or_insert((channel, entry));
            if first.skip_range != entry.skip_range {
                let message = format!(
                    "{} has the skipRange {:?} in channel {} and {:?} in channel {}",
                    entry.name, first.skip_range, first_channel.name, entry.skip_range, channel.name
                );
                problems.push(
                    Problem::info("catalog-entries-differ", message, channel_origin(package, channel))
                        .at(at_entry(channel, entry, "skipRange"))
                        .of(&entry.name),
                );
            }
        }
    }
}
