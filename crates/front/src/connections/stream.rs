//! The stream of a connection, which fails once it is to be closed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::handle::Handle;

/// Counts as open until it is dropped.
#[derive(Debug)]
pub(super) struct Open(pub(super) Handle);

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
    pub(super) stream: TcpStream,
    pub(super) open: Open,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.open.0.0.link.is_closed() {
            // Data that the client has not read would remain in the kernel's memory.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl Guarded {
    /// The handle for the code that answers requests.
    pub fn handle(&self) -> Handle {
        self.open.0.clone()
    }

    #[cfg(test)]
    pub(crate) async fn readable(&self) {
        self.stream.readable().await.unwrap();
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

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let aborted = || Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        let is_closed = self.check(context).is_err();
        if is_closed && !self.open.0.0.link.may_stay() {
            return aborted();
        }
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        let count = buffer.filled().len() - before;
        if is_closed && count == 0 {
            return aborted();
        }
        let link = &self.open.0.0.link;
        link.note_read(count as u64);
        if is_closed {
            link.stay();
            self.open.0.change(|entry, _| entry.progress = Instant::now());
        }
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
