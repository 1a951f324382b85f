//! Lints: what opm accepts but users run into.

use std::collections::BTreeMap;

use super::Problem;
use super::facts::{ChannelFacts, Model, PackageFacts, channel_origin};
use crate::model::{ChannelEntry, PROPERTY_BUNDLE_OBJECT, PROPERTY_CSV_METADATA};
use olmkit_base::object::{Reference, Version, VersionRange};
use olmkit_diagnostics::{Origin, Proof, Severity, Witness, define_rules};

define_rules! {
    NO_METADATA = {
        id: "catalog-no-metadata",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A bundle should have the property `olm.csv.metadata` or inline manifests.",
        why: "Without them, consoles show neither the operator's name nor its icon.",
        bad: "properties:\n- type: olm.package   # and nothing else",
        good: "olmkit catalog render --migrate-level=bundle-object-to-csv-metadata …",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Tools,
            "opm serves the bundle without the data that consoles show",
            "opm 1.73",
            "crates/cli/tests/cluster/lints/catalogs.rs: opm_serves_what_rules_of_catalogs_say",
        ),
    }
    INLINE = {
        id: "catalog-inline",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A bundle with an image should not have inline manifests.",
        why: "OLM v1 cannot install a bundle without an image. Inline manifests make a catalog larger, and only OpenShift 4.12 to 4.16 need them.",
        bad: "properties:\n- type: olm.bundle.object\n  value: {data: …}",
        good: "image: quay.io/example/demo-bundle@sha256:…",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "OLM pulls a bundle by its image, and olm.csv.metadata replaces inline manifests",
            "any",
            "https://olm.operatorframework.io/docs/reference/file-based-catalogs/",
        ),
    }
    IMAGE_BY_TAG = {
        id: "catalog-image-by-tag",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "A bundle's image should be pinned by digest.",
        why: "A tag can be moved, so the same catalog may install something else.",
        bad: "image: quay.io/example/demo-bundle:v1.0.0",
        good: "image: quay.io/example/demo-bundle@sha256:…",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "mirrors by digest (ImageDigestMirrorSet) do not apply to a tag",
            "any",
            "https://docs.openshift.com/container-platform/latest/operators/operator_sdk/osdk-generating-csvs.html",
        ),
    }
    VERSION_FALLS = {
        id: "catalog-version-falls",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A bundle should have a higher version than the one that it replaces.",
        why: "The upgrade would lower the operator's version.",
        bad: "- name: demo.v1.0.0\n  replaces: demo.v1.1.0",
        good: "- name: demo.v1.1.0\n  replaces: demo.v1.0.0",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "OLM installs the lower version",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/catalogs.rs: olm_goes_where_rules_of_catalogs_say",
        ),
    }
    SKIP_RANGE_REACH = {
        id: "catalog-skip-range-reach",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "A `skipRange` should contain an earlier version in the catalog and not the bundle's own version.",
        why: "OLM upgrades from the versions in the range: one that contains no earlier version, or the bundle itself, is probably a mistake.",
        bad: "name: demo.v1.1.0\nskipRange: '<=1.1.0'",
        good: "name: demo.v1.1.0\nskipRange: '>=1.0.0 <1.1.0'",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "a range contains the earlier versions that the bundle upgrades from. OLM does not upgrade a bundle to itself",
            "any",
            "https://olm.operatorframework.io/docs/concepts/olm-architecture/operator-catalog/creating-an-update-graph/",
        ),
    }
    ENTRIES_DIFFER = {
        id: "catalog-entries-differ",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "A bundle should have the same `skipRange` in all channels.",
        why: "Otherwise the possible upgrades depend on the channel.",
        bad: "stable: {name: demo.v1.1.0, skipRange: '<1.1.0'}\nfast: {name: demo.v1.1.0}",
        good: "the same skipRange in both channels",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "OLM upgrades in one channel and not in the other",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/catalogs.rs: olm_goes_where_rules_of_catalogs_say",
        ),
    }
}

/// Checks every package.
pub fn check(model: &Model<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in model.packages.values() {
        bundles(package, &mut problems);
        let mut versions: Vec<&Version> = package.bundles.values().map(|facts| &facts.version).collect();
        versions.sort();
        versions.dedup();
        for channel in package.channels.values() {
            for entry in &channel.entries {
                falling_version(package, channel, entry, &mut problems);
                skip_range(package, channel, entry, &versions, &mut problems);
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
                "bundle {} has no olm.csv.metadata: consoles show neither its name nor its icon",
                bundle.name
            );
            problems.push(
                Problem::warning(&NO_METADATA, message, &bundle.origin)
                    .at("/properties")
                    .of(&bundle.name)
                    .hint("render the bundle again with --migrate-level=bundle-object-to-csv-metadata"),
            );
        }
        if bundle.image.is_empty() {
            let message = format!("bundle {} has no image: OLM v1 cannot install it", bundle.name);
            problems.push(
                Problem::warning(&INLINE, message, &bundle.origin)
                    .at("/image")
                    .of(&bundle.name),
            );
        } else if inline {
            // Older OpenShift does not read olm.csv.metadata.
            if !is_for_older_openshift(&bundle.origin) {
                let message = format!("bundle {} has inline manifests although it has an image", bundle.name);
                problems.push(Problem::info(&INLINE, message, &bundle.origin).at("/properties").of(&bundle.name).hint(
                    "render with --migrate-level=bundle-object-to-csv-metadata, so that the catalog is several times smaller, \
                     unless it is for OpenShift 4.12 to 4.16",
                ));
            }
        }
        if let Ok(reference) = Reference::parse_normalized(&bundle.image)
            && reference.digest().is_none()
        {
            let message = format!(
                "bundle {} uses the tag {}: what it installs can change",
                bundle.name, bundle.image
            );
            problems.push(
                Problem::info(&IMAGE_BY_TAG, message, &bundle.origin)
                    .at("/image")
                    .of(&bundle.name),
            );
        }
    }
}

/// Returns true if the file is in the directory of a catalog for OpenShift 4.12 to 4.16, such as `catalogs/v4.14`.
fn is_for_older_openshift(origin: &crate::model::Origin) -> bool {
    const OLDER: [&str; 5] = ["v4.12", "v4.13", "v4.14", "v4.15", "v4.16"];
    let file = origin.file.as_deref();
    file.is_some_and(|file| file.iter().any(|part| OLDER.iter().any(|older| part == *older)))
}

/// Characters of a name in the object of a finding. Kubernetes' names are not longer, and a hostile name would be stored once
/// for each entry.
const OBJECT_NAME: usize = 253;

/// The object of a finding about a channel.
pub(super) fn channel_of(package: &PackageFacts<'_>, channel: &ChannelFacts<'_>) -> String {
    format!("{}/{}", short(&package.blob.name), short(channel.name))
}

/// The object of a finding about an entry.
pub(super) fn entry_of(package: &PackageFacts<'_>, channel: &ChannelFacts<'_>, entry: &ChannelEntry) -> String {
    format!("{}: {}", channel_of(package, channel), short(&entry.name))
}

pub(super) fn short(name: &str) -> String {
    name.chars().take(OBJECT_NAME).collect()
}

fn at_entry(channel: &ChannelFacts<'_>, entry: &ChannelEntry, field: &str) -> String {
    let index = channel.position(&entry.name).unwrap_or_default();
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
            "channel {}: {} ({new}) replaces {} ({old}): the upgrade lowers the version",
            short(channel.name),
            entry.name,
            entry.replaces
        );
        problems.push(
            Problem::warning(&VERSION_FALLS, message, channel_origin(package, channel))
                .at(at_entry(channel, entry, "replaces"))
                .of(entry_of(package, channel, entry)),
        );
    }
}

fn skip_range(
    package: &PackageFacts<'_>,
    channel: &ChannelFacts<'_>,
    entry: &ChannelEntry,
    versions: &[&Version],
    problems: &mut Vec<Problem>,
) {
    let Ok(range) = VersionRange::parse(&entry.skip_range) else {
        return;
    };
    let Some(own) = package.bundles.get(entry.name.as_str()) else {
        return;
    };
    let mut report = |message: String| {
        problems.push(
            Problem::info(&SKIP_RANGE_REACH, message, channel_origin(package, channel))
                .at(at_entry(channel, entry, "skipRange"))
                .of(entry_of(package, channel, entry)),
        );
    };
    if range.contains(&own.version) {
        let message = format!(
            "channel {}: the skipRange {:?} of {} contains its own version {}",
            short(channel.name),
            entry.skip_range,
            entry.name,
            own.version
        );
        report(message);
    } else if range.within(earlier(versions, &own.version)).is_empty() {
        let message = format!(
            "channel {}: the skipRange {:?} of {} contains no earlier version in the catalog",
            short(channel.name),
            entry.skip_range,
            entry.name
        );
        report(message);
    }
}

/// Those of ascending versions that come before one.
fn earlier<'v>(ascending: &'v [&'v Version], version: &Version) -> &'v [&'v Version] {
    let end = ascending.partition_point(|other| *other < version);
    ascending.get(..end).unwrap_or_default()
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
                    Problem::info(&ENTRIES_DIFFER, message, channel_origin(package, channel))
                        .at(at_entry(channel, entry, "skipRange"))
                        .of(entry_of(package, channel, entry)),
                );
            }
        }
    }
}
