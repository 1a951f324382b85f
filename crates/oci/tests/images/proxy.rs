//! A proxy that misbehaves in front of a registry.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// An injected fault.
#[derive(Clone, Copy)]
pub enum Fault {
    /// Nothing: the proxy only counts bytes.
    None,
    /// The first connections are answered with this status line and headers instead of being forwarded.
    Answer { times: usize, head: &'static str },
    /// Connections are cut after this number of bytes from the registry (a cut that leaves nothing for ever new requests
    /// would never let anything through, so it happens a number of times).
    CutAnswer { times: usize, after: usize },
    /// The same for bytes towards the registry.
    CutRequest { times: usize, after: usize },
    /// Every piece in either direction is held back for a while.
    Slow { milliseconds: u64 },
    /// Requests whose announced length is above this get 413.
    LimitRequest { bytes: usize },
}

pub struct Proxy {
    pub port: u16,
    /// How often the fault has happened.
    pub faults: Arc<AtomicUsize>,
    /// Bytes in both directions.
    pub bytes: Arc<AtomicUsize>,
}

impl Proxy {
    pub fn host(&self) -> String {
        format!("localhost:{}", self.port)
    }
}

/// Starts a proxy on threads that live as long as the test process.
pub fn start(upstream: u16, fault: Fault) -> Proxy {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let faults = Arc::new(AtomicUsize::new(0));
    let bytes = Arc::new(AtomicUsize::new(0));
    let (count, passed) = (faults.clone(), bytes.clone());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (count, passed) = (count.clone(), passed.clone());
            std::thread::spawn(move || serve(client, upstream, fault, &count, &passed));
        }
    });
    Proxy { port, faults, bytes }
}

/// Takes one of the allowed faults.
fn strike(count: &AtomicUsize, times: usize) -> bool {
    count
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| {
            (now < times).then_some(now + 1)
        })
        .is_ok()
}

fn serve(mut client: TcpStream, upstream: u16, fault: Fault, count: &Arc<AtomicUsize>, bytes: &Arc<AtomicUsize>) {
    if let Fault::Answer { times, head } = fault
        && strike(count, times)
    {
        let mut buffer = [0; 4096];
        let _ = client.read(&mut buffer);
        let _ = write!(
            client,
            "HTTP/1.1 {head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        return;
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", upstream)) else {
        return;
    };
    let (client_copy, server_copy) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (back, back_bytes) = (count.clone(), bytes.clone());
    std::thread::spawn(move || pump(server_copy, client_copy, fault, false, &back, &back_bytes));
    pump(client, server, fault, true, count, bytes);
}

fn pump(
    mut from: TcpStream,
    mut to: TcpStream,
    fault: Fault,
    towards_registry: bool,
    count: &AtomicUsize,
    bytes: &AtomicUsize,
) {
    let mut passed = 0;
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        match fault {
            Fault::Slow { milliseconds } => std::thread::sleep(Duration::from_millis(milliseconds)),
            Fault::CutAnswer { times, after }
                if !towards_registry && passed + length > after && strike(count, times) =>
            {
                break;
            }
            Fault::CutRequest { times, after }
                if towards_registry && passed + length > after && strike(count, times) =>
            {
                break;
            }
            Fault::LimitRequest { bytes: most } if towards_registry && announced(&buffer[..length]) > most => {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = from.write_all(
                    b"HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                );
                // Read what is under way, so that the answer is not lost in a reset.
                let _ = from.set_read_timeout(Some(Duration::from_millis(300)));
                while let Ok(1..) = from.read(&mut buffer) {}
                break;
            }
            _ => {}
        }
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
        passed += length;
        bytes.fetch_add(length, Ordering::SeqCst);
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

/// The Content-Length in a piece that starts with a request.
fn announced(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let length = text.lines().find_map(|line| {
        line.strip_prefix("content-length:")
            .and_then(|value| value.trim().parse().ok())
    });
    length.unwrap_or(0)
}
