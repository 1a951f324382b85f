//! The channels that `opm index add` creates from bundles: operator-registry's `SemverPackageManifest` and
//! `addPackageChannels` for replaces-mode, `AddBundleToGraph` for semver-mode.
//!
//! In replaces-mode a channel is the chain of `replaces` from its highest version. A bundle that is skipped by one of
//! this chain gets an entry without edges, even if it names others itself. Compared with operator-registry 1.73 by
//! `dev/graph`.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::model::ChannelEntry;
use olmkit_base::object::{PreRelease, Version};

/// A bundle with its position in the graph, according to its ClusterServiceVersion and annotations.
#[derive(Debug, Clone, Default)]
pub struct Member {
    /// Its version.
    pub version: Version,
    /// The channels that its annotations name.
    pub channels: Vec<String>,
    /// The default channel that its annotations name, if any.
    pub default_channel: Option<String>,
    /// Name, `replaces`, `skips` and `skipRange`.
    pub entry: ChannelEntry,
}

/// The order of versions in operator-registry: build metadata counts last, and a version without any comes first.
pub fn compare(left: &Version, right: &Version) -> Ordering {
    let build = |version: &Version| -> Vec<PreRelease> {
        let parts = version.build.iter();
        parts
            .map(|part| match part.parse() {
                Ok(number) if part.bytes().all(|byte| byte.is_ascii_digit()) => PreRelease::Number(number),
                _ => PreRelease::Word(part.clone()),
            })
            .collect()
    };
    left.cmp(right).then_with(|| build(left).cmp(&build(right)))
}

/// Entries of each channel in replaces-mode, from the lowest version up.
pub fn replaces_mode(members: &[&Member]) -> BTreeMap<String, Vec<ChannelEntry>> {
    let by_name: HashMap<&str, &Member> = members
        .iter()
        .map(|member| (member.entry.name.as_str(), *member))
        .collect();
    let channels = by_channel(members);
    let entries = |labelled: Vec<&Member>| labelled.last().map(|head| chain(head, &by_name)).unwrap_or_default();
    channels
        .into_iter()
        .map(|(name, labelled)| (name, entries(labelled)))
        .collect()
}

/// Entries of each channel in semver-mode: each version replaces the one below. Nothing is skipped by name.
pub fn semver_mode(members: &[&Member]) -> BTreeMap<String, Vec<ChannelEntry>> {
    let entries = |labelled: Vec<&Member>| {
        let mut below = String::new();
        let linked = labelled.into_iter().map(|member| ChannelEntry {
            name: member.entry.name.clone(),
            replaces: std::mem::replace(&mut below, member.entry.name.clone()),
            skips: Vec::new(),
            skip_range: member.entry.skip_range.clone(),
        });
        linked.collect()
    };
    let channels = by_channel(members).into_iter();
    channels.map(|(name, labelled)| (name, entries(labelled))).collect()
}

/// The default channel in semver-mode, if bundles are added from the lowest version up: that of the highest version that names
/// one, else the first by name of the lowest version.
pub fn semver_default_channel(members: &[&Member]) -> Option<String> {
    let sorted = sorted(members);
    let named = sorted.iter().rev().find_map(|member| member.default_channel.clone());
    named.or_else(|| sorted.first()?.channels.iter().min().cloned())
}

/// The default channel in replaces-mode: that of the highest version that names one, else the only channel, if there is one only.
pub fn default_channel(members: &[&Member]) -> Option<String> {
    let sorted = sorted(members);
    let named = sorted.iter().rev().find_map(|member| member.default_channel.clone());
    named.or_else(|| {
        let mut channels = by_channel(members).into_keys();
        channels.next().filter(|_| channels.next().is_none())
    })
}

fn sorted<'m>(members: &[&'m Member]) -> Vec<&'m Member> {
    let mut sorted = members.to_vec();
    sorted.sort_by(|left, right| {
        compare(&left.version, &right.version).then_with(|| left.entry.name.cmp(&right.entry.name))
    });
    sorted
}

/// The members that name each channel, by version.
fn by_channel<'m>(members: &[&'m Member]) -> BTreeMap<String, Vec<&'m Member>> {
    let mut channels: BTreeMap<String, Vec<&Member>> = BTreeMap::new();
    for member in sorted(members) {
        for channel in member.channels.iter().collect::<HashSet<_>>() {
            channels.entry(channel.clone()).or_default().push(member);
        }
    }
    channels
}

/// The chain of `replaces` from a head, and the bundles that it skips.
fn chain(head: &Member, by_name: &HashMap<&str, &Member>) -> Vec<ChannelEntry> {
    let (mut links, mut found) = (vec![head], HashSet::from([head.entry.name.as_str()]));
    let mut current = head;
    while let Some(next) = by_name
        .get(current.entry.replaces.as_str())
        .filter(|next| found.insert(&next.entry.name))
    {
        links.push(next);
        current = next;
    }
    let skips = links.iter().flat_map(|link| &link.entry.skips);
    let skipped: Vec<&Member> = skips
        .filter_map(|name| by_name.get(name.as_str()).copied())
        .filter(|member| found.insert(&member.entry.name))
        .collect();
    let without_edges = |member: &&Member| ChannelEntry {
        name: member.entry.name.clone(),
        skip_range: member.entry.skip_range.clone(),
        ..ChannelEntry::default()
    };
    let mut entries: Vec<(&Version, ChannelEntry)> = links
        .iter()
        .map(|link| (&link.version, link.entry.clone()))
        .chain(skipped.iter().map(|member| (&member.version, without_edges(member))))
        .collect();
    entries.sort_by(|left, right| compare(left.0, right.0).then_with(|| left.1.name.cmp(&right.1.name)));
    entries.into_iter().map(|(_, entry)| entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(version: &str, channels: &str, replaces: &str, skips: &[&str]) -> Member {
        Member {
            version: Version::parse(version).unwrap(),
            channels: channels.split(',').map(str::to_owned).collect(),
            default_channel: None,
            entry: ChannelEntry {
                name: format!("p.v{version}"),
                replaces: replaces.to_owned(),
                skips: skips.iter().map(|&skip| skip.to_owned()).collect(),
                skip_range: format!("<{version}"),
            },
        }
    }

    fn shown(entries: &[ChannelEntry]) -> Vec<String> {
        let entries = entries.iter();
        entries
            .map(|entry| format!("{} > {} ({})", entry.name, entry.replaces, entry.skips.join(" ")))
            .collect()
    }

    #[test]
    fn skipped_bundles_get_no_chain() {
        // As the published catalogs of infinispan 2.3.x.
        let members = [
            member("2.2.5", "2.3.x", "", &[]),
            member("2.3.0", "2.3.x", "p.v2.2.5", &[]),
            member("2.3.1", "2.3.x", "p.v2.3.0", &["p.v2.2.5"]),
            member("2.3.2", "2.3.x", "", &["p.v2.3.0", "p.v2.3.1", "p.v2.2.9"]),
        ];
        let channels = replaces_mode(&members.iter().collect::<Vec<_>>());
        assert_eq!(
            shown(&channels["2.3.x"]),
            [
                "p.v2.3.0 >  ()",
                "p.v2.3.1 >  ()",
                "p.v2.3.2 >  (p.v2.3.0 p.v2.3.1 p.v2.2.9)"
            ]
        );
        assert_eq!(channels["2.3.x"][0].skip_range, "<2.3.0");
    }

    #[test]
    fn chains_lead_into_bundles_of_other_channels() {
        let members = [
            member("1.0.0", "old", "", &[]),
            member("1.1.0", "new,old", "p.v1.0.0", &["p.v1.0.0"]),
            member("1.1.0+1", "new", "p.v1.1.0", &[]),
        ];
        let channels = replaces_mode(&members.iter().collect::<Vec<_>>());
        assert_eq!(
            shown(&channels["new"]),
            [
                "p.v1.0.0 >  ()",
                "p.v1.1.0 > p.v1.0.0 (p.v1.0.0)",
                "p.v1.1.0+1 > p.v1.1.0 ()"
            ]
        );
        assert_eq!(channels["old"].len(), 2);
    }

    #[test]
    fn semver_mode_keeps_no_skips() {
        let members = [member("1.0.0", "c", "", &[]), member("1.1.0", "c", "", &["p.v1.0.0"])];
        let channels = semver_mode(&members.iter().collect::<Vec<_>>());
        assert_eq!(shown(&channels["c"]), ["p.v1.0.0 >  ()", "p.v1.1.0 > p.v1.0.0 ()"]);
    }

    #[test]
    fn the_highest_version_that_names_a_default_channel_decides() {
        let mut members = [member("1.0.0", "a,b", "", &[]), member("1.1.0", "a", "", &[])];
        assert_eq!(default_channel(&members.iter().collect::<Vec<_>>()), None);
        members[0].default_channel = Some("b".to_owned());
        assert_eq!(
            default_channel(&members.iter().collect::<Vec<_>>()).as_deref(),
            Some("b")
        );
        assert_eq!(default_channel(&[&members[1]]).as_deref(), Some("a"));
        assert_eq!(
            semver_default_channel(&members.iter().collect::<Vec<_>>()).as_deref(),
            Some("b")
        );
        members[0].default_channel = None;
        assert_eq!(
            semver_default_channel(&members.iter().collect::<Vec<_>>()).as_deref(),
            Some("a")
        );
    }
}
