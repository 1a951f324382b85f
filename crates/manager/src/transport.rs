//! Time limits on everything that a client waits for, and the pulse of a watch.
//!
//! kube's client waits for ever for an answer, and for minutes on a connection that died without a word (a half-open one:
//! the API server's machine vanished, a firewall forgot the connection). [`limited`] bounds both. A watch is never quiet
//! for long, because the API server sends a bookmark each minute; one that is has failed, and is started again.
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

use http_body_util::{BodyExt, Full, Limited, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Frame},
    header::RETRY_AFTER,
};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep, sleep, timeout};

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
/// client-go does; the delay that the API server asks for when it is busy is kept for [`retry_after`].
pub fn limited(client: Client, limits: Limits, metrics: Option<RequestMetrics>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, metrics) = (client.clone(), metrics.clone());
        async move {
            let watch = is_watch(&request);
            let method = request.method().to_string();
            let answer = timeout(limits.answer, client.send(request)).await;
            if let Some(metrics) = &metrics {
                let code = match &answer {
                    Ok(Ok(answer)) => answer.status().as_str().to_owned(),
                    _ => "<error>".to_owned(),
                };
                metrics.count(&code, &method);
            }
            let answer = answer.map_err(|_| Silent(limits.answer))??;
            let answer = with_delay(answer).await?;
            let limit = if watch { limits.event } else { limits.part };
            Ok::<_, Error>(answer.map(|body| Timed::new(body, limit)))
        }
    });
    Client::new(service, namespace)
}

fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|part| matches!(part, "watch=true" | "watch=1"))
}

/// Moves the header `Retry-After`, which kube drops, into the error's details.
async fn with_delay(answer: Response<Body>) -> Result<Response<UnsyncBoxBody<Bytes, Error>>, Error> {
    /// Longer ones are cut off: it is the text of an error.
    const MOST: usize = 64 << 10;
    let busy = matches!(
        answer.status(),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE | StatusCode::INTERNAL_SERVER_ERROR
    );
    let delay: Option<u32> = answer
        .headers()
        .get(RETRY_AFTER)
        .and_then(|seconds| seconds.to_str().ok()?.parse().ok());
    let (Some(delay), true) = (delay, busy) else {
        return Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()));
    };
    let (parts, body) = answer.into_parts();
    let text = Limited::new(body, MOST).collect().await?.to_bytes();
    let mut status = match serde_json::from_slice::<Value>(&text) {
        Ok(status) if status.get("kind").is_some_and(|kind| kind == "Status") => status,
        _ => json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {},
            "code": parts.status.as_u16(), "reason": "TooManyRequests",
            "message": String::from_utf8_lossy(&text).trim(),
        }),
    };
    if let Some(status) = status.as_object_mut() {
        let details = status.entry("details").or_insert_with(|| json!({}));
        if let Some(details) = details.as_object_mut() {
            details.entry("retryAfterSeconds").or_insert_with(|| json!(delay));
        }
    }
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never: Infallible| match never {});
    Ok(Response::from_parts(parts, body.boxed_unsync()))
}

/// How long the API server asked to wait.
pub fn retry_after(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Api(status) = error else { return None };
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)))
}

/// A body whose next part must come in time.
struct Timed {
    inner: UnsyncBoxBody<Bytes, Error>,
    limit: Duration,
    left: Pin<Box<Sleep>>,
    pulse: Option<Pulse>,
}

impl Timed {
    fn new(inner: UnsyncBoxBody<Bytes, Error>, limit: Duration) -> Self {
        Self {
            inner,
            limit,
            left: Box::pin(sleep(limit)),
            pulse: None,
        }
    }
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
                if let (Some(pulse), Some(Ok(_))) = (&self.pulse, &frame) {
                    pulse.heard();
                }
                Poll::Ready(frame)
            }
            Poll::Pending => match self.left.as_mut().poll(context) {
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
    /// A client that sends through `client` and records what happens here. Each watch needs its own.
    pub fn client(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let pulse = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, pulse) = (client.clone(), pulse.clone());
            async move {
                pulse.moved();
                let answer = client.send(request).await;
                pulse.moved();
                let answer = answer?;
                // A refused watch does not count as alive.
                let granted = answer.status().is_success();
                if granted {
                    pulse.heard();
                }
                Ok::<_, Error>(answer.map(|body| {
                    let body = body.map_err(Into::into).boxed_unsync();
                    // The limit is that of `limited` below; this one is never reached.
                    let mut timed = Timed::new(body, Duration::from_secs(3600));
                    timed.pulse = granted.then_some(pulse);
                    timed
                }))
            }
        });
        Client::new(service, namespace)
    }

    /// Time since the API server last sent something other than an error.
    pub fn silent_for(&self) -> Duration {
        self.since(&self.0.heard)
    }

    /// Time since a request was sent or an answer came: that of a program that is stuck.
    pub fn still_for(&self) -> Duration {
        self.since(&self.0.moved)
    }

    fn heard(&self) {
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
mod tests {
    use futures::StreamExt;
    use http_body_util::StreamBody;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{
        Api,
        api::{ListParams, WatchParams},
    };

    use super::*;

    /// A server that answers each request with `answer`.
    fn server<B>(answer: impl Fn() -> Option<Response<B>> + Send + Sync + Clone + 'static) -> Client
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Error>,
    {
        let service = tower::service_fn(move |_: Request<Body>| {
            let answer = answer.clone();
            async move {
                match answer() {
                    Some(answer) => Ok::<_, Error>(answer),
                    None => std::future::pending().await,
                }
            }
        });
        Client::new(service, "default")
    }

    fn maps(client: Client) -> Api<ConfigMap> {
        Api::namespaced(limited(client, Limits::default(), None), "default")
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_is_not_answered_fails() {
        let start = Instant::now();
        let maps = maps(server(|| None::<Response<Full<Bytes>>>));
        let error = maps.list(&ListParams::default()).await.unwrap_err();
        assert_eq!(start.elapsed(), Duration::from_secs(35));
        let text = crate::explain::request(&error);
        assert!(text.contains("no answer from the API server within 35s"), "{text}");
    }

    /// The connection dies in the middle of a list.
    #[tokio::test(start_paused = true)]
    async fn a_list_that_stops_fails() {
        let start = Instant::now();
        let maps = maps(server(|| {
            let begin = futures::stream::once(async { Ok::<_, Error>(Frame::data(Bytes::from("{\"kind\":"))) });
            Some(Response::new(StreamBody::new(begin.chain(futures::stream::pending()))))
        }));
        assert!(maps.list(&ListParams::default()).await.is_err());
        assert_eq!(start.elapsed(), Duration::from_secs(15));
    }

    fn event(version: u32) -> Bytes {
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "a", "namespace": "default", "resourceVersion": version.to_string() } });
        Bytes::from(format!("{}\n", json!({ "type": "MODIFIED", "object": object })))
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_lives_as_long_as_it_is_heard() {
        let start = Instant::now();
        let pulse = Pulse::default();
        let beats = server(|| {
            let beats = futures::stream::iter(1..=4).then(|version| async move {
                sleep(Duration::from_secs(60)).await;
                Ok::<_, Error>(Frame::data(event(version)))
            });
            Some(Response::new(StreamBody::new(beats.chain(futures::stream::pending()))))
        });
        let client = pulse.client(limited(beats, Limits::default(), None));
        let maps: Api<ConfigMap> = Api::namespaced(client, "default");
        let mut events = maps.watch(&WatchParams::default(), "1").await.unwrap().boxed();
        for _ in 0..4 {
            events.next().await.unwrap().unwrap();
            assert!(pulse.silent_for() < Duration::from_secs(1));
        }
        assert!(events.next().await.unwrap().is_err());
        assert_eq!(start.elapsed(), Duration::from_secs(240 + 95));
        assert!(
            pulse.silent_for() >= Duration::from_secs(94),
            "{:?}",
            pulse.silent_for()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_no_sign_of_life() {
        let refused = server(|| {
            let body = Full::new(Bytes::from("forbidden"));
            Some(Response::builder().status(403).body(body).unwrap())
        });
        let pulse = Pulse::default();
        tokio::time::advance(Duration::from_secs(5)).await;
        let maps: Api<ConfigMap> = Api::namespaced(pulse.client(refused), "default");
        assert!(maps.list(&ListParams::default()).await.is_err());
        assert_eq!(pulse.silent_for(), Duration::from_secs(5));
        assert_eq!(pulse.still_for(), Duration::ZERO);
    }

    #[tokio::test]
    async fn the_delay_that_a_busy_server_asks_for_is_kept() {
        for text in [
            "Too many requests, please try again later.\n",
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"busy","code":429}"#,
        ] {
            let metrics = crate::metrics::Metrics::new();
            let busy = server(move || {
                let answer = Response::builder().status(429).header("retry-after", "7");
                Some(answer.body(Full::new(Bytes::from(text))).unwrap())
            });
            let maps: Api<ConfigMap> =
                Api::namespaced(limited(busy, Limits::default(), Some(metrics.requests("api"))), "ns");
            let error = maps.get("a").await.unwrap_err();
            assert_eq!(retry_after(&error), Some(Duration::from_secs(7)), "{error:?}");
            let text = metrics.render();
            assert!(
                text.contains(r#"rest_client_requests_total{code="429",method="GET""#),
                "{text}"
            );
        }
        let gone = server(|| {
            Some(
                Response::builder()
                    .status(410)
                    .body(Full::new(Bytes::from("gone")))
                    .unwrap(),
            )
        });
        assert_eq!(retry_after(&maps(gone).get("a").await.unwrap_err()), None);
    }
}
