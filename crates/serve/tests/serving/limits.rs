//! Clients that use as many resources as they can: each costs a bounded amount for a bounded time, and blocks no other
//! client.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use olmkit::catalog::load;
use olmkit_serve::api::registry_client::RegistryClient;
use olmkit_serve::assemble::IndexContents;
use olmkit_serve::{Limits, Server, api, http, index, probe, source};
use test_support::hostile::{self, Kind};
use tonic::transport::Channel;

use crate::connect;
use crate::server::CATALOG;

const BUNDLES: usize = 200;

/// The catalog with bundles of 50 kB.
fn large() -> String {
    let mut text =
        "schema: olm.package\nname: p\ndefaultChannel: c\n---\nschema: olm.channel\nname: c\npackage: p\nentries:\n"
            .to_owned();
    for at in 0..BUNDLES {
        let replaces = if at == 0 {
            String::new()
        } else {
            format!(", replaces: p.v{}", at - 1)
        };
        text.push_str(&format!("- {{name: p.v{at}{replaces}}}\n"));
    }
    let noise = "x".repeat(50_000);
    for at in 0..BUNDLES {
        text.push_str(&format!(
            "---\nschema: olm.bundle\nname: p.v{at}\npackage: p\nimage: r.io/p:v{at}\nproperties:\n\
             - {{type: olm.package, value: {{packageName: p, version: {at}.0.0}}}}\n- {{type: noise, value: {noise}}}\n"
        ));
    }
    text
}

async fn serve(text: &str, limits: Limits) -> SocketAddr {
    let address = "127.0.0.1:0".parse().unwrap();
    let server = Server::bind_with(address, limits).await.unwrap();
    let address = server.address();
    let catalog = load::text(text).unwrap().into_iter().collect();
    server.current().set(index::in_memory(&catalog).unwrap());
    tokio::spawn(server.run(std::future::pending()));
    address
}

const SHORT: Duration = Duration::from_millis(400);
const LONG: Duration = Duration::from_secs(120);

/// Time until the server closes the connection of such a client.
async fn until_closed(address: SocketAddr, kind: Kind) -> Duration {
    let begin = Instant::now();
    let closed = tokio::time::timeout(LONG, hostile::run(address, kind)).await;
    assert_eq!(closed, Ok(true), "{kind:?} is still connected");
    begin.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_slow_and_idle_clients_are_disconnected() {
    let text = large();
    for (kind, limits) in [
        (
            Kind::Silent,
            Limits {
                handshake: SHORT,
                ..Limits::default()
            },
        ),
        (
            Kind::Unread(1),
            Limits {
                send: SHORT,
                ..Limits::default()
            },
        ),
        (
            Kind::Unread(16),
            Limits {
                send: SHORT,
                ..Limits::default()
            },
        ),
        (
            Kind::Drip,
            Limits {
                send: SHORT,
                ..Limits::default()
            },
        ),
        (
            Kind::Idle,
            Limits {
                idle: SHORT,
                ..Limits::default()
            },
        ),
    ] {
        let address = serve(&text, limits).await;
        let time = until_closed(address, kind).await;
        assert!(time >= SHORT, "{kind:?} after {time:?}");
        // The same limits do not affect well-behaved clients.
        assert_eq!(bundles(connect(address).await).await, BUNDLES, "{kind:?}");
    }
}

async fn bundles(channel: Channel) -> usize {
    let mut client = RegistryClient::new(channel);
    let answer = client.list_bundles(api::ListBundlesRequest {}).await.unwrap();
    let mut stream = answer.into_inner();
    let mut count = 0;
    while stream.message().await.unwrap().is_some() {
        count += 1;
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_with_too_many_calls_are_disconnected() {
    // No limit of time ends them.
    let address = serve(CATALOG, Limits::default()).await;
    until_closed(address, Kind::Unread(50)).await;
    // A few calls above the limit, as by a client that has not read the settings yet, are rejected one by one.
    let few = tokio::spawn(hostile::run(address, Kind::Unread(20)));
    tokio::time::sleep(SHORT).await;
    assert!(!few.is_finished());
    few.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_is_answered_while_there_is_no_room_for_answers() {
    let limits = Limits {
        waiting_bytes: 64 << 10,
        connection_bytes: 64 << 10,
        ..Limits::default()
    };
    let address = serve(&large(), limits).await;
    // Some of these use up all the memory, and the others wait for it.
    let crowd: Vec<_> = (0..60)
        .map(|_| tokio::spawn(hostile::run(address, Kind::Unread(16))))
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let limit = Duration::from_secs(60);
    for _ in 0..20 {
        probe::check(&address.to_string(), "", limit, limit).await.unwrap();
    }
    crowd.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_makes_room_for_who_comes() {
    let limits = Limits {
        connections: 8,
        ..Limits::default()
    };
    let address = serve(CATALOG, limits).await;
    let limit = Duration::from_secs(60);
    for kind in [Kind::Silent, Kind::Idle, Kind::Unread(3), Kind::SlowRequest] {
        let crowd: Vec<_> = (0..40).map(|_| tokio::spawn(hostile::run(address, kind))).collect();
        tokio::time::sleep(Duration::from_millis(300)).await;
        for _ in 0..10 {
            probe::check(&address.to_string(), "", limit, limit).await.unwrap();
        }
        crowd.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_takes_make_room_for_those_that_are_taken() {
    let limits = Limits {
        waiting_bytes: 1 << 20,
        connection_bytes: 256 << 10,
        ..Limits::default()
    };
    let address = serve(&large(), limits).await;
    let crowd: Vec<_> = (0..100)
        .map(|_| tokio::spawn(hostile::run(address, Kind::Unread(20))))
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let begin = Instant::now();
    assert_eq!(bundles(connect(address).await).await, BUNDLES);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    crowd.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_nobody_reads_do_not_hide_the_health() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("catalog.yaml"), large()).unwrap();
    let wanted = IndexContents {
        blobs: true,
        whole: false,
    };
    let options = source::Options {
        wanted,
        ..source::Options::default()
    };
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let current = server.current();
    current.set(source::index(root.path(), options).unwrap().0);
    let routes = http::Routes {
        catalog: Some(current.clone()),
        metrics: None,
        health: current,
    };
    let limits = Limits {
        connections: 16,
        send: Duration::from_secs(2),
        ..Limits::default()
    };
    let address = "127.0.0.1:0".parse().unwrap();
    let web = http::Server::bind_with(address, routes, limits).await.unwrap();
    let address = web.address().unwrap();
    tokio::spawn(web.run());
    let crowd: Vec<_> = (0..64)
        .map(|_| tokio::spawn(hostile::run(address, Kind::UnreadPage)))
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    for _ in 0..10 {
        let answer = crate::server::request(address, "GET", "/healthz", &[]);
        let (status, ..) = tokio::time::timeout(LONG, answer).await.unwrap();
        assert_eq!(status, 200);
    }
    // Connections that are not closed to make room are closed because they do not read.
    for client in crowd {
        assert!(tokio::time::timeout(LONG, client).await.unwrap().unwrap());
    }
}
