//! Credentials go to the registry that they are for, and to its token server: whatever these redirect to gets none.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use crate::registry::Bench;

/// A server that answers each request with what a function makes of its first line, and remembers the requests.
struct Server {
    host: String,
    /// Heads and bodies of the requests.
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// `answer` gets the request line and whether there is an authorization, and gives status line, headers and body.
    fn start(answer: impl Fn(&str, bool) -> (String, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let host = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let (mut head, mut length) = (String::new(), 0);
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                        break;
                    }
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    head.push_str(&line);
                }
                let mut body = vec![0; length];
                let _ = reader.read_exact(&mut body);
                let authorized = head.to_lowercase().contains("\r\nauthorization:");
                let (head_of_answer, text) = answer(head.lines().next().unwrap_or_default(), authorized);
                log.lock().unwrap().push(head + &String::from_utf8_lossy(&body));
                let _ = write!(
                    reader.get_mut(),
                    "HTTP/1.1 {head_of_answer}Content-Length: {}\r\nConnection: close\r\n\r\n{text}",
                    text.len()
                );
            }
        });
        Self { host, seen }
    }

    /// Received secrets that only the registry may receive.
    fn secrets(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let is_secret = |request: &&String| {
            let request = request.to_lowercase();
            request.contains("authorization:") || request.contains("refresh_token") || request.contains("secret")
        };
        seen.iter().filter(is_secret).cloned().collect()
    }
}

/// Accepts whatever comes, as a thief would.
fn thief() -> Server {
    Server::start(|line, _| match line.starts_with("POST") && line.contains("/uploads/") {
        true => (
            "202 Accepted\r\nLocation: /v2/a/blobs/uploads/1\r\n".to_owned(),
            String::new(),
        ),
        false => ("200 OK\r\n".to_owned(), r#"{"token":"t"}"#.to_owned()),
    })
}

const CHALLENGE: &str = "401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"test\"\r\n";

#[tokio::test]
async fn an_upload_that_is_redirected_carries_no_password_along() {
    let thief = thief();
    let target = thief.host.clone();
    let registry = Server::start(move |line, authorized| {
        let head = match (authorized, line) {
            (false, _) => CHALLENGE.to_owned(),
            (true, line) if line.starts_with("POST") => {
                format!("307 Temporary Redirect\r\nLocation: http://{target}/v2/a/blobs/uploads/\r\n")
            }
            _ => "404 Not Found\r\n".to_owned(),
        };
        (head, String::new())
    });
    let bench = Bench::new(1000);
    let client = bench.with_credentials(&registry.host, "user", "secret");
    let error = bench
        .push(&client, &format!("{}/a:v1", registry.host))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("another server"), "{error}");
    assert!(!thief.seen.lock().unwrap().is_empty());
    assert_eq!(thief.secrets(), [""; 0]);
}

#[tokio::test]
async fn a_token_server_that_redirects_is_refused() {
    let thief = thief();
    let target = thief.host.clone();
    let tokens = Server::start(move |_, _| {
        let head = format!("307 Temporary Redirect\r\nLocation: http://{target}/token\r\n");
        (head, String::new())
    });
    let realm = tokens.host.clone();
    let registry = Server::start(move |_, _| {
        let head =
            format!("401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"http://{realm}/token\",service=\"s\"\r\n");
        (head, String::new())
    });
    let bench = Bench::new(1000);
    let name = format!("{}/a:v1", registry.host);
    // A password in a header, and a refresh token in a form.
    let with_password = bench.with_credentials(&registry.host, "user", "secret");
    let error = bench.push(&with_password, &name).await.unwrap_err();
    assert!(error.to_string().contains("the token server redirects"), "{error}");
    let text = format!(r#"{{"auths":{{"{}":{{"identitytoken":"secret"}}}}}}"#, registry.host);
    let file = bench.options().auth_file.unwrap();
    std::fs::write(file, text).unwrap();
    let error = bench.push(&bench.client(), &name).await.unwrap_err();
    assert!(error.to_string().contains("the token server redirects"), "{error}");
    assert!(tokens.secrets().len() >= 2, "{:?}", tokens.seen.lock().unwrap());
    assert_eq!(*thief.seen.lock().unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_server_behind_a_redirect_gets_no_credentials_when_it_asks() {
    let thief = Server::start(|_, authorized| match authorized {
        true => ("200 OK\r\n".to_owned(), "{}".to_owned()),
        false => (CHALLENGE.to_owned(), String::new()),
    });
    let target = thief.host.clone();
    let registry = Server::start(move |line, _| {
        let head = match line.contains("/manifests/") {
            true => format!("307 Temporary Redirect\r\nLocation: http://{target}/manifest\r\n"),
            false => "200 OK\r\n".to_owned(),
        };
        (head, String::new())
    });
    let bench = Bench::new(1000);
    let client = bench.with_credentials(&registry.host, "user", "secret");
    let error = bench
        .pull(&client, &format!("{}/a:v1", registry.host))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("401"), "{error}");
    assert_eq!(thief.secrets(), [""; 0]);
}

#[tokio::test]
async fn a_token_may_promise_any_life() {
    let tokens = Server::start(|_, _| {
        let body = r#"{"token":"t","expires_in":18446744073709551615}"#;
        ("200 OK\r\n".to_owned(), body.to_owned())
    });
    let realm = tokens.host.clone();
    let registry = Server::start(move |_, authorized| match authorized {
        true => ("404 Not Found\r\n".to_owned(), String::new()),
        false => (
            format!("401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"http://{realm}/token\"\r\n"),
            String::new(),
        ),
    });
    let bench = Bench::new(1000);
    let error = bench
        .pull(&bench.client(), &format!("{}/a:v1", registry.host))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("has no image"), "{error}");
}
