//! Liveness, readiness and metrics over HTTP.
//!
//! `/readyz` returns 200 while every [`Gate`] is open, its watch is heard and the operator's own checks pass. `/healthz` and
//! `/livez` return 200 unless a watch is stuck or one of their checks fails: an API server that is down is no reason to
//! restart. As with controller-runtime, `?verbose` lists the parts, as a failure does, `?exclude=NAME` leaves one out, and
//! `/readyz/NAME` asks for one. `/metrics` returns [`Metrics::render_for`].
use std::{net::SocketAddr, sync::Arc};

pub use crate::listener::BindError;
pub use crate::readiness::{Gate, Readiness};
use crate::{
    listener::{Answer, Handle, Listener, observers, text},
    metrics::Metrics,
    readiness::Probe,
    reviews::{Reviews, Verdict},
};
use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};

/// The endpoints of a server.
#[derive(Clone)]
#[allow(clippy::large_enum_variant)] // a process has one of each
pub enum Routes {
    /// `/healthz` and `/readyz`.
    Probes(Readiness),
    /// `/metrics`.
    Metrics(Metrics),
}

/// A listening HTTP server: a port in use fails before any work starts.
pub struct Server {
    listener: Listener,
    routes: Routes,
    reviews: Option<Arc<Reviews>>,
    #[cfg(feature = "log")]
    level: Option<crate::log::Level>,
}

impl Server {
    /// Listens on `address`, for plain HTTP and everybody.
    ///
    /// # Errors
    /// When the address is in use or not assigned to this machine.
    pub async fn bind(address: SocketAddr, routes: Routes) -> Result<Self, BindError> {
        Ok(Self {
            listener: Listener::bind(address, observers())?,
            routes,
            reviews: None,
            #[cfg(feature = "log")]
            level: None,
        })
    }

    /// Serves over TLS only. Also run [`crate::certificates::Certificates::follow`].
    ///
    /// # Errors
    /// When TLS cannot be set up.
    #[cfg(feature = "tls")]
    pub fn with_tls(
        self,
        certificates: &crate::certificates::Certificates,
    ) -> Result<Self, crate::certificates::Error> {
        self.with_tls_for(certificates, None)
    }

    /// As [`with_tls`](Self::with_tls). With [reviews](Self::with_reviews), a certificate that one of `authorities` has signed is
    /// as good as a token.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    #[cfg(feature = "tls")]
    pub fn with_tls_for(
        mut self,
        certificates: &crate::certificates::Certificates,
        authorities: Option<&crate::certificates::Authorities>,
    ) -> Result<Self, crate::certificates::Error> {
        let wire = crate::listener::Wire::Tls(certificates.acceptor(authorities)?);
        self.listener = self.listener.with_wire(wire);
        Ok(self)
    }

    /// Answers only users with permission to `get` the path. The API server decides.
    #[must_use]
    pub fn with_reviews(mut self, reviews: Reviews) -> Self {
        self.reviews = Some(Arc::new(reviews));
        self
    }

    /// Serves the log level at [`log::PATH`](crate::log::PATH): `GET` reads it, `PUT` sets it. Without
    /// [reviews](Self::with_reviews) it is not served, because any client could fill the log.
    #[cfg(feature = "log")]
    #[must_use]
    pub fn with_log_level(mut self, level: crate::log::Level) -> Self {
        self.level = Some(level);
        self
    }

    /// The address it listens on, with the assigned port if port 0 was requested.
    ///
    /// # Errors
    /// When the operating system does not return it.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.address()
    }

    /// Serves requests until the future is dropped.
    pub async fn serve(self) {
        let (routes, reviews) = (self.routes, self.reviews);
        #[cfg(feature = "log")]
        let level = self.level.filter(|_| reviews.is_some());
        let answer = move |request: Request<Incoming>, _: Handle| {
            let (routes, reviews) = (routes.clone(), reviews.clone());
            #[cfg(feature = "log")]
            let level = level.clone();
            async move {
                match review(reviews.as_deref(), &request).await {
                    Verdict::Allowed => {}
                    refusal => return refused(refusal),
                }
                #[cfg(feature = "log")]
                if let (Some(level), crate::log::PATH) = (&level, request.uri().path()) {
                    return crate::log::answer(level, request).await;
                }
                routes.answer(&request)
            }
        };
        self.listener.serve(answer, std::future::pending()).await;
    }
}

async fn review(reviews: Option<&Reviews>, request: &Request<Incoming>) -> Verdict {
    let Some(reviews) = reviews else {
        return Verdict::Allowed;
    };
    let authorization = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    #[cfg(feature = "tls")]
    let client = request.extensions().get::<olmkit_front::ClientCertificate>();
    #[cfg(feature = "tls")]
    let client = client.and_then(|certificate| crate::certificates::user(&certificate.0));
    #[cfg(not(feature = "tls"))]
    let client = None;
    // RBAC spells the verbs of paths as methods in lower case. Who may get a page may also ask for its head.
    let verb = match *request.method() {
        Method::PUT => "put",
        _ => "get",
    };
    reviews
        .verdict_of(authorization, client, verb, request.uri().path())
        .await
}

fn refused(verdict: Verdict) -> Answer {
    let (status, why) = match verdict {
        Verdict::Unauthenticated => (
            StatusCode::UNAUTHORIZED,
            "a token of a ServiceAccount or user, or a client certificate, is required",
        ),
        Verdict::Forbidden => (StatusCode::FORBIDDEN, "this account may not get this path"),
        Verdict::Allowed | Verdict::Unknown => (
            StatusCode::INTERNAL_SERVER_ERROR,
            "the API server did not review the request",
        ),
    };
    text(status, format!("{why}\n"))
}

impl Routes {
    fn answer(&self, request: &Request<Incoming>) -> Answer {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return text(
                StatusCode::METHOD_NOT_ALLOWED,
                "method not allowed: use GET\n".to_owned(),
            );
        }
        let accept = request.headers().get_all(ACCEPT).iter();
        let accept: Vec<&str> = accept.filter_map(|value| value.to_str().ok()).collect();
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        self.answer_get(path, query, &accept.join(","))
    }

    fn answer_get(&self, path: &str, query: &str, accept: &str) -> Answer {
        match (self, path) {
            (Self::Probes(readiness), _) => probe(readiness, path, query),
            (Self::Metrics(metrics), "/metrics") => {
                let (media_type, body) = metrics.render_for(accept);
                let mut response = text(StatusCode::OK, body);
                response
                    .headers_mut()
                    .insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
                response
            }
            _ => text(StatusCode::NOT_FOUND, format!("{path} not found\n")),
        }
    }
}

/// `/healthz`, `/livez`, `/readyz`, and below each its parts.
fn probe(readiness: &Readiness, path: &str, query: &str) -> Answer {
    let (name, part) = match path.trim_start_matches('/').split_once('/') {
        Some((name, part)) => (name, part.trim_end_matches('/')),
        None => (path.trim_start_matches('/'), ""),
    };
    let probe = match name {
        "healthz" | "livez" => Probe::Live,
        "readyz" => Probe::Ready,
        _ => return text(StatusCode::NOT_FOUND, format!("{path} not found\n")),
    };
    let failed = StatusCode::INTERNAL_SERVER_ERROR;
    if !part.is_empty() {
        return match readiness.part(probe, part) {
            Some(Ok(())) => text(StatusCode::OK, "ok".to_owned()),
            Some(Err(why)) => text(failed, format!("{part} failed: {why}\n")),
            None => text(StatusCode::NOT_FOUND, format!("{path} not found\n")),
        };
    }
    let pairs = || query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let verbose = pairs().any(|(key, _)| key == "verbose");
    let excluded: Vec<&str> = pairs()
        .filter(|(key, _)| *key == "exclude")
        .map(|(_, name)| name)
        .collect();
    match readiness.probe(probe, &excluded) {
        Ok(report) if verbose => text(StatusCode::OK, report),
        Ok(_) => text(StatusCode::OK, "ok".to_owned()),
        Err(report) => text(failed, report),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn get(address: SocketAddr, path: &str) -> String {
        ask(address, path, "").await
    }

    /// The response to a request with these further header lines.
    async fn ask(address: SocketAddr, path: &str, headers: &str) -> String {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n{headers}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    async fn serve(routes: Routes) -> SocketAddr {
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), routes).await.unwrap();
        let address = server.address().unwrap();
        tokio::spawn(server.serve());
        address
    }

    #[tokio::test]
    async fn ready_when_every_gate_is_open() {
        let readiness = Readiness::default();
        let (pods, services) = (readiness.gate("pods"), readiness.gate("services"));
        let address = serve(Routes::Probes(readiness)).await;
        assert!(get(address, "/healthz").await.starts_with("HTTP/1.1 200"));
        pods.open();
        let waiting = get(address, "/readyz").await;
        assert!(waiting.starts_with("HTTP/1.1 500"), "{waiting}");
        assert!(waiting.contains("[+]pods ok\n[-]services failed"), "{waiting}");
        services.open();
        assert!(get(address, "/readyz").await.starts_with("HTTP/1.1 200"));
        assert!(get(address, "/readyz?verbose").await.contains("readyz check passed"));
        assert!(get(address, "/readyz/services").await.ends_with("ok"));
        assert!(get(address, "/readyz/nodes").await.starts_with("HTTP/1.1 404"));
        assert!(get(address, "/healthz?verbose").await.contains("[+]pods ok\n"));
        assert!(get(address, "/metrics").await.starts_with("HTTP/1.1 404"));
    }

    #[tokio::test]
    async fn one_part_can_be_asked_for_and_left_out() {
        let readiness = Readiness::default();
        readiness.gate("pods").open();
        readiness.check_ready("database", || Err("no route".to_owned()));
        let address = serve(Routes::Probes(readiness)).await;
        let part = get(address, "/readyz/database").await;
        assert!(
            part.starts_with("HTTP/1.1 500") && part.ends_with("database failed: no route\n"),
            "{part}"
        );
        assert!(get(address, "/readyz/pods/").await.starts_with("HTTP/1.1 200"));
        assert!(get(address, "/readyz").await.starts_with("HTTP/1.1 500"));
        assert!(
            get(address, "/readyz?exclude=database")
                .await
                .starts_with("HTTP/1.1 200")
        );
        assert!(get(address, "/livez").await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn metrics_come_with_their_media_type() {
        let metrics = Metrics::new();
        metrics.queue("memcached");
        let address = serve(Routes::Metrics(metrics)).await;
        let forms = [
            ("", "text/plain; version=0.0.4", "# TYPE workqueue_adds_total counter"),
            (
                "accept: application/openmetrics-text; version=1.0.0\r\n",
                "application/openmetrics-text",
                "# TYPE workqueue_adds counter",
            ),
        ];
        for (accept, media_type, line) in forms {
            let response = ask(address, "/metrics", accept).await;
            assert!(response.contains(&format!("content-type: {media_type}")), "{response}");
            assert!(response.contains(line), "{response}");
        }
    }

    #[tokio::test]
    async fn a_bind_error_names_the_address() {
        let first = Server::bind("127.0.0.1:0".parse().unwrap(), Routes::Metrics(Metrics::new()))
            .await
            .unwrap();
        let address = first.address().unwrap();
        let error = Server::bind(address, Routes::Metrics(Metrics::new()))
            .await
            .err()
            .unwrap();
        assert!(error.to_string().starts_with(&format!("cannot listen on {address}: ")));
    }
}
