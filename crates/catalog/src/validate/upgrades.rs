//! Lints about the upgrades that OLM v0 takes, from its own model ([`resolver`]).

use std::collections::{BTreeMap, BTreeSet};

use super::Problem;
use super::facts::{ChannelFacts, Model, PackageFacts, channel_origin};
use super::lints::{channel_of, entry_of, short};
use super::package::replaces_chain;
use crate::model::ChannelEntry;
use crate::resolver::{self, Channel, Edge, Resolver};
use olmkit_base::limits;
use olmkit_base::object::Version;
use olmkit_diagnostics::{Origin, Proof, Severity, Witness, define_rules};

define_rules! {
    IGNORED_EDGE = {
        id: "catalog-ignored-edge",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "OLM v0 should be able to take each `replaces` edge.",
        why: "From each bundle OLM v0 takes only the edge that ends nearest to the head.",
        bad: "- name: demo.v1.2.0\n  replaces: demo.v1.1.0\n  skips: [demo.v1.0.0]\n- name: demo.v1.1.0\n  replaces: demo.v1.0.0",
        good: "- name: demo.v1.2.0\n  replaces: demo.v1.1.0\n- name: demo.v1.1.0\n  replaces: demo.v1.0.0",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "OLM never installs the bundle",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/catalogs.rs: olm_goes_where_rules_of_catalogs_say",
        ),
    }
    NO_UPGRADE = {
        id: "catalog-no-upgrade",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Every bundle that a channel has or names should have an upgrade path to the newest one.",
        why: "OLM v0 drops each entry that another entry skips, with its own edges. Installations that only such entries replace or skip \
              cannot upgrade.",
        bad: "- name: demo.v1.0.0\n- name: demo.v1.1.0\n  skips: [demo.v1.0.0]\n- name: demo.v1.2.0\n  skips: [demo.v1.1.0]",
        good: "- name: demo.v1.0.0\n- name: demo.v1.1.0\n  skips: [demo.v1.0.0]\n- name: demo.v1.2.0\n  skips: [demo.v1.0.0, demo.v1.1.0]",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "OLM stays at the bundle",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/catalogs.rs: olm_goes_where_rules_of_catalogs_say",
        ),
    }
    UPGRADE_CYCLE = {
        id: "catalog-upgrade-cycle",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The upgrades that OLM v0 takes should end.",
        why: "A `skipRange` that contains later versions leads back, and OLM v0 upgrades forever. A cycle of `replaces` behind a skipped \
              entry passes `opm validate`, but OLM v0 then upgrades nothing.",
        bad: "- name: demo.v1.1.0\n  skipRange: '>=1.0.0'\n- name: demo.v1.2.0\n  replaces: demo.v1.1.0",
        good: "- name: demo.v1.1.0\n  skipRange: '>=1.0.0 <1.1.0'\n- name: demo.v1.2.0\n  replaces: demo.v1.1.0",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "OLM reports the cycle and upgrades nothing",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/catalogs.rs: olm_goes_where_rules_of_catalogs_say",
        ),
    }
}

/// Names that a message lists.
const LISTED: usize = 10;

/// Follows the upgrades of every channel. Channels that opm rejects have its errors instead.
pub fn check(model: &Model<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in model.packages.values() {
        let deprecated = || resolver::deprecated(package.bundles.values().map(|facts| facts.bundle));
        for channel in package.channels.values().filter(|channel| !channel.entries.is_empty()) {
            if replaces_chain(&channel.entries).is_err() {
                continue;
            }
            let ordered = Channel {
                name: channel.name,
                entries: channel.entries.clone(),
            };
            match Resolver::new(&package.blob.name, &[ordered], deprecated()) {
                Ok(resolver) => Upgrades::new(package, channel, &resolver).check(&mut problems),
                Err(refusal) => problems.push(
                    Problem::warning(
                        &UPGRADE_CYCLE,
                        format!(
                            "OLM v0 upgrades nothing in channel {}: {refusal}",
                            limits::name(channel.name)
                        ),
                        channel_origin(package, channel),
                    )
                    .at("/entries")
                    .of(channel_of(package, channel)),
                ),
            }
        }
    }
    problems
}

/// The upgrades of one channel.
struct Upgrades<'m, 'c> {
    package: &'m PackageFacts<'c>,
    channel: &'m ChannelFacts<'c>,
    resolver: &'m Resolver<'c>,
    /// The edge that OLM takes from each installed bundle.
    taken: BTreeMap<&'c str, Edge<'c>>,
    /// Names without a version: a `skipRange` may lead on from them.
    unknown: BTreeSet<&'c str>,
    /// The bundles that the channel has or names.
    names: BTreeSet<&'c str>,
}

/// Final state of the upgrades from a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Newest,
    Stuck,
    Cycle,
    /// An unknown version decides.
    Unknown,
}

impl<'m, 'c> Upgrades<'m, 'c> {
    fn new(package: &'m PackageFacts<'c>, channel: &'m ChannelFacts<'c>, resolver: &'m Resolver<'c>) -> Self {
        let entries = || channel.entries.iter().copied();
        let named = entries().flat_map(|entry| entry.skips.iter().chain([&entry.replaces, &entry.name]));
        let names: BTreeSet<&str> = named.map(String::as_str).filter(|name| !name.is_empty()).collect();
        let version = |name: &str| match package.bundles.get(name) {
            Some(facts) => Some(facts.version.clone()),
            None => resolver::version_in_name(name),
        };
        let installed: BTreeMap<&'c str, Option<Version>> = names.iter().map(|name| (*name, version(name))).collect();
        let without = installed.iter().filter(|(_, version)| version.is_none());
        let unknown = without.map(|(name, _)| *name).filter(|_| resolver.cost() > 0).collect();
        let taken = resolver.upgrades(&installed);
        Upgrades {
            package,
            channel,
            resolver,
            taken,
            unknown,
            names,
        }
    }

    fn check(&self, problems: &mut Vec<Problem>) {
        for entry in &self.channel.entries {
            self.ignored_edge(entry, problems);
        }
        let Some(newest) = self.resolver.newest() else { return };
        let newest = newest.entry.name.as_str();
        let mut ends = BTreeMap::new();
        for name in &self.names {
            self.follow(name, newest, &mut ends);
        }
        let ending = |wanted| {
            ends.iter()
                .filter(move |(_, end)| **end == wanted)
                .map(|(name, _)| *name)
        };
        let channel = limits::name(self.channel.name);
        let stuck: Vec<&str> = ending(End::Stuck).collect();
        if let Some(first) = stuck.first() {
            let message = format!(
                "channel {channel}: OLM v0 has no upgrade path to {} from {}: {}",
                limits::name(newest),
                listed(&stuck),
                self.reason(first)
            );
            problems.push(self.problem(&NO_UPGRADE, message, first).hint(
                "let an entry that is not skipped skip these bundles too, or give it a skipRange that contains them",
            ));
        }
        if let Some(start) = ending(End::Cycle).next() {
            let cycle = self.cycle(start);
            let message = format!("channel {channel}: OLM v0 upgrades in a cycle and never stops: {cycle}");
            problems.push(
                self.problem(&UPGRADE_CYCLE, message, start)
                    .hint("let no skipRange contain the versions of later bundles"),
            );
        }
    }

    fn problem(&self, rule: &'static olmkit_diagnostics::Rule, message: String, name: &str) -> Problem {
        let at = self.channel.position(name).or_else(|| {
            let mut entries = self.channel.entries.iter();
            let named = entries.find(|entry| entry.replaces == name || entry.skips.iter().any(|skip| skip == name));
            self.channel.position(&named?.name)
        });
        Problem::warning(rule, message, channel_origin(self.package, self.channel))
            .at(at.map_or_else(|| "/entries".to_owned(), |index| format!("/entries/{index}")))
            .of(channel_of(self.package, self.channel))
    }

    /// The end of the upgrades from a bundle, and of all on the path.
    fn follow(&self, start: &'c str, newest: &str, ends: &mut BTreeMap<&'c str, End>) {
        let (mut way, mut on_way, mut at) = (Vec::new(), BTreeSet::new(), start);
        let end = loop {
            if let Some(end) = ends.get(at) {
                break *end;
            }
            if !on_way.insert(at) {
                break End::Cycle;
            }
            way.push(at);
            match self
                .taken
                .get(at)
                .map(|edge| edge.to.entry.name.as_str())
                .filter(|next| *next != at)
            {
                Some(next) => at = next,
                None if at == newest => break End::Newest,
                None if self.unknown.contains(at) => break End::Unknown,
                None => break End::Stuck,
            }
        };
        ends.extend(way.into_iter().map(|name| (name, end)));
    }

    /// The reason why a bundle, or the last one on the way from it, has no upgrade.
    fn reason(&self, start: &str) -> String {
        let mut at = start;
        while let Some(edge) = self.taken.get(at).filter(|edge| edge.to.entry.name != at) {
            at = &edge.to.entry.name;
        }
        let shown = limits::name(at);
        if self.taken.contains_key(at) {
            return format!("the skipRange of {shown} contains its own version");
        }
        match self.resolver.edges(at, None).first() {
            Some(Edge { to, by, .. }) => {
                let dropped = to.dropped.map(|dropped| dropped.to_string()).unwrap_or_default();
                let by = if *by == resolver::Field::Replaces {
                    "replaces"
                } else {
                    "skips"
                };
                format!(
                    "{} {by} {shown}, but OLM drops that entry: {dropped}",
                    limits::name(&to.entry.name)
                )
            }
            None => format!("nothing replaces or skips {shown}"),
        }
    }

    /// The cycle that the upgrades from a bundle lead into.
    fn cycle(&self, start: &'c str) -> String {
        let (mut way, mut at) = (Vec::new(), start);
        while !way.contains(&at) {
            way.push(at);
            match self.taken.get(at) {
                Some(edge) => at = &edge.to.entry.name,
                None => break,
            }
        }
        let from = way.iter().position(|name| *name == at).unwrap_or_default();
        let mut names: Vec<String> = way.into_iter().skip(from).take(LISTED).map(limits::name).collect();
        names.push(limits::name(at));
        names.join(" -> ")
    }

    /// OLM v0 uses one edge from each bundle, so other `replaces` edges have no effect.
    fn ignored_edge(&self, entry: &ChannelEntry, problems: &mut Vec<Problem>) {
        if entry.replaces.is_empty() || !self.package.bundles.contains_key(entry.replaces.as_str()) {
            return;
        }
        let Some(nearer) = self.nearer(entry) else { return };
        let message = format!(
            "OLM v0 never takes the edge from {} to {} in channel {}: the edge to {} ends nearer to the head",
            entry.replaces,
            entry.name,
            short(self.channel.name),
            nearer
        );
        let index = self.channel.position(&entry.name).unwrap_or_default();
        problems.push(
            Problem::info(&IGNORED_EDGE, message, channel_origin(self.package, self.channel))
                .at(format!("/entries/{index}/replaces"))
                .of(entry_of(self.package, self.channel, entry)),
        );
    }

    /// The entry that OLM uses instead of one that replaces a bundle. It is usual that a `skipRange` of the head
    /// overrides the chain of `replaces`, so this is no finding.
    fn nearer(&self, entry: &ChannelEntry) -> Option<&'c str> {
        let first = self.resolver.by_name(&entry.replaces);
        match first.or_else(|| self.taken.get(entry.replaces.as_str()).copied()) {
            Some(edge) if edge.to.entry.name != entry.name => Some(edge.to.entry.name.as_str()),
            _ => None,
        }
    }
}

fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(LISTED).copied().map(limits::name).collect();
    match names.len().saturating_sub(LISTED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
