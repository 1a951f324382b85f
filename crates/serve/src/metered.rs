//! Answers that are made only as fast as their client takes them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Frame, SizeHint};
use prost::bytes::Bytes;
use tonic::codegen::{Service, http};

use super::connections::{Call, Handle, Reserved};
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
        // The clone takes the place of the one that has said that it is ready.
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
                    // What the service made for this answer is thereby counted, or gone.
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

/// The body of an answer. It makes a piece when there is room for it.
pub struct Waiting<B: Body> {
    inner: B,
    meter: Option<Meter>,
    /// Made in advance.
    first: Option<Result<Frame<Bytes>, B::Error>>,
    /// Waits for room.
    room: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

struct Meter {
    handle: Handle,
    /// Its pieces are made without waiting for room.
    at_once: bool,
    _call: Call,
    /// What the body takes beside its pieces.
    _reserved: Option<Reserved>,
}

impl<B: Body<Data = Bytes> + Unpin> Waiting<B> {
    fn unmetered(inner: B) -> Self {
        Waiting {
            inner,
            meter: None,
            first: None,
            room: None,
        }
    }

    /// The body of an answer to `call`. `at_once`: it is small, and made without waiting for room.
    pub fn metered(inner: B, handle: Handle, call: Call, at_once: bool) -> Self {
        let meter = Meter {
            handle,
            at_once,
            _call: call,
            _reserved: None,
        };
        Waiting {
            meter: Some(meter),
            ..Waiting::unmetered(inner)
        }
    }

    /// As it is, and counting what it takes beside its pieces.
    #[must_use]
    pub fn taking(mut self, bytes: usize) -> Self {
        if let Some(meter) = &mut self.meter {
            meter._reserved = Some(meter.handle.reserve(bytes));
        }
        self
    }

    /// Makes the first piece, if it can be made at once.
    fn fill(&mut self, context: &mut Context<'_>) {
        if let Poll::Ready(Some(frame)) = self.next(context) {
            self.first = Some(frame);
        }
    }

    fn next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(context));
        if let Some(meter) = &self.meter
            && frame
                .as_ref()
                .is_none_or(|frame| frame.as_ref().is_ok_and(Frame::is_trailers))
        {
            // This is asked for when there is room for what came before.
            meter.handle.prove();
        }
        let counted = |frame: Frame<Bytes>| match &self.meter {
            Some(meter) => frame.map_data(|bytes| meter.handle.piece(bytes)),
            None => frame,
        };
        Poll::Ready(frame.map(|frame| frame.map(counted)))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Waiting<B>
where
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if let Some(meter) = &self.meter
            && self.room.is_none()
            && !meter.at_once
            && !meter.handle.may_answer_now()
        {
            let handle = meter.handle.clone();
            self.room = Some(Box::pin(async move { handle.may_go_on_soon().await }));
        }
        if let Some(room) = &mut self.room {
            std::task::ready!(room.as_mut().poll(context));
            self.room = None;
        }
        self.next(context)
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // A piece that was made in advance is no longer in what the inner body counts.
        match &self.first {
            None => self.inner.size_hint(),
            Some(_) => SizeHint::default(),
        }
    }
}
