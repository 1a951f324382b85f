//! The index file format.

/// Last bytes of an index file.
pub const MAGIC: [u8; 8] = *b"olmkitix";

/// Changes with every change to the format. Files of another format are rebuilt.
pub const FORMAT: u32 = 2;

/// Length of the trailer in bytes: offset of the directory, its length, its CRC-32, format, magic.
pub const TRAILER_LENGTH: usize = 32;

/// A block of the list is closed when it reaches this length in bytes.
pub const BLOCK_LENGTH: usize = 64 << 10;

/// A piece of the file.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Extent {
    /// Start of the piece.
    #[prost(uint64, tag = "1")]
    pub offset: u64,
    /// Its length in bytes.
    #[prost(uint32, tag = "2")]
    pub length: u32,
    /// CRC-32 of its bytes.
    #[prost(fixed32, tag = "3")]
    pub checksum: u32,
}

/// Positions of all pieces.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Directory {
    /// Fingerprint of the catalog that the index was made from.
    #[prost(bytes = "vec", tag = "1")]
    pub fingerprint: Vec<u8>,
    /// Packages by name.
    #[prost(message, repeated, tag = "2")]
    pub packages: Vec<PackageSlot>,
    /// Blocks of the list, each a run of length-delimited [`ListItem`]s.
    #[prost(message, repeated, tag = "3")]
    pub list: Vec<Extent>,
    /// Custom blobs by schema and package.
    #[prost(message, repeated, tag = "4")]
    pub customs: Vec<CustomSlot>,
    /// Number of bundles.
    #[prost(uint64, tag = "5")]
    pub bundles: u64,
    /// Number of channel entries.
    #[prost(uint64, tag = "6")]
    pub entries: u64,
    /// Packages of the catalog that are not served, because they are invalid.
    #[prost(message, repeated, tag = "7")]
    pub broken: Vec<Broken>,
    /// Blocks of the blobs, each a run of length-delimited [`BlobSlot`]s in the catalog's order.
    #[prost(message, repeated, tag = "8")]
    pub blobs: Vec<Extent>,
    /// True if the blobs are in the index.
    #[prost(bool, tag = "9")]
    pub with_blobs: bool,
    /// Length of the blobs' sources in bytes.
    #[prost(uint64, tag = "10")]
    pub blob_bytes: u64,
}

/// A package that is not served.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Broken {
    /// Its name. Empty where a file could not be read and names no package of the catalog.
    #[prost(string, tag = "1")]
    pub package: String,
    /// The error.
    #[prost(string, tag = "2")]
    pub message: String,
}

/// A blob in the catalog's order, and the keys that queries use.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BlobSlot {
    /// Its schema.
    #[prost(string, tag = "1")]
    pub schema: String,
    /// The package in the blob. A package blob has none.
    #[prost(string, tag = "2")]
    pub package: String,
    /// Its name. May be empty.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Its JSON, one line.
    #[prost(message, required, tag = "4")]
    pub json: Extent,
}

/// A package and where its section is.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PackageSlot {
    /// Package name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its [`PackageSection`].
    #[prost(message, required, tag = "2")]
    pub section: Extent,
    /// The answer to `GetPackage`, the most frequent request.
    #[prost(message, required, tag = "3")]
    pub answer: Extent,
}

/// Custom blobs of one schema and package.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CustomSlot {
    /// Their schema.
    #[prost(string, tag = "1")]
    pub schema: String,
    /// Their package. May be empty.
    #[prost(string, tag = "2")]
    pub package: String,
    /// A run of length-delimited `google.protobuf.Struct`s.
    #[prost(message, required, tag = "3")]
    pub blobs: Extent,
}

/// A package in the index.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PackageSection {
    /// Package name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Default channel.
    #[prost(string, tag = "2")]
    pub default_channel: String,
    /// Channels by name.
    #[prost(message, repeated, tag = "3")]
    pub channels: Vec<ChannelSection>,
    /// Bundles by name. Channel entries point here.
    #[prost(message, repeated, tag = "4")]
    pub bundles: Vec<BundleSlot>,
    /// Its [`PackageDisplay`].
    #[prost(message, required, tag = "5")]
    pub display: Extent,
}

/// Display data of a package: large, and needed for few answers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PackageDisplay {
    /// Description of the package.
    #[prost(string, tag = "1")]
    pub description: String,
    /// Base64 and media type of the icon.
    #[prost(string, repeated, tag = "2")]
    pub icon: Vec<String>,
}

/// A channel.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ChannelSection {
    /// Channel name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Name of the head.
    #[prost(string, tag = "2")]
    pub head: String,
    /// Entries by name.
    #[prost(message, repeated, tag = "3")]
    pub entries: Vec<EntrySection>,
}

/// A channel entry.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EntrySection {
    /// Index into the package's bundles.
    #[prost(uint32, tag = "1")]
    pub bundle: u32,
    /// The entry it replaces.
    #[prost(string, tag = "2")]
    pub replaces: String,
    /// Entries it skips.
    #[prost(string, repeated, tag = "3")]
    pub skips: Vec<String>,
    /// Version range it skips.
    #[prost(string, tag = "4")]
    pub skip_range: String,
}

/// Manifests of a bundle, or the metadata that replaces them.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ManifestsPiece {
    /// The inline manifests as JSON.
    #[prost(string, repeated, tag = "1")]
    pub objects: Vec<String>,
    /// `olm.csv.metadata` as JSON, from which a CSV is made if no manifest is one.
    #[prost(string, optional, tag = "2")]
    pub metadata: Option<String>,
    /// Related images: name, image, name, image …, for the generated CSV.
    #[prost(string, repeated, tag = "3")]
    pub related_images: Vec<String>,
}

/// A bundle and where its pieces are.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BundleSlot {
    /// Bundle name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The shared piece of its message.
    #[prost(message, required, tag = "2")]
    pub common: Extent,
    /// Its [`ManifestsPiece`].
    #[prost(message, required, tag = "3")]
    pub manifests: Extent,
}

/// An item of the list.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListItem {
    /// Piece of the message: channel, edges.
    #[prost(bytes = "bytes", tag = "1")]
    pub entry: prost::bytes::Bytes,
    /// The shared piece.
    #[prost(message, required, tag = "2")]
    pub common: Extent,
    /// CSV and manifests, where the list carries them: bundles without an image.
    #[prost(message, optional, tag = "3")]
    pub manifests: Option<Extent>,
}
