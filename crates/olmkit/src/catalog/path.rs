//! `catalog path`: the upgrades that OLM v0 takes.
//!
//! From an installed bundle OLM looks for entries of the channel that replace it, skip it, or whose `skipRange` holds
//! its version, and takes the one nearest to the head, counted along `replaces` from the head down. It goes on from
//! there until nothing is newer.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::graph;
use super::model::{Bundle, Catalog, Channel, ChannelEntry};
use super::property;
use crate::limits;
use crate::object::{Version, VersionRange};

/// What comparing a version with a range costs at least, counted in bytes.
const COMPARISON: usize = 32;

/// One upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The bundle that is installed.
    pub from: String,
    /// The bundle that takes its place.
    pub to: String,
    /// `replaces`, `skips` or `skipRange`.
    pub by: String,
    /// Other entries that could follow, and why they do not.
    pub passed_over: Vec<String>,
}

/// An error in finding an upgrade path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The package or channel does not exist.
    #[error("package {package:?} has no channel {channel:?}; it has: {channels}")]
    NoChannel {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
        /// Those there are.
        channels: String,
    },
    /// The channel has no single head.
    #[error("channel {0:?} has {1}: OLM refuses every upgrade in it")]
    Head(String, String),
    /// The bundle that is installed is unknown, and no version of it is given.
    #[error("{0:?} is neither a bundle in the channel nor a version")]
    From(String),
    /// The path ends before its goal.
    #[error(
        "no upgrade path from {from}: no entry of channel {channel:?} replaces or skips it, and no skipRange contains {version}{reached}"
    )]
    Stuck {
        /// Where the path ends.
        from: String,
        /// Its version.
        version: String,
        /// The channel.
        channel: String,
        /// What was reached before, for the text.
        reached: String,
    },
    /// Comparing versions with ranges would take too long.
    #[error("the skipRanges of channel {0:?} and its upgrades are too many to compare: {1}")]
    Ranges(String, String),
    /// The path goes past the bundle that was asked for.
    #[error("the upgrades of channel {channel:?} lead past {to}: {path}")]
    Past {
        /// The bundle that was asked for.
        to: String,
        /// The channel.
        channel: String,
        /// The path taken.
        path: String,
    },
}

/// The upgrades from `from` to `to`, each a bundle's name or version; to the head of the channel if not given. A version
/// of which the channel has no bundle may still be where one begins: a `skipRange` can lead on from it.
///
/// # Errors
/// See [`Error`].
pub fn find(catalog: &Catalog, package: &str, channel: &str, from: &str, to: Option<&str>) -> Result<Vec<Step>, Error> {
    let channel = channel_of(catalog, package, channel)?;
    let heads = graph::heads(channel.entries());
    let [head] = heads.as_slice() else {
        let what = if heads.is_empty() {
            "no head".to_owned()
        } else {
            format!("several heads: {}", heads.join(", "))
        };
        return Err(Error::Head(channel.name.clone(), what));
    };
    let bundles = bundles_of(catalog, package);
    let version = |name: &str| version_of(bundles.get(name)?);
    let named = |text: &str| {
        let wanted = Version::parse(text.strip_prefix('v').unwrap_or(text)).ok();
        let mut names = channel.entries().iter().map(|entry| entry.name.as_str());
        let found = wanted.and_then(|wanted| names.find(|name| version(name).as_ref() == Some(&wanted)));
        found.unwrap_or(text).to_owned()
    };
    let (from, to) = (named(from), to.map(named));
    let from = from.as_str();
    let known = channel.entries().iter().any(|entry| entry.name == from) || version(from).is_some();
    let mut at = version(from).or_else(|| Version::parse(from.strip_prefix('v').unwrap_or(from)).ok());
    if !known && at.is_none() {
        return Err(Error::From(from.to_owned()));
    }
    let edges = Edges::of(channel.entries(), head);
    let mut compared = 0;
    let (mut name, mut steps, mut seen) = (from.to_owned(), Vec::new(), BTreeSet::new());
    let goal = to.as_deref().unwrap_or(head);
    while name != goal {
        compared += edges.costs;
        if compared > limits::RANGE_COMPARISONS.count() {
            let exceeded = limits::RANGE_COMPARISONS.exceeded().to_string();
            return Err(Error::Ranges(channel.name.clone(), exceeded));
        }
        let next = edges.from(&name, at.as_ref());
        let Some((first, others)) = next.split_first().filter(|_| seen.insert(name.clone())) else {
            if to.is_some() && !steps.is_empty() && name == *head {
                let path = steps
                    .iter()
                    .map(|step: &Step| step.to.as_str())
                    .collect::<Vec<_>>()
                    .join(" -> ");
                return Err(Error::Past {
                    to: goal.to_owned(),
                    channel: channel.name.clone(),
                    path,
                });
            }
            return Err(Error::Stuck {
                version: at.map_or_else(|| "its version".to_owned(), |version| version.to_string()),
                reached: if steps.is_empty() {
                    String::new()
                } else {
                    format!(" (reached from {from})")
                },
                from: name.clone(),
                channel: channel.name.clone(),
            });
        };
        let (entry, by) = first;
        steps.push(Step {
            from: std::mem::take(&mut name),
            to: entry.name.clone(),
            by: (*by).to_owned(),
            passed_over: others
                .iter()
                .map(|(other, by)| format!("{} ({by}) is further from the head", limits::name(&other.name)))
                .collect(),
        });
        name.clone_from(&entry.name);
        at = version(&name);
    }
    Ok(steps)
}

fn channel_of<'c>(catalog: &'c Catalog, package: &str, name: &str) -> Result<&'c Channel, Error> {
    let of_package = || catalog.channels.iter().filter(|channel| channel.package == package);
    of_package()
        .find(|channel| channel.name == name)
        .ok_or_else(|| Error::NoChannel {
            package: package.to_owned(),
            channel: name.to_owned(),
            channels: match of_package().map(|channel| channel.name.as_str()).collect::<Vec<_>>() {
                names if names.is_empty() => "none".to_owned(),
                names => names.join(", "),
            },
        })
}

/// The first bundle of each name.
fn bundles_of<'c>(catalog: &'c Catalog, package: &str) -> HashMap<&'c str, &'c Bundle> {
    let mut bundles = HashMap::new();
    for bundle in catalog.bundles.iter().filter(|bundle| bundle.package == package) {
        bundles.entry(bundle.name.as_str()).or_insert(bundle);
    }
    bundles
}

fn version_of(bundle: &Bundle) -> Option<Version> {
    let properties = property::parse(bundle).ok()?;
    Version::parse(&properties.first()?.version).ok()
}

/// An entry, and how it follows.
type Candidate<'c> = (&'c ChannelEntry, &'static str);

/// The upgrades of a channel that OLM may take: those to entries on the chain of `replaces`, since its walk from the head meets
/// no others.
struct Edges<'c> {
    /// The entries from the head down; several may have one name.
    entries: Vec<&'c ChannelEntry>,
    /// What follows a bundle by name, nearest to the head first.
    named: HashMap<&'c str, Vec<(usize, &'static str)>>,
    /// The entries with a range.
    ranged: Vec<(usize, VersionRange)>,
    /// What one look at all ranges costs: texts that are compared, and names that may be listed.
    costs: usize,
}

impl<'c> Edges<'c> {
    fn of(entries: &'c [ChannelEntry], head: &'c str) -> Self {
        let distances = distances_from_head(entries, head);
        let mut ordered: Vec<(usize, &ChannelEntry)> = entries
            .iter()
            .filter_map(|entry| Some((*distances.get(entry.name.as_str())?, entry)))
            .collect();
        ordered.sort_by_key(|(distance, _)| *distance);
        let mut edges = Edges {
            entries: ordered.into_iter().map(|(_, entry)| entry).collect(),
            named: HashMap::new(),
            ranged: Vec::new(),
            costs: 0,
        };
        for (number, entry) in edges.entries.iter().enumerate() {
            let replaced = Some((entry.replaces.as_str(), "replaces")).filter(|(name, _)| !name.is_empty());
            let skipped = entry.skips.iter().map(|name| (name.as_str(), "skips"));
            let mut seen = HashSet::new();
            for (name, by) in replaced.into_iter().chain(skipped) {
                if name != entry.name && seen.insert(name) {
                    edges.named.entry(name).or_default().push((number, by));
                }
            }
            if let Ok(range) = VersionRange::parse(&entry.skip_range) {
                edges.costs += COMPARISON + entry.skip_range.len() + entry.name.len();
                edges.ranged.push((number, range));
            }
        }
        edges
    }

    /// Entries that may follow a bundle, the one nearest to the head first.
    fn from(&self, name: &str, version: Option<&Version>) -> Vec<Candidate<'c>> {
        let mut found: Vec<(usize, &'static str)> = self.named.get(name).cloned().unwrap_or_default();
        let by_name: HashSet<usize> = found.iter().map(|(number, _)| *number).collect();
        if let Some(version) = version {
            let inside = self
                .ranged
                .iter()
                .filter(|(number, range)| !by_name.contains(number) && range.contains(version));
            found.extend(inside.map(|(number, _)| (*number, "skipRange")));
        }
        found.sort_unstable_by_key(|(number, _)| *number);
        let entry = |(number, by): (usize, &'static str)| Some((*self.entries.get(number)?, by));
        found
            .into_iter()
            .filter_map(entry)
            .filter(|(entry, _)| entry.name != name)
            .collect()
    }
}

/// How far the entries on the chain of `replaces` are from the head.
fn distances_from_head<'c>(entries: &'c [ChannelEntry], head: &'c str) -> HashMap<&'c str, usize> {
    let mut by_name: HashMap<&str, &ChannelEntry> = HashMap::new();
    for entry in entries {
        by_name.entry(&entry.name).or_insert(entry);
    }
    let mut distances = HashMap::from([(head, 0)]);
    let mut current = by_name.get(head);
    while let Some(entry) = current {
        let next = entry.replaces.as_str();
        current = by_name.get(next).filter(|_| !distances.contains_key(next));
        if current.is_some() {
            distances.insert(next, distances.len());
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::load;

    fn catalog(entries: &str) -> Catalog {
        let mut text = format!(
            "{{\"schema\":\"olm.package\",\"name\":\"p\",\"defaultChannel\":\"c\"}}\
             {{\"schema\":\"olm.channel\",\"package\":\"p\",\"name\":\"c\",\"entries\":{entries}}}"
        );
        for number in 1..=4 {
            text.push_str(&format!(
                "{{\"schema\":\"olm.bundle\",\"package\":\"p\",\"name\":\"p.v{number}\",\"image\":\"r.io/p:v{number}\",\
                 \"properties\":[{{\"type\":\"olm.package\",\"value\":{{\"packageName\":\"p\",\"version\":\"{number}.0.0\"}}}}]}}"
            ));
        }
        load::text(&text).unwrap().into_iter().collect()
    }

    fn taken(catalog: &Catalog, from: &str) -> Vec<String> {
        let steps = find(catalog, "p", "c", from, None).unwrap();
        steps
            .into_iter()
            .map(|step| format!("{} by {}", step.to, step.by))
            .collect()
    }

    #[test]
    fn the_edge_nearest_to_the_head_is_taken() {
        let catalog = catalog(
            "[{\"name\":\"p.v1\"},{\"name\":\"p.v2\",\"replaces\":\"p.v1\"},\
             {\"name\":\"p.v3\",\"replaces\":\"p.v2\",\"skips\":[\"p.v1\"]},\
             {\"name\":\"p.v4\",\"replaces\":\"p.v3\",\"skipRange\":\">=1.5.0 <3.0.0\"}]",
        );
        assert_eq!(taken(&catalog, "p.v1"), ["p.v3 by skips", "p.v4 by replaces"]);
        assert_eq!(taken(&catalog, "p.v2"), ["p.v4 by skipRange"]);
        assert_eq!(taken(&catalog, "2.5.0"), ["p.v4 by skipRange"]);
        let steps = find(&catalog, "p", "c", "v1.0.0", Some("3.0.0")).unwrap();
        let [step] = steps.as_slice() else { panic!("{steps:?}") };
        assert_eq!(
            (step.from.as_str(), step.to.as_str()),
            ("p.v1", "p.v3"),
            "versions name bundles"
        );
    }

    #[test]
    fn dead_ends_say_why() {
        let catalog = catalog("[{\"name\":\"p.v2\"},{\"name\":\"p.v3\",\"replaces\":\"p.v2\"}]");
        let error = find(&catalog, "p", "c", "p.v1", None).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("no upgrade path from p.v1: no entry of channel \"c\" replaces")
        );
        assert!(matches!(
            find(&catalog, "p", "x", "p.v1", None),
            Err(Error::NoChannel { .. })
        ));
    }
}
