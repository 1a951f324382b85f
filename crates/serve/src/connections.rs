//! The connections of a listener, and what they hold.
//!
//! A listener has room for a number of connections and for a number of bytes that wait to be taken. When one of the two
//! is used up, a connection that is of no use makes room: nobody is locked out by others who are merely there. A
//! connection is of use while it completes requests and takes the pieces of its answers; answering pings, or taking
//! a byte now and then, does not count.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::task::AtomicWaker;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::limits::{CLOSING, Limits, SPARED};

mod guarded;
mod handle;

pub use guarded::Guarded;
use handle::Registered;
pub use handle::{Call, Handle, Reserved};

/// Who waits for room looks again after this time at the latest.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
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
    /// Whether it has ever taken all of an answer.
    proven: bool,
    /// Whether an answer was made to its end.
    answered: bool,
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
            answered: false,
            waiting: 0,
            pieces: BTreeMap::new(),
            calls: 0,
        };
        state.open.insert(id, entry);
        drop(state);
        let registered = Registered {
            id,
            link,
            shared: self.0.clone(),
        };
        Guarded::new(stream, Handle::new(registered))
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

    /// Closes the connection that has been of no use for the longest time: those that never were first.
    fn close_least_useful(&mut self) -> bool {
        let now = Instant::now();
        let candidates = self.open.values().filter(|entry| entry.may_go(entry.progress, now));
        let Some(entry) = candidates.min_by_key(|entry| (entry.proven, entry.progress)) else {
            return false;
        };
        tracing::debug!("closing a connection to make room for another");
        entry.link.close();
        true
    }

    /// Closes the connection whose oldest piece has waited for the longest time.
    fn close_slowest(&mut self, asking: u64) {
        let now = Instant::now();
        let waiting = self.open.iter().filter(|(id, _)| **id != asking);
        let oldest = waiting.filter_map(|(_, entry)| {
            let since = *entry.pieces.values().next()?;
            entry.may_go(since, now).then_some((since, entry))
        });
        if let Some((_, entry)) = oldest.min_by_key(|(since, _)| *since) {
            tracing::debug!("closing a connection that does not take its answers");
            entry.link.close();
        }
    }
}

impl Entry {
    fn may_go(&self, since: Instant, now: Instant) -> bool {
        now.duration_since(since) >= SPARED && !self.link.is_closed()
    }

    /// Notes that a piece was taken or an answer was made to its end.
    fn note(&mut self) {
        self.proven |= self.answered && self.pieces.is_empty();
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
