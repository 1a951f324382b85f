//! The first phase: channels and bundles are assigned to their packages.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rayon::prelude::*;

use super::Problem;
use super::bundle::bundle_facts;
use super::deprecation::deprecations;
use super::facts::{BundleFacts, ChannelFacts, Model, PackageFacts};
use crate::model::{Bundle, Catalog, Channel, Package};
use olmkit_base::object::dns1123_label_problems;
use olmkit_diagnostics::{self as diagnostics, Severity, define_rules};
use olmkit_go::strconv::quote;

define_rules! {
    PACKAGE_NAME = {
        id: "catalog-package-name",
        severity: Severity::Error,
        origin: diagnostics::Origin::Opm,
        summary: "A package must have a name that is a DNS label.",
        why: "Channels, bundles and Subscriptions refer to the package by its name.",
        bad: "schema: olm.package\nname: My_Operator",
        good: "schema: olm.package\nname: my-operator",
        since: "0.1.0",
    }
    PACKAGE_DUPLICATE = {
        id: "catalog-package-duplicate",
        severity: Severity::Error,
        origin: diagnostics::Origin::Opm,
        summary: "A package must have at most one `olm.package` blob.",
        why: "Two blobs could disagree about the default channel and the icon.",
        bad: "schema: olm.package\nname: demo\n---\nschema: olm.package\nname: demo",
        good: "schema: olm.package\nname: demo",
        since: "0.1.0",
    }
    UNKNOWN_PACKAGE = {
        id: "catalog-unknown-package",
        severity: Severity::Error,
        origin: diagnostics::Origin::Opm,
        summary: "Each channel's and bundle's package must have an `olm.package` blob.",
        why: "Users cannot subscribe to a channel or bundle in an unknown package.",
        bad: "schema: olm.channel\nname: stable\npackage: demo   # no olm.package of this name",
        good: "schema: olm.package\nname: demo\ndefaultChannel: stable",
        since: "0.1.0",
    }
    CHANNEL_NAME = {
        id: "catalog-channel-name",
        severity: Severity::Error,
        origin: diagnostics::Origin::Opm,
        summary: "A channel must have a name.",
        why: "A Subscription selects a channel by its name.",
        bad: "schema: olm.channel\npackage: demo",
        good: "schema: olm.channel\npackage: demo\nname: stable",
        since: "0.1.0",
    }
    CHANNEL_DUPLICATE = {
        id: "catalog-channel-duplicate",
        severity: Severity::Error,
        origin: diagnostics::Origin::Opm,
        summary: "Channel names must be unique within a package.",
        why: "Two channels with the same name could define different upgrades.",
        bad: "two olm.channel blobs with package: demo and name: stable",
        good: "one olm.channel blob with all entries",
        since: "0.1.0",
    }
    ENTRY_DUPLICATE = {
        id: "catalog-entry-duplicate",
        severity: Severity::Error,
        origin: diagnostics::Origin::Opm,
        summary: "A channel must list each bundle once.",
        why: "Two entries for one bundle could define different upgrades.",
        bad: "entries:\n- name: demo.v1.0.0\n- name: demo.v1.0.0",
        good: "entries:\n- name: demo.v1.0.0",
        since: "0.1.0",
    }
    ENTRY_WITHOUT_BUNDLE = {
        id: "catalog-entry-without-bundle",
        severity: Severity::Error,
        origin: diagnostics::Origin::Opm,
        summary: "Each channel entry must have an `olm.bundle` blob.",
        why: "OLM would choose an upgrade that it cannot install.",
        bad: "entries:\n- name: demo.v1.0.0   # no olm.bundle of this name",
        good: "schema: olm.bundle\nname: demo.v1.0.0\npackage: demo",
        since: "0.1.0",
    }
    BUNDLE_PACKAGE = {
        id: "catalog-bundle-package",
        severity: Severity::Error,
        origin: diagnostics::Origin::Opm,
        summary: "A bundle must name its package.",
        why: "Without it the bundle belongs to no channel.",
        bad: "schema: olm.bundle\nname: demo.v1.0.0",
        good: "schema: olm.bundle\nname: demo.v1.0.0\npackage: demo",
        since: "0.1.0",
    }
    BUNDLE_DUPLICATE = {
        id: "catalog-bundle-duplicate",
        severity: Severity::Error,
        origin: diagnostics::Origin::Opm,
        summary: "Bundle names must be unique within a package.",
        why: "Two bundles with the same name could reference different images.",
        bad: "two olm.bundle blobs with name: demo.v1.0.0",
        good: "one olm.bundle blob with name: demo.v1.0.0",
        since: "0.1.0",
    }
    BUNDLE_WITHOUT_CHANNEL = {
        id: "catalog-bundle-without-channel",
        severity: Severity::Error,
        origin: diagnostics::Origin::Opm,
        summary: "Each bundle must be an entry in a channel.",
        why: "OLM finds bundles only through channels.",
        bad: "schema: olm.bundle\nname: demo.v1.0.0   # not an entry of any channel",
        good: "schema: olm.channel\nentries:\n- name: demo.v1.0.0",
        since: "0.1.0",
    }
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
                quote(package),
                names.join(" ")
            );
            let origin = model
                .packages
                .get(package)
                .map(|package| package.blob.origin.clone())
                .unwrap_or_default();
            model.problems.push(
                Problem::error(&ENTRY_WITHOUT_BUNDLE, message, &origin)
                    .of(package)
                    .hint("add the bundles with `catalog add`, or remove the entries"),
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
            report(&PACKAGE_NAME, "config contains package with no name".into());
            continue;
        }
        if model.packages.contains_key(name) {
            report(&PACKAGE_DUPLICATE, format!("duplicate package {}", quote(name)));
            continue;
        }
        let problems = dns1123_label_problems(name);
        if !problems.is_empty() {
            let message = format!("invalid package name {}: [{}]", quote(name), problems.join(" "));
            report(&PACKAGE_NAME, message);
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

/// Names of entries by package, only from the last channel of each: opm ignores the others.
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
            let message = format!("unknown package {} for channel {}", quote(package), quote(name));
            model.problems.push(
                report(&UNKNOWN_PACKAGE, message, "/package".into())
                    .hint("add an olm.package blob for the package; see `catalog init`"),
            );
            continue;
        };
        if name.is_empty() {
            let message = format!("package {} contains channel with no name", quote(package));
            model.problems.push(report(&CHANNEL_NAME, message, "/name".into()));
            continue;
        }
        if facts.channels.contains_key(name) {
            let message = format!("package {} has duplicate channel {}", quote(package), quote(name));
            model.problems.push(report(&CHANNEL_DUPLICATE, message, "/name".into()));
            continue;
        }
        let mut names = BTreeSet::new();
        let mut entries = Vec::new();
        let mut positions = HashMap::new();
        for (index, entry) in channel.entries().iter().enumerate() {
            if names.insert(entry.name.as_str()) {
                entries.push(entry);
                positions.insert(entry.name.as_str(), index);
            } else {
                let message = format!(
                    "invalid package {}, channel {}: duplicate entry {}",
                    quote(package),
                    quote(name),
                    quote(&entry.name)
                );
                model
                    .problems
                    .push(report(&ENTRY_DUPLICATE, message, format!("/entries/{index}/name")));
            }
        }
        last.insert(package, names);
        facts.channels.insert(
            name,
            ChannelFacts {
                blob: Some(channel),
                name,
                entries,
                positions,
                deprecation: None,
            },
        );
    }
    last
}

fn bundles<'c>(model: &mut Model<'c>, bundles: &'c [Bundle], mut missing: Entries<'c>) -> Entries<'c> {
    // Reading properties is the expensive part, and bundles are independent.
    let read: Vec<(BundleFacts<'c>, Vec<Problem>)> = bundles.par_iter().map(bundle_facts).collect();
    // Every bundle needs the number of channels that contain its name.
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
            let message = format!("package name must be set for bundle {}", quote(name));
            model.problems.push(report(&BUNDLE_PACKAGE, message, "/package"));
            continue;
        }
        let Some(package_facts) = model.packages.get_mut(package) else {
            let message = format!("unknown package {} for bundle {}", quote(package), quote(name));
            model.problems.push(
                report(&UNKNOWN_PACKAGE, message, "/package")
                    .hint("add an olm.package blob for the package; see `catalog init`"),
            );
            continue;
        };
        if package_facts.bundles.contains_key(name) {
            let message = format!("package {} has duplicate bundle {}", quote(package), quote(name));
            model.problems.push(report(&BUNDLE_DUPLICATE, message, "/name"));
            continue;
        }
        model.problems.extend(problems);
        if let Some(missing) = missing.get_mut(package) {
            missing.remove(name);
        }
        if !entries.get(package).is_some_and(|entries| entries.contains(name)) {
            let message = format!(
                "package {}, bundle {} not found in any channel entries",
                quote(package),
                quote(name)
            );
            model.problems.push(
                report(&BUNDLE_WITHOUT_CHANNEL, message, "/name")
                    .hint("add it to the entries of an olm.channel blob, or remove it"),
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
                positions: HashMap::new(),
                deprecation: None,
            };
            package.channels.insert(default, facts);
        }
    }
}
