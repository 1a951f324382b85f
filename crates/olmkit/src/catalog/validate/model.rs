//! The first phase: packages, channels and bundles find each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Problem, quoted};
use crate::catalog::model::{self, Bundle, Catalog, Channel, ChannelEntry, Deprecation, Origin, Package};
use crate::catalog::property::{self, PackageProperty};
use crate::object::Reference;
use crate::object::Version;
use crate::object::dns1123_label_problems;
use rayon::prelude::*;

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
    pub deprecation: Option<&'c str>,
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
    pub deprecation: Option<&'c str>,
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
    pub deprecation: Option<&'c str>,
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

/// Reads a bundle blob by type, with all that is wrong with it alone.
fn bundle_facts(bundle: &Bundle) -> (BundleFacts<'_>, Vec<Problem>) {
    let mut facts = BundleFacts {
        bundle,
        version: Version::default(),
        release: String::new(),
        packages: None,
        deprecation: None,
    };
    let mut problems = Vec::new();
    let (package, name) = (quoted(&bundle.package), quoted(&bundle.name));
    let report = |rule, message: String, pointer: String| {
        Problem::error(rule, message, &bundle.origin)
            .at(pointer)
            .of(&bundle.name)
    };
    match property::parse(bundle) {
        Err((index, error)) => {
            let message = format!("parse properties for bundle {name}: {error}");
            problems.push(report("catalog-property", message, format!("/properties/{index}")));
        }
        Ok(packages) => {
            facts.packages = Some(packages.len());
            if packages.len() != 1 {
                let count = packages.len();
                let message = format!(
                    "package {package} bundle {name} must have exactly 1 \"olm.package\" property, found {count}"
                );
                problems.push(report("catalog-package-property", message, "/properties".into()));
            }
            if let [own] = packages.as_slice() {
                if own.package != bundle.package {
                    let message = format!(
                        "package {package} does not match \"olm.package\" property {}",
                        quoted(&own.package)
                    );
                    problems.push(report("catalog-package-property", message, "/package".into()));
                }
                images(bundle, &mut problems);
                version(bundle, own, &mut facts, &mut problems);
            }
        }
    }
    (facts, problems)
}

fn images(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let related = bundle.related_images.iter().enumerate().map(|(index, image)| {
        (
            format!("relatedImages[{index}].image"),
            format!("/relatedImages/{index}/image"),
            &image.image,
        )
    });
    let own = ("image".to_owned(), "/image".to_owned(), &bundle.image);
    for (field, pointer, image) in std::iter::once(own).chain(related) {
        if image.is_empty() {
            continue;
        }
        if let Err(error) = Reference::parse(image) {
            // The library behind opm does not repeat the name.
            let error = match error.to_string() {
                text if text.ends_with("must be lowercase") => {
                    "invalid reference format: repository name must be lowercase".to_owned()
                }
                text => text,
            };
            let (package, name) = (quoted(&bundle.package), quoted(&bundle.name));
            let message = format!(
                "package {package} bundle {name} {field}: invalid image pull spec {}: {error}",
                quoted(image)
            );
            problems.push(
                Problem::error("catalog-image", message, &bundle.origin)
                    .at(pointer)
                    .of(&bundle.name),
            );
        }
    }
}

fn version(bundle: &Bundle, own: &PackageProperty, facts: &mut BundleFacts<'_>, problems: &mut Vec<Problem>) {
    let name = quoted(&bundle.name);
    let mut report = |message: String| {
        problems.push(
            Problem::error("catalog-version", message, &bundle.origin)
                .at("/properties")
                .of(&bundle.name),
        );
    };
    match Version::parse(&own.version) {
        Ok(version) => facts.version = version,
        Err(error) => report(format!(
            "error parsing bundle {name} version {}: {error}",
            quoted(&own.version)
        )),
    }
    match release(&own.release) {
        Ok(()) => facts.release.clone_from(&own.release),
        Err(error) => report(format!(
            "error parsing bundle {name} release version {release}: invalid release {release}: {error}",
            release = quoted(&own.release)
        )),
    }
}

/// A release: at most 20 characters, pre-release identifiers with dots between.
fn release(text: &str) -> Result<(), String> {
    const LONGEST: usize = 20;
    if text.is_empty() {
        return Ok(());
    }
    if text.len() > LONGEST {
        return Err(format!("exceeds maximum length of {LONGEST} characters"));
    }
    for (index, segment) in text.split('.').enumerate() {
        // The rules for one identifier are those of a version's pre-release part.
        if segment.is_empty() {
            return Err(format!("segment {index}: Prerelease is empty"));
        }
        Version::parse(&format!("0.0.0-{segment}")).map_err(|error| format!("segment {index}: {error}"))?;
    }
    Ok(())
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

fn deprecations<'c>(model: &mut Model<'c>, deprecations: &'c [Deprecation]) {
    let mut seen = BTreeSet::new();
    for (item, blob) in deprecations.iter().enumerate() {
        let name = blob.package.as_str();
        let report =
            |rule, message: String, pointer: &str| Problem::error(rule, message, &blob.origin).at(pointer).of(name);
        if name.is_empty() {
            let message = format!("package name must be set for deprecation item {item}");
            model.problems.push(report("catalog-deprecation", message, "/package"));
            continue;
        }
        let Some(package) = model.packages.get_mut(name) else {
            let message = format!("cannot apply deprecations to an unknown package {}", quoted(name));
            model.problems.push(report("catalog-deprecation", message, "/package"));
            continue;
        };
        if !seen.insert(name) {
            let message = format!("expected a maximum of one deprecation per package: {}", quoted(name));
            model.problems.push(report("catalog-deprecation", message, "/package"));
            continue;
        }
        let mut found = Vec::new();
        deprecation_entries(package, blob, &mut found);
        model.problems.extend(found);
    }
}

fn deprecation_entries<'c>(package: &mut PackageFacts<'c>, blob: &'c Deprecation, problems: &mut Vec<Problem>) {
    let package_name = quoted(&blob.package);
    let mut references = BTreeSet::new();
    for (index, entry) in blob.entries.iter().flatten().enumerate() {
        let mut report = |message: String| {
            let pointer = format!("/entries/{index}/reference");
            problems.push(
                Problem::error("catalog-deprecation", message, &blob.origin)
                    .at(pointer)
                    .of(&blob.package),
            );
        };
        let (schema, name) = (entry.schema.as_str(), entry.name.as_str());
        let go_struct = format!(
            "declcfg.PackageScopedReference{{Schema:{}, Name:{}}}",
            quoted(schema),
            quoted(name)
        );
        if schema.is_empty() {
            report(format!(
                "schema must be set for deprecation entry [{index}] for package {package_name}"
            ));
            continue;
        }
        if !references.insert((schema, name)) {
            report(format!(
                "duplicate deprecation entry {go_struct} for package {package_name}"
            ));
            continue;
        }
        let message = Some(entry.message.as_str());
        match schema {
            model::BUNDLE => match package.bundles.get_mut(name) {
                Some(bundle) => bundle.deprecation = message,
                None => report(format!(
                    "cannot deprecate bundle {} for package {package_name}: bundle not found",
                    quoted(name)
                )),
            },
            model::CHANNEL => match package.channels.get_mut(name) {
                Some(channel) => channel.deprecation = message,
                None => report(format!(
                    "cannot deprecate channel {} for package {package_name}: channel not found",
                    quoted(name)
                )),
            },
            model::PACKAGE if name.is_empty() => package.deprecation = message,
            model::PACKAGE => report(format!(
                "package name must be empty for deprecated package {package_name} (specified {})",
                quoted(name)
            )),
            _ => report(format!(
                "cannot deprecate object {go_struct} referenced by entry {index} for package {package_name}: object schema unknown"
            )),
        }
    }
}

/// The origin of a channel, or of its package where opm makes the channel up.
pub fn channel_origin<'m>(package: &'m PackageFacts<'_>, channel: &'m ChannelFacts<'_>) -> &'m Origin {
    channel.blob.map_or(&package.blob.origin, |blob| &blob.origin)
}
