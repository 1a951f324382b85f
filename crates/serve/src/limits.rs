//! What clients may take of a server: connections, memory, time.

use std::time::Duration;

/// Largest request in bytes; all requests are a few names.
pub const REQUEST_BYTES: usize = 64 << 10;
/// Largest headers of a request in bytes, uncompressed.
pub const HEADER_BYTES: u32 = 16 << 10;
/// Bytes that an HTTP/1 connection reads ahead, and writes at once.
pub const HTTP_BUFFER_BYTES: usize = 64 << 10;
/// Bytes that the system keeps for a client that does not take them, beside the limits below; Linux takes the double.
pub const SEND_BUFFER_BYTES: u32 = 64 << 10;
/// Connections that wait to be accepted.
pub const BACKLOG: u32 = 1024;
/// Bytes of requests that a connection, and each of its streams, may send before they are looked at: the least that HTTP/2 has.
pub const REQUEST_WINDOW: u32 = 65_535;
/// Bytes that are taken for a request, and for an answer, before either is there.
pub const BUFFER_BYTES: usize = 1 << 10;
/// An answer goes on with a new piece when one has so many bytes.
pub const PIECE_BYTES: usize = 16 << 10;
/// A client that has taken so many bytes has read some: it is more than fits into its window and the system's buffers.
pub const PROOF_BYTES: usize = 256 << 10;
/// Bytes that an answer takes beside its pieces.
pub const ANSWER_BYTES: usize = 16 << 10;
/// When answers take too much memory, such a share of it is made free at once: a 64th.
pub const ROOM_AT_ONCE: usize = 64;
/// Streams that one connection may have open; clients keep further calls back themselves.
pub const STREAMS: u32 = 16;
/// Calls of all connections that may be open. When there are more, connections get no more than [`CALLS_IN_NEED`] each.
pub const ALL_CALLS: usize = 256;
/// Calls that a connection may have open when there are too many of all.
pub const CALLS_IN_NEED: usize = 2;
/// Streams of one connection that the client may have reset before they were looked at.
pub const PENDING_RESET_STREAMS: usize = 20;
/// Streams of one connection that the server may reset for faults of the client before it ends the connection.
pub const LOCAL_RESET_STREAMS: usize = 16;
/// Open connections are asked whether they live after this time without a frame,
pub const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// and are closed if they do not answer within this time.
pub const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long calls may go on after a request to stop.
pub const DRAIN: Duration = Duration::from_secs(20);
/// A connection that did something useful within this time is not closed to make room for others,
pub const SPARED: Duration = Duration::from_millis(100);
/// and within this time if it has ever taken an answer to its end, as long as there are others that have not.
pub const SPARED_PROVEN: Duration = Duration::from_secs(3);
/// Connections that may be open beyond the limit because others, which were closed for them, have not gone yet.
pub const CLOSING: usize = 16;
/// Descriptors that are left for files of the catalog and further listeners.
pub const SPARE_DESCRIPTORS: u64 = 32;
/// Bytes that compressing an answer takes beside the answer.
pub const COMPRESSOR_BYTES: usize = 300 << 10;

/// The limits of one listener. The defaults suit a catalog with some dozen clients in 32 MB of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections that are open at a time. For a further one, the connection is closed that has been of no use for the
    /// longest time.
    pub connections: usize,
    /// Bytes of answers that may wait for clients to take them, over all connections. When they are used up, the
    /// connection is closed that has not taken a piece of its answer for the longest time.
    pub waiting_bytes: usize,
    /// Bytes of answers that may wait for one client.
    pub connection_bytes: usize,
    /// Time until a client has begun to speak the protocol.
    pub handshake: Duration,
    /// Time until a request has arrived and its answer begins.
    pub request: Duration,
    /// Time in which a client must take a piece of an answer; a piece is one message, or some tens of kilobytes.
    pub send: Duration,
    /// Time without any call after which a connection is closed.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 100,
            waiting_bytes: 4 << 20,
            connection_bytes: 1 << 20,
            handshake: Duration::from_secs(10),
            request: Duration::from_secs(30),
            send: Duration::from_secs(60),
            idle: Duration::from_secs(60 * 60),
        }
    }
}

impl Limits {
    /// As these, with no more connections than `share` (a fraction such as 2 for a half) of the descriptors that the
    /// process may still open: one that has none left serves nobody, probes included.
    #[must_use]
    pub fn within_descriptors(self, share: u64) -> Self {
        let allowed = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let open = std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
        let room = allowed.map_or(u64::MAX, |allowed| {
            allowed.saturating_sub(open + SPARE_DESCRIPTORS) / share.max(1)
        });
        let room = usize::try_from(room).unwrap_or(usize::MAX).max(1);
        Limits {
            connections: self.connections.min(room),
            ..self
        }
    }
}
