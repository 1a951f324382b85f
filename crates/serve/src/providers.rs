//! Finds the channel entries that provide an API.

use tonic::Status;

use super::api;
use super::index::Index;
use super::index::format::{ChannelSection, EntrySection, PackageSection};
use super::lookup::{damaged, decode, name_of, unknown};
use olmkit_go::strconv::quote;

/// An API that a client looks for.
pub struct ApiQuery {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

impl std::fmt::Display for ApiQuery {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [group, version, kind] = [&self.group, &self.version, &self.kind].map(|text| quote(text));
        write!(formatter, "group:{group} version:{version} kind:{kind}")
    }
}

/// A channel entry as a message.
pub fn channel_entry(
    package: &PackageSection,
    channel: &ChannelSection,
    entry: &EntrySection,
    replaces: &str,
) -> api::ChannelEntry {
    api::ChannelEntry {
        package_name: package.name.clone(),
        channel_name: channel.name.clone(),
        bundle_name: name_of(package, entry).to_owned(),
        replaces: replaces.to_owned(),
    }
}

/// Channel entries whose bundle provides an API: one for the bundle that it replaces, and one for each skip. `latest`
/// uses only channel heads, and skips that are in the channel.
///
/// # Errors
/// There are none, or the index is damaged.
pub fn providers(index: &Index, wanted: &ApiQuery, latest: bool) -> Result<Vec<api::ChannelEntry>, Status> {
    let mut found = Vec::new();
    for slot in index.packages() {
        let package = index.section(slot).map_err(|error| damaged(&error))?;
        let mut provides = Vec::with_capacity(package.bundles.len());
        for bundle in &package.bundles {
            let message = decode(index, bundle.common)?;
            provides.push(
                message
                    .provided_apis
                    .iter()
                    .any(|api| api.group == wanted.group && api.version == wanted.version && api.kind == wanted.kind),
            );
        }
        for channel in &package.channels {
            for entry in &channel.entries {
                let name = name_of(&package, entry);
                if provides.get(entry.bundle as usize) != Some(&true) || (latest && name != channel.head) {
                    continue;
                }
                found.push(channel_entry(&package, channel, entry, &entry.replaces));
                for skip in &entry.skips {
                    if !latest || channel.entries.iter().any(|other| name_of(&package, other) == skip) {
                        found.push(channel_entry(&package, channel, entry, skip));
                    }
                }
            }
        }
    }
    if found.is_empty() {
        return Err(unknown(format!("no channel entries found that provide {wanted}")));
    }
    Ok(found)
}
