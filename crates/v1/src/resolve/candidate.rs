//! The bundles of a package in one catalog: the eligible ones, and their order.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::installed::{self, Installed, VersionRelease};
use super::{Candidate, Outcome, Policy, Request};
use crate::dependencies::REFUSED;
use olmkit_base::limits;
use olmkit_base::object::VersionRange;
use olmkit_catalog::model::{self, Catalog, Channel, ChannelEntry};
use olmkit_catalog::{Bundle, model::DeprecationEntry};
use olmkit_go::strconv::quote;

/// An entry with the name of its channel.
type Entry<'c> = (&'c str, &'c ChannelEntry);

/// The blobs of a package.
pub(super) struct Blobs<'c> {
    named: bool,
    channels: Vec<&'c Channel>,
    bundles: Vec<&'c Bundle>,
    /// Of the first `olm.deprecations`; OLM v1 reads no other.
    deprecated: &'c [DeprecationEntry],
}

/// Why OLM v1 does not install its choice.
pub(super) struct InstallError {
    pub text: String,
    pub hint: String,
}

impl<'c> Blobs<'c> {
    pub(super) fn new(catalog: &'c Catalog, package: &str) -> Self {
        let deprecations = catalog.deprecations.iter().find(|blob| blob.package == package);
        Self {
            named: deprecations.is_some()
                || catalog.packages.iter().any(|blob| blob.name == package)
                || catalog.customs.iter().any(|blob| blob.package == package),
            channels: catalog.channels.iter().filter(|blob| blob.package == package).collect(),
            bundles: catalog.bundles.iter().filter(|blob| blob.package == package).collect(),
            deprecated: deprecations
                .and_then(|blob| blob.entries.as_deref())
                .unwrap_or_default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.named && self.channels.is_empty() && self.bundles.is_empty()
    }

    /// The bundles in OLM v1's order, followed by the excluded ones.
    pub(super) fn candidates(&self, catalog: &str, request: &Request) -> Vec<Candidate> {
        let channels: Vec<&Channel> = self
            .channels
            .iter()
            .copied()
            .filter(|channel| request.channels.is_empty() || request.channels.contains(&channel.name))
            .collect();
        // A package may have as many entries as bundles.
        let mut entries: HashMap<&str, Vec<Entry<'_>>> = HashMap::new();
        for channel in channels {
            for entry in channel.entries() {
                entries.entry(&entry.name).or_default().push((&channel.name, entry));
            }
        }
        let deprecated = self.deprecated.iter().filter(|entry| entry.schema == model::BUNDLE);
        let deprecated: HashSet<&str> = deprecated.map(|entry| entry.name.as_str()).collect();
        let mut all: Vec<(Candidate, Result<VersionRelease, String>)> = Vec::new();
        for bundle in &self.bundles {
            let version = VersionRelease::from_bundle(bundle);
            let entries = entries.get(bundle.name.as_str()).map_or(&[][..], Vec::as_slice);
            let (eligible, reasons) = eligible(version.as_ref(), entries, request);
            let candidate = Candidate {
                catalog: catalog.to_owned(),
                bundle: bundle.name.clone(),
                version: installed::written(bundle).ok(),
                image: bundle.image.clone(),
                deprecated: deprecated.contains(bundle.name.as_str()),
                outcome: if eligible { Outcome::Behind } else { Outcome::Excluded },
                reasons,
            };
            all.push((candidate, version));
        }
        all.sort_by(|(one, one_version), (other, other_version)| {
            let excluded = |candidate: &Candidate| candidate.outcome == Outcome::Excluded;
            excluded(one)
                .cmp(&excluded(other))
                .then(one.deprecated.cmp(&other.deprecated))
                .then_with(|| match (one_version, other_version) {
                    (Ok(one), Ok(other)) => other.compare(one),
                    (one, other) => other.is_ok().cmp(&one.is_ok()),
                })
        });
        behind(&mut all);
        all.into_iter().map(|(candidate, _)| candidate).collect()
    }

    /// The catalog's deprecation messages for the package, for the channels with the bundle, and for the bundle.
    pub(super) fn deprecations(&self, bundle: &str) -> Vec<String> {
        let has = |channel: &&&Channel| channel.entries().iter().any(|entry| entry.name == bundle);
        let channels: Vec<&str> = self.channels.iter().filter(has).map(|one| one.name.as_str()).collect();
        self.deprecated
            .iter()
            .filter_map(|entry| {
                let what = match entry.schema.as_str() {
                    model::PACKAGE => "the package".to_owned(),
                    model::CHANNEL if channels.contains(&entry.name.as_str()) => format!("channel {}", entry.name),
                    model::BUNDLE if entry.name == bundle => entry.name.clone(),
                    _ => return None,
                };
                Some(format!("{what} is deprecated: {}", entry.message))
            })
            .collect()
    }

    /// Why OLM v1 does not install a bundle although it chose it.
    pub(super) fn refusal(&self, name: &str) -> Option<InstallError> {
        let bundle = self.bundles.iter().find(|bundle| bundle.name == name)?;
        let quoted = quote(name);
        if let Err(reason) = VersionRelease::from_bundle(bundle) {
            return Some(InstallError {
                text: format!("error getting resolved bundle version for bundle {quoted}: {reason}"),
                hint: format!("its version cannot be read: {reason}"),
            });
        }
        let dependency = bundle
            .properties
            .iter()
            .find(|property| REFUSED.contains(&property.kind.as_str()))?;
        let kind = &dependency.kind;
        Some(InstallError {
            text: format!(
                "validating bundle {quoted}: bundle {quoted} has a dependency declared via property {} which is currently not supported",
                quote(kind)
            ),
            hint: format!(
                "it declares a dependency ({kind}), and OLM v1 resolves none; it tries no other bundle, so name a version without one"
            ),
        })
    }
}

/// Explains for each eligible bundle except the first why another one precedes it.
fn behind(all: &mut [(Candidate, Result<VersionRelease, String>)]) {
    let Some(((best, best_version), rest)) = all.split_first_mut() else {
        return;
    };
    let name = limits::name(&best.bundle);
    for (candidate, version) in rest {
        if candidate.outcome == Outcome::Excluded {
            continue;
        }
        let lower = match (&*version, &*best_version) {
            (Ok(version), Ok(best)) => version.compare(best) != Ordering::Equal,
            (Err(_), Ok(_)) => true,
            _ => false,
        };
        candidate.reasons = vec![if candidate.deprecated && !best.deprecated {
            format!("it is deprecated, and {name} is not")
        } else if lower {
            format!("{name} is newer")
        } else {
            format!("it has the same version as {name}, which precedes it in the catalog")
        }];
    }
}

/// Returns true if a request and the edges allow a bundle. Why not, or how it is reached.
fn eligible(
    version: Result<&VersionRelease, &String>,
    entries: &[Entry<'_>],
    request: &Request,
) -> (bool, Vec<String>) {
    let mut reasons = Vec::new();
    if !request.channels.is_empty() && entries.is_empty() {
        reasons.push(format!("it is not in {}", or(&request.channels)));
    }
    if let Some(range) = &request.version {
        match version {
            Err(reason) => reasons.push(format!("its version cannot be read: {reason}")),
            Ok(found) if !range.contains(&found.version) => {
                let pre_release = !found.version.pre_release.is_empty() && !range.names_pre_release();
                reasons.push(format!(
                    "its version is outside {}{}",
                    range.text(),
                    if pre_release {
                        ", which names no pre-release and so contains none"
                    } else {
                        ""
                    }
                ));
            }
            Ok(_) => {}
        }
    }
    let mut how = Vec::new();
    if let Some(installed) = request
        .installed
        .as_ref()
        .filter(|_| request.policy == Policy::CatalogProvided)
    {
        match successor(version, entries, installed) {
            Some(edge) => how.push(edge),
            None => reasons.push(no_edge(entries, installed, !request.channels.is_empty())),
        }
    }
    // Each bundle repeats names of the others, and of the channel.
    let short = |texts: Vec<String>| texts.into_iter().map(limits::message).collect();
    if reasons.is_empty() {
        (true, short(how))
    } else {
        (false, short(reasons))
    }
}

fn or(names: &[String]) -> String {
    match names {
        [one] => format!("channel {one}"),
        several => format!("any of the channels {}", several.join(", ")),
    }
}

/// How a bundle succeeds the installed one.
fn successor(
    version: Result<&VersionRelease, &String>,
    entries: &[Entry<'_>],
    installed: &Installed,
) -> Option<String> {
    if version.is_ok_and(|version| version.compare(&installed.version) == Ordering::Equal) {
        return Some("it has the installed version".to_owned());
    }
    entries.iter().find_map(|(channel, entry)| {
        // An unknown name is empty, like the `replaces` of an entry without it; OLM v1 always has a name.
        let name = Some(installed.name()).filter(|name| !name.is_empty());
        if name == Some(entry.replaces.as_str()) {
            return Some(format!("it replaces {} in channel {channel}", entry.replaces));
        }
        if let Some(name) = name.filter(|name| entry.skips.iter().any(|skip| skip == name)) {
            return Some(format!("it skips {name} in channel {channel}"));
        }
        let range = VersionRange::parse(&entry.skip_range).ok()?;
        range.contains(installed.plain()).then(|| {
            format!(
                "its skipRange {} in channel {channel} contains {}",
                quote(&entry.skip_range),
                installed.version()
            )
        })
    })
}

fn no_edge(entries: &[Entry<'_>], installed: &Installed, selected: bool) -> String {
    let mut edges: Vec<String> = Vec::new();
    for (_, entry) in entries {
        if !entry.replaces.is_empty() {
            edges.push(format!("replaces {}", entry.replaces));
        }
        if !entry.skips.is_empty() {
            edges.push(format!("skips {}", entry.skips.join(", ")));
        }
        if !entry.skip_range.is_empty() {
            edges.push(format!("has skipRange {}", quote(&entry.skip_range)));
        }
    }
    edges.sort();
    edges.dedup();
    let from = if installed.name().is_empty() {
        installed.version()
    } else {
        installed.name()
    };
    let only = if selected { " in the selected channels" } else { "" };
    if edges.is_empty() {
        format!("no edge leads from {from} to it{only}")
    } else {
        format!("no edge leads from {from} to it{only}: it {}", edges.join(", "))
    }
}
