//! HTTP API of the server: catalogd's API over the same index, metrics, and broken packages.
//!
//! | path | answer |
//! |---|---|
//! | `/api/v1/all` | every blob, one JSON line each |
//! | `/api/v1/metas?schema=&package=&name=` | the blobs that fit |
//! | `/metrics` | OpenMetrics |
//! | `/healthz` | 200, and the packages that are not served; 503 until the catalog is there |
//!
//! `/catalogs/<name>` may precede `/api`, because catalogd's clients use that path.

use std::net::SocketAddr;
use std::sync::Arc;

use futures::StreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use olmkit_front::{Beside, Handle, Listener};
use prost::bytes::Bytes;

use super::Index;
use super::blobs::{Gzip, Query, Texts};
use super::current::Current;
use super::limits::{self, Limits};
use super::metrics::Metrics;
use super::server::Error;

/// Shorter answers are not worth compressing, in bytes.
const COMPRESSED_FROM: u64 = 1400;

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Routes of a listener.
#[derive(Debug, Clone)]
pub struct Routes {
    /// The index that the catalog API answers from. None without that API.
    pub catalog: Option<Current>,
    /// Metrics for `/metrics`, if it is served.
    pub metrics: Option<Metrics>,
    /// Health for `/healthz`.
    pub health: Current,
}

/// An HTTP server that listens.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    routes: Routes,
}

impl Server {
    /// Listens on an address, with the usual limits. Port 0 takes a free one.
    ///
    /// # Errors
    /// Listening on the address failed.
    pub async fn bind(address: SocketAddr, routes: Routes) -> Result<Self, Error> {
        Self::bind_with(address, routes, Limits::default()).await
    }

    /// Listens on an address, with limits for clients. Port 0 selects a free one. Its connections use at most an eighth
    /// of the file descriptors that the process may open.
    ///
    /// # Errors
    /// Listening on the address failed.
    pub async fn bind_with(address: SocketAddr, routes: Routes, limits: Limits) -> Result<Self, Error> {
        Ok(Server {
            listener: Listener::bind(address, limits.within_descriptors(8))?,
            routes,
        })
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// The system does not report the address.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.address()
    }

    /// Answers until it is dropped.
    pub async fn run(self) {
        let Server { listener, routes } = self;
        let answer = move |request: Request<Incoming>, _: Handle| {
            let mut response = routes.answer(&request);
            if response.headers().contains_key(header::CONTENT_ENCODING) {
                response.extensions_mut().insert(Beside(limits::COMPRESSOR_BYTES));
            }
            std::future::ready(response)
        };
        listener.serve(answer, std::future::pending()).await;
    }
}

impl Routes {
    fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
        }
        let path = below_catalogs(request.uri().path());
        let mut response = match (path, &self.catalog, &self.metrics) {
            ("/healthz", _, _) => health(&self.health),
            ("/metrics", _, Some(metrics)) => {
                let mut response = text(StatusCode::OK, metrics.text());
                let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                response
                    .headers_mut()
                    .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
                response
            }
            ("/api/v1/all", Some(catalog), _) => all(catalog, request.headers()),
            ("/api/v1/metas", Some(catalog), _) => {
                metas(catalog, request.uri().query().unwrap_or_default(), request.headers())
            }
            _ => text(StatusCode::NOT_FOUND, format!("{path} is not served here")),
        };
        if request.method() == Method::HEAD {
            *response.body_mut() = full(Bytes::new());
        }
        response
    }
}

/// The path without `/catalogs/<name>`.
fn below_catalogs(path: &str) -> &str {
    let below = path
        .strip_prefix("/catalogs/")
        .and_then(|rest| rest.find('/').and_then(|slash| rest.get(slash..)));
    below.unwrap_or(path)
}

fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

fn text(status: StatusCode, message: impl Into<String>) -> Response<Body> {
    let mut message = message.into();
    if !message.ends_with('\n') {
        message.push('\n');
    }
    let mut response = Response::new(full(message));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn not_ready() -> Response<Body> {
    text(
        StatusCode::SERVICE_UNAVAILABLE,
        "the catalog is still being read; try again",
    )
}

/// The index, if it exists and has the blobs' sources.
fn with_blobs(catalog: &Current) -> Option<Arc<Index>> {
    catalog.get().filter(|index| index.has_blobs())
}

fn health(current: &Current) -> Response<Body> {
    let Some(index) = current.get() else {
        return not_ready();
    };
    let broken = index.broken().iter();
    let lines = broken.map(|broken| format!("not served: {}: {}\n", broken.package, broken.message));
    text(
        StatusCode::OK,
        std::iter::once("ok\n".to_owned()).chain(lines).collect::<String>(),
    )
}

/// `/api/v1/all`: everything, or the requested range.
fn all(catalog: &Current, request: &HeaderMap) -> Response<Body> {
    let Some(index) = with_blobs(catalog) else {
        return not_ready();
    };
    if let Some(response) = condition(&index, request) {
        return response;
    }
    let total = index.blob_bytes();
    let range = request
        .get(header::RANGE)
        .and_then(|range| range.to_str().ok())
        .and_then(|range| one_range(range, total));
    let whole = |start, length| Texts::new(index.clone(), Query::default(), start, length);
    let mut response = match range {
        Some(Err(())) => {
            let mut response = text(StatusCode::RANGE_NOT_SATISFIABLE, "the catalog is shorter than that");
            set(&mut response, header::CONTENT_RANGE, &format!("bytes */{total}"));
            return response;
        }
        Some(Ok((first, last))) => {
            let length = last - first + 1;
            let mut response = Response::new(body(whole(first, length)));
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            set(
                &mut response,
                header::CONTENT_RANGE,
                &format!("bytes {first}-{last}/{total}"),
            );
            set(&mut response, header::CONTENT_LENGTH, &length.to_string());
            response
        }
        None if total > COMPRESSED_FROM && accepts_gzip(request) => compressed(whole(0, total)),
        None => {
            let mut response = Response::new(body(whole(0, total)));
            set(&mut response, header::CONTENT_LENGTH, &total.to_string());
            response
        }
    };
    set(&mut response, header::ACCEPT_RANGES, "bytes");
    described(response, &index)
}

/// `/api/v1/metas`: the blobs that fit.
fn metas(catalog: &Current, query: &str, request: &HeaderMap) -> Response<Body> {
    let query = match Query::parse(query) {
        Ok(query) => query,
        Err(message) => return text(StatusCode::BAD_REQUEST, message),
    };
    let Some(index) = with_blobs(catalog) else {
        return not_ready();
    };
    if let Some(response) = condition(&index, request) {
        return response;
    }
    let texts = Texts::new(index.clone(), query, 0, u64::MAX);
    let response = if accepts_gzip(request) {
        compressed(texts)
    } else {
        Response::new(body(texts))
    };
    described(response, &index)
}

fn body(texts: impl Iterator<Item = std::io::Result<Bytes>> + Send + 'static) -> Body {
    StreamBody::new(futures::stream::iter(texts).map(|text| text.map(Frame::data))).boxed_unsync()
}

fn compressed(texts: Texts) -> Response<Body> {
    let mut response = Response::new(body(Gzip::new(texts)));
    set(&mut response, header::CONTENT_ENCODING, "gzip");
    set(&mut response, header::VARY, "Accept-Encoding");
    response
}

fn accepts_gzip(request: &HeaderMap) -> bool {
    let accepted = request.get_all(header::ACCEPT_ENCODING).iter();
    accepted.filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|coding| {
            let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
            name.trim().eq_ignore_ascii_case("gzip") && !matches!(quality.trim(), "q=0" | "q=0.0")
        })
    })
}

fn set(response: &mut Response<Body>, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Type, and what conditional requests compare with.
fn described(mut response: Response<Body>, index: &Index) -> Response<Body> {
    set(&mut response, header::CONTENT_TYPE, "application/jsonl");
    set(&mut response, header::ETAG, &tag(index));
    if let Ok(time) = rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&index.opened()) {
        set(&mut response, header::LAST_MODIFIED, &time);
    }
    response
}

fn tag(index: &Index) -> String {
    let hex: String = index.fingerprint().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}

/// The answer to a conditional request whose condition makes a body unnecessary.
fn condition(index: &Index, request: &HeaderMap) -> Option<Response<Body>> {
    let value = |name| request.get(name).and_then(|value| value.to_str().ok());
    let time = |name| {
        let text: &str = value(name)?;
        rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
    };
    let answer = |status| {
        let mut response = Response::new(full(Bytes::new()));
        *response.status_mut() = status;
        Some(described(response, index))
    };
    // Times in headers have whole seconds.
    let opened = Timestamp::from_second(index.opened().as_second()).unwrap_or_default();
    if time(header::IF_UNMODIFIED_SINCE).is_some_and(|since| opened > since) {
        return answer(StatusCode::PRECONDITION_FAILED);
    }
    let unchanged = match value(header::IF_NONE_MATCH) {
        Some(tags) => tags
            .split(',')
            .any(|other| matches!(other.trim(), "*") || other.trim() == tag(index)),
        None => time(header::IF_MODIFIED_SINCE).is_some_and(|since| opened <= since),
    };
    if unchanged {
        answer(StatusCode::NOT_MODIFIED)
    } else {
        None
    }
}

/// First and last byte of a range request. A request for several ranges gets everything.
fn one_range(text: &str, total: u64) -> Option<Result<(u64, u64), ()>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let end = total.checked_sub(1);
    let range = match (first.trim(), last.trim()) {
        ("", length) => {
            let length: u64 = length.parse().ok()?;
            (total.saturating_sub(length), end.filter(|_| length > 0))
        }
        (first, "") => (first.parse().ok()?, end),
        (first, last) => {
            let last: u64 = last.parse().ok()?;
            (first.parse().ok()?, end.map(|end| end.min(last)))
        }
    };
    Some(match range {
        (first, Some(last)) if first <= last => Ok((first, last)),
        _ => Err(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_clipped_to_the_content() {
        assert_eq!(one_range("bytes=0-9", 5), Some(Ok((0, 4))));
        assert_eq!(one_range("bytes=2-", 5), Some(Ok((2, 4))));
        assert_eq!(one_range("bytes=-2", 5), Some(Ok((3, 4))));
        assert_eq!(one_range("bytes=5-", 5), Some(Err(())));
        assert_eq!(one_range("bytes=0-", 0), Some(Err(())));
        assert_eq!(one_range("bytes=0-1,3-4", 5), None);
        assert_eq!(one_range("lines=0-1", 5), None);
    }

    #[test]
    fn a_catalogs_name_may_stand_before_the_api() {
        assert_eq!(below_catalogs("/catalogs/operators/api/v1/all"), "/api/v1/all");
        assert_eq!(below_catalogs("/api/v1/all"), "/api/v1/all");
    }
}
