//! The upgrades that OLM v0 performs: its resolver's rules over the channels of one package.
//!
//! OLM orders a channel along `replaces` from the head, drops the entries that another entry skips, and upgrades an
//! installed bundle to the first of the others that replaces or skips it by name, or whose `skipRange` contains its
//! version. It never installs a bundle with the property `olm.deprecated`. Compared with OLM 0.46's own resolver by
//! `dev/graph`.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::model::{Bundle, Catalog, ChannelEntry};
use super::property;
use olmkit_base::limits;
use olmkit_base::object::{Version, VersionRange};

/// Property type: OLM v0 does not install the bundle. (`opm index prune-stranded` and `deprecatetruncate` set it.)
pub const PROPERTY_DEPRECATED: &str = "olm.deprecated";

/// Minimum cost of comparing a version with a range, in bytes.
const COMPARISON: usize = 32;

/// Maximum number of chains in an error.
const CHAINS_LISTED: usize = 10;

/// An error that OLM reports instead of an upgrade, with OLM's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Every entry is replaced or skipped.
    #[error(
        "no channel heads (entries not replaced by another entry) found in channel {channel:?} of package {package:?}"
    )]
    NoHead {
        /// The channel.
        channel: String,
        /// The package.
        package: String,
    },
    /// The chain of `replaces` leads back to itself.
    #[error(
        "a cycle exists in the chain of replacement beginning with {head:?} in channel {channel:?} of package {package:?}"
    )]
    Cycle {
        /// The head that the chain starts from.
        head: String,
        /// The channel.
        channel: String,
        /// The package.
        package: String,
    },
    /// The channel has more than one head.
    #[error(
        "a unique replacement chain within a channel is required to determine the relative order between channel entries, but \
         {count} replacement chains were found in channel {channel:?} of package {package:?}: {chains}"
    )]
    Chains {
        /// Number of chains.
        count: usize,
        /// The first and last entry of each chain.
        chains: String,
        /// The channel.
        channel: String,
        /// The package.
        package: String,
    },
}

/// The field of a channel entry that makes it an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Field {
    /// `replaces`
    Replaces,
    /// `skips`
    Skips,
    /// `skipRange`
    SkipRange,
}

impl Field {
    /// The field's name in a channel entry.
    pub fn as_str(self) -> &'static str {
        match self {
            Field::Replaces => "replaces",
            Field::Skips => "skips",
            Field::SkipRange => "skipRange",
        }
    }
}

/// The reason why OLM does not offer an entry as an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped<'c> {
    /// Another entry of the channel skips it.
    Skipped {
        /// The other entry.
        by: &'c str,
    },
    /// Its bundle has the property `olm.deprecated`.
    Deprecated,
    /// The chain of `replaces` from the head does not contain it.
    OffChain,
}

impl std::fmt::Display for Dropped<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Dropped::Skipped { by } => write!(formatter, "{} skips it", limits::name(*by)),
            Dropped::Deprecated => write!(formatter, "it has the property {PROPERTY_DEPRECATED}"),
            Dropped::OffChain => write!(formatter, "the chain of replaces from the head does not contain it"),
        }
    }
}

/// A channel entry in OLM's order.
#[derive(Debug, Clone, Copy)]
pub struct Placed<'c> {
    /// The entry.
    pub entry: &'c ChannelEntry,
    /// Its channel.
    pub channel: &'c str,
    /// The reason why OLM does not offer it, if any.
    pub dropped: Option<Dropped<'c>>,
}

/// An entry that names an installed bundle, or whose `skipRange` contains its version.
#[derive(Debug, Clone, Copy)]
pub struct Edge<'c> {
    /// Position in OLM's order, 0 at the head.
    pub position: usize,
    /// The entry.
    pub to: Placed<'c>,
    /// The field that leads to it.
    pub by: Field,
}

/// A channel of a package, with its entries.
#[derive(Debug, Clone)]
pub struct Channel<'c> {
    /// The channel's name.
    pub name: &'c str,
    /// Its entries.
    pub entries: Vec<&'c ChannelEntry>,
}

/// OLM's order of the entries that a Subscription can upgrade to.
#[derive(Debug)]
pub struct Resolver<'c> {
    /// From the head down, channel by channel. Dropped entries are included.
    placed: Vec<Placed<'c>>,
    /// The positions of the entries that replace or skip a name, in order.
    named: HashMap<&'c str, Vec<(usize, Field)>>,
    /// The entries with a valid `skipRange`, in order.
    ranged: Vec<(usize, VersionRange)>,
    /// The bundles with the property `olm.deprecated`.
    deprecated: HashSet<&'c str>,
    /// Cost of comparing one version with all ranges.
    cost: usize,
}

impl<'c> Resolver<'c> {
    /// Orders channels of a package: one for a Subscription with a channel. A Subscription without one searches all of them, the
    /// default channel first, then by name.
    ///
    /// # Errors
    /// OLM's error for the first channel that it cannot order.
    pub fn new(package: &str, channels: &[Channel<'c>], deprecated: HashSet<&'c str>) -> Result<Self, ResolveError> {
        let mut resolver = Resolver {
            placed: Vec::new(),
            named: HashMap::new(),
            ranged: Vec::new(),
            deprecated,
            cost: 0,
        };
        for channel in channels {
            resolver.push(package, channel)?;
        }
        for (position, placed) in resolver.placed.iter().enumerate() {
            let entry = placed.entry;
            let replaced = Some((entry.replaces.as_str(), Field::Replaces)).filter(|(name, _)| !name.is_empty());
            let skipped = entry.skips.iter().map(|name| (name.as_str(), Field::Skips));
            let mut seen = HashSet::new();
            for (name, by) in replaced.into_iter().chain(skipped) {
                if seen.insert(name) {
                    resolver.named.entry(name).or_default().push((position, by));
                }
            }
            if let Ok(range) = VersionRange::parse(&entry.skip_range) {
                resolver.cost += COMPARISON + entry.skip_range.len() + entry.name.len();
                resolver.ranged.push((position, range));
            }
        }
        Ok(resolver)
    }

    /// Orders the channels of a package in a catalog: one, or all.
    ///
    /// # Errors
    /// OLM's error for the first channel that it cannot order.
    pub fn from_catalog(catalog: &'c Catalog, package: &str, channel: Option<&str>) -> Result<Self, ResolveError> {
        let default = catalog.packages.iter().find(|blob| blob.name == package);
        let default = default.map_or("", |blob| blob.default_channel.as_str());
        let channels = catalog.channels.iter().filter(|blob| blob.package == package);
        let mut channels: Vec<Channel<'c>> = channels
            .filter(|blob| channel.is_none_or(|name| blob.name == name))
            .map(|blob| Channel {
                name: &blob.name,
                entries: blob.entries().iter().collect(),
            })
            .collect();
        channels.sort_by_key(|channel| (channel.name != default, channel.name));
        if channel.is_some() {
            // As for bundles, the first blob of a name counts.
            channels.truncate(1);
        }
        let bundles = catalog.bundles.iter().filter(|bundle| bundle.package == package);
        Self::new(package, &channels, deprecated(bundles))
    }

    /// Adds the entries of a channel, as OLM's `sortChannel` orders them.
    fn push(&mut self, package: &str, channel: &Channel<'c>) -> Result<(), ResolveError> {
        let entries = channel.entries.as_slice();
        let mut by_name: HashMap<&str, &'c ChannelEntry> = HashMap::new();
        for entry in entries.iter().copied() {
            by_name.entry(&entry.name).or_insert(entry);
        }
        let (mut followed, mut skipped) = (HashSet::new(), HashMap::new());
        for entry in entries.iter().copied() {
            followed.insert(entry.replaces.as_str());
            for skip in &entry.skips {
                followed.insert(skip);
                skipped.entry(skip.as_str()).or_insert(entry.name.as_str());
            }
        }
        let heads: Vec<&'c ChannelEntry> = entries
            .iter()
            .copied()
            .filter(|entry| !followed.contains(entry.name.as_str()))
            .collect();
        let (name, package) = (|| limits::name(channel.name), || limits::name(package));
        if heads.is_empty() {
            // A channel without entries offers nothing, and is no error.
            return if entries.is_empty() {
                Ok(())
            } else {
                Err(ResolveError::NoHead {
                    channel: name(),
                    package: package(),
                })
            };
        }
        let mut chains: Vec<Vec<&'c ChannelEntry>> = Vec::new();
        for head in heads.iter().copied() {
            let (mut chain, mut visited) = (vec![head], HashSet::from([head.name.as_str()]));
            let mut current = head;
            while let Some(next) = by_name.get(current.replaces.as_str()).copied() {
                if !visited.insert(&next.name) {
                    return Err(ResolveError::Cycle {
                        head: limits::name(&head.name),
                        channel: name(),
                        package: package(),
                    });
                }
                chain.push(next);
                current = next;
            }
            chains.push(chain);
        }
        let [chain] = chains.as_slice() else {
            // Each may be as long as the channel, and repeats names.
            let ends = chains.iter().take(CHAINS_LISTED).map(|chain| {
                let mut offered = chain.iter().filter(|entry| !skipped.contains_key(entry.name.as_str()));
                match (offered.next(), offered.next_back()) {
                    (Some(first), Some(last)) => {
                        format!("{}...{}", limits::name(&first.name), limits::name(&last.name))
                    }
                    (Some(only), None) => limits::name(&only.name),
                    (None, _) => "[]".to_owned(),
                }
            });
            let mut listed = ends.collect::<Vec<_>>().join(", ");
            if chains.len() > CHAINS_LISTED {
                listed.push_str(", ...");
            }
            return Err(ResolveError::Chains {
                count: chains.len(),
                chains: listed,
                channel: name(),
                package: package(),
            });
        };
        let on_chain: HashSet<&str> = chain.iter().map(|entry| entry.name.as_str()).collect();
        let off_chain = entries.iter().filter(|entry| !on_chain.contains(entry.name.as_str()));
        for entry in chain.iter().chain(off_chain).copied() {
            let name = entry.name.as_str();
            let dropped = match skipped.get(name) {
                Some(&by) => Some(Dropped::Skipped { by }),
                None if !on_chain.contains(name) => Some(Dropped::OffChain),
                None if self.deprecated.contains(name) => Some(Dropped::Deprecated),
                None => None,
            };
            self.placed.push(Placed {
                entry,
                channel: channel.name,
                dropped,
            });
        }
        Ok(())
    }

    /// The entry that OLM installs first. Of several channels, that of the first one.
    pub fn newest(&self) -> Option<Placed<'c>> {
        self.placed.iter().copied().find(|placed| placed.dropped.is_none())
    }

    /// Returns true if a bundle is the first one that OLM installs from a channel.
    pub fn is_newest(&self, name: &str) -> bool {
        let mut channels = HashSet::new();
        let mut offered = self.placed.iter().filter(|placed| placed.dropped.is_none());
        offered.any(|placed| channels.insert(placed.channel) && placed.entry.name == name)
    }

    /// The entries in OLM's order, dropped ones included.
    pub fn placed(&self) -> &[Placed<'c>] {
        &self.placed
    }

    /// Cost of one call of [`Self::edges`] with a version, in compared bytes.
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// Returns true if OLM rejects every state in which a bundle remains installed: it has the property
    /// `olm.deprecated`.
    pub fn is_prohibited(&self, name: &str) -> bool {
        self.deprecated.contains(name)
    }

    /// All upgrade edges from an installed bundle, in OLM's order. OLM uses the first one that is not dropped. If that
    /// is the bundle itself, it remains installed.
    pub fn edges(&self, name: &str, version: Option<&Version>) -> Vec<Edge<'c>> {
        let mut found: Vec<(usize, Field)> = self.named.get(name).cloned().unwrap_or_default();
        if let Some(version) = version {
            let by_name: HashSet<usize> = found.iter().map(|(position, _)| *position).collect();
            let inside = self
                .ranged
                .iter()
                .filter(|(position, range)| !by_name.contains(position) && range.contains(version));
            found.extend(inside.map(|(position, _)| (*position, Field::SkipRange)));
        }
        found.sort_unstable_by_key(|(position, _)| *position);
        let edge = |(position, by): (usize, Field)| {
            let to = *self.placed.get(position)?;
            Some(Edge { position, to, by })
        };
        found.into_iter().filter_map(edge).collect()
    }

    /// The first entry that is not dropped and that replaces or skips a bundle by name.
    pub fn by_name(&self, name: &str) -> Option<Edge<'c>> {
        let mut positions = self.named.get(name)?.iter().copied();
        positions.find_map(|(position, by)| {
            let to = self
                .placed
                .get(position)
                .copied()
                .filter(|placed| placed.dropped.is_none())?;
            Some(Edge { position, to, by })
        })
    }

    /// OLM's upgrade edge from each of many installed bundles with their versions. Bundles without one are omitted. A
    /// bundle that OLM considers its own upgrade has an edge to itself.
    pub fn upgrades<'n>(&self, installed: &BTreeMap<&'n str, Option<Version>>) -> BTreeMap<&'n str, Edge<'c>> {
        let mut ascending: Vec<&Version> = installed.values().flatten().collect();
        ascending.sort_unstable();
        ascending.dedup();
        let by_range = self.by_range(&ascending);
        let taken = installed.iter().filter_map(|(name, version)| {
            let named = self.by_name(name);
            let at = version
                .as_ref()
                .and_then(|version| ascending.binary_search(&version).ok());
            let ranged = at.and_then(|at| by_range.get(at).copied().flatten());
            let first = named.into_iter().chain(ranged).min_by_key(|edge| edge.position)?;
            Some((*name, first))
        });
        taken.collect()
    }

    /// For some distinct ascending versions: the first entry that is not dropped and whose `skipRange` contains it.
    fn by_range(&self, ascending: &[&Version]) -> Vec<Option<Edge<'c>>> {
        let mut first = vec![None; ascending.len()];
        // For each version, the next one that has no entry yet.
        let mut open: Vec<usize> = (0..=ascending.len()).collect();
        for (position, range) in &self.ranged {
            let Some(to) = self
                .placed
                .get(*position)
                .copied()
                .filter(|placed| placed.dropped.is_none())
            else {
                continue;
            };
            for stretch in range.within(ascending) {
                let mut at = next_open(&mut open, stretch.start);
                while at < stretch.end {
                    if let Some(slot) = first.get_mut(at) {
                        *slot = Some(Edge {
                            position: *position,
                            to,
                            by: Field::SkipRange,
                        });
                    }
                    if let Some(next) = open.get_mut(at) {
                        *next = at + 1;
                    }
                    at = next_open(&mut open, at + 1);
                }
            }
        }
        first
    }
}

/// Follows `open` from a position to the first that points at itself, and shortens the way for the next time.
fn next_open(open: &mut [usize], start: usize) -> usize {
    let mut end = start;
    while let Some(next) = open.get(end).copied().filter(|next| *next != end) {
        end = next;
    }
    let mut at = start;
    while let Some(next) = open.get_mut(at).filter(|next| **next != end && at != end) {
        at = std::mem::replace(next, end);
    }
    end
}

/// The names of the bundles with the property `olm.deprecated`.
pub fn deprecated<'c>(bundles: impl Iterator<Item = &'c Bundle>) -> HashSet<&'c str> {
    let deprecated = bundles.filter(|bundle| is_deprecated(bundle));
    deprecated.map(|bundle| bundle.name.as_str()).collect()
}

/// Returns true if a bundle has the property `olm.deprecated`.
pub fn is_deprecated(bundle: &Bundle) -> bool {
    bundle
        .properties
        .iter()
        .any(|property| property.kind == PROPERTY_DEPRECATED)
}

/// A bundle's version, if its properties name a valid one.
pub fn version(bundle: &Bundle) -> Option<Version> {
    let properties = property::parse(bundle).ok()?;
    Version::parse(&properties.first()?.version).ok()
}

/// The version at the end of a bundle's name, such as 1.0.0 in `shop.v1.0.0`.
pub fn version_in_name(name: &str) -> Option<Version> {
    let number = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let three_numbers = |text: &str| {
        let mut rest = text;
        for part in 0..3 {
            let end = number(rest);
            if end == 0 {
                return false;
            }
            rest = rest.get(end..).unwrap_or_default();
            if part < 2 {
                match rest.strip_prefix('.') {
                    Some(after) => rest = after,
                    None => return false,
                }
            }
        }
        true
    };
    let after = name
        .match_indices(['.', '-'])
        .map(|(at, _)| name.get(at + 1..).unwrap_or_default());
    let mut versions = after.map(|text| text.strip_prefix('v').unwrap_or(text));
    Version::parse(versions.find(|text| three_numbers(text))?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load;

    fn catalog(entries: &str) -> Catalog {
        let text = format!("{{\"schema\":\"olm.channel\",\"package\":\"p\",\"name\":\"c\",\"entries\":{entries}}}");
        load::text(&text).unwrap().into_iter().collect()
    }

    fn offered(entries: &str) -> Result<String, String> {
        let catalog = catalog(entries);
        let resolver = Resolver::from_catalog(&catalog, "p", Some("c")).map_err(|refusal| refusal.to_string())?;
        let offered = resolver.placed().iter().filter(|placed| placed.dropped.is_none());
        Ok(offered
            .map(|placed| placed.entry.name.as_str())
            .collect::<Vec<_>>()
            .join(" "))
    }

    #[test]
    fn skipped_entries_are_dropped_and_the_chain_goes_on_behind_them() {
        let entries = r#"[{"name":"a"},{"name":"b","replaces":"a"},{"name":"c","replaces":"b","skips":["b"]}]"#;
        assert_eq!(offered(entries).unwrap(), "c a");
        let entries = r#"[{"name":"a"},{"name":"b","skips":["a"]},{"name":"c","skips":["b"]}]"#;
        assert_eq!(offered(entries).unwrap(), "c");
    }

    #[test]
    fn channels_without_one_chain_get_the_error_of_olm() {
        let refused = |entries: &str| offered(entries).unwrap_err();
        assert_eq!(
            refused(r#"[{"name":"a","replaces":"a"}]"#),
            "no channel heads (entries not replaced by another entry) found in channel \"c\" of package \"p\""
        );
        assert_eq!(
            refused(
                r#"[{"name":"h","replaces":"a","skips":["a","b"]},{"name":"a","replaces":"b"},{"name":"b","replaces":"a"}]"#
            ),
            "a cycle exists in the chain of replacement beginning with \"h\" in channel \"c\" of package \"p\""
        );
        let several = refused(r#"[{"name":"a"},{"name":"b","replaces":"a"},{"name":"c"}]"#);
        assert!(
            several.ends_with("but 2 replacement chains were found in channel \"c\" of package \"p\": b...a, c"),
            "{several}"
        );
    }

    #[test]
    fn names_end_in_versions() {
        for (name, wanted) in [
            ("shop.v1.0.0", Some("1.0.0")),
            ("etcdoperator.0.9.4", Some("0.9.4")),
            ("3scale.v0.10.1-0.1634606167.p", Some("0.10.1-0.1634606167.p")),
            ("a.1.2.3.4", None),
            ("shop-v1.0.0", Some("1.0.0")),
            ("shop.v1.0", None),
            ("shop", None),
        ] {
            assert_eq!(
                version_in_name(name).map(|found| found.to_string()).as_deref(),
                wanted,
                "{name}"
            );
        }
    }
}
