//! The proxy's server, on a separate thread: a test's runtime may end while another test still uses the proxy.
use std::{
    io,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use http_body_util::BodyExt;
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::{Client, client::Body};
use tokio::{net::TcpListener, sync::oneshot, time::sleep};

use super::{
    Fault, Shared,
    answer::{self, Answer},
    answered, clock,
    request::{ProxiedRequest, Verb},
    silence,
};
use crate::Error;

/// Ends when it is dropped.
pub(crate) struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// Listens on loopback. `connect` creates the API server's client.
    pub(crate) fn start(
        connect: impl FnOnce() -> Result<Client, Error> + Send + 'static,
        shared: Arc<Mutex<Shared>>,
    ) -> Result<(Self, SocketAddr), Error> {
        let here = Path::new("127.0.0.1:0");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(Error::io("start the fault proxy", here))?;
        listener
            .set_nonblocking(true)
            .map_err(Error::io("start the fault proxy", here))?;
        let address = listener
            .local_addr()
            .map_err(Error::io("start the fault proxy", here))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::io("start the fault proxy", here))?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("fault-proxy".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    let serving = async {
                        match (connect(), TcpListener::from_std(listener)) {
                            (Ok(client), Ok(listener)) => serve(&listener, &client, &shared).await,
                            (Err(error), _) => tracing::error!(%error, "fault proxy"),
                            (_, Err(error)) => tracing::error!(%error, "fault proxy"),
                        }
                    };
                    tokio::select! { () = serving => {}, _ = stopped => {} }
                });
            })
            .map_err(Error::io("start the fault proxy", here))?;
        let server = Self {
            stop: Some(stop),
            thread: Some(thread),
        };
        Ok((server, address))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: &TcpListener, client: &Client, shared: &Arc<Mutex<Shared>>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(std::time::Duration::from_millis(50)).await;
            continue;
        };
        // As Go's servers do: or the second part of an answer waits up to 40 ms for the acknowledgement of the first.
        let _ = stream.set_nodelay(true);
        let (client, shared) = (client.clone(), Arc::clone(shared));
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let (client, shared) = (client.clone(), Arc::clone(&shared));
                async move { answer(client, &shared, request).await }
            });
            // A connection that ends with an error is the requested fault.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// An error closes the connection without an answer.
async fn answer(
    client: Client,
    shared: &Arc<Mutex<Shared>>,
    request: Request<Incoming>,
) -> Result<Response<Answer>, io::Error> {
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let ahead = shared.lock().unwrap_or_else(PoisonError::into_inner).ahead;
    let mut body = body.to_vec();
    clock::shift(&mut body, ahead);
    let seen = ProxiedRequest::new(&parts.method, &parts.uri, body.clone());
    let watched = (seen.verb == Verb::Watch).then(|| seen.resource.clone());
    let (fault, place, user) = {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let (fault, place) = shared.decide(seen);
        let user = shared.users.iter().find(|user| user.sent(&parts.headers)).cloned();
        (fault, place, user)
    };
    silence(shared).await;
    match fault {
        Some(Fault::Status { code, retry_after }) => {
            answered(shared, place, code);
            return Ok(answer::status(code, retry_after));
        }
        Some(Fault::BlackHole(time)) => {
            sleep(time).await;
            return Err(io::Error::other("fault proxy: black hole"));
        }
        _ => {}
    }
    parts.headers.remove(hyper::header::HOST);
    let client = match user {
        Some(user) => {
            parts.headers.remove(hyper::header::AUTHORIZATION);
            user.client().await.map_err(io::Error::other)?
        }
        None => client,
    };
    let response = client
        .send(Request::from_parts(parts, Body::from(body)))
        .await
        .map_err(io::Error::other)?;
    answered(shared, place, response.status().as_u16());
    match &fault {
        Some(Fault::Late(time)) => sleep(*time).await,
        Some(Fault::AnswerLost) => return Err(io::Error::other("fault proxy: answer lost")),
        _ => {}
    }
    silence(shared).await;
    let (mut parts, body) = response.into_parts();
    // The forwarded body is chunked again.
    parts.headers.remove(hyper::header::TRANSFER_ENCODING);
    let body = answer::pass(body, fault.as_ref(), watched.is_some(), ahead);
    let silent = Arc::clone(shared);
    let Some(resource) = watched else {
        return Ok(Response::from_parts(parts, answer::held(body, silent)));
    };
    // An error in JSON fits only among events in JSON: other clients get it with their next watch.
    let kind = parts.headers.get(hyper::header::CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let refused = Arc::clone(shared);
    let refuse = move || {
        let mut shared = refused.lock().unwrap_or_else(PoisonError::into_inner);
        shared.expired.push(resource);
    };
    let expire = Arc::clone(&shared.lock().unwrap_or_else(PoisonError::into_inner).expire);
    let body = answer::expiring(body, expire, (!is_json).then_some(refuse));
    Ok(Response::from_parts(parts, answer::held(body, silent)))
}
