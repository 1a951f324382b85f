//! How much is taken of what others wrote: of images, archives and the answers of registries. The bounds of unpacking are in
//! [`crate::unpack::Limits`].

use std::time::Duration;

/// The largest manifest, index or configuration that is read, in bytes: as large as registries accept.
pub const DOCUMENT_BYTES: u64 = 8 << 20;
/// How deep an index may point at further indexes.
pub const INDEX_DEPTH: usize = 4;
/// Layers of one image. Engines stop at 127.
pub const LAYERS: usize = 1000;
/// Manifests of all indexes of one pull.
pub const MANIFESTS: usize = 1000;
/// Names of one archive.
pub const NAMES: usize = 1000;
/// Bytes of all blobs of one pull, unless [`Options`](crate::registry::Options) say otherwise.
pub const IMAGE_BYTES: u64 = 16 << 30;
/// Bytes that are left free on a disk.
pub const SPARE_BYTES: u64 = 64 << 20;
/// Entries of an archive. It contains a few for each layer.
pub const ARCHIVE_ENTRIES: usize = 100_000;
/// Bytes that are extracted from an archive.
pub const ARCHIVE_BYTES: u64 = 32 << 30;
/// Bytes of a lock file that the bill of materials is made from.
pub const LOCK_FILE_BYTES: u64 = 32 << 20;

/// Time until a connection is made.
pub const CONNECT: Duration = Duration::from_secs(20);
/// Time until a request is answered whole, and in which a transfer must make [`SLOWEST_BYTES`] of progress, unless
/// [`Options`](crate::registry::Options) say otherwise.
pub const ANSWER: Duration = Duration::from_secs(60);
/// Bytes that a transfer must deliver within [`ANSWER`].
pub const SLOWEST_BYTES: u64 = 64 << 10;
/// How often a request is sent that is not answered in time.
pub const LATE_ATTEMPTS: u32 = 2;
/// Average bytes per second that an upload must reach, in addition to the time of [`ANSWER`].
pub const UPLOAD_RATE: u64 = 8 << 10;
/// Time for the text of a refusal.
pub const REFUSAL: Duration = Duration::from_secs(10);
/// Bytes that are read of the text of a refusal.
pub const REFUSAL_BYTES: usize = 64 << 10;
/// Bytes that are read of a token server's answer.
pub const TOKEN_BYTES: usize = 1 << 20;
/// Redirects of one request that are followed.
pub const REDIRECTS: usize = 10;
/// How often a request is tried, unless [`Options`](crate::registry::Options) say otherwise.
pub const ATTEMPTS: u32 = 6;
/// How often a request is tried to a host that refuses connections: it is rather misspelled than busy.
pub const REFUSED_ATTEMPTS: u32 = 3;
/// How often a transfer may break off in all, if it makes progress between.
pub const INTERRUPTIONS: u32 = 200;
/// Longest wait between two attempts,
pub const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// and if the server asks for a longer one.
pub const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(120);
/// Bytes of all blobs that the user's cache keeps.
pub const CACHE_BYTES: u64 = 4 << 30;
