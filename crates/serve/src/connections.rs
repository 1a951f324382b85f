//! The connections of a listener, and what they hold.
//!
//! A listener has room for a number of connections and for a number of bytes that wait to be taken. When one of the two
//! is used up, a connection that is of no use makes room: nobody is locked out by others who are merely there. A
//! connection is of use while it completes requests and takes the pieces of its answers; answering pings, or taking
//! a byte now and then, does not count.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::task::AtomicWaker;
use prost::bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tonic::transport::server::Connected;

use super::limits::{ALL_CALLS, CALLS_IN_NEED, CLOSING, Limits, SPARED};

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
    /// Whether it has ever taken a piece of an answer.
    proven: bool,
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

/// A connection, for those who answer on it.
#[derive(Debug, Clone)]
pub struct Handle(Arc<Registered>);

#[derive(Debug)]
struct Registered {
    id: u64,
    link: Arc<Link>,
    shared: Arc<Shared>,
}

impl Handle {
    fn change(&self, change: impl FnOnce(&mut Entry, &mut usize)) {
        let mut state = self.0.shared.state();
        let State { open, waiting, .. } = &mut *state;
        if let Some(entry) = open.get_mut(&self.0.id) {
            change(entry, waiting);
        }
    }

    /// Notes a call until the result is dropped.
    pub fn call(&self) -> Call {
        let mut state = self.0.shared.state();
        let State { open, calls, .. } = &mut *state;
        *calls += 1;
        let mut too_many = *calls > ALL_CALLS;
        if let Some(entry) = open.get_mut(&self.0.id) {
            entry.calls += 1;
            entry.progress = Instant::now();
            too_many &= entry.calls > CALLS_IN_NEED;
        }
        drop(state);
        Call {
            handle: self.clone(),
            too_many,
        }
    }

    /// Whether a further piece of an answer may be made.
    fn may_answer(&self) -> Result<(), Full> {
        let limits = &self.0.shared.limits;
        let state = self.0.shared.state();
        let Some(entry) = state.open.get(&self.0.id) else {
            return Ok(());
        };
        if entry.waiting >= limits.connection_bytes {
            return Err(Full::Connection);
        }
        // Half is kept for clients that are known to take their answers.
        let share = if entry.proven { 1 } else { 2 };
        if state.waiting < limits.waiting_bytes / share {
            return Ok(());
        }
        Err(Full::Server { proven: entry.proven })
    }

    /// Waits until a further piece of an answer may be made.
    pub async fn may_answer_soon(&self) {
        if self.may_answer().is_ok() {
            return;
        }
        let shared = &self.0.shared;
        let _first = self.0.link.turn.lock().await;
        let mut turn = None;
        loop {
            let released = shared.released.notified();
            let own = self.0.link.released.notified();
            match self.may_answer() {
                Ok(()) => return,
                Err(Full::Connection) => {
                    // Only what this client takes makes room.
                    turn = None;
                    let _ = tokio::time::timeout(LOOK_AGAIN_OWN, own).await;
                    continue;
                }
                Err(Full::Server { proven }) if turn.is_none() => {
                    let [new, known] = &shared.turns;
                    turn = Some(if proven { known } else { new }.lock().await);
                    continue;
                }
                Err(Full::Server { .. }) => shared.state().close_slowest(self.0.id),
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, released).await;
        }
    }

    /// Whether [`Handle::may_answer_soon`] would not wait.
    pub fn may_answer_now(&self) -> bool {
        self.may_answer().is_ok()
    }

    /// Counts memory that an answer takes until the result is dropped.
    pub fn reserve(&self, bytes: usize) -> Reserved {
        self.change(|entry, waiting| {
            entry.waiting += bytes;
            *waiting += bytes;
        });
        Reserved {
            handle: self.clone(),
            bytes,
            piece: None,
        }
    }

    /// A piece of an answer, counted until all of it has been handed to the system.
    pub fn piece(&self, bytes: Bytes) -> Bytes {
        let mut reserved = self.reserve(bytes.len());
        let number = self.0.shared.state().number();
        self.change(|entry, _| {
            entry.pieces.insert(number, Instant::now());
        });
        reserved.piece = Some(number);
        Bytes::from_owner(Piece {
            bytes,
            _reserved: reserved,
        })
    }
}

/// Why no further piece may be made now.
enum Full {
    /// The connection has enough to take.
    Connection,
    /// All connections together have.
    Server { proven: bool },
}

/// A call that has not ended.
#[derive(Debug)]
pub struct Call {
    handle: Handle,
    too_many: bool,
}

impl Call {
    /// Whether there are so many calls that this one is not to be answered.
    pub fn is_too_many(&self) -> bool {
        self.too_many
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let registered = &self.handle.0;
        let mut state = registered.shared.state();
        state.calls -= 1;
        if let Some(entry) = state.open.get_mut(&registered.id) {
            entry.calls -= 1;
            entry.progress = Instant::now();
        }
    }
}

/// Memory that is counted.
#[derive(Debug)]
pub struct Reserved {
    handle: Handle,
    bytes: usize,
    piece: Option<u64>,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let (bytes, piece) = (self.bytes, self.piece);
        self.handle.change(|entry, waiting| {
            entry.waiting -= bytes;
            *waiting -= bytes;
            if let Some(piece) = piece {
                entry.pieces.remove(&piece);
                entry.progress = Instant::now();
                entry.proven = true;
            }
        });
        self.handle.0.link.released.notify_waiters();
        self.handle.0.shared.released.notify_waiters();
    }
}

struct Piece {
    bytes: Bytes,
    _reserved: Reserved,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Counts as open until it is dropped.
#[derive(Debug)]
struct Open(Handle);

impl Drop for Open {
    fn drop(&mut self) {
        let registered = &self.0.0;
        let mut state = registered.shared.state();
        if let Some(entry) = state.open.remove(&registered.id) {
            // Its pieces are dropped with the connection, if later than this.
            state.waiting -= entry.waiting;
        }
        drop(state);
        registered.shared.released.notify_waiters();
    }
}

/// A connection that fails once it is to be closed.
#[derive(Debug)]
pub struct Guarded {
    stream: TcpStream,
    open: Open,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.open.0.0.link.is_closed() {
            // What it has not taken would stay in the system's memory.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl Guarded {
    /// For those who answer.
    pub fn handle(&self) -> Handle {
        self.open.0.clone()
    }

    fn check(&self, context: &mut Context<'_>) -> io::Result<()> {
        let link = &self.open.0.0.link;
        link.waker.register(context.waker());
        if link.is_closed() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}

impl Connected for Guarded {
    type ConnectInfo = Handle;

    fn connect_info(&self) -> Handle {
        self.handle()
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        let count = buffer.filled().len() - before;
        self.open.0.0.link.read.fetch_add(count as u64, Ordering::Relaxed);
        result
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
