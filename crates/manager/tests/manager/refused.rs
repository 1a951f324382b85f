//! How often a watch asks an API server that refuses. Ten minutes pass at once here, so the server is none.
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU16, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use futures::stream;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response,
    body::{Bytes, Frame},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, client::Body, runtime::watcher};
use kube_manager::{
    ObjectKey,
    cache::{Cache, Change},
    follow::{Follow, Source},
    metrics::Metrics,
    probes::Readiness,
};
use serde_json::json;
use tokio::{sync::Notify, task::JoinHandle, time::sleep};

/// An API server without objects that refuses lists and watches while it is told a status code other than 200.
#[derive(Clone)]
struct Server(Arc<State>);

struct State {
    lists: AtomicUsize,
    watches: AtomicUsize,
    list: AtomicU16,
    watch: AtomicU16,
    expire: Arc<Notify>,
}

impl Server {
    fn new(list: u16, watch: u16) -> Self {
        Self(Arc::new(State {
            lists: AtomicUsize::new(0),
            watches: AtomicUsize::new(0),
            list: AtomicU16::new(list),
            watch: AtomicU16::new(watch),
            expire: Arc::default(),
        }))
    }

    fn client(&self) -> Client {
        let state = Arc::clone(&self.0);
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = state.answer(request.uri().query().unwrap_or_default().contains("watch=true"));
            async move { Ok::<_, Infallible>(answer) }
        });
        Client::new(service, "ns")
    }

    /// Follows the ConfigMaps of this server. Ready after the first list.
    fn follow(&self) -> (Readiness, JoinHandle<()>) {
        let readiness = Readiness::default();
        let source = Source {
            cache: Cache::default(),
            scope: Some("ns".to_owned()),
            project: |map: ConfigMap| map.metadata.resource_version,
            changed: |_: &ObjectKey, _: Change<String>| {},
            errors: Metrics::new().watch_errors("configmaps"),
        };
        let follow = Follow {
            gate: readiness.gate("maps"),
            source,
        };
        let api = Api::<ConfigMap>::namespaced(self.client(), "ns");
        (readiness, tokio::spawn(follow.run(api, watcher::Config::default())))
    }

    fn lists(&self) -> usize {
        self.0.lists.load(SeqCst)
    }

    fn watches(&self) -> usize {
        self.0.watches.load(SeqCst)
    }

    fn tell(&self, list: u16, watch: u16) {
        self.0.list.store(list, SeqCst);
        self.0.watch.store(watch, SeqCst);
    }

    /// Ends the open watch as too old: the client must list again.
    fn expire(&self) {
        self.0.expire.notify_waiters();
    }
}

impl State {
    fn answer(&self, watch: bool) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let (count, code) = if watch {
            (&self.watches, &self.watch)
        } else {
            (&self.lists, &self.list)
        };
        count.fetch_add(1, SeqCst);
        let code = code.load(SeqCst);
        let part = |value: serde_json::Value| Ok(Frame::data(Bytes::from(format!("{value}\n"))));
        let status = move |code: u16| {
            json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "no",
                "reason": "No", "code": code })
        };
        let body = match (code, watch) {
            (200, false) => {
                let list = json!({ "kind": "ConfigMapList", "apiVersion": "v1", "metadata": { "resourceVersion": "1" },
                    "items": [] });
                StreamBody::new(stream::once(async move { part(list) })).boxed_unsync()
            }
            (200, true) => {
                let expire = Arc::clone(&self.expire);
                let end = async move {
                    expire.notified().await;
                    part(json!({ "type": "ERROR", "object": status(410) }))
                };
                StreamBody::new(stream::once(end)).boxed_unsync()
            }
            (CLOSED, true) => http_body_util::Empty::new().boxed_unsync(),
            _ => StreamBody::new(stream::once(async move { part(status(code)) })).boxed_unsync(),
        };
        Response::builder().status(code).body(body).unwrap()
    }
}

/// As the status code of a watch: it is granted and closed at once.
const CLOSED: u16 = 204;

/// Ten minutes at half a minute each, which jitter halves, and a few at the beginning.
const FEW: std::ops::RangeInclusive<usize> = 15..=50;

#[tokio::test(start_paused = true)]
async fn a_list_that_is_refused_is_asked_for_less_and_less_often() {
    for code in [403, 500] {
        let server = Server::new(code, 200);
        let (readiness, watch) = server.follow();
        sleep(Duration::from_secs(10)).await;
        assert!(
            (3..=6).contains(&server.lists()),
            "{code}: {} lists at first",
            server.lists()
        );
        sleep(Duration::from_secs(590)).await;
        assert!(
            FEW.contains(&server.lists()),
            "{code}: {} lists in ten minutes",
            server.lists()
        );
        assert!(!readiness.is_ready());
        // The right is granted: half a minute later at most.
        server.tell(200, 200);
        sleep(Duration::from_secs(31)).await;
        assert!(readiness.is_ready() && server.watches() == 1);
        // That list ends the row: the next failures are retried soon.
        server.tell(code, 200);
        let before = server.lists();
        server.expire();
        sleep(Duration::from_secs(8)).await;
        let again = server.lists() - before;
        assert!((2..=6).contains(&again), "{code}: {again} lists after a success");
        watch.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn so_is_a_watch_and_an_open_one_ends_the_row() {
    let server = Server::new(200, 403);
    let (_, watch) = server.follow();
    sleep(Duration::from_secs(600)).await;
    assert_eq!(server.lists(), 1);
    assert!(
        FEW.contains(&server.watches()),
        "{} watches in ten minutes",
        server.watches()
    );
    // Nothing happens while the watch is open, not even an event.
    server.tell(200, 200);
    sleep(Duration::from_secs(200)).await;
    server.tell(500, 200);
    server.expire();
    sleep(Duration::from_secs(8)).await;
    let again = server.lists() - 1;
    assert!((2..=6).contains(&again), "{again} lists after an open watch");
    watch.abort();
}

/// A proxy may do this to each watch.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_closed_at_once_is_opened_less_and_less_often() {
    let server = Server::new(200, CLOSED);
    let (readiness, watch) = server.follow();
    sleep(Duration::from_secs(600)).await;
    assert!(readiness.is_ready());
    assert_eq!(server.lists(), 1);
    let watches = server.watches();
    assert!(FEW.contains(&watches), "{watches} watches in ten minutes");
    watch.abort();
}
