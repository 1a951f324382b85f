//! Tests with servers that are slow, silent or busy.
use futures::{AsyncBufReadExt as _, StreamExt};
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api,
    api::{ListParams, LogParams},
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

/// A pod may log nothing for hours.
#[tokio::test(start_paused = true)]
async fn a_log_that_is_followed_stays_open() {
    let pods = server(|| {
        let lines = futures::stream::iter(["one\n", "two\n"]).then(|line| async move {
            sleep(Duration::from_hours(2)).await;
            Ok::<_, Error>(Frame::data(Bytes::from(line)))
        });
        Some(Response::new(StreamBody::new(lines)))
    });
    let pods: Api<Pod> = Api::namespaced(limited(pods, Limits::default(), None), "default");
    let follow = LogParams {
        follow: true,
        ..LogParams::default()
    };
    let log = pods.log_stream("web", &follow).await.unwrap();
    let lines: Vec<String> = log.lines().map(Result::unwrap).collect().await;
    assert_eq!(lines, ["one", "two"]);
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
    let request = Request::get("/api/v1/configmaps?watch=true")
        .body(Body::empty())
        .unwrap();
    let client = limited(beats, Limits::default(), None);
    let mut events = pulse.send(&client, request).await.unwrap().into_body();
    for _ in 0..4 {
        events.frame().await.unwrap().unwrap();
        pulse.heard();
    }
    // It ends without an error: until a kind changes for the first time, an API server sends no bookmarks.
    assert!(events.frame().await.is_none());
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
    let request = Request::get("/api/v1/configmaps").body(Body::empty()).unwrap();
    assert_eq!(pulse.send(&refused, request).await.unwrap().status(), 403);
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

/// A list that is refused with `status`, `Retry-After: 7` and this body.
async fn refused<B>(status: u16, body: impl Fn() -> B + Send + Sync + Clone + 'static) -> kube::Error
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Error>,
{
    let busy = server(move || {
        let answer = Response::builder().status(status).header("retry-after", "7");
        Some(answer.body(body()).unwrap())
    });
    maps(busy).list(&ListParams::default()).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn a_refusal_whose_text_does_not_come_is_still_one() {
    let start = Instant::now();
    let error = refused(429, || {
        let begin = futures::stream::once(async { Ok::<_, Error>(Frame::data(Bytes::from("Too many"))) });
        StreamBody::new(begin.chain(futures::stream::pending()))
    });
    let error = timeout(Duration::from_secs(60), error).await.expect("it is given up");
    assert_eq!(start.elapsed(), Duration::from_secs(15));
    assert_eq!(retry_after(&error), Some(Duration::from_secs(7)), "{error:?}");
}

#[tokio::test]
async fn a_refusal_with_a_long_text_is_still_one() {
    for status in [429, 503] {
        let error = refused(status, || Full::new(Bytes::from("x".repeat(70 << 10)))).await;
        let kube::Error::Api(found) = &error else {
            panic!("no refusal: {error:?}")
        };
        assert_eq!(found.code, status);
        assert!(
            !found.message.is_empty() && found.message.len() < 100,
            "{}",
            found.message
        );
        assert_eq!(retry_after(&error), Some(Duration::from_secs(7)));
    }
}

#[tokio::test]
async fn a_refusal_in_plain_text_has_the_reason_of_its_code() {
    for (status, reason) in [
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
    ] {
        let kube::Error::Api(found) = refused(status, || Full::new(Bytes::from("not now\n"))).await else {
            panic!("no refusal")
        };
        assert_eq!((found.code, found.reason.as_str()), (status, reason));
        assert_eq!(found.message, "not now");
    }
}
