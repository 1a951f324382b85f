//! Limits for clients of a server: connections, memory, time.

use std::time::Duration;

pub use olmkit_front::Limits;

/// Largest request in bytes. All requests are a few names.
pub const REQUEST_BYTES: usize = 64 << 10;
/// Largest headers of a request in bytes, uncompressed.
pub const HEADER_BYTES: u32 = 16 << 10;
/// Request bytes that a connection, and each of its streams, may send before they are read: HTTP/2's minimum.
pub const REQUEST_WINDOW: u32 = 65_535;
/// Bytes that are allocated for a request, and for an answer, before either is read.
pub const BUFFER_BYTES: usize = 1 << 10;
/// An answer continues with a new piece after this number of bytes.
pub const PIECE_BYTES: usize = 16 << 10;
/// Bytes of memory for an answer in addition to its pieces.
pub const ANSWER_BYTES: usize = 16 << 10;
/// Streams that one connection may have open. Clients keep further calls back themselves.
pub const STREAMS: u32 = 16;
/// Streams of one connection that the client may reset before they are processed.
pub const PENDING_RESET_STREAMS: usize = 20;
/// Streams of one connection that the server may reset because of client errors before it closes the connection.
pub const LOCAL_RESET_STREAMS: usize = 16;
/// Open connections are pinged after this time without a frame,
pub const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// and are closed if they do not answer within this time.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for calls to finish after a request to stop.
pub const DRAIN: Duration = Duration::from_secs(20);
/// Bytes of memory for compressing an answer, in addition to the answer.
pub const COMPRESSOR_BYTES: usize = 300 << 10;
