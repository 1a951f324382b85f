//! The blobs of a catalog, with channels and bundles assigned to their packages.

use std::collections::{BTreeMap, HashMap};

use super::Problem;
use crate::model::{Bundle, Channel, ChannelEntry, Deprecation, Origin, Package};
use olmkit_base::object::Version;

/// The entry of an `olm.deprecations` blob that deprecates something.
#[derive(Debug, Clone, Copy)]
pub struct DeprecationEntry<'c> {
    /// The blob.
    pub blob: &'c Deprecation,
    /// Its position in the channel.
    pub index: usize,
}

/// The decoded contents of a bundle blob.
#[derive(Debug, Clone)]
pub struct BundleFacts<'c> {
    /// The blob.
    pub bundle: &'c Bundle,
    /// Its version. Zero if it cannot be read.
    pub version: Version,
    /// Its release. Mostly empty.
    pub release: String,
    /// Number of `olm.package` properties. None if the properties cannot be read.
    pub packages: Option<usize>,
    /// The entry that deprecates it, if any.
    pub deprecation: Option<DeprecationEntry<'c>>,
}

/// A channel with its entries.
#[derive(Debug)]
pub struct ChannelFacts<'c> {
    /// The blob. `None` for the channel that opm creates for a missing default channel.
    pub blob: Option<&'c Channel>,
    /// Its name.
    pub name: &'c str,
    /// The first entry of each name.
    pub entries: Vec<&'c ChannelEntry>,
    /// Position of each entry in the blob.
    pub positions: HashMap<&'c str, usize>,
    /// The entry that deprecates it, if any.
    pub deprecation: Option<DeprecationEntry<'c>>,
}

impl ChannelFacts<'_> {
    /// Position of the first entry with a name in the blob.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }
}

/// A package with everything that belongs to it.
#[derive(Debug)]
pub struct PackageFacts<'c> {
    /// The blob.
    pub blob: &'c Package,
    /// Channels by name.
    pub channels: BTreeMap<&'c str, ChannelFacts<'c>>,
    /// Bundles by name.
    pub bundles: BTreeMap<&'c str, BundleFacts<'c>>,
    /// The entry that deprecates it, if any.
    pub deprecation: Option<DeprecationEntry<'c>>,
}

/// A catalog with channels and bundles assigned to their packages.
#[derive(Debug, Default)]
pub struct Model<'c> {
    /// Packages by name.
    pub packages: BTreeMap<&'c str, PackageFacts<'c>>,
    /// Problems in opm's order: it stops at the first one.
    pub problems: Vec<Problem>,
}

/// The origin of a channel, or of its package if opm created the channel.
pub fn channel_origin<'m>(package: &'m PackageFacts<'_>, channel: &'m ChannelFacts<'_>) -> &'m Origin {
    channel.blob.map_or(&package.blob.origin, |blob| &blob.origin)
}
