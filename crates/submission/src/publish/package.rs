//! The upgrade graph of bundles in a directory, as the hosted index builds it.
//!
//! Rules: `opm index add` of operator-registry, which the hosted pipeline ran on each bundle. See
//! [`olmkit::catalog::index`].

use std::collections::BTreeSet;
use std::path::Path;

use olmkit::catalog::model::{Bundle, Channel, ChannelEntry, Package};
use olmkit::catalog::render::bundle::Source;
use olmkit::catalog::render::reference::ImageTemplate;
use olmkit::catalog::{Catalog, graph, index};

use super::PublishError;
use super::template::version;
use crate::bundle::OPENSHIFT;
use crate::platforms::Platforms;
use crate::python::Node;
use crate::python::text::shown;
use crate::repository::Operator;
use crate::versions::Release;

/// How channels are derived from bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Replaces,
    Semver,
}

/// A bundle of a directory with the fields that determine its position in the graph.
pub(super) struct Member {
    pub(super) blob: Bundle,
    graph: index::Member,
    /// The catalogs that it is for.
    platforms: Vec<Release>,
}

/// A bundle that the catalog will not have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Missing {
    pub(super) bundle: String,
    pub(super) channel: String,
}

/// The mode that `ci.yaml` names.
pub(super) fn mode(operator: &Operator) -> Result<Mode, PublishError> {
    let config = operator.config()?;
    if matches!(config.root.value, crate::python::Value::None) {
        return Ok(Mode::Replaces);
    }
    let mode = config.view().get("updateGraph")?;
    match mode.node.as_str() {
        Some("semver-mode") => Ok(Mode::Semver),
        Some("replaces-mode") => Ok(Mode::Replaces),
        _ if !mode.is_true() => Ok(Mode::Replaces),
        _ => {
            let problem = format!("updateGraph is {}, not replaces-mode or semver-mode", shown(mode.node));
            Err(mode.raise(problem).into())
        }
    }
}

/// Reads the bundles of an operator, oldest first.
pub(super) fn members(
    operator: &Operator,
    root: &Path,
    images: &ImageTemplate,
    platforms: &Platforms,
) -> Result<Vec<Member>, PublishError> {
    let mut members = Vec::new();
    for bundle in &operator.bundles {
        let path = bundle.root();
        let refuse = |reason: String| PublishError::Bundle {
            path: path.clone(),
            reason,
        };
        let source = Source::read(&root.join(&path)).map_err(|error| refuse(error.to_string()))?;
        let image = images.fill(source.package(), source.name(), source.version());
        let blob = source.render(&image).map_err(|error| refuse(error.to_string()))?;
        let version = version(&blob).ok_or_else(|| refuse("spec.version is not a semantic version".to_owned()))?;
        let annotation = bundle.annotations()?.get(OPENSHIFT)?;
        let range = shown(annotation.node);
        let selected = platforms.selected(annotation.is_true().then_some(range.as_str()));
        let facts = bundle.facts();
        let text = |document: &crate::python::Document| {
            let view = document.view();
            if view.is_true() {
                shown(view.node)
            } else {
                String::new()
            }
        };
        let replaces = facts.replaces.as_ref().map_err(Clone::clone)?;
        let skip_range = facts.skip_range.as_ref().map_err(Clone::clone)?;
        let skips = facts.skips.as_ref().map_err(Clone::clone)?;
        let skips = skips.root.items().iter().filter_map(Node::as_str);
        let channels = bundle.channels()?.iter().filter(|channel| !channel.is_empty());
        members.push(Member {
            graph: index::Member {
                version,
                channels: channels.cloned().collect(),
                default_channel: bundle.default_channel()?.filter(|channel| !channel.is_empty()),
                entry: ChannelEntry {
                    name: blob.name.clone(),
                    replaces: text(replaces),
                    skips: skips.map(str::to_owned).collect(),
                    skip_range: text(skip_range),
                },
            },
            platforms: selected.ok_or_else(|| {
                let problem = format!("{OPENSHIFT} is not a range of versions: {range}");
                PublishError::from(annotation.raise(problem))
            })?,
            blob,
        });
    }
    members.sort_by(|left, right| {
        let versions = index::compare(&left.graph.version, &right.graph.version);
        versions.then_with(|| left.blob.name.cmp(&right.blob.name))
    });
    Ok(members)
}

/// The versions of OpenShift that some bundle is for, oldest first.
pub(super) fn platforms(members: &[Member]) -> BTreeSet<Release> {
    members
        .iter()
        .flat_map(|member| member.platforms.iter().copied())
        .collect()
}

/// Information about bundles that the catalog of one OpenShift version loses.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Bundles that fit into no channel.
    pub(super) missing: Vec<Missing>,
    /// Channels that lose the `skips` that name bundles in their own chain.
    pub(super) unskipped: Vec<String>,
}

/// The catalog of one OpenShift version, and the information that it loses.
pub(super) fn catalog(members: &[Member], package: &str, mode: Mode, platform: Release) -> (Catalog, Losses) {
    let members: Vec<&Member> = members
        .iter()
        .filter(|member| member.platforms.contains(&platform))
        .collect();
    let members_graph: Vec<&index::Member> = members.iter().map(|member| &member.graph).collect();
    let (linked, default) = match mode {
        Mode::Semver => (
            index::semver_mode(&members_graph),
            index::semver_default_channel(&members_graph),
        ),
        Mode::Replaces => (
            index::replaces_mode(&members_graph),
            index::default_channel(&members_graph),
        ),
    };
    let (mut channels, mut losses) = (Vec::new(), Losses::default());
    let mut used: BTreeSet<String> = BTreeSet::new();
    for (name, mut entries) in linked {
        if unskip(&mut entries) {
            losses.unskipped.push(name.clone());
        }
        let names: BTreeSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let left = members
            .iter()
            .filter(|member| member.graph.channels.contains(&name) && !names.contains(member.blob.name.as_str()));
        losses.missing.extend(left.map(|member| Missing {
            bundle: member.blob.name.clone(),
            channel: name.clone(),
        }));
        used.extend(names.into_iter().map(str::to_owned));
        channels.push(Channel {
            name,
            package: package.to_owned(),
            entries: Some(entries),
            ..Channel::default()
        });
    }
    let newest = || members.last().and_then(|member| member.graph.channels.first().cloned());
    let default = default.or_else(newest).unwrap_or_default();
    let bundles = members.iter().filter(|member| used.contains(&member.blob.name));
    let catalog = Catalog {
        packages: vec![Package {
            name: package.to_owned(),
            default_channel: default,
            ..Package::default()
        }],
        channels,
        bundles: bundles.map(|member| member.blob.clone()).collect(),
        ..Catalog::default()
    };
    (catalog, losses)
}

/// Removes the `skips` that name entries of the chain of `replaces`, if opm would reject the channel because of them: its chain ends
/// at the first skipped entry, and everything below would be stranded. The published indexes have no such skips either.
fn unskip(entries: &mut [ChannelEntry]) -> bool {
    let mut chain: Vec<String> = match graph::heads(entries).as_slice() {
        [head] => vec![(*head).to_owned()],
        _ => return false,
    };
    while let Some(next) = chain
        .last()
        .and_then(|last| entries.iter().find(|entry| entry.name == *last))
        .map(|entry| entry.replaces.clone())
        .filter(|next| !next.is_empty() && !chain.contains(next))
    {
        chain.push(next);
    }
    let is_skipped = |name: &String| entries.iter().any(|entry| entry.skips.contains(name));
    let is_stranded = |name: &String| !is_skipped(name) && entries.iter().any(|entry| entry.name == *name);
    let mut below = chain.iter().skip_while(|name| !is_skipped(name)).skip(1);
    if !below.any(is_stranded) {
        return false;
    }
    for entry in entries {
        entry.skips.retain(|skip| !chain.contains(skip));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, replaces: &str, skips: &[&str]) -> ChannelEntry {
        ChannelEntry {
            name: name.to_owned(),
            replaces: replaces.to_owned(),
            skips: skips.iter().map(|&skip| skip.to_owned()).collect(),
            ..ChannelEntry::default()
        }
    }

    #[test]
    fn a_chain_through_a_skipped_bundle_keeps_the_bundle() {
        // As infinispan 2.4.9, which replaces 2.4.8 and skips 2.4.7 and 2.4.8.
        let mut entries = vec![
            entry("v6", "", &["v1"]),
            entry("v7", "v6", &[]),
            entry("v8", "v7", &[]),
            entry("v9", "v8", &["v7", "v8"]),
        ];
        assert!(unskip(&mut entries));
        let skips: Vec<usize> = entries.iter().map(|entry| entry.skips.len()).collect();
        assert_eq!(skips, [1, 0, 0, 0]);
        let mut sound = vec![
            entry("v7", "", &[]),
            entry("v8", "v7", &[]),
            entry("v9", "v8", &["v8", "v7"]),
        ];
        assert!(!unskip(&mut sound), "everything below the skipped bundle is skipped");
        assert_eq!(sound[2].skips.len(), 2);
    }
}
