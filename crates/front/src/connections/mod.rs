//! The connections of a listener, and the memory of their answers.
//!
//! A listener has limits for connections and for answer bytes that clients have not read. When one of the two is used
//! up, an idle connection is closed to make room, so that idle clients cannot lock out others. A connection is active
//! while it completes requests and reads the pieces of its answers. Answering pings, or reading a byte now and then,
//! does not count.

mod handle;
mod stream;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::task::AtomicWaker;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits::{CLOSING, Limits};
use handle::Registered;
pub use handle::{Call, Handle, Paused, Reserved, Working};
pub use stream::Guarded;
use stream::Open;

/// Maximum time between two capacity checks.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// The same for tasks that wait until their own client reads, of which there may be many.
const LOOK_AGAIN_OWN: Duration = Duration::from_secs(1);
/// Pause of the listener after a connection that could not be accepted: a lack of file descriptors takes time to
/// resolve.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// A client sends a TLS handshake and the header of a request in not many more pieces.
const REPRIEVES: u64 = 4;
/// A number of bytes that no connection reaches.
const NO_REST: u64 = u64::MAX;
/// Bytes that an HTTP/2 client sends before anything else.
const PREFACE: u64 = 24;

/// The connections of one listener. Clones share the state.
#[derive(Debug, Clone)]
pub struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: Limits,
    state: Mutex<State>,
    /// A client has read something, or a connection was closed.
    released: Notify,
    /// Locks that let one connection at a time wait for memory: one for new clients, and one for those that have read
    /// an answer before.
    turns: [tokio::sync::Mutex<()>; 2],
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<u64, Entry>,
    /// Number of the next connection or piece.
    next: u64,
    /// Unread answer bytes of all connections.
    waiting: usize,
    /// Open calls of all connections.
    calls: usize,
    /// Time of the last new connection, or of the last begin or end of a call.
    active: Option<Instant>,
    /// A connection waits for room.
    short: bool,
}

#[derive(Debug)]
struct Entry {
    link: Arc<Link>,
    opened: Instant,
    /// When it last was of use.
    progress: Instant,
    /// True if the client is known to read: it has read a complete answer, or more than the kernel buffers for a client
    /// that does not read.
    proven: bool,
    /// Bytes of pieces that the client has read.
    taken: usize,
    /// Bytes that wait.
    waiting: usize,
    /// Since when each piece waits.
    pieces: BTreeMap<u64, Instant>,
    /// Calls that have not ended.
    calls: usize,
    /// Calls whose client waits for the server.
    working: usize,
}

/// State shared between a connection's task and the listener.
#[derive(Debug)]
struct Link {
    closed: AtomicBool,
    waker: AtomicWaker,
    /// Bytes read so far.
    read: AtomicU64,
    /// Bytes that had been read when the last call ended. [`NO_REST`] before the first call, and during one.
    rest: AtomicU64,
    /// True if a call has begun on it.
    has_asked: AtomicBool,
    /// How often bytes from the client arrived after the decision to close.
    reprieves: AtomicU64,
    /// When the client began the current incomplete request.
    began: Mutex<Option<Instant>>,
    /// One stream of a connection waits for room at a time.
    turn: tokio::sync::Mutex<()>,
    /// The client has read something.
    released: Notify,
}

impl Link {
    fn new(opened: Instant) -> Self {
        Link {
            closed: AtomicBool::default(),
            waker: AtomicWaker::default(),
            read: AtomicU64::default(),
            rest: AtomicU64::new(NO_REST),
            has_asked: AtomicBool::default(),
            reprieves: AtomicU64::default(),
            began: Mutex::new(Some(opened)),
            turn: tokio::sync::Mutex::default(),
            released: Notify::default(),
        }
    }

    /// A call has begun: its header is complete.
    fn asked(&self) {
        self.has_asked.store(true, Ordering::Relaxed);
        self.rest.store(NO_REST, Ordering::Relaxed);
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The last call has ended.
    fn rests(&self) {
        self.rest.store(self.read.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Returns true if nothing has been read since the end of the last call.
    fn is_resting(&self) -> bool {
        self.rest.load(Ordering::Relaxed) == self.read.load(Ordering::Relaxed)
    }

    /// Returns true if received bytes keep the connection open, because the server may only be slower than its client.
    /// A request on an idle connection always does, the pieces of a handshake a limited number of times.
    fn may_stay(&self) -> bool {
        let is_new = !self.has_asked.load(Ordering::Relaxed);
        self.is_resting() || (is_new && self.reprieves.load(Ordering::Relaxed) < REPRIEVES)
    }

    /// The connection is not closed.
    fn stay(&self) {
        self.reprieves.fetch_add(1, Ordering::Relaxed);
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.closed.store(false, Ordering::Release);
    }

    /// The client has sent `count` bytes.
    fn note_read(&self, count: u64) {
        if count > 0 && self.is_resting() {
            *self.began.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        self.read.fetch_add(count, Ordering::Relaxed);
    }

    fn began(&self) -> Option<Instant> {
        *self.began.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.waker.wake();
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

impl Connections {
    /// No connections yet.
    pub fn new(limits: Limits) -> Self {
        Connections(Arc::new(Shared {
            limits,
            state: Mutex::default(),
            released: Notify::new(),
            turns: Default::default(),
        }))
    }

    /// Their limits.
    pub fn limits(&self) -> Limits {
        self.0.limits
    }

    /// The next connection, after there is room for it.
    pub async fn accept(&self, listener: &TcpListener) -> Guarded {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "answers on this connection may wait for more to send");
                    }
                    self.room().await;
                    return self.open(stream);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    self.0.state().close_least_useful(&self.0.limits);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// As [`Connections::accept`], as a stream.
    pub fn incoming(self, listener: TcpListener) -> impl futures::Stream<Item = io::Result<Guarded>> {
        futures::stream::unfold((self, listener), |(connections, listener)| async move {
            let stream = connections.accept(&listener).await;
            Some((Ok(stream), (connections, listener)))
        })
    }

    /// Waits until there is room for a connection, or closes another one.
    async fn room(&self) {
        loop {
            let released = self.0.released.notified();
            {
                let mut state = self.0.state();
                let beyond = state.open.len().checked_sub(self.0.limits.connections);
                // A closed connection is removed immediately, so that its successor need not wait for it.
                let closing = || state.open.values().filter(|entry| entry.link.is_closed()).count();
                let is_free = match beyond {
                    None => true,
                    Some(beyond) if closing() > beyond => true,
                    Some(beyond) => state.close_least_useful(&self.0.limits) && beyond < CLOSING,
                };
                state.short = !is_free;
                if is_free {
                    return;
                }
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, released).await;
        }
    }

    /// Returns true if a connection waits because too many are open.
    pub fn is_short(&self) -> bool {
        self.0.state().short
    }

    /// Waits until no call is open, no connection waits, and neither has arrived for [`Limits::quiet`] since `since`.
    pub async fn quiet(&self, since: Instant) {
        loop {
            let left = {
                let state = self.0.state();
                let active = state.active.map_or(since, |active| active.max(since));
                let is_busy = state.calls > 0 || state.short;
                let left = self.0.limits.quiet.saturating_sub(active.elapsed());
                if is_busy { left.max(LOOK_AGAIN) } else { left }
            };
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(LOOK_AGAIN)).await;
        }
    }

    fn open(&self, stream: TcpStream) -> Guarded {
        let mut state = self.0.state();
        let (id, now) = (state.number(), Instant::now());
        state.active = Some(now);
        let link = Arc::new(Link::new(now));
        let entry = Entry {
            link: link.clone(),
            opened: now,
            progress: now,
            proven: false,
            taken: 0,
            waiting: 0,
            pieces: BTreeMap::new(),
            calls: 0,
            working: 0,
        };
        state.open.insert(id, entry);
        drop(state);
        let handle = Handle(Arc::new(Registered {
            id,
            link,
            shared: self.0.clone(),
        }));
        Guarded {
            stream,
            open: Open(handle),
        }
    }

    /// Closes connections that exceed a time limit. Never returns. `handshake`: data that a client must send within the
    /// handshake time.
    pub async fn watch(self, handshake: Handshake) {
        let limits = self.0.limits;
        let shortest = limits.handshake.min(limits.send).min(limits.idle);
        let interval = (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
        loop {
            tokio::time::sleep(interval).await;
            let now = Instant::now();
            for entry in self.0.state().open.values() {
                if let Some(reason) = entry.overdue(now, &limits, handshake)
                    && !entry.link.is_closed()
                {
                    tracing::debug!(reason, "closing a connection");
                    entry.link.close();
                }
            }
        }
    }
}

/// Condition for a completed handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// The connection preface of HTTP/2.
    Http2,
    /// The header of a request of HTTP/1, each time.
    Http1,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // The counters remain consistent even if a thread panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Closes the connection that has been inactive for the longest time, those that never were active first. While
    /// there are such connections, an active one remains open, even if none can be closed now.
    fn close_least_useful(&mut self, limits: &Limits) -> bool {
        let now = Instant::now();
        let all_proven = self.open.values().all(|entry| entry.proven);
        let candidates = self.open.values().filter(|entry| {
            let spared = if all_proven {
                limits.spared
            } else {
                entry.spared(limits)
            };
            entry.working == 0 && entry.may_go(entry.progress, now, spared)
        });
        let Some(entry) = candidates.min_by_key(|entry| (entry.proven, entry.progress)) else {
            return false;
        };
        tracing::debug!("closing a connection to make room for another");
        entry.link.close();
        true
    }

    /// Closes the connections whose oldest pieces have waited for the longest time, until they have `room` bytes in
    /// total, which the next request can use. Connections that have never read an answer are closed first.
    fn close_slowest(&mut self, limits: &Limits, asking: u64, room: usize) {
        let now = Instant::now();
        let waiting = self.open.iter().filter(|(id, _)| **id != asking);
        let mut slow: Vec<(bool, Instant, &Entry)> = waiting
            .filter_map(|(_, entry)| {
                let since = *entry.pieces.values().next()?;
                entry
                    .may_go(since, now, entry.spared(limits))
                    .then_some((entry.proven, since, entry))
            })
            .collect();
        slow.sort_by_key(|(proven, since, _)| (*proven, *since));
        // Connections that were closed before and still shut down also free their memory.
        let closing = self.open.values().filter(|entry| entry.link.is_closed());
        let mut found: usize = closing.map(|entry| entry.waiting).sum();
        for (.., entry) in slow {
            if found >= room {
                break;
            }
            tracing::debug!("closing a connection that does not take its answers");
            entry.link.close();
            found += entry.waiting;
        }
    }
}

impl Entry {
    /// How long it remains open after its last activity.
    fn spared(&self, limits: &Limits) -> Duration {
        if self.proven {
            limits.spared_proven
        } else {
            limits.spared
        }
    }

    fn may_go(&self, since: Instant, now: Instant, spared: Duration) -> bool {
        now.duration_since(since) >= spared && !self.link.is_closed()
    }

    fn overdue(&self, now: Instant, limits: &Limits, handshake: Handshake) -> Option<&'static str> {
        let since = match handshake {
            Handshake::Http2 if self.link.read.load(Ordering::Relaxed) < PREFACE => Some(self.opened),
            Handshake::Http1 if self.calls == 0 => self.link.began(),
            Handshake::Http1 | Handshake::Http2 => None,
        };
        let oldest = self.pieces.values().next();
        if since.is_some_and(|since| now.duration_since(since) > limits.handshake) {
            Some("no handshake")
        } else if oldest.is_some_and(|since| now.duration_since(*since) > limits.send) {
            Some("an answer is not taken")
        } else if self.calls == 0 && now.duration_since(self.progress) > limits.idle {
            Some("idle")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::body::Bytes;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Opens this number of connections, with the clients' ends.
    async fn open(count: usize) -> (Connections, Vec<Guarded>, Vec<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Connections::new(Limits::default());
        let (mut servers, mut clients) = (Vec::new(), Vec::new());
        for _ in 0..count {
            clients.push(TcpStream::connect(address).await.unwrap());
            servers.push(connections.accept(&listener).await);
        }
        (connections, servers, clients)
    }

    fn closed(servers: &[Guarded]) -> Vec<bool> {
        servers
            .iter()
            .map(|server| server.handle().0.link.is_closed())
            .collect()
    }

    #[tokio::test]
    async fn unproven_connections_are_closed_before_proven_ones() {
        let (connections, servers, _clients) = open(3).await;
        let close = || connections.0.state().close_least_useful(&Limits::default());
        servers[0].handle().prove();
        assert!(!close(), "all have just come");
        tokio::time::sleep(Limits::default().spared * 2).await;
        assert!(close() && close());
        assert_eq!(closed(&servers), [false, true, true]);
        // Those two still shut down.
        assert!(!close());
    }

    #[tokio::test]
    async fn among_those_in_use_the_one_that_rests_longest_makes_room() {
        let (connections, servers, _clients) = open(2).await;
        servers.iter().for_each(|server| server.handle().prove());
        tokio::time::sleep(Limits::default().spared * 2).await;
        drop(servers[0].handle().call());
        assert!(connections.0.state().close_least_useful(&Limits::default()));
        assert_eq!(closed(&servers), [false, true]);
    }

    #[tokio::test]
    async fn as_much_is_closed_as_room_is_wanted_and_what_has_gone_holds_nothing() {
        let (connections, servers, _clients) = open(4).await;
        let handles: Vec<Handle> = servers.iter().map(Guarded::handle).collect();
        handles[0].prove();
        let pieces: Vec<Bytes> = handles
            .iter()
            .map(|handle| handle.piece(Bytes::from(vec![0; 1000])))
            .collect();
        let call = handles[1].call();
        assert_eq!(connections.0.state().waiting, 4000);
        tokio::time::sleep(Limits::default().spared * 2).await;
        connections.0.state().close_slowest(&Limits::default(), u64::MAX, 1500);
        assert_eq!(closed(&servers), [false, true, true, false]);
        // Closing the other connections frees enough.
        connections.0.state().close_slowest(&Limits::default(), u64::MAX, 2000);
        assert_eq!(closed(&servers), [false, true, true, false]);
        drop((pieces, call, handles, servers));
        let state = connections.0.state();
        assert_eq!((state.waiting, state.calls, state.open.len()), (0, 0, 0));
    }

    /// The server decides to close a connection that rests while a request on it is on its way.
    #[tokio::test]
    async fn a_request_that_crosses_the_end_of_its_connection_is_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Connections::new(Limits::default());
        let mut client = TcpStream::connect(address).await.unwrap();
        let mut server = connections.accept(&listener).await;
        let (handle, mut buffer) = (server.handle(), [0; 64]);
        client.write_all(b"one").await.unwrap();
        assert_eq!(server.read(&mut buffer).await.unwrap(), 3);
        drop(handle.call());
        client.write_all(b"two").await.unwrap();
        handle.close();
        // The first read may precede the arrival of the bytes over loopback.
        server.readable().await;
        assert_eq!(server.read(&mut buffer).await.unwrap(), 3, "the request counts");
        handle.close();
        client.write_all(b"more").await.unwrap();
        assert!(server.read(&mut buffer).await.is_err(), "half a request does not");
    }
}
