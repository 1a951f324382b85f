//! Files over HTTP.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

/// Serves files by their paths on loopback until the process ends, and answers 404 for other paths. Returns the address.
///
/// # Panics
/// If no port of this machine can be opened.
pub fn serve(files: Vec<(String, Vec<u8>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = Vec::new();
            let mut buffer = [0; 1024];
            while !request.windows(4).any(|four| four == b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => request.extend_from_slice(&buffer[..count]),
                }
            }
            let request = String::from_utf8_lossy(&request).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default();
            let found = files.iter().find(|(name, _)| name == path);
            let (status, body) = found.map_or(("404 Not Found", &b""[..]), |(_, body)| ("200 OK", body));
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            // The client may have ended.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        }
    });
    format!("http://{address}")
}
