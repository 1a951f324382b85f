//! A manager whose API server never answers.
use std::{convert::Infallible, future::pending};

use hyper::{Request, Response};
use kube::client::Body;

use super::*;
use crate::options::Options;

async fn manager(namespaces: &str) -> Manager {
    let nobody = tower::service_fn(|_: Request<Body>| pending::<Result<Response<Body>, Infallible>>());
    let options = Options {
        health_probe_bind_address: None,
        watch_namespace: namespaces.parse().unwrap(),
        max_concurrent_reconciles: 8,
        ..Options::default()
    };
    let builder = Manager::builder("test").client(Client::new(nobody, "default"));
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
