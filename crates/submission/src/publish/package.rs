//! The graph of an operator whose bundles are in a folder, as the hosted index builds it from them.
//!
//! Rules: `opm index add` of operator-registry, which the hosted pipeline ran on each bundle; see [`olmkit::catalog::index`].

use std::collections::BTreeSet;
use std::path::Path;

use olmkit::catalog::model::{Bundle, Channel, ChannelEntry, Package};
use olmkit::catalog::render::bundle::Source;
use olmkit::catalog::render::reference::ImageTemplate;
use olmkit::catalog::{Catalog, index};

use super::PublishError;
use super::template::version;
use crate::bundle::OPENSHIFT;
use crate::platforms::Platforms;
use crate::python::Node;
use crate::python::text::shown;
use crate::repository::Operator;
use crate::versions::Release;

/// How channels come from bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Replaces,
    Semver,
}

/// A bundle of a folder with what makes its place in the graph.
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
    let mode = operator.config()?.view().get("updateGraph")?;
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

/// The catalog of one version of OpenShift, and the bundles that have no place in it.
pub(super) fn catalog(members: &[Member], package: &str, mode: Mode, platform: Release) -> (Catalog, Vec<Missing>) {
    let members: Vec<&Member> = members
        .iter()
        .filter(|member| member.platforms.contains(&platform))
        .collect();
    let graph: Vec<&index::Member> = members.iter().map(|member| &member.graph).collect();
    let (linked, default) = match mode {
        Mode::Semver => (index::semver_mode(&graph), index::semver_default_channel(&graph)),
        Mode::Replaces => (index::replaces_mode(&graph), index::default_channel(&graph)),
    };
    let (mut channels, mut missing) = (Vec::new(), Vec::new());
    let mut used: BTreeSet<String> = BTreeSet::new();
    for (name, entries) in linked {
        let names: BTreeSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let left = members
            .iter()
            .filter(|member| member.graph.channels.contains(&name) && !names.contains(member.blob.name.as_str()));
        missing.extend(left.map(|member| Missing {
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
    (catalog, missing)
}
