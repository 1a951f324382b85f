//! Data model of file-based catalogs: the four known blob schemas, and custom ones.
//!
//! The model does not check that a catalog is valid. [`crate::validate`] does.

use std::path::Path;
use std::sync::Arc;

/// Schema of a package blob.
pub const PACKAGE: &str = "olm.package";
/// Schema of a channel blob.
pub const CHANNEL: &str = "olm.channel";
/// Schema of a bundle blob.
pub const BUNDLE: &str = "olm.bundle";
/// Schema of a deprecations blob.
pub const DEPRECATIONS: &str = "olm.deprecations";

/// Property type: name and version of a bundle. (The same string as [`PACKAGE`].)
pub const PROPERTY_PACKAGE: &str = "olm.package";
/// Property type: a package that a bundle needs.
pub const PROPERTY_PACKAGE_REQUIRED: &str = "olm.package.required";
/// Property type: an API that a bundle provides.
pub const PROPERTY_GVK: &str = "olm.gvk";
/// Property type: an API that a bundle needs.
pub const PROPERTY_GVK_REQUIRED: &str = "olm.gvk.required";
/// Property type: one manifest, inline.
pub const PROPERTY_BUNDLE_OBJECT: &str = "olm.bundle.object";
/// Property type: ClusterServiceVersion data for user interfaces.
pub const PROPERTY_CSV_METADATA: &str = "olm.csv.metadata";

/// Source position of a blob.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The file. `None` for a generated blob.
    pub file: Option<Arc<Path>>,
    /// The blob's first line, counted from 1.
    pub line: usize,
    /// Keys that the blob's schema does not have. They are lost when the blob is written again.
    pub unknown: Vec<UnknownKey>,
}

/// A typed value attached to a package, channel or bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Property {
    /// The property's type, `olm.gvk` for instance.
    pub kind: String,
    /// Compact JSON. `None` if the blob has no `value`, which differs from `null`.
    pub value: Option<String>,
}

/// `olm.package`
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Package {
    /// Package name.
    pub name: String,
    /// The channel that a subscription without a channel follows.
    pub default_channel: String,
    /// The picture shown for the package.
    pub icon: Option<Icon>,
    /// Text about the package, Markdown.
    pub description: String,
    /// Further properties; OLM ignores them.
    pub properties: Vec<Property>,
    /// Source position.
    pub origin: Origin,
}

/// A package's icon.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Icon {
    /// Standard base64 of the picture. `None` where the blob has none.
    pub data: Option<String>,
    /// Its media type, `image/svg+xml` for instance.
    pub media_type: String,
}

/// `olm.channel`
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Channel {
    /// Channel name.
    pub name: String,
    /// The package it belongs to.
    pub package: String,
    /// Its bundles and upgrade edges. `None` where the blob has no list.
    pub entries: Option<Vec<ChannelEntry>>,
    /// Further properties.
    pub properties: Vec<Property>,
    /// Source position.
    pub origin: Origin,
}

impl Channel {
    /// The entries. None if the blob has no list.
    pub fn entries(&self) -> &[ChannelEntry] {
        self.entries.as_deref().unwrap_or_default()
    }
}

/// A bundle's entry in a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChannelEntry {
    /// Bundle name.
    pub name: String,
    /// The bundle that this one directly replaces. Empty if none.
    pub replaces: String,
    /// Bundles that this one also replaces and that should no longer be installed.
    pub skips: Vec<String>,
    /// A version range from which this bundle can be reached. Empty if none.
    pub skip_range: String,
}

/// `olm.bundle`
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bundle {
    /// Bundle name, that of its ClusterServiceVersion.
    pub name: String,
    /// The package it belongs to.
    pub package: String,
    /// Image reference. Empty for a bundle whose objects are inline.
    pub image: String,
    /// Version, APIs, dependencies, manifests.
    pub properties: Vec<Property>,
    /// Images that the operator needs.
    pub related_images: Vec<RelatedImage>,
    /// Source position.
    pub origin: Origin,
}

/// An image that a bundle names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RelatedImage {
    /// Purpose of the image. Often empty.
    pub name: String,
    /// Image reference. Empty in some real catalogs.
    pub image: String,
}

/// `olm.deprecations`
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Deprecation {
    /// The package it is about.
    pub package: String,
    /// Deprecated items. `None` if the blob has no list.
    pub entries: Option<Vec<DeprecationEntry>>,
    /// Source position.
    pub origin: Origin,
}

/// One deprecated thing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeprecationEntry {
    /// Schema of the deprecated item: package, channel or bundle.
    pub schema: String,
    /// Its name. Empty for the package.
    pub name: String,
    /// The message for users.
    pub message: String,
}

/// A blob of a schema that OLM does not support.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Custom {
    /// Its schema.
    pub schema: String,
    /// The package it belongs to. May be empty.
    pub package: String,
    /// Its name. May be empty.
    pub name: String,
    /// The whole blob, compact JSON with sorted keys.
    pub json: String,
    /// Source position.
    pub origin: Origin,
}

/// The blobs of a catalog, in the order in which they were read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    /// `olm.package` blobs.
    pub packages: Vec<Package>,
    /// `olm.channel` blobs.
    pub channels: Vec<Channel>,
    /// `olm.bundle` blobs.
    pub bundles: Vec<Bundle>,
    /// `olm.deprecations` blobs.
    pub deprecations: Vec<Deprecation>,
    /// Blobs of all other schemas.
    pub customs: Vec<Custom>,
}

/// One blob.
#[derive(Debug, Clone, PartialEq)]
pub enum Blob {
    /// `olm.package`
    Package(Package),
    /// `olm.channel`
    Channel(Channel),
    /// `olm.bundle`
    Bundle(Bundle),
    /// `olm.deprecations`
    Deprecation(Deprecation),
    /// Any other schema.
    Custom(Custom),
}

impl Blob {
    /// The package that a blob counts to: a package blob to itself.
    pub fn package(&self) -> &str {
        match self {
            Blob::Package(package) => &package.name,
            Blob::Channel(channel) => &channel.package,
            Blob::Bundle(bundle) => &bundle.package,
            Blob::Deprecation(deprecation) => &deprecation.package,
            Blob::Custom(custom) => &custom.package,
        }
    }
}

impl Catalog {
    /// Adds a blob.
    pub fn push(&mut self, blob: Blob) {
        match blob {
            Blob::Package(package) => self.packages.push(package),
            Blob::Channel(channel) => self.channels.push(channel),
            Blob::Bundle(bundle) => self.bundles.push(bundle),
            Blob::Deprecation(deprecation) => self.deprecations.push(deprecation),
            Blob::Custom(custom) => self.customs.push(custom),
        }
    }

    /// Appends all blobs of another catalog.
    pub fn extend(&mut self, other: Catalog) {
        self.packages.extend(other.packages);
        self.channels.extend(other.channels);
        self.bundles.extend(other.bundles);
        self.deprecations.extend(other.deprecations);
        self.customs.extend(other.customs);
    }
}

impl FromIterator<Blob> for Catalog {
    fn from_iter<I: IntoIterator<Item = Blob>>(blobs: I) -> Self {
        let mut catalog = Catalog::default();
        for blob in blobs {
            catalog.push(blob);
        }
        catalog
    }
}

/// A key that its blob's schema does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// JSON pointer to its value.
    pub pointer: String,
    /// The key.
    pub key: String,
    /// The key of the schema that was probably meant.
    pub meant: Option<&'static str>,
    /// True if the key is correct, and its value is the misspelled type of a property.
    pub is_type: bool,
}
