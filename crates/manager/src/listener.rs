//! Accepts connections of HTTP servers, with TLS or without, and bounds them.
use std::{convert::Infallible, future::Future, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::Semaphore,
};

/// The server cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    address: SocketAddr,
    source: std::io::Error,
}

/// Connections that do not send a request header within this time, or whose TLS handshake takes longer, are closed.
const HEADER_LIMIT: Duration = Duration::from_secs(10);

/// Open connections; further ones wait until one of them is closed.
const CONNECTIONS: usize = 256;

/// A response as the servers here make it.
pub(crate) type Answer = Response<Full<Bytes>>;

/// What wraps a connection.
#[derive(Clone)]
pub(crate) enum Wire {
    Plain,
    #[cfg(feature = "tls")]
    Tls(tokio_rustls::TlsAcceptor),
}

impl Wire {
    #[cfg(feature = "tls")]
    pub(crate) fn tls(certificates: &crate::certificates::Certificates) -> Result<Self, crate::certificates::Error> {
        let config = Arc::new(certificates.server_config()?);
        Ok(Self::Tls(config.into()))
    }
}

/// Listens on `address`.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| BindError { address, source })
}

/// Serves requests until the future is dropped.
pub(crate) async fn serve<F, A>(listener: TcpListener, wire: Wire, answer: F)
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        // Never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Too many open files, for example: retrying at once would be a busy loop.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (wire, answer) = (wire.clone(), answer.clone());
        tokio::spawn(async move {
            let _place = place;
            match wire {
                Wire::Plain => connection(stream, answer).await,
                #[cfg(feature = "tls")]
                Wire::Tls(acceptor) => match tokio::time::timeout(HEADER_LIMIT, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => connection(stream, answer).await,
                    Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                    Err(_) => tracing::debug!("TLS handshake took too long"),
                },
            }
        });
    }
}

async fn connection<F, A>(stream: impl AsyncRead + AsyncWrite + Unpin, answer: F)
where
    F: Fn(Request<Incoming>) -> A,
    A: Future<Output = Answer>,
{
    let service = service_fn(|request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_LIMIT)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "connection ended");
    }
}
