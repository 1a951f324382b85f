//! Tests with real connections.
use std::{net::SocketAddr, time::Duration};

use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
};
use olmkit_front::{Limits, Listener};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

/// A server of some clients, all of whose times are longer than any test takes unless the clock is paused.
fn limits() -> Limits {
    Limits {
        connections: 16,
        idle: Duration::from_secs(120),
        ..Limits::default()
    }
}

/// A server that answers `ok`, and to `/slow` when `go` is cancelled. It stops when `stop` is cancelled.
fn stoppable(limits: Limits, go: &CancellationToken, stop: &CancellationToken) -> (SocketAddr, JoinSet<()>) {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), limits).unwrap();
    let address = listener.address().unwrap();
    let (go, stop) = (go.clone(), stop.clone());
    let answer = move |request: Request<Incoming>, _| {
        let go = go.clone();
        async move {
            if request.uri().path() == "/slow" {
                go.cancelled().await;
            }
            Response::new(Full::new(Bytes::from("ok")))
        }
    };
    let mut task = JoinSet::new();
    task.spawn(async move { listener.serve(answer, stop.cancelled()).await });
    (address, task)
}

fn server(limits: Limits, go: &CancellationToken) -> SocketAddr {
    let (address, task) = stoppable(limits, go, &CancellationToken::new());
    let mut task = task;
    task.detach_all();
    address
}

async fn ask(stream: &mut TcpStream, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
}

async fn answered(stream: &mut TcpStream) -> String {
    let mut buffer = [0; 1024];
    let length = stream.read(&mut buffer).await.unwrap();
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

async fn probe(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    ask(&mut stream, "/readyz").await;
    answered(&mut stream).await
}

#[tokio::test]
async fn idle_connections_do_not_keep_the_probe_out() {
    let address = server(limits(), &CancellationToken::new());
    let mut held = Vec::new();
    for index in 0..20 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // Half of them are kept alive after an answer. The others never send a request.
        if index % 2 == 0 {
            ask(&mut stream, "/readyz").await;
            assert!(answered(&mut stream).await.ends_with("ok"));
        }
        held.push(stream);
    }
    assert!(probe(address).await.ends_with("ok"));
    // The youngest is still there, the oldest is not.
    let youngest = held.last_mut().unwrap();
    ask(youngest, "/readyz").await;
    assert!(answered(youngest).await.ends_with("ok"));
    closed(held.first_mut().unwrap()).await;
}

#[tokio::test]
async fn connections_that_are_being_answered_are_not_given_up() {
    let go = CancellationToken::new();
    let address = server(limits(), &go);
    let mut busy = Vec::new();
    for _ in 0..limits().connections - 1 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        ask(&mut stream, "/slow").await;
        busy.push(stream);
    }
    // Two share the last place, one after the other.
    let _idle = TcpStream::connect(address).await.unwrap();
    assert!(probe(address).await.ends_with("ok"));
    assert!(probe(address).await.ends_with("ok"));
    go.cancel();
    for stream in &mut busy {
        assert!(answered(stream).await.ends_with("ok"));
    }
}

/// Three times as many requests as the limit, at the same time: each waits until others are answered, whose connections
/// close with their answers so that no request hits a closed connection.
#[tokio::test]
async fn requests_that_do_not_fit_wait_and_are_all_answered() {
    let go = CancellationToken::new();
    let limits = limits();
    let address = server(limits, &go);
    let mut clients = JoinSet::new();
    for _ in 0..3 * limits.connections {
        clients.spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            ask(&mut stream, "/slow").await;
            answered(&mut stream).await
        });
    }
    tokio::task::yield_now().await;
    go.cancel();
    let answers = clients.join_all().await;
    assert_eq!(answers.len(), 3 * limits.connections);
    assert!(answers.iter().all(|answer| answer.ends_with("ok")), "{answers:?}");
}

/// Its client may still be in its TLS handshake.
#[tokio::test]
async fn a_connection_that_has_just_come_is_not_closed_for_another() {
    let limits = Limits {
        connections: 4,
        spared: Duration::from_secs(3600),
        ..limits()
    };
    let address = server(limits, &CancellationToken::new());
    let mut silent = Vec::new();
    for _ in 0..limits.connections {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let waiting = tokio::spawn(probe(address));
    sleep(Duration::from_millis(50)).await;
    for stream in &mut silent {
        ask(stream, "/readyz").await;
        assert!(answered(stream).await.ends_with("ok"));
    }
    assert!(!waiting.is_finished() || waiting.await.unwrap().ends_with("ok"));
}

#[tokio::test]
async fn a_server_that_stops_answers_what_has_come_and_refuses_connections_after_that() {
    let (go, stop) = (CancellationToken::new(), CancellationToken::new());
    let (address, mut task) = stoppable(limits(), &go, &stop);
    let mut kept = TcpStream::connect(address).await.unwrap();
    ask(&mut kept, "/readyz").await;
    assert!(answered(&mut kept).await.ends_with("ok"));
    let mut slow = TcpStream::connect(address).await.unwrap();
    ask(&mut slow, "/slow").await;
    // The next one is accepted after this one.
    assert!(probe(address).await.ends_with("ok"));
    stop.cancel();
    // While one is being answered, others are accepted and answered too.
    for _ in 0..3 {
        assert!(probe(address).await.ends_with("ok"));
    }
    assert!(task.try_join_next().is_none(), "a request is being answered");
    go.cancel();
    assert!(answered(&mut slow).await.ends_with("ok"));
    task.join_next().await.unwrap().unwrap();
    closed(&mut kept).await;
    assert!(TcpStream::connect(address).await.is_err());
}

/// Clients that have not heard of the stop come during that time.
#[tokio::test(start_paused = true)]
async fn a_server_that_stops_listens_until_it_is_quiet() {
    let limits = Limits {
        quiet: Duration::from_secs(5),
        ..limits()
    };
    let (go, stop) = (CancellationToken::new(), CancellationToken::new());
    let (address, mut task) = stoppable(limits, &go, &stop);
    assert!(probe(address).await.ends_with("ok"));
    stop.cancel();
    for _ in 0..3 {
        sleep(Duration::from_secs(4)).await;
        assert!(task.try_join_next().is_none());
        assert!(probe(address).await.ends_with("ok"));
    }
    let last = Instant::now();
    task.join_next().await.unwrap().unwrap();
    assert_eq!(last.elapsed().as_secs(), limits.quiet.as_secs());
}

/// The other side closed the connection.
async fn closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let end = stream.read_to_end(&mut rest).await;
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_used_may_rest_for_longer_than_the_api_server_lets_it() {
    let address = server(limits(), &CancellationToken::new());
    let mut stream = TcpStream::connect(address).await.unwrap();
    for pause in [5, 30, 100, 90] {
        sleep(Duration::from_secs(pause)).await;
        ask(&mut stream, "/readyz").await;
        assert!(answered(&mut stream).await.ends_with("ok"), "after {pause} s");
    }
    let rest = Instant::now();
    closed(&mut stream).await;
    let late = rest.elapsed() - limits().idle;
    assert!(late <= Duration::from_secs(2), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_does_not_ask_is_closed_early() {
    let address = server(limits(), &CancellationToken::new());
    let start = Instant::now();
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /readyz HTTP/1.1\r\nhost").await.unwrap();
    closed(&mut silent).await;
    closed(&mut slow).await;
    let late = start.elapsed() - limits().handshake;
    assert!(late <= Duration::from_secs(3), "{late:?}");
}

/// The limit is one for the header, not for the answer.
#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_waited_for() {
    let go = CancellationToken::new();
    let address = server(limits(), &go);
    let mut stream = TcpStream::connect(address).await.unwrap();
    ask(&mut stream, "/slow").await;
    sleep(limits().handshake * 2).await;
    go.cancel();
    assert!(answered(&mut stream).await.ends_with("ok"));
}

/// A client that has sent a request before gets no more time for a header.
#[tokio::test(start_paused = true)]
async fn the_header_of_a_further_request_has_a_time_limit_too() {
    let address = server(limits(), &CancellationToken::new());
    let mut stream = TcpStream::connect(address).await.unwrap();
    ask(&mut stream, "/readyz").await;
    assert!(answered(&mut stream).await.ends_with("ok"));
    sleep(Duration::from_secs(60)).await;
    let start = Instant::now();
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost").await.unwrap();
    closed(&mut stream).await;
    let late = start.elapsed() - limits().handshake;
    assert!(late <= Duration::from_secs(3), "{late:?}");
}

#[tokio::test]
async fn a_header_that_is_too_large_is_refused() {
    let address = server(limits(), &CancellationToken::new());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let header = format!(
        "GET /readyz HTTP/1.1\r\nhost: x\r\nlong: {}",
        "x".repeat(limits().header_bytes)
    );
    stream.write_all(header.as_bytes()).await.unwrap();
    assert!(answered(&mut stream).await.starts_with("HTTP/1.1 431"));
}

/// No client waits for the answer anymore.
#[tokio::test]
async fn an_answer_ends_with_its_connection() {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), limits()).unwrap();
    let address = listener.address().unwrap();
    let (began, ended) = (CancellationToken::new(), CancellationToken::new());
    let (begin, end) = (began.clone(), ended.clone());
    let answer = move |_: Request<Incoming>, _| {
        let (begin, guard) = (begin.clone(), end.clone().drop_guard());
        async move {
            let _guard = guard;
            begin.cancel();
            std::future::pending::<Response<Full<Bytes>>>().await
        }
    };
    tokio::spawn(listener.serve(answer, std::future::pending()));
    let mut stream = TcpStream::connect(address).await.unwrap();
    ask(&mut stream, "/").await;
    began.cancelled().await;
    drop(stream);
    ended.cancelled().await;
}
