//! Registries that do not behave: each answer is written by hand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use olmkit_oci::sha256;
use tempfile::TempDir;

/// A connection, with TLS or without.
pub trait Connection: Read + Write {}

impl<T: Read + Write> Connection for T {}

/// A server on threads that live as long as the test process.
pub struct Fake {
    /// Host and port, as references begin.
    pub host: String,
    /// The request lines that came.
    pub requests: Arc<Mutex<Vec<String>>>,
}

/// Starts a server that hands the path of each request, and where to write the answer to, to `answer`.
pub fn start(answer: impl Fn(&str, &mut dyn Connection) + Send + Sync + 'static) -> Fake {
    listen(answer, |stream| Some(Box::new(stream)))
}

/// As [`start`], with TLS for localhost; also the file of the authority to trust.
pub fn start_tls(answer: impl Fn(&str, &mut dyn Connection) + Send + Sync + 'static) -> (Fake, TempDir, PathBuf) {
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = certificate.self_signed(&key).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    std::fs::write(&file, certificate.pem()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let config = Arc::new(config);
    let server = listen(answer, move |stream| {
        let session = rustls::ServerConnection::new(config.clone()).ok()?;
        Some(Box::new(rustls::StreamOwned::new(session, stream)))
    });
    (server, folder, file)
}

fn listen(
    answer: impl Fn(&str, &mut dyn Connection) + Send + Sync + 'static,
    wrap: impl Fn(TcpStream) -> Option<Box<dyn Connection>> + Send + Sync + 'static,
) -> Fake {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let host = format!("localhost:{}", listener.local_addr().unwrap().port());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (log, shared) = (requests.clone(), Arc::new((answer, wrap)));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (log, shared) = (log.clone(), shared.clone());
            std::thread::spawn(move || {
                let Some(stream) = (shared.1)(stream) else { return };
                let mut reader = BufReader::new(stream);
                let mut lines = Vec::new();
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                    lines.push(std::mem::take(&mut line));
                }
                let Some(request) = lines.first() else { return };
                log.lock().unwrap().push(request.trim_end().to_owned());
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                (shared.0)(&path, reader.get_mut());
                let _ = reader.get_mut().flush();
            });
        }
    });
    Fake { host, requests }
}

/// A whole answer.
pub fn respond(out: &mut dyn Connection, status: &str, kind: &str, body: &[u8]) {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let _ = out.write_all(head.as_bytes());
    let _ = out.write_all(body);
}

/// Writes bytes one by one until the other side has enough.
pub fn drip(out: &mut dyn Connection, bytes: &[u8]) {
    for byte in bytes {
        if out.write_all(&[*byte]).and_then(|()| out.flush()).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// A manifest with layers of these digests and sizes. Its configuration is `{}`.
pub fn manifest(layers: &[(String, u64)]) -> Vec<u8> {
    let layers: Vec<serde_json::Value> = layers
        .iter()
        .map(|(digest, size)| {
            serde_json::json!({"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digest, "size": size})
        })
        .collect();
    let config = serde_json::json!({
        "mediaType": "application/vnd.oci.image.config.v1+json", "digest": sha256(b"{}").to_string(), "size": 2,
    });
    serde_json::to_vec(
        &serde_json::json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}),
    )
    .unwrap()
}
