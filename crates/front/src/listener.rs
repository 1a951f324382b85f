//! An HTTP/1 server over bounded connections, with TLS or without.
use std::{
    convert::Infallible,
    fmt,
    future::Future,
    io::ErrorKind,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use hyper::{
    Request, Response,
    body::{Body, Bytes, Incoming},
    header::{CONNECTION, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket},
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    connections::{Connections, Guarded, Handle, Handshake},
    limits::{BACKLOG, Limits},
    waiting::Waiting,
};

/// Time for the last answers after the last request of a server that stops.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// The server cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// The system's error.
    pub source: std::io::Error,
}

/// Wraps a connection.
#[derive(Clone)]
pub enum Wire {
    /// Nothing.
    Plain,
    /// TLS.
    #[cfg(feature = "tls")]
    Tls(tokio_rustls::TlsAcceptor),
}

/// The certificate that the client of a TLS connection has presented and the server has verified, in DER: an extension of each
/// request.
#[derive(Clone, Debug)]
pub struct ClientCertificate(pub Arc<[u8]>);

/// Bytes that an answer takes in addition to its body, as an extension of the response.
#[derive(Clone, Copy, Debug)]
pub struct Beside(pub usize);

/// A listening HTTP/1 server.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    connections: Connections,
    wire: Wire,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            #[cfg(feature = "tls")]
            Self::Tls(_) => "Tls",
        })
    }
}

impl Listener {
    /// Listens on `address`. Port 0 takes a free one.
    ///
    /// # Errors
    /// When the address is in use or not assigned to this machine.
    pub fn bind(address: SocketAddr, limits: Limits) -> Result<Self, BindError> {
        Ok(Self {
            listener: listen(address, &limits)?,
            connections: Connections::new(limits),
            wire: Wire::Plain,
        })
    }

    /// Wraps each connection.
    #[must_use]
    pub fn with_wire(mut self, wire: Wire) -> Self {
        self.wire = wire;
        self
    }

    /// The address it listens on, with the assigned port if port 0 was requested.
    ///
    /// # Errors
    /// When the operating system does not return it.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests until `stop` completes and all are answered: connections are accepted until no request is in
    /// progress and none has arrived for [`Limits::quiet`]. Dropping the future aborts all connections.
    pub async fn serve<F, A, B>(self, answer: F, stop: impl Future<Output = ()>)
    where
        F: Fn(Request<Incoming>, Handle) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes> + Unpin + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Unpin + Send,
    {
        let Self {
            listener,
            connections,
            wire,
        } = self;
        let (mut tasks, mut watch) = (JoinSet::new(), JoinSet::new());
        watch.spawn(connections.clone().watch(Handshake::Http1));
        let close = CancellationToken::new();
        let mut stop = pin!(stop);
        let mut stopped = None;
        loop {
            let mut next = pin!(connections.accept(&listener));
            let next = loop {
                let quiet = async {
                    match stopped {
                        Some(since) => connections.quiet(since).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    stream = &mut next => break Some(stream),
                    () = &mut stop, if stopped.is_none() => stopped = Some(Instant::now()),
                    () = quiet => break None,
                    // Ended connections are forgotten.
                    Some(_) = tasks.join_next() => {}
                }
            };
            let Some(stream) = next else { break };
            tasks.spawn(connection(stream, wire.clone(), answer.clone(), close.clone()));
        }
        drop(listener);
        close.cancel();
        let last = async { while tasks.join_next().await.is_some() {} };
        if timeout(LAST_ANSWERS, last).await.is_err() {
            tracing::debug!("connections were cut at the end");
        }
    }
}

/// Listens on an address. On a node without IPv6 all its addresses are those of IPv4.
///
/// # Errors
/// When the address is in use or not assigned to this machine.
pub fn listen(address: SocketAddr, limits: &Limits) -> Result<TcpListener, BindError> {
    let listener = match bind(address, limits) {
        Err(error) if may_lack_ipv6(address, error.kind()) => {
            bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())), limits)
        }
        bound => bound,
    };
    listener.map_err(|source| BindError { address, source })
}

fn bind(address: SocketAddr, limits: &Limits) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit these.
    socket.set_send_buffer_size(limits.socket_bytes)?;
    socket.set_recv_buffer_size(limits.socket_bytes)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn may_lack_ipv6(address: SocketAddr, error: ErrorKind) -> bool {
    // Without IPv6, nodes report a missing address family or a missing address.
    address.ip() == Ipv6Addr::UNSPECIFIED && !matches!(error, ErrorKind::AddrInUse | ErrorKind::PermissionDenied)
}

async fn connection<F, A, B>(stream: Guarded, wire: Wire, answer: F, close: CancellationToken)
where
    F: Fn(Request<Incoming>, Handle) -> A,
    A: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Unpin,
{
    let handle = stream.handle();
    match wire {
        Wire::Plain => requests(stream, &handle, None, answer, &close).await,
        // A handshake that takes too long ends because the stream fails: it counts as the beginning of a request.
        #[cfg(feature = "tls")]
        Wire::Tls(acceptor) => match acceptor.accept(stream).await {
            Ok(stream) => {
                let presented = stream.get_ref().1.peer_certificates();
                let client = presented.and_then(|chain| chain.first());
                let client = client.map(|certificate| ClientCertificate(certificate.as_ref().into()));
                requests(stream, &handle, client, answer, &close).await;
            }
            Err(error) => tracing::debug!(%error, "TLS handshake failed"),
        },
    }
}

async fn requests<S, F, A, B>(
    stream: S,
    handle: &Handle,
    client: Option<ClientCertificate>,
    answer: F,
    close: &CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Fn(Request<Incoming>, Handle) -> A,
    A: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Unpin,
{
    let limits = handle.limits();
    let service = service_fn(|mut request: Request<Incoming>| {
        if let Some(client) = &client {
            request.extensions_mut().insert(client.clone());
        }
        let call = handle.call();
        let answer = &answer;
        async move {
            // Answers that clients do not read may have used up the memory for this one.
            let _ = timeout(limits.request, handle.may_answer_soon()).await;
            let work = handle.work();
            let mut response = answer(request, handle.clone()).await;
            drop(work);
            // Closing a connection that rests would be a race with its next request.
            if handle.should_end() || close.is_cancelled() {
                let end = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, end);
            }
            let beside = response
                .extensions_mut()
                .remove::<Beside>()
                .map_or(0, |beside| beside.0);
            let metered = |body| Waiting::metered(body, handle.clone(), call, false).taking(beside);
            Ok::<_, Infallible>(response.map(metered))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // `Connections::watch` looks after that: this one also runs while a connection rests.
        .header_read_timeout(None)
        .max_buf_size(limits.header_bytes.max(8 << 10))
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = close.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_address_family_leads_to_ipv4() {
        let all = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 50051));
        // The error of a node without IPv6 (EAFNOSUPPORT) has no `ErrorKind`.
        let no_family = std::io::Error::from_raw_os_error(97).kind();
        assert!(may_lack_ipv6(all, no_family));
        assert!(may_lack_ipv6(all, ErrorKind::AddrNotAvailable));
        assert!(!may_lack_ipv6(all, ErrorKind::AddrInUse));
        assert!(!may_lack_ipv6(all, ErrorKind::PermissionDenied));
        let one = SocketAddr::from((Ipv6Addr::LOCALHOST, 50051));
        assert!(!may_lack_ipv6(one, ErrorKind::AddrNotAvailable));
    }
}
