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
};
use tokio_util::sync::CancellationToken;

/// The server cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    address: SocketAddr,
    source: std::io::Error,
}

/// Connections that do not send a request header within this time, or whose TLS handshake takes longer, are closed.
const HEADER_LIMIT: Duration = Duration::from_secs(10);

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
                    Wire::Tls(acceptor) => match tokio::time::timeout(HEADER_LIMIT, acceptor.accept(stream)).await {
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
    let service = service_fn(|request| {
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
        .header_read_timeout(HEADER_LIMIT)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "connection ended");
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
mod tests {
    use hyper::StatusCode;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
        time::timeout,
    };

    use super::*;

    /// A server that answers `ok`, and to `/slow` when `go` is cancelled.
    async fn server(go: &CancellationToken) -> SocketAddr {
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let go = go.clone();
        let answer = move |request: Request<Incoming>| {
            let go = go.clone();
            async move {
                if request.uri().path() == "/slow" {
                    go.cancelled().await;
                }
                text(StatusCode::OK, "ok".to_owned())
            }
        };
        tokio::spawn(serve(listener, Wire::Plain, answer));
        address
    }

    async fn ask(stream: &mut TcpStream, path: &str) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
    }

    async fn answered(stream: &mut TcpStream) -> String {
        let mut buffer = [0; 1024];
        let length = stream.read(&mut buffer).await.unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    /// A probe as the kubelet sends it. It must be answered long before idle connections run out of time by themselves.
    async fn probe(address: SocketAddr) -> String {
        let probe = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            ask(&mut stream, "/readyz").await;
            answered(&mut stream).await
        };
        timeout(HEADER_LIMIT / 2, probe).await.expect("the probe is answered")
    }

    #[tokio::test]
    async fn idle_connections_do_not_keep_the_probe_out() {
        let address = server(&CancellationToken::new()).await;
        let mut held = Vec::new();
        let hold = async {
            for index in 0..300 {
                let mut stream = TcpStream::connect(address).await.unwrap();
                // Half of them are kept alive after an answer, the others never ask.
                if index % 2 == 0 {
                    ask(&mut stream, "/readyz").await;
                    assert!(answered(&mut stream).await.ends_with("ok"));
                }
                held.push(stream);
            }
        };
        timeout(HEADER_LIMIT / 2, hold).await.expect("each is answered");
        assert!(probe(address).await.ends_with("ok"));
        // The youngest is still there, the oldest is not.
        let youngest = held.last_mut().unwrap();
        ask(youngest, "/readyz").await;
        assert!(answered(youngest).await.ends_with("ok"));
        let mut rest = Vec::new();
        let end = held.first_mut().unwrap().read_to_end(&mut rest).await;
        assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    }

    #[tokio::test]
    async fn connections_that_are_being_answered_are_not_given_up() {
        let go = CancellationToken::new();
        let address = server(&go).await;
        let mut busy = Vec::new();
        for _ in 0..CONNECTIONS - 1 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            ask(&mut stream, "/slow").await;
            busy.push(stream);
        }
        // Two share the last place, one after the other.
        let _idle = TcpStream::connect(address).await.unwrap();
        assert!(probe(address).await.ends_with("ok"));
        assert!(probe(address).await.ends_with("ok"));
        go.cancel();
        for stream in &mut busy {
            assert!(answered(stream).await.ends_with("ok"));
        }
    }
}
