//! The second phase: each package, channel and bundle on its own.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{ChannelFacts, Model, PackageFacts, channel_origin};
use super::{Problem, Tree, quoted};
use crate::catalog::graph;
use crate::catalog::model::{ChannelEntry, PROPERTY_BUNDLE_OBJECT};
use crate::object::Version;
use crate::object::VersionRange;

/// Checks all packages: opm's tree, and the same as problems.
pub fn check(model: &Model<'_>) -> (Option<Tree>, Vec<Problem>) {
    let mut problems = Vec::new();
    let trees = model
        .packages
        .values()
        .filter_map(|package| check_package(package, &mut problems))
        .collect();
    (Tree::over("invalid index", trees), problems)
}

/// Messages of one thing, for the tree and as problems.
struct Messages<'p> {
    problems: &'p mut Vec<Problem>,
    leaves: Vec<Tree>,
}

impl Messages<'_> {
    fn add(&mut self, problem: Problem) {
        self.leaves.push(Tree::leaf(&problem.message));
        self.problems.push(problem);
    }
}

fn check_package(package: &PackageFacts<'_>, problems: &mut Vec<Problem>) -> Option<Tree> {
    let name = package.blob.name.as_str();
    let mut messages = Messages {
        problems,
        leaves: Vec::new(),
    };
    let report =
        |rule, message: &str, pointer| Problem::error(rule, message, &package.blob.origin).at(pointer).of(name);
    if package.blob.default_channel.is_empty() {
        messages.add(
            report(
                "catalog-default-channel",
                "default channel must be set",
                "/defaultChannel",
            )
            .hint("set defaultChannel in the olm.package blob"),
        );
    }
    if package.channels.is_empty() {
        messages.add(report(
            "catalog-no-channel",
            "package must contain at least one channel",
            "",
        ));
    }
    if let Some(message) = duplicate_versions(package) {
        messages.add(report("catalog-version-duplicate", &message, ""));
    }
    if let Some(problem) = package.deprecation.and_then(|told| told.without_message(name)) {
        messages.add(problem);
    }
    let Messages { problems, mut leaves } = messages;
    for channel in package.channels.values() {
        leaves.extend(check_channel(package, channel, problems));
    }
    Tree::over(format!("invalid package {}", quoted(name)), leaves)
}

/// Bundles of equal version; build metadata and release count.
fn duplicate_versions(package: &PackageFacts<'_>) -> Option<String> {
    let mut versions: BTreeMap<String, (Version, BTreeSet<&str>)> = BTreeMap::new();
    for entry in package.channels.values().flat_map(|channel| &channel.entries) {
        let bundle = package.bundles.get(entry.name.as_str());
        let version = bundle.map(|bundle| bundle.version.clone()).unwrap_or_default();
        let release = bundle.map(|bundle| bundle.release.as_str()).unwrap_or_default();
        let text = if release.is_empty() {
            version.to_string()
        } else {
            format!("{version}-{release}")
        };
        versions
            .entry(text)
            .or_insert_with(|| (version, BTreeSet::new()))
            .1
            .insert(&entry.name);
    }
    let mut duplicates: Vec<_> = versions.into_iter().filter(|(_, (_, names))| names.len() > 1).collect();
    duplicates.sort_by(|(_, (left, _)), (_, (right, _))| left.cmp(right));
    let texts: Vec<String> = duplicates
        .into_iter()
        .map(|(text, (_, names))| format!("{{{text}: [{}]}}", names.into_iter().collect::<Vec<_>>().join(", ")))
        .collect();
    (!texts.is_empty()).then(|| format!("duplicate versions found in bundles: [{}]", texts.join(" ")))
}

fn check_channel(package: &PackageFacts<'_>, channel: &ChannelFacts<'_>, problems: &mut Vec<Problem>) -> Option<Tree> {
    let object = format!("{}/{}", package.blob.name, channel.name);
    let mut messages = Messages {
        problems,
        leaves: Vec::new(),
    };
    let report = |rule, message: &str, pointer: &str| {
        Problem::error(rule, message, channel_origin(package, channel))
            .at(pointer)
            .of(&object)
    };
    if channel.entries.is_empty() {
        let pointer = if channel.blob.is_some() {
            "/entries"
        } else {
            "/defaultChannel"
        };
        let problem = report(
            "catalog-channel-empty",
            "channel must contain at least one bundle",
            pointer,
        );
        messages.add(if channel.blob.is_some() {
            problem
        } else {
            problem.hint("the package's defaultChannel names no channel blob")
        });
    } else if let Err((rule, message, culprit)) = replaces_chain(&channel.entries) {
        messages.add(report(rule, &message, &entry_pointer(channel, culprit.as_deref())));
    }
    if let Some(problem) = channel.deprecation.and_then(|told| told.without_message(&object)) {
        messages.add(problem);
    }
    let Messages { problems, mut leaves } = messages;
    for entry in &channel.entries {
        leaves.extend(check_entry(package, channel, entry, problems));
    }
    Tree::over(format!("invalid channel {}", quoted(channel.name)), leaves)
}

fn entry_pointer(channel: &ChannelFacts<'_>, name: Option<&str>) -> String {
    let entries = channel.blob.map(|blob| blob.entries()).unwrap_or_default();
    let index = name.and_then(|name| entries.iter().position(|entry| entry.name == name));
    index.map_or_else(|| "/entries".into(), |index| format!("/entries/{index}"))
}

/// One head, no cycle, nothing stranded. An error has the rule, opm's text, and the entry to point at.
fn replaces_chain(entries: &[&ChannelEntry]) -> Result<(), (&'static str, String, Option<String>)> {
    let owned: Vec<ChannelEntry> = entries.iter().map(|entry| (*entry).clone()).collect();
    let heads = graph::heads(&owned);
    let head = match heads.as_slice() {
        [head] => *head,
        [] => return Err(("catalog-head", "no channel head found in graph".into(), None)),
        many => {
            let message = format!("multiple channel heads found in graph: {}", many.join(", "));
            return Err(("catalog-head", message, many.last().map(|head| (*head).to_owned())));
        }
    };
    let by_name: BTreeMap<&str, &ChannelEntry> = entries.iter().map(|entry| (entry.name.as_str(), *entry)).collect();
    let skipped: BTreeSet<&str> = entries
        .iter()
        .flat_map(|entry| &entry.skips)
        .map(String::as_str)
        .collect();
    let mut chain = vec![head];
    let mut current = by_name.get(head);
    while let Some(entry) = current {
        let next = entry.replaces.as_str();
        if let Some(start) = chain.iter().position(|name| *name == next) {
            chain.push(next);
            let cycle = chain.get(start..).unwrap_or_default().join(" -> ");
            let message = format!("detected cycle in replaces chain of upgrade graph: {cycle}");
            return Err(("catalog-cycle", message, Some(entry.name.clone())));
        }
        chain.push(next);
        if skipped.contains(next) {
            break;
        }
        current = by_name.get(next);
    }
    let stranded: Vec<&str> = by_name
        .keys()
        .copied()
        .filter(|name| !chain.contains(name) && !skipped.contains(name))
        .collect();
    if let Some(first) = stranded.first() {
        let message = format!("channel contains one or more stranded bundles: {}", stranded.join(", "));
        return Err(("catalog-stranded", message, Some((*first).to_owned())));
    }
    Ok(())
}

fn check_entry(
    package: &PackageFacts<'_>,
    channel: &ChannelFacts<'_>,
    entry: &ChannelEntry,
    problems: &mut Vec<Problem>,
) -> Option<Tree> {
    let mut messages = Messages {
        problems,
        leaves: Vec::new(),
    };
    let pointer = entry_pointer(channel, Some(&entry.name));
    let origin = channel_origin(package, channel);
    let report = |rule, message: String, below: &str| {
        Problem::error(rule, message, origin)
            .at(format!("{pointer}{below}"))
            .of(&entry.name)
    };
    if entry.name.is_empty() {
        messages.add(report("catalog-entry-name", "name must be set".into(), "/name"));
    }
    for (index, skip) in entry.skips.iter().enumerate() {
        if skip.is_empty() {
            messages.add(report(
                "catalog-skip-empty",
                format!("skip[{index}] is empty"),
                &format!("/skips/{index}"),
            ));
        }
    }
    if !entry.skip_range.is_empty()
        && let Err(error) = VersionRange::parse(&entry.skip_range)
    {
        let message = format!("invalid skipRange {}: {error}", quoted(&entry.skip_range));
        messages.add(
            report("catalog-skip-range", message, "/skipRange")
                .hint("write comparisons with blanks between: \">=1.0.0 <1.2.0\""),
        );
    }
    check_bundle(package, entry, &report, &mut messages);
    Tree::over(format!("invalid bundle {}", quoted(&entry.name)), messages.leaves)
}

fn check_bundle(
    package: &PackageFacts<'_>,
    entry: &ChannelEntry,
    report: &dyn Fn(&'static str, String, &str) -> Problem,
    messages: &mut Messages<'_>,
) {
    const ONE_PACKAGE: &str = "must be exactly one property with type \"olm.package\"";
    let Some(facts) = package.bundles.get(entry.name.as_str()) else {
        // opm has an empty bundle then.
        messages.add(report("catalog-entry-without-bundle", ONE_PACKAGE.into(), ""));
        messages.add(report(
            "catalog-entry-without-bundle",
            "bundle image must be set".into(),
            "",
        ));
        return;
    };
    let bundle = facts.bundle;
    let mut add = |rule, message: String, pointer: &str| {
        messages.add(
            Problem::error(rule, message, &bundle.origin)
                .at(pointer)
                .of(&bundle.name),
        );
    };
    if !facts.release.is_empty() {
        let normal = format!("{}-v{}-{}", package.blob.name, facts.version, facts.release);
        if bundle.name != normal {
            let message = format!(
                "name {} does not match normalized name {}",
                quoted(&bundle.name),
                quoted(&normal)
            );
            add("catalog-release-name", message, "/name");
        }
        if !facts.version.build.is_empty() {
            let message = "cannot use build metadata in version with a release version";
            add("catalog-release-build", message.into(), "/properties");
        }
    }
    if facts.packages.is_some_and(|packages| packages != 1) {
        add("catalog-package-property", ONE_PACKAGE.into(), "/properties");
    }
    let inline = bundle
        .properties
        .iter()
        .any(|property| property.kind == PROPERTY_BUNDLE_OBJECT);
    if bundle.image.is_empty() && !inline {
        add("catalog-no-image", "bundle image must be set".into(), "/image");
    }
    if let Some(problem) = facts.deprecation.and_then(|told| told.without_message(&bundle.name)) {
        messages.add(problem);
    }
}
