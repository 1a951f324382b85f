//! Any answers of a registry: resolving, describing and pulling end, in bounded memory, and write only to the target.
#![no_main]

use std::collections::VecDeque;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use olmkit_oci::registry::{Client, NoProgress, Options, Platforms};
use olmkit_oci::spec::Platform;
use olmkit_oci::{Layout, Reference};

type Answers = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// A server on this machine, and its next answers.
static SERVER: LazyLock<(String, Answers)> = LazyLock::new(|| {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let answers = Answers::default();
    let next = Arc::clone(&answers);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = next.lock().expect("no thread panics with it").pop_front();
            let _ = answer_once(stream, &answer.unwrap_or_default());
        }
    });
    (address, answers)
});

fn answer_once(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece)? {
            0 => break,
            read => request.extend_from_slice(piece.get(..read).unwrap_or_default()),
        }
    }
    if answer.starts_with(b"HTTP/") {
        return stream.write_all(answer);
    }
    // A sound head around the bytes: their first line may be a status and a type.
    let (head, body) = match answer.iter().position(|byte| *byte == b'\n') {
        Some(at) if answer.first().is_some_and(u8::is_ascii_digit) => answer.split_at(at + 1),
        _ => (&b"200 application/vnd.oci.image.manifest.v1+json"[..], answer),
    };
    let head = String::from_utf8_lossy(head);
    let (status, kind) = head.trim().split_once(' ').unwrap_or((head.trim(), "text/plain"));
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)
}

fuzz_target!(|data: &[u8]| {
    let (host, answers) = &*SERVER;
    let all: Vec<Vec<u8>> = split(data);
    let host = host.clone();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let inside = folder.path().join("inside");
    let reference: Reference = format!("{host}/a:v1").parse().expect("a reference");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    for number in 0..3 {
        *answers.lock().expect("no thread panics with it") = all.iter().cloned().collect();
        let options = Options {
            plain_http: true,
            attempts: 1,
            image_bytes: Some(1 << 20),
            answer: Some(Duration::from_millis(500)),
            auth_file: Some("/dev/null".into()),
            registries_conf: Some("/dev/null".into()),
            ..Options::default()
        };
        let client = Client::new(options, Arc::new(NoProgress)).expect("the options are sound");
        let layout = Layout::create(&inside).expect("a layout");
        runtime.block_on(async {
            let result = match number {
                0 => client.resolve(&reference).await.map(|_| ()),
                1 => client
                    .describe(&reference, &layout, &Platform::host())
                    .await
                    .map(|_| ()),
                _ => client.pull(&reference, &layout, &Platforms::All).await.map(|_| ()),
            };
            if let Err(error) = result {
                let _ = error.to_string();
            }
        });
    }
    let names: Vec<_> = fs::read_dir(folder.path()).expect("it is there").collect();
    assert!(names.len() <= 1, "files were written outside the target: {names:?}");
});

/// Answers are separated by lines `@@`.
fn split(data: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        if line == b"@@\n" && all.len() < 30 {
            all.push(Vec::new());
        } else if let Some(last) = all.last_mut() {
            last.extend_from_slice(line);
        }
    }
    all
}
