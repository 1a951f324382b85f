//! Adds bundles to a catalog one after the other, each to the channels in its annotations, as `opm index add` does.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::graph;
use super::model::{Bundle, Catalog, Channel, ChannelEntry, Icon, Package};
use super::{objects, property};
use olmkit_base::object::Version;

const CHANNELS: &str = "operators.operatorframework.io.bundle.channels.v1";
const DEFAULT_CHANNEL: &str = "operators.operatorframework.io.bundle.channel.default.v1";

/// How upgrade edges are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// From `replaces`, `skips` and the skip range of each ClusterServiceVersion.
    #[default]
    Replaces,
    /// Each version of a channel replaces the next lower one.
    Semver,
    /// The highest patch of each minor version replaces that of the one below. Lower patches are skipped.
    SemverSkipPatch,
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "replaces" => Ok(Mode::Replaces),
            "semver" => Ok(Mode::Semver),
            "semver-skippatch" => Ok(Mode::SemverSkipPatch),
            other => Err(format!(
                "{other:?} is not a mode; use replaces, semver or semver-skippatch"
            )),
        }
    }
}

/// The channels that a bundle's annotations name.
#[derive(Debug, Clone, Default)]
pub struct Channels {
    /// All of them.
    pub names: Vec<String>,
    /// The default. Empty if not named.
    pub default: String,
}

impl Channels {
    /// Reads the labels of a bundle image.
    #[must_use]
    pub fn from_labels(labels: &BTreeMap<String, String>) -> Self {
        let label = |key: &str| labels.get(key).map(String::as_str).unwrap_or_default();
        Self::parse(label(CHANNELS), label(DEFAULT_CHANNEL))
    }

    /// Reads the values of the two annotations.
    pub fn parse(names: &str, default: &str) -> Self {
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        Channels {
            names: names.map(str::to_owned).collect(),
            default: default.trim().to_owned(),
        }
    }
}

/// Why a bundle cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is in the catalog.
    #[error(
        "bundle {0} already exists in the catalog; --overwrite-latest replaces it if it is the head of its channels"
    )]
    Known(String),
    /// It names no channel.
    #[error("bundle {0} names no channel; set its annotation operators.operatorframework.io.bundle.channels.v1")]
    NoChannel(String),
    /// It is to be replaced but is not a head.
    #[error("bundle {0} is not the head of channel {1}; only heads can be overwritten")]
    NotTheHead(String, String),
}

/// Fields of the ClusterServiceVersion about upgrades and about the package.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Csv {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Metadata {
    annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Spec {
    replaces: String,
    skips: Vec<String>,
    icon: Vec<CsvIcon>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct CsvIcon {
    base64data: String,
    mediatype: String,
}

/// Adds a bundle that still carries its manifests to the channels it names.
///
/// # Errors
/// It exists already, or names no channel.
pub fn add(
    catalog: &mut Catalog,
    bundle: Bundle,
    channels: &Channels,
    mode: Mode,
    overwrite: bool,
) -> Result<(), Error> {
    let Some(first) = channels.names.first() else {
        return Err(Error::NoChannel(bundle.name));
    };
    let csv: Csv = objects::csv(&objects::inline(&bundle))
        .and_then(|csv| serde_json::from_str(csv).ok())
        .unwrap_or_default();
    let same = |other: &Bundle| other.package == bundle.package && other.name == bundle.name;
    if catalog.bundles.iter().any(same) {
        if !overwrite {
            return Err(Error::Known(bundle.name));
        }
        take_out(catalog, &bundle)?;
    }
    let default = if channels.default.is_empty() {
        first
    } else {
        &channels.default
    };
    package(catalog, &bundle.package, default, &csv.spec.icon);
    let entry = ChannelEntry {
        name: bundle.name.clone(),
        replaces: csv.spec.replaces,
        skips: csv.spec.skips,
        skip_range: csv
            .metadata
            .annotations
            .get("olm.skipRange")
            .cloned()
            .unwrap_or_default(),
    };
    let package = bundle.package.clone();
    catalog.bundles.push(bundle);
    for name in &channels.names {
        let known = catalog
            .channels
            .iter()
            .position(|channel| channel.package == package && channel.name == *name);
        let at = known.unwrap_or_else(|| {
            catalog.channels.push(Channel {
                name: name.clone(),
                package: package.clone(),
                ..Channel::default()
            });
            catalog.channels.len() - 1
        });
        let Some(channel) = catalog.channels.get_mut(at) else {
            continue;
        };
        let entries = channel.entries.get_or_insert_default();
        entries.push(entry.clone());
        if mode != Mode::Replaces {
            by_version(entries, &catalog.bundles, mode);
        }
    }
    Ok(())
}

/// Removes a bundle from all channels, in which it must be the head.
fn take_out(catalog: &mut Catalog, bundle: &Bundle) -> Result<(), Error> {
    for channel in catalog
        .channels
        .iter_mut()
        .filter(|channel| channel.package == bundle.package)
    {
        let Some(entries) = &mut channel.entries else { continue };
        if entries.iter().all(|entry| entry.name != bundle.name) {
            continue;
        }
        if !graph::heads(entries).contains(&bundle.name.as_str()) {
            return Err(Error::NotTheHead(bundle.name.clone(), channel.name.clone()));
        }
        entries.retain(|entry| entry.name != bundle.name);
    }
    catalog
        .bundles
        .retain(|other| other.package != bundle.package || other.name != bundle.name);
    Ok(())
}

/// Creates the package's blob, or updates its default channel.
fn package(catalog: &mut Catalog, name: &str, default: &str, icons: &[CsvIcon]) {
    if !catalog.packages.iter().any(|package| package.name == name) {
        catalog.packages.push(Package {
            name: name.to_owned(),
            ..Package::default()
        });
    }
    let icon = icons
        .first()
        .filter(|icon| !icon.base64data.is_empty())
        .map(|icon| Icon {
            data: Some(icon.base64data.clone()),
            media_type: icon.mediatype.clone(),
        });
    for package in catalog.packages.iter_mut().filter(|package| package.name == name) {
        default.clone_into(&mut package.default_channel);
        if icon.is_some() {
            package.icon.clone_from(&icon);
        }
    }
}

/// Orders entries by version and links them again.
fn by_version(entries: &mut Vec<ChannelEntry>, bundles: &[Bundle], mode: Mode) {
    let version = |name: &str| -> Version {
        let bundle = bundles.iter().find(|bundle| bundle.name == name);
        let packages = bundle
            .and_then(|bundle| property::parse(bundle).ok())
            .unwrap_or_default();
        let text = packages
            .first()
            .map(|package| package.version.as_str())
            .unwrap_or_default();
        Version::parse(text).unwrap_or_default()
    };
    let mut ordered: Vec<(Version, ChannelEntry)> =
        entries.drain(..).map(|entry| (version(&entry.name), entry)).collect();
    ordered.sort_by(|left, right| left.0.cmp(&right.0));
    let (mut below, mut patches): (Option<(Version, String)>, Vec<String>) = (None, Vec::new());
    // The highest patch of the minor version before the current one.
    let mut line_before = String::new();
    for (version, entry) in &mut ordered {
        entry.replaces = below.as_ref().map(|(_, name)| name.clone()).unwrap_or_default();
        entry.skips = Vec::new();
        if mode == Mode::SemverSkipPatch {
            let same_line = below
                .as_ref()
                .is_some_and(|(below, _)| (below.major, below.minor) == (version.major, version.minor));
            if !same_line {
                line_before.clone_from(&entry.replaces);
                patches.clear();
            }
            entry.replaces.clone_from(&line_before);
            entry.skips.clone_from(&patches);
            patches.push(entry.name.clone());
        }
        below = Some((version.clone(), entry.name.clone()));
    }
    entries.extend(ordered.into_iter().map(|(_, entry)| entry));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Property;
    use crate::validate;

    fn bundle(version: &str, csv: &str) -> Bundle {
        use base64::Engine as _;
        let data = base64::engine::general_purpose::STANDARD.encode(csv);
        let property = |kind: &str, value: String| Property {
            kind: kind.into(),
            value: Some(value),
        };
        Bundle {
            name: format!("p.v{version}"),
            package: "p".into(),
            image: format!("r.io/p:v{version}"),
            properties: vec![
                property(
                    "olm.package",
                    format!("{{\"packageName\":\"p\",\"version\":\"{version}\"}}"),
                ),
                property("olm.bundle.object", format!("{{\"data\":\"{data}\"}}")),
            ],
            ..Bundle::default()
        }
    }

    fn edges(mode: Mode, versions: &[&str]) -> Vec<String> {
        let mut catalog = Catalog::default();
        let channels = Channels::parse("alpha, beta", "beta");
        for version in versions {
            add(
                &mut catalog,
                bundle(version, "{\"kind\":\"ClusterServiceVersion\"}"),
                &channels,
                mode,
                false,
            )
            .unwrap();
        }
        assert_eq!(catalog.packages[0].default_channel, "beta");
        assert_eq!(validate::opm_text(&catalog), None);
        assert_eq!(catalog.channels[0].entries, catalog.channels[1].entries);
        let entries = catalog.channels[0].entries().iter();
        entries
            .map(|entry| format!("{} > {} ({})", entry.name, entry.replaces, entry.skips.join(" ")))
            .collect()
    }

    #[test]
    fn versions_are_linked_whatever_the_order_of_adding() {
        assert_eq!(
            edges(Mode::Semver, &["1.1.0", "1.0.0", "1.0.1"]),
            ["p.v1.0.0 >  ()", "p.v1.0.1 > p.v1.0.0 ()", "p.v1.1.0 > p.v1.0.1 ()"]
        );
        assert_eq!(
            edges(Mode::SemverSkipPatch, &["1.1.1", "1.0.0", "1.0.1", "1.1.0"]),
            [
                "p.v1.0.0 >  ()",
                "p.v1.0.1 >  (p.v1.0.0)",
                "p.v1.1.0 > p.v1.0.1 ()",
                "p.v1.1.1 > p.v1.0.1 (p.v1.1.0)"
            ]
        );
    }

    #[test]
    fn the_manifest_tells_its_own_edges_and_icon() {
        let mut catalog = Catalog::default();
        let channels = Channels::parse("alpha", "");
        let csv = r#"{"kind":"ClusterServiceVersion","metadata":{"annotations":{"olm.skipRange":"<2.0.0"}},
            "spec":{"replaces":"p.v1.0.0","skips":["p.v1.5.0"],"icon":[{"base64data":"AA==","mediatype":"image/png"}]}}"#;
        for bundle in [
            bundle("1.0.0", "{\"kind\":\"ClusterServiceVersion\"}"),
            bundle("2.0.0", csv),
        ] {
            add(&mut catalog, bundle, &channels, Mode::Replaces, false).unwrap();
        }
        let expected = ChannelEntry {
            name: "p.v2.0.0".into(),
            replaces: "p.v1.0.0".into(),
            skips: vec!["p.v1.5.0".into()],
            skip_range: "<2.0.0".into(),
        };
        assert_eq!(catalog.channels[0].entries()[1], expected);
        assert_eq!(catalog.packages[0].icon.as_ref().unwrap().media_type, "image/png");
        assert_eq!(validate::opm_text(&catalog), None);
        let again = |catalog: &mut Catalog, version, overwrite| {
            add(
                catalog,
                bundle(version, "{\"kind\":\"ClusterServiceVersion\"}"),
                &channels,
                Mode::Replaces,
                overwrite,
            )
        };
        assert!(matches!(again(&mut catalog, "2.0.0", false), Err(Error::Known(_))));
        assert!(matches!(again(&mut catalog, "1.0.0", true), Err(Error::NotTheHead(..))));
        again(&mut catalog, "2.0.0", true).unwrap();
        assert_eq!(catalog.bundles.len(), 2);
    }
}
