//! Limits for clients of a server: connections, memory, time.
use std::time::Duration;

/// Connections that wait in the system to be accepted. Clients beyond them try again by themselves.
pub(crate) const BACKLOG: u32 = 4096;
/// A client that has read this many bytes really reads: it is more than fits into its window and the kernel's buffers.
pub(crate) const PROOF_BYTES: usize = 256 << 10;
/// When answers take too much memory, this share is freed: a 64th.
pub(crate) const ROOM_AT_ONCE: usize = 64;
/// Maximum open calls of all connections. Above this, connections get at most [`CALLS_IN_NEED`] each.
pub(crate) const ALL_CALLS: usize = 256;
/// Maximum open calls of a connection if there are too many in total.
pub(crate) const CALLS_IN_NEED: usize = 2;
/// Connections that may exceed the limit while connections that were closed for them still shut down.
pub(crate) const CLOSING: usize = 16;
/// File descriptors reserved for files and further listeners.
pub(crate) const SPARE_DESCRIPTORS: u64 = 32;

/// The limits of one listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections that are open at a time. For a further one, the connection is closed that has been of no use for the
    /// longest time. A connection whose request is being answered is not, so the further one may have to wait.
    pub connections: usize,
    /// Maximum unread answer bytes over all connections. When they are used up, the connection whose client has not
    /// read for the longest time is closed.
    pub waiting_bytes: usize,
    /// Bytes of answers that may wait for one client.
    pub connection_bytes: usize,
    /// Largest header of an HTTP/1 request in bytes. A connection also reads ahead up to this size. The minimum is 8
    /// KiB. A larger header is answered with 431.
    pub header_bytes: usize,
    /// Size of the kernel's socket buffers, for received and for sent data. Linux doubles the value.
    pub socket_bytes: u32,
    /// Time until a client must begin to use the protocol: until the first request of a new connection has a complete
    /// header, including the TLS handshake, or until the header of a further request is complete.
    pub handshake: Duration,
    /// Time until a request has arrived and its answer begins.
    pub request: Duration,
    /// Time in which a client must read a piece of an answer. A piece is one message, or some tens of kilobytes.
    pub send: Duration,
    /// Time without any call after which a connection is closed.
    pub idle: Duration,
    /// A connection that was active within this time is not closed to make room for others,
    pub spared: Duration,
    /// and within this time if it has ever read a complete answer, while there are others that have not.
    pub spared_proven: Duration,
    /// A stopping server accepts connections until no request has arrived for this time.
    pub quiet: Duration,
}

/// They suit a catalog with some dozen clients in 32 MB of memory.
impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 100,
            waiting_bytes: 4 << 20,
            connection_bytes: 1 << 20,
            header_bytes: 64 << 10,
            socket_bytes: 64 << 10,
            handshake: Duration::from_secs(10),
            request: Duration::from_secs(30),
            send: Duration::from_secs(60),
            idle: Duration::from_secs(60 * 60),
            spared: Duration::from_millis(100),
            spared_proven: Duration::from_secs(3),
            quiet: Duration::ZERO,
        }
    }
}

impl Limits {
    /// The same limits, with at most one connection per `share` file descriptors that the process may still open (2 for
    /// a half). A server without free descriptors can answer no request, including probes.
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
