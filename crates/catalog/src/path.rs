//! `catalog path`: the upgrades that OLM v0 takes from an installed bundle, until nothing is newer.

use std::collections::BTreeSet;

use serde::Serialize;

use super::model::{Bundle, Catalog, ChannelEntry};
use super::resolver::{self, Dropped, Edge, Field, ResolveError, Resolver};
use olmkit_base::limits;
use olmkit_base::object::Version;

/// Maximum number of names in a message.
const LISTED: usize = 20;

/// One upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The installed bundle.
    pub from: String,
    /// The bundle that replaces it.
    pub to: String,
    /// The field of the channel entry that allows the upgrade.
    pub by: Field,
    /// The channel of that entry.
    pub channel: String,
    /// Other entries that name the installed bundle or its version, and why OLM does not use them.
    pub passed_over: Vec<String>,
}

/// The installed bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Its name, or a version if the catalog has no bundle with it.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// Source of the version.
    pub source: VersionSource,
}

/// Source of an installed bundle's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionSource {
    /// The bundle in the catalog.
    Catalog,
    /// The user.
    Given,
    /// The end of its name.
    Name,
    /// Nothing: OLM counts a ClusterServiceVersion without a version as 0.0.0.
    Unknown,
}

/// Final state of the upgrades.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "reason")]
pub enum End {
    /// The newest bundle that OLM installs is installed.
    Newest,
    /// The target is installed.
    Target,
    /// OLM does not upgrade a bundle that is not the newest.
    Stays(String),
    /// The upgrades never end.
    Cycle(String),
    /// The upgrades do not lead to the target.
    Past(String),
    /// OLM reports an error and upgrades nothing.
    Rejected(String),
}

/// The upgrades from an installed bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The package.
    pub package: String,
    /// The channel of the Subscription. `None` if it names no channel.
    pub channel: Option<String>,
    /// The installed bundle.
    pub from: Installed,
    /// The upgrades.
    pub steps: Vec<Step>,
    /// Their final state.
    pub end: End,
    /// Facts that the answer depends on, as sentences.
    pub notes: Vec<String>,
}

impl Path {
    /// The bundle at the end.
    pub fn last(&self) -> &str {
        self.steps.last().map_or(&self.from.name, |step| &step.to)
    }
}

/// A question about upgrades.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    /// The package.
    pub package: &'q str,
    /// The channel of the Subscription. `None` if it names no channel: OLM then searches all of them.
    pub channel: Option<&'q str>,
    /// The installed bundle: a name, a version, or `NAME@VERSION`.
    pub from: &'q str,
    /// The bundle to stop at: a name or a version.
    pub to: Option<&'q str>,
}

/// An error in finding an upgrade path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The package or channel does not exist.
    #[error("package {package:?} has no channel {channel:?}; it has: {channels}")]
    NoChannel {
        /// The package.
        package: String,
        /// The channel.
        channel: String,
        /// The channels of the package.
        channels: String,
    },
    /// The installed bundle is unknown, and so is its version.
    #[error(
        "cannot find {0:?}: no bundle or channel entry of the package has or names it, and it contains no version; use the name \
         of a ClusterServiceVersion, a version, or NAME@VERSION"
    )]
    From(String),
    /// Several bundles have the version.
    #[error("{text:?} is ambiguous: {names} have this version; use a name")]
    Ambiguous {
        /// The version.
        text: String,
        /// The bundles.
        names: String,
    },
    /// The target does not exist.
    #[error("cannot find the target {to:?}: {place} has no entry of this name or version")]
    NoTarget {
        /// The target.
        to: String,
        /// The channel.
        place: String,
    },
    /// Comparing versions with ranges would take too long.
    #[error("the skipRanges of {0} and its upgrades are too many to compare: {1}")]
    Ranges(String, String),
}

/// The upgrades that OLM v0 takes.
///
/// # Errors
/// See [`Error`]. OLM's own errors are an [`End`].
pub fn find(catalog: &Catalog, question: Question<'_>) -> Result<Path, Error> {
    let package = Package::new(catalog, question.package);
    if let Some(channel) = question.channel
        && !package.channels().any(|blob| blob.name == channel)
    {
        return Err(Error::NoChannel {
            package: limits::name(question.package),
            channel: limits::name(channel),
            channels: match listed(package.channels().map(|blob| blob.name.as_str())) {
                names if names.is_empty() => "none".to_owned(),
                names => names,
            },
        });
    }
    let from = package.installed(question.from)?;
    let mut path = Path {
        package: question.package.to_owned(),
        channel: question.channel.map(str::to_owned),
        from,
        steps: Vec::new(),
        end: End::Newest,
        notes: Vec::new(),
    };
    path.notes.extend(package.note(&path.from));
    let resolver = match Resolver::from_catalog(catalog, question.package, question.channel) {
        Ok(resolver) => resolver,
        Err(refusal) => {
            path.end = End::Rejected(rejected(&refusal));
            return Ok(path);
        }
    };
    let place = place(question.channel);
    let head = resolver.placed().first();
    if let Some(head) = head.filter(|placed| placed.dropped == Some(Dropped::Deprecated)) {
        path.notes.push(format!(
            "the head {} has the property {}, so OLM never installs it",
            limits::name(&head.entry.name),
            resolver::PROPERTY_DEPRECATED
        ));
    }
    let to = question.to.map(|text| package.target(text, &resolver)).transpose()?;
    let to = match (to, question.to) {
        (Some(None), Some(text)) => {
            return Err(Error::NoTarget {
                to: limits::name(text),
                place,
            });
        }
        (to, _) => to.flatten(),
    };
    let (mut seen, mut compared) = (BTreeSet::from([path.from.name.clone()]), 0);
    let mut version = path.from.version.clone();
    path.end = loop {
        if to.as_deref() == Some(path.last()) {
            break End::Target;
        }
        compared += resolver.cost();
        if compared > limits::RANGE_COMPARISONS.count() {
            return Err(Error::Ranges(place, limits::RANGE_COMPARISONS.exceeded().to_string()));
        }
        let at = path.last().to_owned();
        let edges = resolver.edges(&at, Some(&version));
        let Some(taken) = edges.iter().find(|edge| edge.to.dropped.is_none()) else {
            break stays(&resolver, &at, &version, &edges, &place);
        };
        let next = &taken.to.entry.name;
        if *next == at {
            break if resolver.is_newest(&at) {
                End::Newest
            } else {
                End::Stays(format!(
                    "the skipRange of {} contains its own version, so OLM takes it as its own upgrade",
                    limits::name(&at)
                ))
            };
        }
        path.steps.push(Step {
            from: at,
            to: next.clone(),
            by: taken.by,
            channel: limits::name(taken.to.channel),
            passed_over: passed_over(&edges, taken),
        });
        if !seen.insert(next.clone()) {
            let start = path
                .steps
                .iter()
                .position(|step| step.from == *next)
                .unwrap_or_default();
            let cycle = path.steps.iter().skip(start).map(|step| step.from.as_str());
            break End::Cycle(listed_with(cycle.chain([next.as_str()]), " -> "));
        }
        version = package.version_of(next);
    };
    if let (Some(to), End::Newest | End::Stays(_) | End::Cycle(_)) = (&to, &path.end) {
        let why = match &path.end {
            End::Stays(reason) => format!("OLM stays at {}: {reason}", limits::name(path.last())),
            End::Cycle(cycle) => format!("OLM upgrades in a cycle: {cycle}"),
            _ => format!(
                "OLM upgrades to {}, the newest bundle of {place}",
                limits::name(path.last())
            ),
        };
        path.end = End::Past(format!("the upgrades do not lead to {}: {why}", limits::name(to)));
    }
    Ok(path)
}

/// The channel in a message.
fn place(channel: Option<&str>) -> String {
    channel.map_or_else(
        || "all channels".to_owned(),
        |name| format!("channel {:?}", limits::name(name)),
    )
}

fn rejected(refusal: &ResolveError) -> String {
    format!("OLM upgrades nothing: {refusal}")
}

/// The end at a bundle that nothing leads on from.
fn stays(resolver: &Resolver<'_>, at: &str, version: &Version, edges: &[Edge<'_>], place: &str) -> End {
    if resolver.is_prohibited(at) {
        return End::Rejected(format!(
            "OLM upgrades nothing: bundle {} is deprecated (property {}), and no other entry of {place} replaces or skips it",
            limits::name(at),
            resolver::PROPERTY_DEPRECATED
        ));
    }
    if resolver.is_newest(at) {
        return End::Newest;
    }
    if edges.is_empty() {
        return End::Stays(format!(
            "no entry of {place} replaces or skips it, and no skipRange contains {version}"
        ));
    }
    let reasons = edges.iter().filter_map(|edge| {
        let dropped = edge.to.dropped?;
        Some(format!("{}, but OLM drops that entry: {dropped}", leads_on(edge)))
    });
    End::Stays(listed_with(reasons, "; "))
}

/// `shop.v2 skips it`
fn leads_on(edge: &Edge<'_>) -> String {
    let name = limits::name(&edge.to.entry.name);
    match edge.by {
        Field::Replaces => format!("{name} replaces it"),
        Field::Skips => format!("{name} skips it"),
        Field::SkipRange => format!("the skipRange of {name} contains its version"),
    }
}

/// The entries that OLM does not use.
fn passed_over(edges: &[Edge<'_>], taken: &Edge<'_>) -> Vec<String> {
    let others = edges.iter().filter(|edge| edge.position != taken.position);
    others
        .map(|edge| {
            let (name, by) = (limits::name(&edge.to.entry.name), edge.by.as_str());
            match edge.to.dropped {
                Some(dropped) => format!("{name} ({by}): {dropped}"),
                None if edge.to.channel != taken.to.channel => {
                    format!(
                        "{name} ({by}) in channel {}, which comes later",
                        limits::name(edge.to.channel)
                    )
                }
                None => format!("{name} ({by}) is further from the head"),
            }
        })
        .collect()
}

/// At most [`LISTED`] names.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    listed_with(names, ", ")
}

fn listed_with<N: Into<String>>(mut names: impl Iterator<Item = N>, separator: &str) -> String {
    let mut shown: Vec<String> = names.by_ref().take(LISTED).map(limits::name).collect();
    let more = names.count();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join(separator)
}

/// A package's bundles by name.
struct Package<'c> {
    catalog: &'c Catalog,
    name: &'c str,
    bundles: std::collections::HashMap<&'c str, &'c Bundle>,
}

impl<'c> Package<'c> {
    fn new(catalog: &'c Catalog, name: &'c str) -> Self {
        let mut bundles = std::collections::HashMap::new();
        for bundle in catalog.bundles.iter().filter(|bundle| bundle.package == name) {
            bundles.entry(bundle.name.as_str()).or_insert(bundle);
        }
        Package { catalog, name, bundles }
    }

    fn channels(&self) -> impl Iterator<Item = &'c super::Channel> {
        let name = self.name;
        self.catalog.channels.iter().filter(move |blob| blob.package == name)
    }

    fn entries(&self) -> impl Iterator<Item = &'c ChannelEntry> {
        self.channels().flat_map(|channel| channel.entries())
    }

    /// The names in `replaces` and `skips` of all channels.
    fn named(&self) -> BTreeSet<&'c str> {
        let names = self
            .entries()
            .flat_map(|entry| entry.skips.iter().chain([&entry.replaces]));
        names.map(String::as_str).filter(|name| !name.is_empty()).collect()
    }

    fn version_of(&self, name: &str) -> Version {
        let bundle = self.bundles.get(name);
        bundle.and_then(|bundle| resolver::version(bundle)).unwrap_or_default()
    }

    /// The bundles with a version.
    fn with_version(&self, wanted: &Version) -> Vec<&'c str> {
        let bundles = self.bundles.iter();
        let has = |bundle: &Bundle| resolver::version(bundle).is_some_and(|version| is_same(&version, wanted));
        let mut names: Vec<&str> = bundles
            .filter(|(_, bundle)| has(bundle))
            .map(|(name, _)| *name)
            .collect();
        names.sort_unstable();
        names
    }

    /// The installed bundle that a user names.
    fn installed(&self, text: &str) -> Result<Installed, Error> {
        if let Some((name, bundle)) = self.bundles.get_key_value(text) {
            let version = resolver::version(bundle);
            return Ok(Installed {
                name: (*name).to_owned(),
                source: version
                    .as_ref()
                    .map_or(VersionSource::Unknown, |_| VersionSource::Catalog),
                version: version.unwrap_or_default(),
            });
        }
        let given = |version: &str| Version::parse(version.strip_prefix('v').unwrap_or(version)).ok();
        if let Some((name, version)) = text.rsplit_once('@')
            && let Some(version) = given(version)
        {
            return Ok(Installed {
                name: name.to_owned(),
                version,
                source: VersionSource::Given,
            });
        }
        let named = self.named();
        if !named.contains(text)
            && let Some(version) = given(text)
        {
            let found = match self.with_version(&version) {
                found if found.is_empty() => {
                    let has = |name: &&str| resolver::version_in_name(name).is_some_and(|own| is_same(&own, &version));
                    named.into_iter().filter(has).collect()
                }
                found => found,
            };
            return match found.as_slice() {
                [] => Ok(Installed {
                    name: text.to_owned(),
                    version,
                    source: VersionSource::Given,
                }),
                [one] => Ok(Installed {
                    name: (*one).to_owned(),
                    version,
                    source: VersionSource::Given,
                }),
                several => Err(Error::Ambiguous {
                    text: text.to_owned(),
                    names: listed(several.iter().copied()),
                }),
            };
        }
        let version = resolver::version_in_name(text);
        if version.is_none() && !named.contains(text) {
            return Err(Error::From(limits::name(text)));
        }
        Ok(Installed {
            name: text.to_owned(),
            source: version.as_ref().map_or(VersionSource::Unknown, |_| VersionSource::Name),
            version: version.unwrap_or_default(),
        })
    }

    /// The assumption of a result about an installed bundle.
    fn note(&self, installed: &Installed) -> Option<String> {
        let Installed { name, version, source } = installed;
        let shown = limits::name(name);
        match source {
            VersionSource::Catalog => None,
            VersionSource::Unknown => Some(format!(
                "the version of {shown} is unknown, so it counts as {version}, as in OLM without spec.version; pass {shown}@VERSION"
            )),
            VersionSource::Name if self.named().contains(name.as_str()) => Some(format!(
                "the catalog names {shown}, but has no such bundle; its version counts as {version}"
            )),
            VersionSource::Name => Some(format!(
                "nothing in the package names {shown}; only a skipRange that contains {version} leads on from it"
            )),
            VersionSource::Given
                if self.bundles.contains_key(name.as_str()) || self.named().contains(name.as_str()) =>
            {
                None
            }
            VersionSource::Given => Some(format!(
                "no bundle of the package has the version {version}; only a skipRange that contains it leads on"
            )),
        }
    }

    /// The entry that a user names as a target. `None` if there is none.
    fn target(&self, text: &str, resolver: &Resolver<'_>) -> Result<Option<String>, Error> {
        let entries: BTreeSet<&str> = resolver
            .placed()
            .iter()
            .map(|placed| placed.entry.name.as_str())
            .collect();
        if entries.contains(text) {
            return Ok(Some(text.to_owned()));
        }
        let Ok(version) = Version::parse(text.strip_prefix('v').unwrap_or(text)) else {
            return Ok(None);
        };
        let mut found = self.with_version(&version);
        found.retain(|name| entries.contains(name));
        match found.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some((*one).to_owned())),
            several => Err(Error::Ambiguous {
                text: text.to_owned(),
                names: listed(several.iter().copied()),
            }),
        }
    }
}

/// Returns true if two versions are the same, build metadata included.
fn is_same(left: &Version, right: &Version) -> bool {
    left == right && left.build == right.build
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
