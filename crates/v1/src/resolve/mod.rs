//! The bundle that OLM v1 installs for a ClusterExtension from a set of catalogs, and the reasons against the others.

mod candidate;
mod installed;

use std::fmt;

use serde::Serialize;

use super::VersionRange;
use candidate::Blobs;
use olmkit_catalog::Catalog;
use olmkit_go::strconv::quote;

pub use installed::{Installed, InstalledError};

/// A catalog on the cluster.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its name in answers.
    pub name: String,
    /// `spec.priority` of the ClusterCatalog.
    pub priority: i32,
    /// Its contents.
    pub catalog: Catalog,
}

/// `spec.source.catalog.upgradeConstraintPolicy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Only upgrades for which the catalog has an edge.
    #[default]
    CatalogProvided,
    /// Any version, older ones too.
    SelfCertified,
}

/// A ClusterExtension's selection.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The package.
    pub package: String,
    /// The allowed versions. All if not given.
    pub version: Option<VersionRange>,
    /// The allowed channels. All if empty.
    pub channels: Vec<String>,
    /// The installed bundle.
    pub installed: Option<Installed>,
    /// True if upgrades need edges.
    pub policy: Policy,
}

/// Why nothing is installed, with OLM v1's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unresolved(String);

/// Result for a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Outcome {
    /// OLM v1 installs it.
    Chosen,
    /// It is the choice, which is then rejected.
    Refused,
    /// It was eligible, but another one precedes it.
    Behind,
    /// The request or the edges of the catalog exclude it.
    Excluded,
}

/// A bundle of the package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The catalog that has it.
    pub catalog: String,
    /// Its name.
    pub bundle: String,
    /// Its version, if it has a readable one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its image.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// True if the catalog deprecates it.
    pub deprecated: bool,
    /// The result.
    pub outcome: Outcome,
    /// The reasons. Several if several conditions exclude it.
    pub reasons: Vec<String>,
}

/// The answer for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolution {
    /// All bundles of the package: the catalogs as given, in each the eligible bundles in OLM v1's order, then the
    /// others.
    pub candidates: Vec<Candidate>,
    /// Why nothing is installed.
    pub refusal: Option<Unresolved>,
    /// Messages of deprecations that concern the choice: package, channels and bundle.
    pub deprecations: Vec<String>,
    /// Names of catalogs without the package.
    pub without_package: Vec<String>,
}

impl Resolution {
    /// The bundle that OLM v1 installs.
    #[must_use]
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates
            .iter()
            .find(|candidate| candidate.outcome == Outcome::Chosen)
    }
}

/// The best bundle of a catalog.
struct Best<'s> {
    source: &'s Source,
    /// Its index among all candidates.
    at: usize,
    deprecated: bool,
}

/// Determines the bundle that OLM v1 installs.
#[must_use]
pub fn resolve(request: &Request, sources: &[Source]) -> Resolution {
    let mut resolution = Resolution {
        candidates: Vec::new(),
        refusal: None,
        deprecations: Vec::new(),
        without_package: Vec::new(),
    };
    let mut found: Vec<Best<'_>> = Vec::new();
    let mut passed: Vec<Best<'_>> = Vec::new();
    for source in sources {
        let blobs = Blobs::new(&source.catalog, &request.package);
        if blobs.is_empty() {
            resolution.without_package.push(source.name.clone());
            continue;
        }
        let at = resolution.candidates.len();
        let candidates = blobs.candidates(&source.name, request);
        let best = candidates.first().filter(|first| first.outcome != Outcome::Excluded);
        let best = best.map(|best| Best {
            source,
            at,
            deprecated: best.deprecated,
        });
        resolution.candidates.extend(candidates);
        let Some(best) = best else { continue };
        match found.last().map(|last| last.deprecated) {
            Some(false) if best.deprecated => passed.push(best),
            Some(true) if !best.deprecated => {
                passed.append(&mut found);
                found.push(best);
            }
            _ => found.push(best),
        }
    }
    for passed in &passed {
        let reason = "it is deprecated, and another catalog has one that is not";
        resolution.behind(passed.at, reason.to_owned());
    }
    found.sort_by_key(|best| std::cmp::Reverse(best.source.priority));
    if let [first, second, ..] = found.as_slice()
        && first.source.priority != second.source.priority
    {
        for lower in found.split_off(1) {
            let reason = format!("its catalog has the lower priority {}", lower.source.priority);
            resolution.behind(lower.at, reason);
        }
    }
    match found.as_slice() {
        [only] => resolution.settle(request, only),
        several => {
            for best in several {
                let reason = "several catalogs of the same priority have one; set priorities, or a selector";
                resolution.behind(best.at, reason.to_owned());
            }
            resolution.refusal = Some(Unresolved(no_choice(request, several)));
        }
    }
    resolution
}

impl Resolution {
    fn behind(&mut self, at: usize, reason: String) {
        if let Some(candidate) = self.candidates.get_mut(at) {
            candidate.outcome = Outcome::Behind;
            candidate.reasons = vec![reason];
        }
    }

    /// Checks the only choice as OLM v1 does.
    fn settle(&mut self, request: &Request, best: &Best<'_>) {
        let blobs = Blobs::new(&best.source.catalog, &request.package);
        let Some(candidate) = self.candidates.get_mut(best.at) else {
            return;
        };
        self.deprecations = blobs.deprecations(&candidate.bundle);
        match blobs.refusal(&candidate.bundle) {
            None => candidate.outcome = Outcome::Chosen,
            Some(refusal) => {
                candidate.outcome = Outcome::Refused;
                candidate.reasons = vec![refusal.hint];
                self.refusal = Some(Unresolved(refusal.text));
            }
        }
    }
}

fn no_choice(request: &Request, found: &[Best<'_>]) -> String {
    let mut text = String::new();
    if let Some(installed) = &request.installed {
        let version = quote(installed.version());
        text.push_str(&format!("error upgrading from currently installed version {version}: "));
    }
    let found_any = if found.len() > 1 {
        "found bundles"
    } else {
        "no bundles found"
    };
    text.push_str(&format!("{found_any} for package {}", quote(&request.package)));
    if let Some(version) = &request.version {
        text.push_str(&format!(" matching version {}", quote(version.text())));
    }
    if !request.channels.is_empty() {
        text.push_str(&format!(" in channels [{}]", request.channels.join(" ")));
    }
    if found.len() > 1 {
        let mut names: Vec<&str> = found.iter().map(|best| best.source.name.as_str()).collect();
        names.sort_unstable();
        text.push_str(&format!(
            " in multiple catalogs with the same priority [{}]",
            names.join(" ")
        ));
    }
    text
}

impl fmt::Display for Policy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Policy::CatalogProvided => "CatalogProvided",
            Policy::SelfCertified => "SelfCertified",
        })
    }
}

#[cfg(test)]
mod tests;
