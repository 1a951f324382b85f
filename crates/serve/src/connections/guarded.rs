//! The stream of a connection, which its judges can end.

use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tonic::transport::server::Connected;

use super::Handle;

/// A connection that fails once it is to be closed.
#[derive(Debug)]
pub struct Guarded {
    stream: TcpStream,
    handle: Handle,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.handle.link().is_closed() {
            // What it has not taken would stay in the system's memory.
            let _ = self.stream.set_zero_linger();
        }
        self.handle.forget();
    }
}

impl Guarded {
    pub(super) fn new(stream: TcpStream, handle: Handle) -> Self {
        Guarded { stream, handle }
    }

    /// For those who answer.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    fn check(&self, context: &mut Context<'_>) -> io::Result<()> {
        let link = self.handle.link();
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
        self.handle.link().read.fetch_add(count as u64, Ordering::Relaxed);
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
