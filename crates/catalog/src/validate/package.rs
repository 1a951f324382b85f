//! The second phase: each package, channel and bundle on its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::deprecation::without_message;
use super::facts::{ChannelFacts, Model, PackageFacts, channel_origin};
use super::lints::entry_of;
use super::{Problem, Tree};
use crate::graph;
use crate::model::{ChannelEntry, PROPERTY_BUNDLE_OBJECT};
use olmkit_base::object::Version;
use olmkit_base::object::VersionRange;
use olmkit_diagnostics::{Origin, Rule, Severity, define_rules};
use olmkit_go::strconv::quote;

define_rules! {
    DEFAULT_CHANNEL = {
        id: "catalog-default-channel",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "A package must name its default channel.",
        why: "Subscriptions that do not name a channel use the default channel.",
        bad: "schema: olm.package\nname: demo",
        good: "schema: olm.package\nname: demo\ndefaultChannel: stable",
        since: "0.1.0",
    }
    NO_CHANNEL = {
        id: "catalog-no-channel",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "A package must have at least one channel.",
        why: "Without a channel there is nothing to subscribe to.",
        bad: "schema: olm.package\nname: demo   # and no olm.channel",
        good: "schema: olm.channel\npackage: demo\nname: stable",
        since: "0.1.0",
    }
    VERSION_DUPLICATE = {
        id: "catalog-version-duplicate",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "Each bundle in a package must have a different version.",
        why: "OLM cannot sort bundles with the same version.",
        bad: "demo.v1.0.0 and demo.v1.0.0-fixed, both of version 1.0.0",
        good: "demo.v1.0.0 of version 1.0.0 and demo.v1.0.1 of version 1.0.1",
        since: "0.1.0",
    }
    CHANNEL_EMPTY = {
        id: "catalog-channel-empty",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "A channel must have at least one entry.",
        why: "A Subscription to an empty channel installs nothing.",
        bad: "schema: olm.channel\nentries: []",
        good: "schema: olm.channel\nentries:\n- name: demo.v1.0.0",
        since: "0.1.0",
    }
    HEAD = {
        id: "catalog-head",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "A channel must have exactly one head: an entry that no other entry replaces or skips.",
        why: "OLM installs the head and upgrades to it.",
        bad: "- name: demo.v1.0.0\n- name: demo.v1.1.0",
        good: "- name: demo.v1.0.0\n- name: demo.v1.1.0\n  replaces: demo.v1.0.0",
        since: "0.1.0",
    }
    CYCLE = {
        id: "catalog-cycle",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "The `replaces` chain from the head must not have a cycle.",
        why: "The upgrade path would never end.",
        bad: "- name: demo.v1.2.0\n  replaces: demo.v1.1.0\n- name: demo.v1.1.0\n  replaces: demo.v1.0.0\n- name: demo.v1.0.0\n  replaces: demo.v1.1.0",
        good: "- name: demo.v1.2.0\n  replaces: demo.v1.1.0\n- name: demo.v1.1.0\n  replaces: demo.v1.0.0\n- name: demo.v1.0.0",
        since: "0.1.0",
    }
    STRANDED = {
        id: "catalog-stranded",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "Each entry must be on the `replaces` chain from the head or be skipped.",
        why: "opm follows `replaces` from the head. An entry that it does not reach may have no upgrade path.",
        bad: "- name: demo.v1.2.0\n  skips: [demo.v1.1.0]\n- name: demo.v1.1.0\n  replaces: demo.v1.0.0\n- name: demo.v1.0.0",
        good: "- name: demo.v1.2.0\n  replaces: demo.v1.0.0\n  skips: [demo.v1.1.0]\n- name: demo.v1.1.0\n  replaces: demo.v1.0.0\n- name: demo.v1.0.0",
        since: "0.1.0",
    }
    ENTRY_NAME = {
        id: "catalog-entry-name",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "An entry must have a name.",
        why: "An entry refers to a bundle by its name.",
        bad: "entries:\n- replaces: demo.v1.0.0",
        good: "entries:\n- name: demo.v1.1.0\n  replaces: demo.v1.0.0",
        since: "0.1.0",
    }
    SKIP_EMPTY = {
        id: "catalog-skip-empty",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "`skips` must not contain empty names.",
        why: "An empty name skips nothing, so it is a mistake.",
        bad: "skips: [\"\"]",
        good: "skips: [demo.v1.0.1]",
        since: "0.1.0",
    }
    SKIP_RANGE = {
        id: "catalog-skip-range",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "`skipRange` must be a valid version range.",
        why: "OLM upgrades from every version in the range. A range that does not parse contains none.",
        bad: "skipRange: ~1.0",
        good: "skipRange: '>=1.0.0 <1.1.0'",
        since: "0.1.0",
    }
    RELEASE_NAME = {
        id: "catalog-release-name",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "A bundle with a release must be named `<package>-v<version>-<release>`.",
        why: "A version's releases need different names, and opm accepts only this form.",
        bad: "name: demo.v1.0.0   # release 1",
        good: "name: demo-v1.0.0-1",
        since: "0.1.0",
    }
    RELEASE_BUILD = {
        id: "catalog-release-build",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "A version with a release must not have build metadata.",
        why: "Both identify a build and could contradict each other.",
        bad: "version: 1.0.0+build1\nrelease: \"1\"",
        good: "version: 1.0.0\nrelease: \"1\"",
        since: "0.1.0",
    }
    NO_IMAGE = {
        id: "catalog-no-image",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "A bundle must have an image or inline manifests.",
        why: "Without either there is nothing to install.",
        bad: "schema: olm.bundle\nname: demo.v1.0.0",
        good: "schema: olm.bundle\nname: demo.v1.0.0\nimage: quay.io/example/demo-bundle@sha256:…",
        since: "0.1.0",
    }
}

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

/// Messages about one item, for the tree and as problems.
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
            report(&DEFAULT_CHANNEL, "default channel must be set", "/defaultChannel")
                .hint("set defaultChannel in the olm.package blob"),
        );
    }
    if package.channels.is_empty() {
        messages.add(report(&NO_CHANNEL, "package must contain at least one channel", ""));
    }
    if let Some(message) = duplicate_versions(package) {
        messages.add(report(&VERSION_DUPLICATE, &message, ""));
    }
    if let Some(problem) = package.deprecation.and_then(|entry| without_message(entry, name)) {
        messages.add(problem);
    }
    let Messages { problems, mut leaves } = messages;
    for channel in package.channels.values() {
        leaves.extend(check_channel(package, channel, problems));
    }
    Tree::over(format!("invalid package {}", quote(name)), leaves)
}

/// Bundles of equal version. Build metadata and release count.
fn duplicate_versions(package: &PackageFacts<'_>) -> Option<String> {
    let mut versions: BTreeMap<String, (Version, BTreeSet<&str>)> = BTreeMap::new();
    let entries = package.channels.values().flat_map(|channel| &channel.entries);
    let names: BTreeSet<&str> = entries.map(|entry| entry.name.as_str()).collect();
    for name in names {
        let bundle = package.bundles.get(name);
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
            .insert(name);
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
        let problem = report(&CHANNEL_EMPTY, "channel must contain at least one bundle", pointer);
        messages.add(if channel.blob.is_some() {
            problem
        } else {
            problem.hint("the package's defaultChannel has no olm.channel blob")
        });
    } else if let Err((rule, message, culprit)) = replaces_chain(&channel.entries) {
        messages.add(report(rule, &message, &entry_pointer(channel, culprit.as_deref())));
    }
    if let Some(problem) = channel.deprecation.and_then(|entry| without_message(entry, &object)) {
        messages.add(problem);
    }
    let Messages { problems, mut leaves } = messages;
    for entry in &channel.entries {
        leaves.extend(check_entry(package, channel, entry, problems));
    }
    Tree::over(format!("invalid channel {}", quote(channel.name)), leaves)
}

fn entry_pointer(channel: &ChannelFacts<'_>, name: Option<&str>) -> String {
    let index = name.and_then(|name| channel.position(name));
    index.map_or_else(|| "/entries".into(), |index| format!("/entries/{index}"))
}

/// One head, no cycle, no stranded entries. An error has the rule, opm's message and the entry to report.
pub(super) fn replaces_chain(entries: &[&ChannelEntry]) -> Result<(), (&'static Rule, String, Option<String>)> {
    let owned: Vec<ChannelEntry> = entries.iter().map(|entry| (*entry).clone()).collect();
    let heads = graph::heads(&owned);
    let head = match heads.as_slice() {
        [head] => *head,
        [] => return Err((&HEAD, "no channel head found in graph".into(), None)),
        many => {
            let message = format!("multiple channel heads found in graph: {}", many.join(", "));
            return Err((&HEAD, message, many.last().map(|head| (*head).to_owned())));
        }
    };
    let by_name: BTreeMap<&str, &ChannelEntry> = entries.iter().map(|entry| (entry.name.as_str(), *entry)).collect();
    let skipped: BTreeSet<&str> = entries
        .iter()
        .flat_map(|entry| &entry.skips)
        .map(String::as_str)
        .collect();
    let mut chain = vec![head];
    let mut on_chain = HashMap::from([(head, 0)]);
    let mut current = by_name.get(head);
    while let Some(entry) = current {
        let next = entry.replaces.as_str();
        chain.push(next);
        if let Some(&start) = on_chain.get(next) {
            let cycle = chain.get(start..).unwrap_or_default().join(" -> ");
            let message = format!("detected cycle in replaces chain of upgrade graph: {cycle}");
            return Err((&CYCLE, message, Some(entry.name.clone())));
        }
        on_chain.insert(next, chain.len() - 1);
        if skipped.contains(next) {
            break;
        }
        current = by_name.get(next);
    }
    let stranded: Vec<&str> = by_name
        .keys()
        .copied()
        .filter(|name| !on_chain.contains_key(name) && !skipped.contains(name))
        .collect();
    if let Some(first) = stranded.first() {
        let message = format!("channel contains one or more stranded bundles: {}", stranded.join(", "));
        return Err((&STRANDED, message, Some((*first).to_owned())));
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
            .of(entry_of(package, channel, entry))
    };
    if entry.name.is_empty() {
        messages.add(report(&ENTRY_NAME, "name must be set".into(), "/name"));
    }
    for (index, skip) in entry.skips.iter().enumerate() {
        if skip.is_empty() {
            messages.add(report(
                &SKIP_EMPTY,
                format!("skip[{index}] is empty"),
                &format!("/skips/{index}"),
            ));
        }
    }
    if !entry.skip_range.is_empty()
        && let Err(error) = VersionRange::parse(&entry.skip_range)
    {
        let message = format!("invalid skipRange {}: {error}", quote(&entry.skip_range));
        messages.add(
            report(&SKIP_RANGE, message, "/skipRange").hint("separate comparisons with spaces: \">=1.0.0 <1.2.0\""),
        );
    }
    check_bundle(package, entry, &report, &mut messages);
    Tree::over(format!("invalid bundle {}", quote(&entry.name)), messages.leaves)
}

fn check_bundle(
    package: &PackageFacts<'_>,
    entry: &ChannelEntry,
    report: &dyn Fn(&'static Rule, String, &str) -> Problem,
    messages: &mut Messages<'_>,
) {
    const ONE_PACKAGE: &str = "must be exactly one property with type \"olm.package\"";
    let Some(facts) = package.bundles.get(entry.name.as_str()) else {
        // opm has an empty bundle then.
        messages.add(report(&super::model::ENTRY_WITHOUT_BUNDLE, ONE_PACKAGE.into(), ""));
        messages.add(report(
            &super::model::ENTRY_WITHOUT_BUNDLE,
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
                quote(&bundle.name),
                quote(&normal)
            );
            add(&RELEASE_NAME, message, "/name");
        }
        if !facts.version.build.is_empty() {
            let message = "cannot use build metadata in version with a release version";
            add(&RELEASE_BUILD, message.into(), "/properties");
        }
    }
    if facts.packages.is_some_and(|packages| packages != 1) {
        add(
            &crate::validate::bundle::PACKAGE_PROPERTY,
            ONE_PACKAGE.into(),
            "/properties",
        );
    }
    let inline = bundle
        .properties
        .iter()
        .any(|property| property.kind == PROPERTY_BUNDLE_OBJECT);
    if bundle.image.is_empty() && !inline {
        add(&NO_IMAGE, "bundle image must be set".into(), "/image");
    }
    if let Some(problem) = facts.deprecation.and_then(|entry| without_message(entry, &bundle.name)) {
        messages.add(problem);
    }
}
