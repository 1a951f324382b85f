//! Per-connection accounting: open calls, buffered bytes, and the lock for buffering more.

use std::sync::Arc;

use hyper::body::Bytes;
use tokio::time::Instant;

use super::{Entry, LOOK_AGAIN, LOOK_AGAIN_OWN, Link, Shared, State};
use crate::limits::{ALL_CALLS, CALLS_IN_NEED, Limits, PROOF_BYTES, ROOM_AT_ONCE};

/// A connection, for the code that answers its requests.
#[derive(Debug, Clone)]
pub struct Handle(pub(super) Arc<Registered>);

#[derive(Debug)]
pub(super) struct Registered {
    pub(super) id: u64,
    pub(super) link: Arc<Link>,
    pub(super) shared: Arc<Shared>,
}

impl Handle {
    pub(super) fn change(&self, change: impl FnOnce(&mut Entry, &mut usize)) {
        let mut state = self.0.shared.state();
        let State { open, waiting, .. } = &mut *state;
        if let Some(entry) = open.get_mut(&self.0.id) {
            change(entry, waiting);
        }
    }

    /// Notes a call until the result is dropped.
    pub fn call(&self) -> Call {
        let mut state = self.0.shared.state();
        let State {
            open, calls, active, ..
        } = &mut *state;
        *calls += 1;
        *active = Some(Instant::now());
        let mut too_many = *calls > ALL_CALLS;
        if let Some(entry) = open.get_mut(&self.0.id) {
            entry.calls += 1;
            entry.progress = Instant::now();
            too_many &= entry.calls > CALLS_IN_NEED;
        }
        drop(state);
        self.0.link.asked();
        Call {
            handle: self.clone(),
            too_many,
        }
    }

    #[cfg(test)]
    pub(crate) fn close(&self) {
        self.0.link.close();
    }

    /// The limits of the listener.
    pub fn limits(&self) -> Limits {
        self.0.shared.limits
    }

    /// Returns true if the connection should end after its answer to make room for another.
    pub fn should_end(&self) -> bool {
        self.0.shared.state().short
    }

    /// Records that the client waits for the server, until the result is dropped: the connection is not closed to make
    /// room.
    pub fn work(&self) -> Working {
        self.change(|entry, _| entry.working += 1);
        Working(self.clone())
    }

    /// Notes that the server waits for the client, until the result is dropped, although it has begun to [work](Self::work).
    pub fn pause(&self) -> Paused {
        self.change(|entry, _| entry.working = entry.working.saturating_sub(1));
        Paused(self.clone())
    }

    /// Returns true if a further piece of an answer may be made now.
    fn may_answer(&self) -> Result<(), Full> {
        let limits = &self.0.shared.limits;
        let state = self.0.shared.state();
        let Some(entry) = state.open.get(&self.0.id) else {
            return Ok(());
        };
        if entry.waiting >= limits.connection_bytes {
            return Err(Full::Connection);
        }
        // Half is reserved for clients that are known to read their answers.
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
        let _first = self.0.link.turn.lock().await;
        self.wait_for_room(true).await;
    }

    /// As [`Handle::may_answer_soon`], for an answer that has begun. It takes no lock: such an answer is polled only
    /// when its client can take more, and would keep the lock in between.
    pub async fn may_go_on_soon(&self) {
        self.wait_for_room(false).await;
    }

    async fn wait_for_room(&self, in_turn: bool) {
        let shared = &self.0.shared;
        let mut turn = None;
        loop {
            let released = shared.released.notified();
            let own = self.0.link.released.notified();
            match self.may_answer() {
                Ok(()) => return,
                Err(Full::Connection) => {
                    // Only data that this client reads frees memory.
                    turn = None;
                    let _ = tokio::time::timeout(LOOK_AGAIN_OWN, own).await;
                    continue;
                }
                Err(Full::Server { proven }) if in_turn && turn.is_none() => {
                    let [new, known] = &shared.turns;
                    turn = Some(if proven { known } else { new }.lock().await);
                    continue;
                }
                Err(Full::Server { .. }) => {
                    let room = shared.limits.waiting_bytes / ROOM_AT_ONCE;
                    shared.state().close_slowest(&shared.limits, self.0.id, room);
                }
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, released).await;
        }
    }

    /// Records that the client has read an answer completely.
    pub fn prove(&self) {
        self.change(|entry, _| entry.proven = true);
    }

    /// Returns true if [`Handle::may_answer_soon`] would not wait.
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

    /// A piece of an answer, counted until all of it has been written to the socket.
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

/// Why no further piece can be made now.
enum Full {
    /// The connection has enough unread bytes.
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
    /// Returns true if this call exceeds the limit and must not be answered.
    pub fn is_too_many(&self) -> bool {
        self.too_many
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let registered = &self.handle.0;
        let mut state = registered.shared.state();
        state.calls -= 1;
        state.active = Some(Instant::now());
        if let Some(entry) = state.open.get_mut(&registered.id) {
            entry.calls -= 1;
            entry.progress = Instant::now();
            if entry.calls == 0 {
                registered.link.rests();
            }
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
                entry.taken = entry.taken.saturating_add(bytes);
                entry.proven |= entry.taken >= PROOF_BYTES;
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

/// The client waits for the server.
#[derive(Debug)]
pub struct Working(Handle);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.change(|entry, _| {
            entry.working = entry.working.saturating_sub(1);
            entry.progress = Instant::now();
        });
    }
}

/// The server waits for the client.
#[derive(Debug)]
pub struct Paused(Handle);

impl Drop for Paused {
    fn drop(&mut self) {
        self.0.change(|entry, _| entry.working += 1);
    }
}
