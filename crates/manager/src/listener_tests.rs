//! Tests with real connections.
use hyper::StatusCode;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep},
};

use super::*;

/// A server that answers `ok`, and to `/slow` when `go` is cancelled.
async fn server(go: &CancellationToken) -> SocketAddr {
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let go = go.clone();
    let answer = move |request: Request<Incoming>| {
        let go = go.clone();
        async move {
            if request.uri().path() == "/slow" {
                go.cancelled().await;
            }
            text(StatusCode::OK, "ok".to_owned())
        }
    };
    tokio::spawn(serve(listener, Wire::Plain, answer));
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

/// A probe as the kubelet sends it. It must be answered long before idle connections run out of time by themselves.
async fn probe(address: SocketAddr) -> String {
    let probe = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        ask(&mut stream, "/readyz").await;
        answered(&mut stream).await
    };
    timeout(HEADER_LIMIT / 2, probe).await.expect("the probe is answered")
}

#[tokio::test]
async fn idle_connections_do_not_keep_the_probe_out() {
    let address = server(&CancellationToken::new()).await;
    let mut held = Vec::new();
    let hold = async {
        for index in 0..300 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // Half of them are kept alive after an answer, the others never ask.
            if index % 2 == 0 {
                ask(&mut stream, "/readyz").await;
                assert!(answered(&mut stream).await.ends_with("ok"));
            }
            held.push(stream);
        }
    };
    timeout(HEADER_LIMIT / 2, hold).await.expect("each is answered");
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
    let address = server(&go).await;
    let mut busy = Vec::new();
    for _ in 0..CONNECTIONS - 1 {
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

/// The other side closed the connection.
async fn closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let end = stream.read_to_end(&mut rest).await;
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_used_may_rest_for_longer_than_the_api_server_lets_it() {
    let address = server(&CancellationToken::new()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    for pause in [5, 30, 100, 90] {
        sleep(Duration::from_secs(pause)).await;
        ask(&mut stream, "/readyz").await;
        assert!(answered(&mut stream).await.ends_with("ok"), "after {pause} s");
    }
    let rest = Instant::now();
    closed(&mut stream).await;
    assert_eq!(rest.elapsed().as_secs(), IDLE_LIMIT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_does_not_ask_is_closed_early() {
    let address = server(&CancellationToken::new()).await;
    let start = Instant::now();
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /readyz HTTP/1.1\r\nhost").await.unwrap();
    closed(&mut silent).await;
    closed(&mut slow).await;
    assert_eq!(start.elapsed().as_secs(), HEADER_LIMIT.as_secs());
}

/// The limit is one for the header, not for the answer.
#[tokio::test(start_paused = true)]
async fn a_slow_answer_is_waited_for() {
    let go = CancellationToken::new();
    let address = server(&go).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    ask(&mut stream, "/slow").await;
    sleep(HEADER_LIMIT * 2).await;
    go.cancel();
    assert!(answered(&mut stream).await.ends_with("ok"));
}

/// Nobody waits for the answer any more.
#[tokio::test]
async fn an_answer_ends_with_its_connection() {
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (began, ended) = (CancellationToken::new(), CancellationToken::new());
    let (begin, end) = (began.clone(), ended.clone());
    let answer = move |_: Request<Incoming>| {
        let (begin, guard) = (begin.clone(), end.clone().drop_guard());
        async move {
            let _guard = guard;
            begin.cancel();
            std::future::pending().await
        }
    };
    tokio::spawn(serve(listener, Wire::Plain, answer));
    let mut stream = TcpStream::connect(address).await.unwrap();
    ask(&mut stream, "/").await;
    began.cancelled().await;
    drop(stream);
    timeout(HEADER_LIMIT, ended.cancelled()).await.expect("it ends");
}
