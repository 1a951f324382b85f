//! Bounds the bodies of requests: bytes, over all requests, and time.
//!
//! Each body reserves its length before it is read, so that two half-read bodies never wait for each other. Small and
//! large bodies have separate memory, so small bodies do not wait for a large one. A client that announced a body
//! and does not send it soon loses its reservation if another client waits.
use std::{
    error::Error as StdError,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, timeout},
};

use crate::connections::Handle;

/// Memory is counted in such pieces.
const UNIT: usize = 1 << 10;

/// Limits for bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimits {
    /// Bodies of at most this many bytes reserve nothing, because a connection has a buffer of this size.
    pub free: usize,
    /// Larger bodies are large ones.
    pub small: usize,
    /// Bytes of all small bodies that are being read or processed.
    pub all_small: usize,
    /// Bytes of all large bodies that are being read or processed.
    pub all_large: usize,
    /// Total time that a client may make the server wait for a body.
    pub time: Duration,
    /// The same while another waits for memory. It grows with what the client has sent, by a second for `rate` bytes.
    pub patience: Duration,
    /// Bytes in a second that a client must send to keep its reservation while another waits.
    pub rate: usize,
    /// Time that a body waits for memory.
    pub room: Duration,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self {
            free: 16 << 10,
            small: 1 << 20,
            all_small: 16 << 20,
            all_large: 64 << 20,
            time: Duration::from_secs(10),
            patience: Duration::from_secs(2),
            rate: 8 << 20,
            room: Duration::from_secs(20),
        }
    }
}

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// 413.
    #[error("the request is larger than {0} bytes")]
    TooLarge(usize),
    /// 408.
    #[error("the request did not arrive in time")]
    Slow,
    /// 503.
    #[error("too many large requests at a time; try again")]
    NoRoom,
    /// 400.
    #[error("cannot read the request: {0}")]
    Broken(#[source] Box<dyn StdError + Send + Sync>),
}

/// The bodies of the requests to one server. Clones are the same.
#[derive(Clone, Debug)]
pub struct Bodies {
    limits: BodyLimits,
    small: Arc<Pool>,
    large: Arc<Pool>,
}

/// A body, and its reservation.
#[derive(Debug)]
pub struct Received {
    /// The body.
    pub bytes: Bytes,
    /// Memory that is reserved until this is dropped: keep it for the lifetime of everything made from the body.
    pub room: Room,
}

/// Reserved memory.
#[derive(Debug, Default)]
pub struct Room {
    _permit: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
struct Pool {
    units: Arc<Semaphore>,
    size: u32,
    /// Number of waiting bodies.
    waiting: AtomicUsize,
    /// One more waits.
    came: Notify,
}

impl Pool {
    fn new(bytes: usize) -> Arc<Self> {
        let size = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
        let size = size.clamp(1, most);
        Arc::new(Self {
            units: Arc::new(Semaphore::new(size as usize)),
            size,
            waiting: AtomicUsize::new(0),
            came: Notify::new(),
        })
    }

    async fn reserve(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        /// Counts a waiting request until it is dropped.
        struct Waits<'a>(&'a AtomicUsize);
        impl Drop for Waits<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.size);
        if let Ok(permit) = Arc::clone(&self.units).try_acquire_many_owned(units) {
            return Some(permit);
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = Waits(&self.waiting);
        self.came.notify_waiters();
        Arc::clone(&self.units).acquire_many_owned(units).await.ok()
    }

    /// Waits until a request waits.
    async fn contended(&self) {
        loop {
            let came = self.came.notified();
            if self.waiting.load(Ordering::Relaxed) > 0 {
                return;
            }
            came.await;
        }
    }
}

impl Bodies {
    /// No bodies yet.
    pub fn new(limits: BodyLimits) -> Self {
        Self {
            limits,
            small: Pool::new(limits.all_small),
            large: Pool::new(limits.all_large),
        }
    }

    /// Reads `body`, which may have up to `most` bytes. Reserves `weight` times its length, because its decoded form
    /// takes memory too. A body without a length reserves for `most` bytes. If `handle` is given, its connection may be
    /// closed while the server waits for the client.
    ///
    /// # Errors
    /// See [`BodyError`].
    pub async fn read<B>(
        &self,
        body: B,
        most: usize,
        weight: usize,
        handle: Option<&Handle>,
    ) -> Result<Received, BodyError>
    where
        B: Body,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let hint = body.size_hint();
        let least = usize::try_from(hint.lower()).unwrap_or(usize::MAX);
        if least > most {
            return Err(BodyError::TooLarge(most));
        }
        let length = hint.upper().and_then(|length| usize::try_from(length).ok());
        let length = length.unwrap_or(most).min(most);
        let pool = if length <= self.limits.small {
            &self.small
        } else {
            &self.large
        };
        let permit = if length <= self.limits.free {
            None
        } else {
            let reserved = pool.reserve(length.saturating_mul(weight.max(1)));
            let reserved = timeout(self.limits.room, reserved).await.ok().flatten();
            Some(reserved.ok_or(BodyError::NoRoom)?)
        };
        let bytes = {
            let _paused = handle.map(Handle::pause);
            self.receive(body, length, most, permit.is_some().then_some(pool.as_ref()))
                .await?
        };
        Ok(Received {
            bytes,
            room: Room { _permit: permit },
        })
    }

    async fn receive<B>(&self, body: B, length: usize, most: usize, pool: Option<&Pool>) -> Result<Bytes, BodyError>
    where
        B: Body,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let mut body = std::pin::pin!(body);
        let mut received: Vec<u8> = Vec::new();
        // Only time without data from the client counts: a slow server is not the client's fault.
        let mut waited = Duration::ZERO;
        loop {
            let sent = received.len() as f64 / self.limits.rate.max(1) as f64;
            let patience = self.limits.patience + Duration::from_secs_f64(sent);
            let contended = async {
                let Some(pool) = pool else {
                    return std::future::pending().await;
                };
                sleep(patience.saturating_sub(waited)).await;
                pool.contended().await;
            };
            let began = Instant::now();
            let frame = tokio::select! {
                biased;
                frame = body.frame() => frame,
                () = sleep(self.limits.time.saturating_sub(waited)) => return Err(BodyError::Slow),
                () = contended => return Err(BodyError::Slow),
            };
            waited += began.elapsed();
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| BodyError::Broken(error.into()))?;
            let Ok(mut data) = frame.into_data() else { continue };
            use hyper::body::Buf as _;
            while data.has_remaining() {
                let chunk = data.chunk();
                let size = received.len() + chunk.len();
                if size > most {
                    return Err(BodyError::TooLarge(most));
                }
                if size > received.capacity() {
                    // At most the announced length: doubling would take half as much again as is reserved.
                    let capacity = (received.capacity() * 2).min(length).max(size);
                    received.reserve_exact(capacity - received.len());
                }
                received.extend_from_slice(chunk);
                let count = chunk.len();
                data.advance(count);
            }
        }
        Ok(received.into())
    }
}
