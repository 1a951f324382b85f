//! A proxy in front of the API server that kills its client after a number of writes: the last one is carried out, and its
//! answer never arrives.

use std::convert::Infallible;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{Cluster, answer};

/// Result of a command.
pub struct Ended {
    /// True if it was killed. Otherwise it came to its end with fewer writes.
    pub killed: bool,
}

/// Runs `olmkit` until the API server has executed this number of its writes.
pub async fn run_until(cluster: &Cluster, arguments: &[&str], writes: usize) -> Ended {
    let state = Arc::new(State {
        client: cluster.client.clone(),
        limit: writes,
        inner: Mutex::default(),
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let kubeconfig = kubeconfig(cluster, listener.local_addr().unwrap().port());
    let serving = tokio::spawn(serve(listener, state.clone()));
    let child = cluster
        .command(arguments)
        .env("KUBECONFIG", &kubeconfig)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    state.inner.lock().unwrap().process = Some(child.id());
    let output = tokio::task::spawn_blocking(move || wait(child)).await.unwrap();
    serving.abort();
    std::fs::remove_file(kubeconfig).unwrap();
    let ended = std::mem::take(&mut *state.inner.lock().unwrap());
    let answer = answer(&output);
    let how = if ended.killed {
        "killed after"
    } else {
        "came to its end with"
    };
    cluster.record(
        arguments,
        &format!("{how} {} writes: {}", ended.writes.len(), ended.writes.join(", ")),
        &answer,
    );
    Ended { killed: ended.killed }
}

fn wait(child: Child) -> std::process::Output {
    child.wait_with_output().unwrap()
}

/// The administrator's permissions without credentials: the proxy has them.
fn kubeconfig(cluster: &Cluster, port: u16) -> PathBuf {
    let path = cluster.folder.path().join(format!("proxy-{port}.kubeconfig"));
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "proxy", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody", "namespace": "default"}}],
        "current-context": "proxy",
    });
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

struct State {
    client: Client,
    limit: usize,
    inner: Mutex<Counted>,
}

#[derive(Default)]
struct Counted {
    process: Option<u32>,
    writes: Vec<String>,
    killed: bool,
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(connection(stream, state.clone()));
    }
}

async fn connection(stream: TcpStream, state: Arc<State>) {
    let service = hyper::service::service_fn(move |request| forward(request, state.clone()));
    let io = hyper_util::rt::TokioIo::new(stream);
    // An error means that the client has disconnected.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(io, service)
        .await;
}

async fn forward(request: Request<Incoming>, state: Arc<State>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    // A question is put as an object, which is not stored.
    let is_write = head.method != Method::GET && !head.uri.path().ends_with("/selfsubjectaccessreviews");
    let write = format!("{} {}", head.method, head.uri.path());
    let mut forwarded = Request::builder()
        .method(head.method)
        .uri(head.uri.path_and_query().unwrap().as_str());
    for name in ["content-type", "accept", "user-agent"] {
        if let Some(value) = head.headers.get(name) {
            forwarded = forwarded.header(name, value);
        }
    }
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let forwarded = forwarded.body(Body::from(body)).unwrap();
    let answer = match state.client.send(forwarded).await {
        Ok(answer) => answer,
        Err(error) => panic!("{write}: {error}"),
    };
    let (head, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    if is_write && head.status.is_success() {
        state.written(write);
    }
    let mut response = Response::builder().status(head.status);
    if let Some(kind) = head.headers.get("content-type") {
        response = response.header("content-type", kind);
    }
    Ok(response.body(Full::new(body)).unwrap())
}

impl State {
    /// Counts a write, and kills the client if it was the last one that it may do.
    fn written(&self, write: String) {
        let mut counted = self.inner.lock().unwrap();
        if counted.killed {
            return;
        }
        counted.writes.push(write);
        if counted.writes.len() < self.limit {
            return;
        }
        // The child is waited for only after this, so the number is still its.
        let process = counted.process.unwrap().to_string();
        let killed = Command::new("kill").args(["-9", &process]).status().unwrap();
        assert!(killed.success());
        counted.killed = true;
    }
}
