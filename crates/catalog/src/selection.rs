//! The channels and entries of a catalog that a graph shows.

use std::collections::BTreeMap;

use super::model::{Catalog, Channel, ChannelEntry};
use super::property;
use olmkit_base::limits;
use olmkit_base::object::Version;
use olmkit_go::strconv::quote;

/// Versions by the names of bundles.
pub(super) type Versions<'c> = BTreeMap<&'c str, Version>;

/// Selects the drawn channels.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only this package.
    pub package: Option<String>,
    /// Only channels of this name.
    pub channel: Option<String>,
    /// Only bundles of at least this one's version, in its package.
    pub minimum_edge: Option<String>,
    /// Mark edges that OLM v0 ignores.
    pub v0_semantics: bool,
}

impl Selection {
    /// The selected channels with the selected entries, in the order of the catalog. The versions count with a minimum edge only.
    ///
    /// # Errors
    /// The minimum edge is unknown.
    pub(super) fn channels(&self, catalog: &Catalog, versions: &Versions<'_>) -> Result<Vec<Channel>, String> {
        let minimum = match &self.minimum_edge {
            None => None,
            Some(name) => {
                let version = versions.get(name.as_str());
                Some(version.ok_or_else(|| format!("unknown minimum edge name: {}", quote(name)))?)
            }
        };
        let edge_package = self.minimum_edge.as_ref().and_then(|name| {
            let mut bundles = catalog.bundles.iter();
            Some(bundles.find(|bundle| bundle.name == *name)?.package.as_str())
        });
        let of_package = |channel: &Channel| self.package.as_ref().is_none_or(|name| *name == channel.package);
        let of_channel = |channel: &Channel| self.channel.as_ref().is_none_or(|name| *name == channel.name);
        Ok(catalog
            .channels
            .iter()
            .filter(|channel| of_package(channel) && of_channel(channel))
            .filter_map(|channel| match minimum {
                None => Some(channel.clone()),
                Some(_) if edge_package != Some(channel.package.as_str()) => None,
                Some(minimum) => self.above(channel, versions, minimum),
            })
            .collect())
    }

    /// A channel without the entries below the minimum edge. `None` if nothing remains.
    fn above(&self, channel: &Channel, versions: &Versions<'_>, minimum: &Version) -> Option<Channel> {
        let edge = self.minimum_edge.as_ref()?;
        let reaches = |name: &str| versions.get(name).is_some_and(|version| version >= minimum);
        let entries: Vec<ChannelEntry> = channel
            .entries()
            .iter()
            .filter(|entry| reaches(&entry.name))
            .map(|entry| {
                let mut kept = ChannelEntry {
                    name: entry.name.clone(),
                    ..ChannelEntry::default()
                };
                // References of the edge itself are below it.
                if entry.name != *edge {
                    kept.replaces = if reaches(&entry.replaces) {
                        entry.replaces.clone()
                    } else {
                        String::new()
                    };
                    kept.skips = entry.skips.iter().filter(|skip| reaches(skip)).cloned().collect();
                    kept.skip_range.clone_from(&entry.skip_range);
                }
                kept
            })
            .collect();
        (!entries.is_empty()).then(|| Channel {
            entries: Some(entries),
            ..channel.clone()
        })
    }
}

/// Versions by bundle name, over the whole catalog.
pub(super) fn versions(catalog: &Catalog) -> Result<Versions<'_>, String> {
    let mut versions = BTreeMap::new();
    for bundle in &catalog.bundles {
        let name = quote(&bundle.name);
        let properties =
            property::parse(bundle).map_err(|(_, error)| format!("parse properties for bundle {name}: {error}"))?;
        let own = match properties.as_slice() {
            [own] => own,
            other => {
                let count = other.len();
                return Err(format!(
                    "bundle {name} has {count} \"olm.package\" properties, expected exactly 1"
                ));
            }
        };
        let version = Version::parse(&own.version)
            .map_err(|error| format!("bundle {name} has invalid version {}: {error}", quote(&own.version)))?;
        versions.insert(bundle.name.as_str(), version);
    }
    Ok(versions)
}

/// The error for a graph whose output exceeds its limit.
pub(super) fn too_large() -> String {
    let exceeded = limits::GRAPH_TEXT.exceeded();
    format!("the graph would be {exceeded}; or select a package or channel")
}
