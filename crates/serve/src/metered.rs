//! Answers that are produced only as fast as their client reads them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::Body;
use olmkit_front::{Handle, Waiting};
use prost::bytes::Bytes;
use tonic::codegen::{Service, http};

use super::limits::ANSWER_BYTES;

/// The call of a probe. It takes next to nothing, so it does not wait for room: a server that is busy is healthy.
const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";

/// A gRPC service whose answers are metered.
#[derive(Debug, Clone)]
pub struct Metered<S> {
    inner: S,
    time: std::time::Duration,
}

impl<S> Metered<S> {
    /// Meters the answers of `inner`, each of which must begin within `time`.
    pub fn new(inner: S, time: std::time::Duration) -> Self {
        Metered { inner, time }
    }
}

type Answer<B> = http::Response<Waiting<B>>;

impl<S, R, B> Service<http::Request<R>> for Metered<S>
where
    S: Service<http::Request<R>, Response = http::Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    R: Send + 'static,
    B: Body<Data = Bytes> + Default + Unpin + Send + 'static,
    B::Error: Send,
{
    type Response = Answer<B>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer<B>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<R>) -> Self::Future {
        // The clone replaces the service that reported itself ready.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let time = self.time;
        Box::pin(async move {
            let Some(handle) = request.extensions().get::<Handle>().cloned() else {
                return Ok(inner.call(request).await?.map(Waiting::unmetered));
            };
            let call = handle.call();
            if call.is_too_many() {
                let many = tonic::Status::resource_exhausted("too many calls are open; try again");
                return Ok(many.into_http::<B>().map(Waiting::unmetered));
            }
            let is_probe = request.uri().path() == HEALTH_CHECK;
            let answer = async {
                if !is_probe {
                    handle.may_answer_soon().await;
                }
                inner.call(request).await
            };
            match tokio::time::timeout(time, answer).await {
                Ok(response) => {
                    let (parts, body) = response?.into_parts();
                    let mut body = Waiting::metered(body, handle, call, is_probe).taking(ANSWER_BYTES);
                    // After the first poll, the service's data for this answer is counted or dropped.
                    std::future::poll_fn(|context| {
                        body.fill(context);
                        Poll::Ready(())
                    })
                    .await;
                    Ok(http::Response::from_parts(parts, body))
                }
                Err(_) => {
                    let late = tonic::Status::deadline_exceeded(format!(
                        "the request was not received, or there was no room for its answer, within {} s",
                        time.as_secs_f64()
                    ));
                    Ok(late.into_http::<B>().map(Waiting::unmetered))
                }
            }
        })
    }
}
