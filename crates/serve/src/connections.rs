//! The connections of a listener, and what they hold.
//!
//! A listener has room for a number of connections and for a number of bytes that wait to be taken. When one of the two
//! is used up, a connection that is of no use makes room: nobody is locked out by others who are merely there. A
//! connection is of use while it completes requests and takes the pieces of its answers; answering pings, or taking
//! a byte now and then, does not count.

mod handle;
mod stream;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::task::AtomicWaker;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::limits::{CLOSING, Limits, SPARED, SPARED_PROVEN};
use handle::Registered;
pub use handle::{Call, Handle, Reserved};
pub use stream::Guarded;
use stream::Open;

/// Who waits for room looks again after this time at the latest.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// The same for who waits until its own client takes something, of whom there may be many.
const LOOK_AGAIN_OWN: Duration = Duration::from_secs(1);
/// After a connection that could not be accepted, the listener rests: too many open files do not go away at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Bytes that an HTTP/2 client sends before anything else.
const PREFACE: u64 = 24;

/// The connections of one listener. Clones are the same.
#[derive(Debug, Clone)]
pub struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: Limits,
    state: Mutex<State>,
    /// Something was taken or closed.
    released: Notify,
    /// Who waits for room in memory, one connection at a time: new clients, and those that have taken an answer before.
    turns: [tokio::sync::Mutex<()>; 2],
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<u64, Entry>,
    /// Number of the next connection or piece.
    next: u64,
    /// Bytes that wait, of all connections.
    waiting: usize,
    /// Calls that have not ended, of all connections.
    calls: usize,
}

#[derive(Debug)]
struct Entry {
    link: Arc<Link>,
    opened: Instant,
    /// When it last was of use.
    progress: Instant,
    /// Whether it is known to read: it has taken an answer to its end, or more than the system takes for a client that does not.
    proven: bool,
    /// Bytes of pieces that it has taken.
    taken: usize,
    /// Bytes that wait.
    waiting: usize,
    /// Since when each piece waits.
    pieces: BTreeMap<u64, Instant>,
    /// Calls that have not ended.
    calls: usize,
}

/// What a connection's task and its judges share.
#[derive(Debug, Default)]
struct Link {
    closed: AtomicBool,
    waker: AtomicWaker,
    /// Bytes read so far.
    read: AtomicU64,
    /// One stream of a connection waits for room at a time.
    turn: tokio::sync::Mutex<()>,
    /// Something of this connection was taken.
    released: Notify,
}

impl Link {
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

    /// The next connection, when there is room for it.
    pub async fn accept(&self, listener: &TcpListener) -> Guarded {
        loop {
            self.room().await;
            match listener.accept().await {
                Ok((stream, _)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "answers on this connection may wait for more to send");
                    }
                    return self.open(stream);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    self.0.state().close_least_useful();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// As [`Connections::accept`], one after the other.
    pub fn incoming(self, listener: TcpListener) -> impl futures::Stream<Item = io::Result<Guarded>> {
        futures::stream::unfold((self, listener), |(connections, listener)| async move {
            let stream = connections.accept(&listener).await;
            Some((Ok(stream), (connections, listener)))
        })
    }

    /// Waits until there is room for a connection, and makes it.
    async fn room(&self) {
        loop {
            let released = self.0.released.notified();
            {
                let mut state = self.0.state();
                let beyond = state.open.len().checked_sub(self.0.limits.connections);
                // One that is closed goes at once, so that its successor need not wait for it.
                let closing = || state.open.values().filter(|entry| entry.link.is_closed()).count();
                match beyond {
                    None => return,
                    Some(beyond) if closing() > beyond => return,
                    Some(beyond) if state.close_least_useful() && beyond < CLOSING => return,
                    Some(_) => {}
                }
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, released).await;
        }
    }

    fn open(&self, stream: TcpStream) -> Guarded {
        let mut state = self.0.state();
        let (id, now) = (state.number(), Instant::now());
        let link = Arc::new(Link::default());
        let entry = Entry {
            link: link.clone(),
            opened: now,
            progress: now,
            proven: false,
            taken: 0,
            waiting: 0,
            pieces: BTreeMap::new(),
            calls: 0,
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

    /// Closes connections whose time is over; ends never. `handshake_bytes`: how much a client must have sent in the
    /// time for handshakes.
    pub async fn watch(self, handshake_bytes: Handshake) {
        let limits = self.0.limits;
        let shortest = limits.handshake.min(limits.send).min(limits.idle);
        let interval = (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
        loop {
            tokio::time::sleep(interval).await;
            let now = Instant::now();
            for entry in self.0.state().open.values() {
                if let Some(reason) = entry.overdue(now, &limits, handshake_bytes)
                    && !entry.link.is_closed()
                {
                    tracing::debug!(reason, "closing a connection");
                    entry.link.close();
                }
            }
        }
    }
}

/// What counts as having begun to speak the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// The connection preface of HTTP/2.
    Http2,
    /// The server of HTTP/1 looks after it.
    Http1,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Numbers are in order even if a thread panicked meanwhile.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Closes the connection that has been of no use for the longest time: those that never were first. As long as there are
    /// such, one that is in use stays, even if nothing can be closed at this moment.
    fn close_least_useful(&mut self) -> bool {
        let now = Instant::now();
        let all_proven = self.open.values().all(|entry| entry.proven);
        let candidates = self.open.values().filter(|entry| {
            let spared = if all_proven { SPARED } else { entry.spared() };
            entry.may_go(entry.progress, now, spared)
        });
        let Some(entry) = candidates.min_by_key(|entry| (entry.proven, entry.progress)) else {
            return false;
        };
        tracing::debug!("closing a connection to make room for another");
        entry.link.close();
        true
    }

    /// Closes the connections whose oldest pieces have waited for the longest time, until what they hold is `room` bytes: whoever
    /// asks next then finds some. Those that have never taken an answer go first.
    fn close_slowest(&mut self, asking: u64, room: usize) {
        let now = Instant::now();
        let waiting = self.open.iter().filter(|(id, _)| **id != asking);
        let mut slow: Vec<(bool, Instant, &Entry)> = waiting
            .filter_map(|(_, entry)| {
                let since = *entry.pieces.values().next()?;
                entry
                    .may_go(since, now, entry.spared())
                    .then_some((entry.proven, since, entry))
            })
            .collect();
        slow.sort_by_key(|(proven, since, _)| (*proven, *since));
        // Those that were closed before and have not gone yet give theirs back as well.
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
    /// How long it stays after it was of use.
    fn spared(&self) -> Duration {
        if self.proven { SPARED_PROVEN } else { SPARED }
    }

    fn may_go(&self, since: Instant, now: Instant, spared: Duration) -> bool {
        now.duration_since(since) >= spared && !self.link.is_closed()
    }

    fn overdue(&self, now: Instant, limits: &Limits, handshake: Handshake) -> Option<&'static str> {
        let silent = handshake == Handshake::Http2 && self.link.read.load(Ordering::Relaxed) < PREFACE;
        let oldest = self.pieces.values().next();
        if silent && now.duration_since(self.opened) > limits.handshake {
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
    use prost::bytes::Bytes;

    use super::*;

    /// So many connections that are open, with the clients' ends.
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
    async fn who_was_never_of_use_makes_room_and_who_is_in_use_stays() {
        let (connections, servers, _clients) = open(3).await;
        let close = || connections.0.state().close_least_useful();
        servers[0].handle().prove();
        assert!(!close(), "all have just come");
        tokio::time::sleep(SPARED * 2).await;
        assert!(close() && close());
        assert_eq!(closed(&servers), [false, true, true]);
        // Those two have not gone yet.
        assert!(!close());
    }

    #[tokio::test]
    async fn among_those_in_use_the_one_that_rests_longest_makes_room() {
        let (connections, servers, _clients) = open(2).await;
        servers.iter().for_each(|server| server.handle().prove());
        tokio::time::sleep(SPARED * 2).await;
        drop(servers[0].handle().call());
        assert!(connections.0.state().close_least_useful());
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
        tokio::time::sleep(SPARED * 2).await;
        connections.0.state().close_slowest(u64::MAX, 1500);
        assert_eq!(closed(&servers), [false, true, true, false]);
        // What those hold is enough.
        connections.0.state().close_slowest(u64::MAX, 2000);
        assert_eq!(closed(&servers), [false, true, true, false]);
        drop((pieces, call, handles, servers));
        let state = connections.0.state();
        assert_eq!((state.waiting, state.calls, state.open.len()), (0, 0, 0));
    }
}
