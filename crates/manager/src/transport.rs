//! Time limits on everything that a client waits for, and the pulse of a watch.
//!
//! kube's client waits for ever for an answer, and for minutes on a connection that died without a word (a half-open one:
//! the API server's machine vanished, a firewall forgot the connection). [`limited`] bounds both. A watch is rarely quiet for long,
//! because the API server sends a bookmark each minute once it has seen a change of the kind. One that is quiet ends and is started
//! again, which fails if the connection is dead.
//!
//! A [`Pulse`] records when the API server last answered one watch, for [readiness and liveness](crate::probes).
use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Frame},
    header::RETRY_AFTER,
};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tower::Service;

use crate::metrics::RequestMetrics;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// How long to wait for the API server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For the head of an answer. The API server itself gives up most requests after a minute, webhooks after at most
    /// half of one.
    pub answer: Duration,
    /// For the next part of an answer that is not a watch.
    pub part: Duration,
    /// For the next event of a watch, bookmarks included.
    pub event: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(35),
            part: Duration::from_secs(15),
            event: Duration::from_secs(95),
        }
    }
}

/// No answer, or no further part of one.
#[derive(Debug, thiserror::Error)]
#[error("no answer from the API server within {0:?}")]
struct Silent(Duration);

/// A client that sends through `client` and waits no longer than `limits` say. Requests are counted in `metrics` as
/// client-go does. The delay that the API server asks for when it is busy is kept for [`retry_after`].
pub fn limited(client: Client, limits: Limits, metrics: Option<RequestMetrics>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = TimeLimited {
        inner: service(client),
        limits,
        metrics,
    };
    Client::new(service, namespace)
}

/// The requests of `client` as a service, for layers around it.
pub(crate) fn service(
    client: Client,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = kube::Error, Future: Send> {
    tower::service_fn(move |request| {
        let client = client.clone();
        async move { client.send(request).await }
    })
}

/// A service that waits no longer than `limits` say, and counts requests.
pub(crate) struct TimeLimited<S> {
    pub(crate) inner: S,
    pub(crate) limits: Limits,
    pub(crate) metrics: Option<RequestMetrics>,
}

impl<S, B> Service<Request<Body>> for TimeLimited<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<Error>,
    S::Future: Send + 'static,
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Error>,
{
    type Response = Response<Timed>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Timed>, Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (limits, metrics) = (self.limits, self.metrics.clone());
        let watch = has(&request, &["watch=true", "watch=1"]);
        let follows = has(&request, &["follow=true"]);
        let method = request.method().clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = timeout(limits.answer, answer).await;
            let answer = answer.map(|answer| answer.map_err(Into::into));
            if let Some(metrics) = &metrics {
                let code = match &answer {
                    Ok(Ok(answer)) => answer.status().as_str().to_owned(),
                    _ => "<error>".to_owned(),
                };
                metrics.count(&code, method.as_str());
            }
            let answer = answer.map_err(|_| Silent(limits.answer))??;
            let answer = with_delay(answer, limits.part).await;
            let limit = match watch {
                true => limits.event,
                false if follows => ENDLESS,
                false => limits.part,
            };
            Ok(answer.map(|body| Timed {
                inner: body,
                limit,
                left: Box::pin(sleep(limit)),
                ends: watch,
            }))
        })
    }
}

/// For the next line of a followed log: a pod may log nothing for months.
const ENDLESS: Duration = Duration::from_hours(24 * 365);

/// Returns true if the query of `request` has one of these parts.
fn has(request: &Request<Body>, parts: &[&str]) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|part| parts.contains(&part))
}

/// Moves the header `Retry-After`, which kube drops, into the error's details. The text of the error may be missing, the
/// delay may not.
async fn with_delay<B>(answer: Response<B>, limit: Duration) -> Response<UnsyncBoxBody<Bytes, Error>>
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Error>,
{
    /// Longer text contains no useful information.
    const MOST: usize = 64 << 10;
    let reason = match answer.status() {
        StatusCode::TOO_MANY_REQUESTS => Some("TooManyRequests"),
        StatusCode::SERVICE_UNAVAILABLE => Some("ServiceUnavailable"),
        StatusCode::INTERNAL_SERVER_ERROR => Some("InternalError"),
        _ => None,
    };
    let delay: Option<u32> = answer
        .headers()
        .get(RETRY_AFTER)
        .and_then(|seconds| seconds.to_str().ok()?.parse().ok());
    let (Some(delay), Some(reason)) = (delay, reason) else {
        return answer.map(|body| body.map_err(Into::into).boxed_unsync());
    };
    let (parts, body) = answer.into_parts();
    let text = match timeout(limit, http_body_util::Limited::new(body, MOST).collect()).await {
        Ok(Ok(text)) => text.to_bytes(),
        Ok(Err(_)) | Err(_) => Bytes::new(),
    };
    let mut status = match serde_json::from_slice::<Value>(&text) {
        Ok(status) if status.get("kind").is_some_and(|kind| kind == "Status") => status,
        _ => json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {},
            "code": parts.status.as_u16(), "reason": reason,
            "message": match String::from_utf8_lossy(&text).trim() {
                "" => parts.status.canonical_reason().unwrap_or(reason),
                text => text,
            },
        }),
    };
    if let Some(status) = status.as_object_mut() {
        let details = status.entry("details").or_insert_with(|| json!({}));
        if let Some(details) = details.as_object_mut() {
            details.entry("retryAfterSeconds").or_insert_with(|| json!(delay));
        }
    }
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never: Infallible| match never {});
    Response::from_parts(parts, body.boxed_unsync())
}

/// How long the API server asked to wait.
pub fn retry_after(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Api(status) = error else { return None };
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)))
}

/// A body whose next part must come in time.
pub(crate) struct Timed {
    inner: UnsyncBoxBody<Bytes, Error>,
    limit: Duration,
    left: Pin<Box<Sleep>>,
    /// True if the body ends when its next part is late. Otherwise it fails.
    ends: bool,
}

impl hyper::body::Body for Timed {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(frame) => {
                let next = Instant::now() + self.limit;
                self.left.as_mut().reset(next);
                Poll::Ready(frame)
            }
            Poll::Pending => match self.left.as_mut().poll(context) {
                Poll::Ready(()) if self.ends => {
                    tracing::debug!("a watch is silent, starting it again");
                    Poll::Ready(None)
                }
                Poll::Ready(()) => Poll::Ready(Some(Err(Silent(self.limit).into()))),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.inner.size_hint()
    }
}

/// When a watch last asked and last got an answer that was not an error. Clones share it.
#[derive(Clone, Debug)]
pub struct Pulse(Arc<Times>);

#[derive(Debug)]
struct Times {
    start: Instant,
    /// Milliseconds after `start`.
    heard: AtomicU64,
    /// Milliseconds after `start`.
    moved: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Self {
        Self(Arc::new(Times {
            start: Instant::now(),
            heard: AtomicU64::new(0),
            moved: AtomicU64::new(0),
        }))
    }
}

impl Pulse {
    /// Sends `request` of the watch. The caller reports each part of the answer as [`heard`](Self::heard).
    pub(crate) async fn send(&self, client: &Client, request: Request<Body>) -> kube::Result<Response<Body>> {
        self.moved();
        let answer = client.send(request).await;
        self.moved();
        let answer = answer?;
        // A rejected watch does not count as alive.
        if answer.status().is_success() {
            self.heard();
        }
        Ok(answer)
    }

    /// Time since the API server last sent something other than an error.
    pub fn silent_for(&self) -> Duration {
        self.since(&self.0.heard)
    }

    /// Time since a request was sent or an answer came: that of a program that is stuck.
    pub fn still_for(&self) -> Duration {
        self.since(&self.0.moved)
    }

    /// The API server has sent something.
    pub(crate) fn heard(&self) {
        self.0.heard.store(self.now(), Relaxed);
        self.moved();
    }

    fn moved(&self) {
        self.0.moved.store(self.now(), Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn since(&self, time: &AtomicU64) -> Duration {
        Duration::from_millis(self.now().saturating_sub(time.load(Relaxed)))
    }
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
