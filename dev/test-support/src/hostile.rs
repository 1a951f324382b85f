//! Misbehaving clients of a gRPC server. They implement HTTP/2 by hand, so that a thousand of them are cheap and none
//! has the default behavior of a client library.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// Kinds of misbehavior.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It connects and sends nothing.
    Silent,
    /// It begins the protocol and sends nothing more.
    Idle,
    /// It makes this many calls of ListBundles and reads nothing.
    Unread(u32),
    /// It makes a call of ListBundles, opens the window wide, and reads two kilobytes a second.
    Drip,
    /// It sends a call byte by byte, one a second.
    SlowRequest,
    /// It requests a page with HTTP/1 and reads nothing.
    UnreadPage,
}

/// Connects and misbehaves until the server closes the connection, or the result is dropped. `true`: the server closed it.
pub async fn run(address: SocketAddr, kind: Kind) -> bool {
    let Ok(mut stream) = connect(address).await else {
        return true;
    };
    match kind {
        Kind::Silent => {}
        Kind::Idle => {
            if stream.write_all(&begin(65_535)).await.is_err() {
                return true;
            }
        }
        Kind::Unread(calls) => {
            let mut bytes = begin(65_535);
            (0..calls).for_each(|call| bytes.extend(list_bundles(2 * call + 1)));
            let _ = stream.write_all(&bytes).await;
        }
        Kind::Drip => {
            let mut bytes = begin(0x7fff_ffff);
            // The connection's own window, too.
            bytes.extend(frame(8, 0, 0, &0x7000_0000_u32.to_be_bytes()));
            bytes.extend(list_bundles(1));
            let _ = stream.write_all(&bytes).await;
            let mut piece = [0; 1024];
            while stream.read(&mut piece).await.is_ok_and(|count| count > 0) {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            return true;
        }
        Kind::SlowRequest => {
            let mut bytes = begin(65_535);
            let quick = bytes.len();
            bytes.extend(list_bundles(1));
            let (head, rest) = bytes.split_at(quick);
            let _ = stream.write_all(head).await;
            for byte in rest {
                if stream.write_all(&[*byte]).await.is_err() {
                    return true;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        Kind::UnreadPage => {
            let request = b"GET /api/v1/all HTTP/1.1\r\nhost: catalog\r\n\r\n";
            let _ = stream.write_all(request).await;
        }
    }
    closed(&mut stream).await
}

/// The receive buffer of such a client is small.
async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4096)?;
    socket.connect(address).await
}

/// Waits until the server has closed the connection, without reading its data.
async fn closed(stream: &mut TcpStream) -> bool {
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        // A closed connection eventually rejects bytes. Frames of an unknown kind are ignored.
        if stream.try_write(&[]).is_err() || stream.take_error().ok().flatten().is_some() || hung_up(stream).await {
            return true;
        }
    }
}

/// Returns true if the server has ended its side and nothing of it is left to read, or has reset the connection.
async fn hung_up(stream: &TcpStream) -> bool {
    let ready = tokio::time::timeout(Duration::from_millis(1), stream.ready(tokio::io::Interest::READABLE)).await;
    matches!(ready, Ok(Ok(ready)) if ready.is_read_closed()) || matches!(ready, Ok(Err(_)))
}

/// The preface, and settings with a window.
fn begin(window: u32) -> Vec<u8> {
    let mut settings = vec![0, 4];
    settings.extend(window.to_be_bytes());
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &settings));
    bytes
}

fn list_bundles(stream: u32) -> Vec<u8> {
    let mut headers = Vec::new();
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/api.Registry/ListBundles"),
        (":authority", "catalog"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ] {
        // Literal fields that are not remembered.
        headers.push(0);
        for text in [name, value] {
            headers.push(text.len() as u8);
            headers.extend(text.bytes());
        }
    }
    let mut bytes = frame(1, 4, stream, &headers);
    // An empty message ends the request.
    bytes.extend(frame(0, 1, stream, &[0; 5]));
    bytes
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}
