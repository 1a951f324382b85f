//! Answers that are produced only as fast as their client reads them.
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

use crate::connections::{Call, Handle, Reserved};

/// The body of an answer. It produces a piece when there is room for it.
#[must_use]
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
    /// Its pieces are produced without waiting for room.
    at_once: bool,
    _call: Call,
    /// Bytes that the body takes in addition to its pieces.
    _reserved: Option<Reserved>,
}

impl<B: Body<Data = Bytes> + Unpin> Waiting<B> {
    /// The body of an answer without metering.
    pub fn unmetered(inner: B) -> Self {
        Waiting {
            inner,
            meter: None,
            first: None,
            room: None,
        }
    }

    /// The body of an answer to `call`. `at_once`: it is small, and produced without waiting for room.
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

    /// Also counts the bytes that the body takes in addition to its pieces.
    pub fn taking(mut self, bytes: usize) -> Self {
        if let Some(meter) = &mut self.meter {
            meter._reserved = Some(meter.handle.reserve(bytes));
        }
        self
    }

    /// Makes the first piece, if possible without waiting.
    pub fn fill(&mut self, context: &mut Context<'_>) {
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
            // The body is polled when there is room for the previous piece.
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
        // The inner body no longer counts a piece that was made in advance.
        match &self.first {
            None => self.inner.size_hint(),
            Some(_) => SizeHint::default(),
        }
    }
}
