//! Places a new bundle in a channel by its version, so that no upgrade lowers the version unless the user requests it.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::edit::{Above, Edges, Error, Placement};
use super::graph;
use super::model::{Bundle, Catalog, ChannelEntry};
use super::property;
use olmkit_base::object::{PreRelease, Version};

/// The upgrade edges of a bundle that is added.
#[derive(Debug, Clone)]
pub enum NewEdges {
    /// As given, for every channel.
    Given(Edges),
    /// Computed from the versions in each channel.
    ByVersion,
}

/// The upgrade edges that a ClusterServiceVersion names. A file-based catalog takes its edges from channel entries only.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
struct CsvEdges {
    #[serde(default)]
    metadata: CsvMetadata,
    #[serde(default)]
    spec: CsvSpec,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
struct CsvMetadata {
    #[serde(default)]
    annotations: Option<HashMap<String, String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
struct CsvSpec {
    #[serde(default)]
    replaces: Option<String>,
    #[serde(default)]
    skips: Option<Vec<String>>,
}

/// The upgrade edges in the ClusterServiceVersion of a bundle with inline manifests.
pub fn csv_edges(bundle: &Bundle) -> Edges {
    let objects = super::objects::inline(bundle);
    let csv: CsvEdges = super::objects::csv(&objects)
        .and_then(|csv| serde_json::from_str(csv).ok())
        .unwrap_or_default();
    let mut annotations = csv.metadata.annotations.unwrap_or_default();
    Edges {
        replaces: csv.spec.replaces.filter(|name| !name.is_empty()),
        skips: csv.spec.skips.unwrap_or_default(),
        skip_range: annotations.remove("olm.skipRange").unwrap_or_default(),
    }
}

impl Placement {
    /// The edges of a ClusterServiceVersion that the channel entry does not have.
    pub fn without(&self, csv: &Edges) -> Edges {
        let own = &self.edges;
        let has = |name: &str| own.skips.iter().any(|skip| skip == name) || own.replaces.as_deref() == Some(name);
        Edges {
            replaces: csv.replaces.clone().filter(|name| !has(name)),
            skips: csv.skips.iter().filter(|name| !has(name)).cloned().collect(),
            skip_range: match own.skip_range == csv.skip_range {
                true => String::new(),
                false => csv.skip_range.clone(),
            },
        }
    }
}

/// A channel as the placement needs it.
struct Place<'c> {
    channel: &'c str,
    entries: &'c [ChannelEntry],
    versions: HashMap<&'c str, Version>,
    /// The entries that another entry skips.
    skipped: HashSet<&'c str>,
    new: &'c Bundle,
    /// The version of the new bundle, if it has a valid one.
    version: Option<Version>,
}

/// Finds the position of a bundle in a channel of its package.
///
/// # Errors
/// The catalog already has the bundle, the channel would get a second head, or its edges do not allow the version.
pub fn place(catalog: &Catalog, channel: &str, new: &Bundle, edges: &NewEdges) -> Result<Placement, Error> {
    let of_package = |package: &str| package == new.package;
    let mut bundles = catalog.bundles.iter().filter(|bundle| of_package(&bundle.package));
    if bundles.any(|bundle| bundle.name == new.name) {
        return Err(Error::Refused(format!("{} already exists in the catalog", new.name)));
    }
    let found = catalog
        .channels
        .iter()
        .find(|other| of_package(&other.package) && other.name == channel);
    let bundles = catalog.bundles.iter().filter(|bundle| of_package(&bundle.package));
    let entries = found.map(|channel| channel.entries()).unwrap_or_default();
    let skips = entries.iter().flat_map(|entry| {
        let others = entry.skips.iter().filter(move |skip| **skip != entry.name);
        others.map(String::as_str)
    });
    let place = Place {
        channel,
        entries,
        skipped: skips.collect(),
        versions: bundles
            .filter_map(|bundle| Some((bundle.name.as_str(), version(bundle)?)))
            .collect(),
        new,
        version: version(new),
    };
    match edges {
        NewEdges::Given(edges) => place.given(edges.clone()),
        NewEdges::ByVersion => place.by_version(),
    }
    .map_err(Error::Refused)
}

fn version(bundle: &Bundle) -> Option<Version> {
    let packages = property::parse(bundle).ok()?;
    Version::parse(&packages.first()?.version).ok()
}

/// Compares versions, and the build metadata of equal ones like pre-releases. OLM ignores build metadata, but a bundle that is added
/// with a lower build number is not newer.
fn compare(left: &Version, right: &Version) -> Ordering {
    let build = |version: &Version| -> Vec<PreRelease> {
        let number = |part: &String| match part.parse() {
            Ok(number) => PreRelease::Number(number),
            Err(_) => PreRelease::Word(part.clone()),
        };
        version.build.iter().map(number).collect()
    };
    left.cmp(right).then_with(|| build(left).cmp(&build(right)))
}

impl Place<'_> {
    fn given(&self, mut edges: Edges) -> Result<Placement, String> {
        let heads = graph::heads(self.entries);
        let newer = self.newer();
        // An entry that already names the bundle makes it reachable, or skips it.
        let is_named = self.entries.iter().any(|entry| self.names_new(entry));
        let head = match (heads.as_slice(), &edges.replaces) {
            ([head], _) => *head,
            ([], _) => "",
            (many, None) if !is_named => {
                return Err(self.several_heads(many));
            }
            _ => "",
        };
        let lifts_head = edges.skips.iter().any(|skip| skip == head) || edges.replaces.as_deref() == Some(head);
        let is_older = self.version_of(head).zip(self.version.as_ref());
        let is_older = is_older.is_some_and(|(head, new)| compare(new, head).is_lt());
        if is_named {
            let below = self.below().map(|(name, _)| name).unwrap_or_default();
            edges.replaces = Some(edges.replaces.unwrap_or_else(|| self.not_skipped(below, &edges.skips)));
            return Ok(Placement {
                edges,
                ..Placement::default()
            });
        }
        if !head.is_empty() && is_older && !lifts_head {
            let above = self.successor(edges.replaces.as_deref())?;
            let below = self.below().map(|(name, _)| name).unwrap_or_default();
            edges.replaces = Some(edges.replaces.unwrap_or_else(|| self.not_skipped(below, &edges.skips)));
            return Ok(Placement {
                edges,
                above: Some(Above::Replaces(above.to_owned())),
                lowers: None,
            });
        }
        let replaces = edges
            .replaces
            .get_or_insert_with(|| self.not_skipped(head, &edges.skips));
        if !head.is_empty() && !lifts_head && replaces != head {
            return Err(self.two_heads(head, replaces));
        }
        Ok(Placement {
            edges,
            above: None,
            lowers: newer.map(str::to_owned),
        })
    }

    /// The new bundle replaces the highest version of the earlier minor versions and skips the lower ones of its
    /// minor version.
    fn by_version(&self) -> Result<Placement, String> {
        let mut edges = self.semver_edges();
        let Some(next) = self.next_above() else {
            let heads = graph::heads(self.entries);
            let placement = Placement {
                edges,
                ..Placement::default()
            };
            let names = |head: &str| {
                placement.edges.replaces.as_deref() == Some(head)
                    || placement.edges.skips.iter().any(|skip| skip == head)
            };
            return match heads.as_slice() {
                [head] if !names(head) => {
                    Err(self.two_heads(head, placement.edges.replaces.as_deref().unwrap_or_default()))
                }
                _ => Ok(placement),
            };
        };
        let is_named = self.entries.iter().any(|entry| self.names_new(entry));
        let above = if is_named {
            None
        } else if self.is_same_minor(self.version_of(next)) {
            Some(Above::Skips(next.to_owned()))
        } else {
            Some(Above::Replaces(self.successor(None)?.to_owned()))
        };
        // OLM drops what a skipped entry skips, too.
        if matches!(above, Some(Above::Skips(_))) || self.is_skipped(&self.new.name) {
            edges.skips.retain(|name| self.is_skipped(name));
        }
        Ok(Placement {
            edges,
            above,
            lowers: None,
        })
    }

    fn semver_edges(&self) -> Edges {
        let Some(own) = &self.version else {
            return Edges::default();
        };
        let mut below: Vec<(&Version, &str)> = self
            .entries
            .iter()
            .filter_map(|entry| Some((self.version_of(&entry.name)?, entry.name.as_str())))
            .filter(|(version, _)| compare(version, own).is_lt())
            .collect();
        below.sort_by(|left, right| compare(left.0, right.0).then_with(|| left.1.cmp(right.1)));
        let replaces = below
            .iter()
            .rev()
            .find(|(version, _)| !self.is_same_minor(Some(version)))
            .map(|(_, name)| (*name).to_owned());
        let skips = below
            .iter()
            .filter(|(version, _)| self.is_same_minor(Some(version)))
            .map(|(_, name)| (*name).to_owned())
            .collect();
        Edges {
            replaces: Some(replaces.unwrap_or_default()),
            skips,
            skip_range: String::new(),
        }
    }

    /// The entry that replaces the predecessor of the new bundle and has a higher version: the new bundle fits between them.
    fn successor(&self, replaces: Option<&str>) -> Result<&str, String> {
        let below = self.below().map(|(name, _)| name).unwrap_or_default();
        let predecessor = replaces.unwrap_or(below);
        let next = self.next_above().unwrap_or_default();
        let found = self.kept().find(|entry| {
            let is_above = self.version_of(&entry.name).zip(self.version.as_ref());
            let is_above = is_above.is_some_and(|(other, new)| compare(other, new).is_gt());
            let is_next = replaces.is_some() || entry.name == next;
            is_above && is_next && entry.replaces == predecessor
        });
        if let Some(entry) = found.filter(|_| !self.is_skipped(predecessor)) {
            return Ok(&entry.name);
        }
        let reason = match (predecessor, found) {
            (_, Some(_)) => format!("{predecessor} is skipped"),
            ("", None) => format!("{next} replaces a bundle that the channel does not contain"),
            (_, None) => format!("no newer entry replaces {predecessor}"),
        };
        Err(self.no_place(next, &reason))
    }

    /// The error for a bundle that fits nowhere, with the two changes that would make it fit.
    fn no_place(&self, next: &str, reason: &str) -> String {
        let name = &self.new.name;
        format!(
            "channel {} has no place for {name}, which is older than {next}: {reason}. Add {name} to a separate channel with \
             --channel NAME --create-channel, or add it to `skips` of {next} and repeat the command",
            self.channel
        )
    }

    /// The entry that a bundle replaces if it follows an entry and skips some: skipped ones have no edge to what they replace.
    fn not_skipped(&self, name: &str, skips: &[String]) -> String {
        let mut name = name;
        // A chain of `replaces` may be a cycle.
        for _ in self.entries {
            match self.entries.iter().find(|entry| entry.name == name) {
                Some(entry) if skips.contains(&entry.name) => name = &entry.replaces,
                _ => break,
            }
        }
        name.to_owned()
    }

    /// The error for a channel with several heads, and the flags that join them: the newest is replaced, the others are skipped.
    fn several_heads(&self, heads: &[&str]) -> String {
        let version = |name: &&&str| self.version_of(name).cloned().unwrap_or_default();
        let newest = heads
            .iter()
            .max_by(|left, right| compare(&version(left), &version(right)));
        let newest = newest.copied().unwrap_or_default();
        let others: Vec<&str> = heads.iter().copied().filter(|head| *head != newest).collect();
        format!(
            "channel {} has several heads ({}); to join them, use --replaces {newest} --skips {}",
            self.channel,
            heads.join(", "),
            others.join(",")
        )
    }

    /// The error for a second head, which both opm and OLM reject.
    fn two_heads(&self, head: &str, replaces: &str) -> String {
        let reason = match replaces {
            "" => "it replaces nothing".to_owned(),
            replaces if !self.entries.iter().any(|entry| entry.name == replaces) => {
                format!("the channel has no entry {replaces}")
            }
            replaces => format!("{replaces} is not its head"),
        };
        format!(
            "channel {} would have two heads, {head} and {}: {reason}; use --replaces {head} or --skips {head}",
            self.channel, self.new.name
        )
    }

    fn version_of(&self, name: &str) -> Option<&Version> {
        self.versions.get(name)
    }

    fn is_same_minor(&self, other: Option<&Version>) -> bool {
        let pair = self.version.as_ref().zip(other);
        pair.is_some_and(|(own, other)| (own.major, own.minor) == (other.major, other.minor))
    }

    fn names_new(&self, entry: &ChannelEntry) -> bool {
        entry.replaces == self.new.name || entry.skips.contains(&self.new.name)
    }

    fn versioned(&self) -> impl Iterator<Item = (&str, &Version)> {
        let entries = self.entries.iter().map(|entry| entry.name.as_str());
        entries.filter_map(|name| Some((name, self.version_of(name)?)))
    }

    /// The entry with the highest version below the new one.
    fn below(&self) -> Option<(&str, &Version)> {
        let own = self.version.as_ref()?;
        self.versioned()
            .filter(|(_, version)| compare(version, own).is_lt())
            .max_by(|left, right| compare(left.1, right.1))
    }

    /// The entry with the lowest version above the new one. OLM drops skipped entries with their edges, so they do not count.
    fn next_above(&self) -> Option<&str> {
        let own = self.version.as_ref()?;
        let above = self
            .versioned()
            .filter(|(name, version)| compare(version, own).is_gt() && !self.is_skipped(name));
        Some(above.min_by(|left, right| compare(left.1, right.1))?.0)
    }

    /// The entries that no other entry skips.
    fn kept(&self) -> impl Iterator<Item = &ChannelEntry> {
        self.entries.iter().filter(|entry| !self.is_skipped(&entry.name))
    }

    fn is_skipped(&self, name: &str) -> bool {
        self.skipped.contains(name)
    }

    /// The entry with the highest version, if that is higher than the new one.
    fn newer(&self) -> Option<&str> {
        let own = self.version.as_ref()?;
        let above = self.versioned().filter(|(_, version)| compare(version, own).is_gt());
        Some(above.max_by(|left, right| compare(left.1, right.1))?.0)
    }
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
