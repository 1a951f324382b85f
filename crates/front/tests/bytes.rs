//! Heap bytes that hostile clients make a server allocate.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::{alloc::System, time::Duration};

use cap::Cap;
use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
};
use olmkit_front::{Bodies, BodyLimits, Handle, Limits, Listener};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// Connects `count` clients. Each sends `bytes` and keeps the connection open until the server closes it. Returns the
/// server's heap size, without the clients' memory, when all have sent as much as they can.
async fn flood(address: std::net::SocketAddr, count: usize, bytes: &'static [u8]) -> (usize, JoinSet<()>) {
    let before = HEAP.allocated();
    let mut clients = JoinSet::new();
    for _ in 0..count {
        clients.spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let _ = stream.write_all(bytes).await;
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
        });
    }
    let mut most = 0;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        most = most.max(HEAP.allocated().saturating_sub(before));
    }
    (most, clients)
}

/// One test: the heap is that of the process.
#[tokio::test]
async fn floods_take_little_and_give_it_back() {
    let limits = Limits {
        connections: 128,
        header_bytes: 16 << 10,
        ..Limits::default()
    };
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), limits).unwrap();
    let address = listener.address().unwrap();
    let bodies = Bodies::new(BodyLimits::default());
    let answer = move |request: Request<Incoming>, handle: Handle| {
        let bodies = bodies.clone();
        async move {
            let length = match bodies.read(request.into_body(), 64 << 20, 1, Some(&handle)).await {
                Ok(body) => body.bytes.len(),
                Err(_) => 0,
            };
            Response::new(Full::new(Bytes::from(length.to_string())))
        }
    };
    let server = tokio::spawn(listener.serve(answer, std::future::pending()));
    let before = HEAP.allocated();

    // Headers that never end.
    let header = b"GET / HTTP/1.1\r\nhost: x\r\nlong: ".iter().copied();
    let header: Vec<u8> = header.chain(std::iter::repeat_n(b'x', 400_000)).collect();
    let (most, clients) = flood(address, 256, header.leak()).await;
    assert!(most < 16 << 20, "{most} bytes for headers of 400 kB");
    drop(clients);

    // Headers just below the limit.
    let header = b"GET / HTTP/1.1\r\nhost: x\r\nlong: ".iter().copied();
    let header: Vec<u8> = header.chain(std::iter::repeat_n(b'x', 15_000)).collect();
    let (most, clients) = flood(address, 256, header.leak()).await;
    assert!(most < 16 << 20, "{most} bytes for headers of 15 kB");
    drop(clients);

    // Eight bodies of 60 MB that do not end.
    let body = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 60000000\r\n\r\n"
        .iter()
        .copied();
    let body: Vec<u8> = body.chain(std::iter::repeat_n(b'x', 50_000_000)).collect();
    let (most, clients) = flood(address, 8, body.leak()).await;
    assert!(most < 80 << 20, "{most} bytes for bodies of 60 MB");
    drop(clients);

    for _ in 0..1000 {
        if HEAP.allocated() < before + (2 << 20) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The test's inputs remain allocated. The server's memory must not.
    let stays = HEAP
        .allocated()
        .saturating_sub(before + 415_000 + 50_000_000 + (1 << 20));
    assert!(stays < 1 << 20, "{stays} bytes stay");
    server.abort();
}
