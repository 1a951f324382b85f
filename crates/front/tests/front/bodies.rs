//! Bodies that come in pieces, with a paused clock.
use std::{convert::Infallible, time::Duration};

use http_body_util::{Full, StreamBody};
use hyper::body::{Body, Bytes, Frame, SizeHint};
use olmkit_front::{Bodies, BodyError, BodyLimits};
use tokio::{
    sync::mpsc,
    task::yield_now,
    time::{Instant, sleep},
};

/// A body that announces a length and sends the given data.
struct Promised<B> {
    inner: B,
    length: Option<u64>,
}

impl<B: Body + Unpin> Body for Promised<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        std::pin::Pin::new(&mut self.inner).poll_frame(context)
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

type Sender = mpsc::Sender<Bytes>;

fn promised(length: usize) -> (Sender, Promised<impl Body<Data = Bytes, Error = Infallible> + Unpin>) {
    let (sender, receiver) = mpsc::channel::<Bytes>(1);
    let frames = futures::stream::unfold(receiver, |mut receiver| async move {
        let bytes = receiver.recv().await?;
        Some((Ok(Frame::data(bytes)), receiver))
    });
    let body = Promised {
        inner: StreamBody::new(Box::pin(frames)),
        length: Some(length as u64),
    };
    (sender, body)
}

fn full(length: usize) -> Full<Bytes> {
    Full::new(Bytes::from(vec![b'x'; length]))
}

const MIB: usize = 1 << 20;
const MOST: usize = 64 * MIB;

fn bodies() -> Bodies {
    Bodies::new(BodyLimits::default())
}

#[tokio::test]
async fn a_body_has_its_bytes_and_a_limit() {
    let received = bodies().read(full(3 * MIB), MOST, 1, None).await.unwrap();
    assert_eq!(received.bytes.len(), 3 * MIB);
    let promised = bodies().read(full(3 * MIB), MIB, 1, None).await;
    assert!(matches!(promised, Err(BodyError::TooLarge(MIB))), "{promised:?}");
    let unpromised = Promised {
        inner: full(3 * MIB),
        length: None,
    };
    let received = bodies().read(unpromised, MIB, 1, None).await;
    assert!(matches!(received, Err(BodyError::TooLarge(MIB))), "{received:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_send_runs_out_of_time() {
    let began = Instant::now();
    let (sender, body) = promised(1000);
    let read = tokio::spawn(async move { bodies().read(body, MOST, 1, None).await });
    // A byte now and then does not help.
    for _ in 0..4 {
        sleep(Duration::from_secs(3)).await;
        let _ = sender.send(Bytes::from("x")).await;
    }
    let read = read.await.unwrap();
    assert!(matches!(read, Err(BodyError::Slow)), "{read:?}");
    assert!(began.elapsed() >= BodyLimits::default().time);
}

#[tokio::test(start_paused = true)]
async fn a_large_body_waits_for_another_and_is_read_when_that_is_gone() {
    let bodies = bodies();
    let first = bodies.read(full(60 * MIB), MOST, 1, None).await.unwrap();
    let waiting = bodies.clone();
    let second = tokio::spawn(async move { waiting.read(full(60 * MIB), MOST, 1, None).await });
    for _ in 0..10 {
        yield_now().await;
    }
    assert!(!second.is_finished(), "120 MiB are held");
    // Small ones do not wait for it.
    assert!(bodies.read(full(100_000), MOST, 4, None).await.is_ok());
    drop(first);
    assert_eq!(second.await.unwrap().unwrap().bytes.len(), 60 * MIB);
}

/// The clients of eight conversions announce 60 MiB and send no data. They are disconnected, one after the other,
/// before the API server's timeout, and no memory is allocated for them.
#[tokio::test(start_paused = true)]
async fn stalled_senders_give_up_their_memory() {
    let bodies = bodies();
    let began = Instant::now();
    let mut hostile = tokio::task::JoinSet::new();
    let mut senders = Vec::new();
    for _ in 0..8 {
        let (sender, body) = promised(60 * MIB);
        senders.push(sender);
        let bodies = bodies.clone();
        hostile.spawn(async move { bodies.read(body, MOST, 1, None).await.err().unwrap() });
    }
    yield_now().await;
    let received = bodies.read(full(60 * MIB), MOST, 1, None).await.unwrap();
    assert_eq!(received.bytes.len(), 60 * MIB);
    assert!(
        began.elapsed() <= BodyLimits::default().patience * 9,
        "{:?}",
        began.elapsed()
    );
    assert!(
        hostile
            .join_all()
            .await
            .iter()
            .all(|error| matches!(error, BodyError::Slow))
    );
}

#[tokio::test(start_paused = true)]
async fn long_waits_for_memory_end_with_a_retry_answer() {
    let bodies = bodies();
    let _held = bodies.read(full(60 * MIB), MOST, 1, None).await.unwrap();
    let second = bodies.read(full(60 * MIB), MOST, 1, None).await;
    assert!(matches!(second, Err(BodyError::NoRoom)), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn slow_small_bodies_leave_room_for_an_ordinary_one() {
    let bodies = bodies();
    let mut hostile = tokio::task::JoinSet::new();
    let mut senders = Vec::new();
    for _ in 0..300 {
        let (sender, body) = promised(MIB);
        senders.push(sender);
        let bodies = bodies.clone();
        hostile.spawn(async move { bodies.read(body, MOST, 4, None).await.map(|_| ()) });
    }
    yield_now().await;
    // A body that fits into the buffer of a connection does not wait.
    let began = Instant::now();
    assert!(bodies.read(full(10_000), MOST, 4, None).await.is_ok());
    assert_eq!(began.elapsed(), Duration::ZERO);
}
