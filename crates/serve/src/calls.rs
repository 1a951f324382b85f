//! Counts the calls of a gRPC service.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tonic::codegen::{Service, http};
use tonic::server::NamedService;

use super::metrics::Metrics;

/// A service whose calls are counted.
#[derive(Clone)]
pub struct Counted<S> {
    inner: S,
    metrics: Metrics,
}

impl<S> Counted<S> {
    /// Counts the calls of `inner`.
    pub fn new(inner: S, metrics: Metrics) -> Self {
        Counted { inner, metrics }
    }
}

impl<S: NamedService> NamedService for Counted<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, Request, Body> Service<http::Request<Request>> for Counted<S>
where
    S: Service<http::Request<Request>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
    Body: 'static,
{
    type Response = S::Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Request>) -> Self::Future {
        let call = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        let (metrics, begin) = (self.metrics.clone(), Instant::now());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            // A call that fails immediately reports its status in the headers. One with an answer reports success in
            // the trailers.
            let code = response
                .headers()
                .get("grpc-status")
                .map_or(tonic::Code::Ok, |status| tonic::Code::from_bytes(status.as_bytes()));
            metrics.call(&call, code, begin.elapsed());
            Ok(response)
        })
    }
}
