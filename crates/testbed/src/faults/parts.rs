//! The parts that a body arrives in: until some time, later, line by line.
use std::{collections::VecDeque, io, time::Duration};

use futures::{Stream, StreamExt, stream};
use hyper::body::Bytes;
use tokio::time::{Instant, sleep, sleep_until};

/// `parts` until `after` has passed.
pub(super) fn until(
    parts: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    after: Duration,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    parts.take_until(sleep(after))
}

/// Delivers each part `delay` after it arrived, even if several arrive together.
pub(super) fn late(
    parts: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    delay: Duration,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let queue: VecDeque<(Instant, io::Result<Bytes>)> = VecDeque::new();
    stream::unfold(
        (parts.boxed(), queue, false),
        move |(mut parts, mut queue, mut ended)| async move {
            loop {
                let due = queue.front().map(|(due, _)| *due);
                let next = async {
                    match due {
                        Some(due) => sleep_until(due).await,
                        None => std::future::pending().await,
                    }
                };
                if ended && due.is_none() {
                    return None;
                }
                tokio::select! {
                    biased;
                    () = next => {
                        let (_, part) = queue.pop_front()?;
                        return Some((part, (parts, queue, ended)));
                    }
                    part = parts.next(), if !ended => match part {
                        Some(part) => queue.push_back((Instant::now() + delay, part)),
                        None => ended = true,
                    },
                }
            }
        },
    )
}

/// `parts` cut at the ends of lines.
pub(super) fn lines(
    parts: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let cut = parts.scan(Vec::new(), |rest: &mut Vec<u8>, part| {
        let out: Vec<io::Result<Bytes>> = match part {
            Err(error) => vec![Err(error)],
            Ok(part) => {
                rest.extend_from_slice(&part);
                let mut lines = Vec::new();
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    lines.push(Ok(Bytes::from(rest.drain(..=end).collect::<Vec<u8>>())));
                }
                lines
            }
        };
        std::future::ready(Some(stream::iter(out)))
    });
    cut.flatten()
}
