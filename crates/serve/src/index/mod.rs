//! The index: a catalog in the form that the server needs.
//!
//! One file, written in one pass and read by position:
//!
//! ```text
//! bundles     for each bundle: the shared piece of its message, then its manifests
//! blobs       next to each bundle, on request: the source of every blob, for the HTTP API
//! customs     custom blobs, grouped by schema and package
//! packages    for each package: icon and description; channels, heads, edges, positions of its bundles; the answer to
//!             GetPackage
//! list        all channel entries in the order of ListBundles, in blocks
//! directory   positions and checksums of all of these, and the fingerprint of the catalog
//! trailer     offset, length and checksum of the directory, format, magic
//! ```
//!
//! Only the directory is in memory: the packages' names and positions. Every piece is verified against its checksum
//! when it is read, so a damaged file causes an error for one call, never a wrong answer.

pub mod build;
pub mod format;
mod read;
mod storage;

pub use build::{Builder, Content, Error as BuildError, in_memory};
pub use read::{Index, OpenError, ReadError};
pub use storage::Storage;
