//! Accepts connections of HTTP servers, with TLS or without, and bounds them.
use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::Future,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::Notify,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// The server cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    address: SocketAddr,
    source: std::io::Error,
}

/// Connections that do not send the header of their first request within this time, or whose TLS handshake takes longer,
/// are closed.
const HEADER_LIMIT: Duration = Duration::from_secs(10);

/// Connections that do not send the header of a further request within this time are closed. The API server keeps those to
/// webhooks for 90 seconds. It must be the one that closes them: Go does not send a POST again that meets the server's end
/// of the connection, and with `failurePolicy: Fail` that would be a refused write.
const IDLE_LIMIT: Duration = Duration::from_secs(120);

/// Open connections. A further one takes the place of the one that has been idle for longest, and waits while all are being
/// answered: connections that are only held open must not keep the kubelet's probe out.
const CONNECTIONS: usize = 256;

/// A response as the servers here make it.
pub(crate) type Answer = Response<Full<Bytes>>;

/// An answer in plain text.
pub(crate) fn text(status: StatusCode, body: String) -> Answer {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response
}

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
    let places = Arc::new(Places::default());
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Too many open files, for example: retrying at once would be a busy loop.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let place = Places::take(&places).await;
        let (wire, answer) = (wire.clone(), answer.clone());
        tokio::spawn(async move {
            let given_up = place.given_up.clone();
            let work = async {
                match wire {
                    Wire::Plain => connection(stream, &place, answer).await,
                    #[cfg(feature = "tls")]
                    Wire::Tls(acceptor) => match timeout(HEADER_LIMIT, acceptor.accept(stream)).await {
                        Ok(Ok(stream)) => connection(stream, &place, answer).await,
                        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                        Err(_) => tracing::debug!("TLS handshake took too long"),
                    },
                }
            };
            tokio::select! {
                () = work => {}
                () = given_up.cancelled() => tracing::debug!("idle connection closed: another needs its place"),
            }
        });
    }
}

async fn connection<F, A>(stream: impl AsyncRead + AsyncWrite + Unpin, place: &Place, answer: F)
where
    F: Fn(Request<Incoming>) -> A,
    A: Future<Output = Answer>,
{
    let asked = Notify::new();
    let service = service_fn(|request| {
        asked.notify_one();
        let answer = answer(request);
        async move {
            place.busy();
            let answer = answer.await;
            place.idle();
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // This one also runs while the connection waits for its next request.
        .header_read_timeout(IDLE_LIMIT)
        .serve_connection(TokioIo::new(stream), service);
    let never_asked = async {
        if timeout(HEADER_LIMIT, asked.notified()).await.is_ok() {
            std::future::pending().await
        }
    };
    tokio::select! {
        ended = connection => if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        },
        () = never_asked => tracing::debug!("connection closed: no request within {HEADER_LIMIT:?}"),
    }
}

/// The open connections of one server.
#[derive(Default)]
struct Places {
    state: Mutex<State>,
    /// A connection ended or became idle.
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Numbers connections and the ends of requests, so that the lowest number is the oldest.
    last: u64,
    open: usize,
    /// Connections that are not being answered, those that have been idle for longest first.
    idle: BTreeMap<u64, CancellationToken>,
}

impl State {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

/// The place of one connection; it is free again when this is dropped.
struct Place {
    places: Arc<Places>,
    /// Where it stands among the idle ones.
    idle_as: Mutex<Option<u64>>,
    /// Another connection needs the place.
    given_up: CancellationToken,
}

impl Places {
    /// A place, when there is one or an idle connection has given its up.
    async fn take(places: &Arc<Self>) -> Place {
        loop {
            let changed = places.changed.notified();
            {
                let mut state = places.state();
                if state.open < CONNECTIONS {
                    state.open += 1;
                    let (number, given_up) = (state.next(), CancellationToken::new());
                    state.idle.insert(number, given_up.clone());
                    return Place {
                        places: Arc::clone(places),
                        idle_as: Mutex::new(Some(number)),
                        given_up,
                    };
                }
                if let Some((_, oldest)) = state.idle.pop_first() {
                    oldest.cancel();
                }
            }
            changed.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    fn idle_as(&self) -> MutexGuard<'_, Option<u64>> {
        self.idle_as.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn busy(&self) {
        if let Some(number) = self.idle_as().take() {
            self.places.state().idle.remove(&number);
        }
    }

    fn idle(&self) {
        let mut state = self.places.state();
        let number = state.next();
        state.idle.insert(number, self.given_up.clone());
        drop(state);
        *self.idle_as() = Some(number);
        self.places.changed.notify_one();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.busy();
        self.places.state().open -= 1;
        self.places.changed.notify_one();
    }
}

#[cfg(test)]
#[path = "listener_tests.rs"]
mod tests;
