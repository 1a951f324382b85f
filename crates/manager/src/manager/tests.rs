//! A manager without an API server.
use std::{convert::Infallible, future::pending};

use hyper::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;

use super::*;
use crate::options::Options;

async fn manager(namespaces: &str) -> Manager {
    let nobody = tower::service_fn(|_: Request<Body>| pending::<Result<Response<Body>, Infallible>>());
    manager_of(Client::new(nobody, "default"), namespaces).await
}

async fn manager_of(client: Client, namespaces: &str) -> Manager {
    let options = Options {
        health_probe_bind_address: None,
        watch_namespace: namespaces.parse().unwrap(),
        max_concurrent_reconciles: 8,
        ..Options::default()
    };
    let builder = Manager::builder("test").client(client);
    let builder = builder.options(options).stop(CancellationToken::new());
    builder.start().await.unwrap()
}

/// How many objects of `namespace` are reconciled at the same time.
async fn at_a_time(watched: &str, namespace: &str) -> i64 {
    let manager = manager(watched).await;
    let queue = manager.queue::<ObjectKey>("test");
    for name in 0..20 {
        queue.add(ObjectKey::new(namespace, name.to_string()));
    }
    manager.work("test", queue, |_| pending::<Result<Done, String>>());
    let metrics = manager.metrics.workers("test");
    let stop = manager.stop();
    let work = tokio::spawn(leading::together(
        Vec::new(),
        std::mem::take(&mut manager.setup().workers),
        stop.clone(),
    ));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let active = metrics.active.get();
    stop.cancel();
    work.await.unwrap();
    active
}

#[tokio::test(start_paused = true)]
async fn workers_are_kept_for_namespaces_that_there_can_be() {
    assert_eq!(at_a_time("", "shop").await, 6);
    assert_eq!(at_a_time("shop,blog", "shop").await, 6);
    assert_eq!(at_a_time("shop", "shop").await, 8);
    assert_eq!(at_a_time("", "").await, 8, "a kind without namespaces");
}

/// The last list begins after the first watch could have. A watch that begins sooner takes a connection and a handshake from it.
#[tokio::test(start_paused = true)]
async fn all_first_lists_precede_the_watches() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let server = tower::service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().unwrap_or_default().contains("watch=true");
        noted.lock().unwrap().push(if is_watch { "watch" } else { "list" });
        async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            if is_watch {
                pending::<()>().await;
            }
            Ok::<_, Infallible>(Response::new(
                r#"{"metadata":{"resourceVersion":"1"},"items":[]}"#.to_owned(),
            ))
        }
    });
    let manager = manager_of(Client::new(server, "default"), "a,b,c,d,e,f").await;
    let cache: Cache<()> = Cache::default();
    manager.watch::<ConfigMap, _, _, _>(&cache, watcher::Config::default(), |_| Some(()), |_, _| {});
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(*seen.lock().unwrap(), [["list"; 6], ["watch"; 6]].concat());
}
