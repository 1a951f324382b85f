//! Bodies of answers with faults.
use std::{
    io,
    sync::{Arc, Mutex},
};

use futures::{Stream, StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Response, StatusCode,
    body::{Bytes, Frame},
    header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use kube::client::Body;
use serde_json::json;
use tokio::sync::Notify;

use super::{
    Fault, Shared, clock,
    parts::{late, lines, until},
    silence,
};

/// The body of an answer of the proxy.
pub(crate) type Answer = UnsyncBoxBody<Bytes, io::Error>;

/// An answer in the API server's format.
pub(crate) fn status(code: u16, retry_after: Option<u32>) -> Response<Answer> {
    let reason = match code {
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        _ => "InternalError",
    };
    let text = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("fault proxy: {reason}"), "reason": reason, "code": code,
    });
    let body = Full::new(Bytes::from(text.to_string())).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// `body` unchanged, or with `fault`. Its times moved back by `ahead` seconds.
pub(crate) fn pass(body: Body, fault: Option<&Fault>, watch: bool, ahead: i64) -> Answer {
    let parts = body.into_data_stream().map(|part| part.map_err(io::Error::other));
    let parts = match ahead {
        0 => parts.boxed(),
        ahead => clock::shifted(parts, watch, -ahead),
    };
    match fault {
        Some(Fault::EventsLate(delay)) => frames(late(parts, *delay)),
        Some(Fault::Dropped(after)) => frames(until(parts, *after).chain(stream::once(async {
            Err(io::Error::other("fault proxy: watch dropped"))
        }))),
        Some(Fault::Stalled(after)) => frames(until(parts, *after).chain(stream::pending())),
        Some(Fault::Expired(after)) => frames(until(parts, *after).chain(stream::once(async { Ok(expiry()) }))),
        Some(Fault::BookmarksOnly) => frames(lines(parts).filter(|line| {
            let keeps = !matches!(line, Ok(line) if !String::from_utf8_lossy(line).contains("\"type\":\"BOOKMARK\""));
            std::future::ready(keeps)
        })),
        _ => frames(parts),
    }
}

/// The event that makes a client list again.
fn expiry() -> Bytes {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version", "reason": "Expired", "code": 410 });
    format!("{}\n", json!({ "type": "ERROR", "object": status })).into()
}

/// The body of a watch, which ends when `expire` is notified: with the error that makes a client list again, or after
/// `instead`.
pub(crate) fn expiring(body: Answer, expire: Arc<Notify>, instead: Option<impl FnOnce() + Send + 'static>) -> Answer {
    let notified = Box::pin(async move { expire.notified().await });
    let begin = Some((body.into_data_stream(), notified, instead));
    frames(stream::unfold(begin, async |state| {
        let (mut parts, mut notified, instead) = state?;
        tokio::select! {
            () = &mut notified => match instead {
                Some(act) => {
                    act();
                    None
                }
                None => Some((Ok(expiry()), None)),
            },
            part = parts.next() => part.map(|part| (part, Some((parts, notified, instead)))),
        }
    }))
}

/// `body`, which delivers neither data nor its end during a black hole.
pub(crate) fn held(body: Answer, shared: Arc<Mutex<Shared>>) -> Answer {
    let begin = (body.into_data_stream(), shared);
    frames(stream::unfold(begin, async |(mut parts, shared)| {
        let part = parts.next().await;
        silence(&shared).await;
        part.map(|part| (part, (parts, shared)))
    }))
}

fn frames(parts: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Answer {
    StreamBody::new(parts.map(|part| part.map(Frame::data))).boxed_unsync()
}
