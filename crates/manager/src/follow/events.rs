//! Watches that are read line by line.
use std::{error::Error as StdError, io};

use http_body_util::BodyExt as _;
use hyper::header::{ACCEPT_ENCODING, HeaderValue};
use kube::{Error, api::WatchParams, client::Body, core::Status};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::listing::{OBJECT_LIMIT, REST_LIMIT, Selection};
use crate::transport::Pulse;

/// The events of one watch.
pub struct Events {
    body: Body,
    pulse: Pulse,
    /// Bytes that have arrived and were not returned.
    arrived: Vec<u8>,
    /// The first of them, up to this number, contain no line end.
    searched: usize,
    /// The length of the line that was returned last, at the start of `arrived`.
    returned: usize,
    is_broken: bool,
}

/// An event, with the JSON of its object.
#[derive(Deserialize)]
pub struct Event<'a> {
    /// The change.
    pub r#type: EventType,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The change of an object.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "UPPERCASE")]
pub enum EventType {
    /// It exists.
    Added,
    /// It exists, and has changed.
    Modified,
    /// It has been deleted.
    Deleted,
    /// The watch has reached the version of this object.
    Bookmark,
    /// The watch failed. The object is a [`Status`].
    Error,
}

impl Event<'_> {
    /// The JSON of the object.
    pub fn text(&self) -> &[u8] {
        self.object.get().as_bytes()
    }
}

impl Selection {
    /// Watches the objects that are selected, from `version` on.
    pub async fn watch(&self, parameters: &WatchParams, version: &str) -> Result<Events, Error> {
        let request = kube::core::Request::new(&self.url);
        let request = match self.metadata_only {
            true => request.watch_metadata(parameters, version),
            false => request.watch(parameters, version),
        };
        let mut request = request.map_err(Error::BuildRequest)?.map(Body::from);
        // A compressed answer arrives late: the compressor waits for more events.
        let headers = request.headers_mut();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let answer = self.send(request).await?;
        Ok(Events {
            body: answer.into_body(),
            pulse: self.pulse.clone(),
            arrived: Vec::new(),
            searched: 0,
            returned: 0,
            is_broken: false,
        })
    }
}

impl Events {
    /// The next event. `None` at the end of the watch, which the API server or a proxy may cut at any place.
    pub async fn next(&mut self) -> Option<Result<Event<'_>, Error>> {
        if self.is_broken {
            return None;
        }
        self.returned = match self.line_end().await {
            Ok(end) => end?,
            Err(error) => {
                self.is_broken = true;
                return Some(Err(error));
            }
        };
        let line = self.arrived.get(..self.returned).unwrap_or_default();
        match serde_json::from_slice(line) {
            Ok(event) => Some(Ok(event)),
            // The watch was cut within this line.
            Err(error) if error.is_eof() => None,
            Err(error) => Some(Err(match serde_json::from_slice::<Status>(line) {
                Ok(status) if status.code > 0 => Error::Api(status.boxed()),
                _ => Error::SerdeError(error),
            })),
        }
    }

    /// Waits for a line with content. Returns its length, `None` at the end.
    async fn line_end(&mut self) -> Result<Option<usize>, Error> {
        self.arrived.drain(..self.returned);
        self.returned = 0;
        self.searched = 0;
        // One large object must not keep its memory for the whole watch.
        self.arrived.shrink_to(REST_LIMIT);
        loop {
            let new = self.arrived.get(self.searched..).unwrap_or_default();
            match new.iter().position(|&byte| byte == b'\n') {
                Some(end) => {
                    let end = self.searched + end + 1;
                    if !self.arrived.get(..end).unwrap_or_default().trim_ascii().is_empty() {
                        return Ok(Some(end));
                    }
                    self.arrived.drain(..end);
                    self.searched = 0;
                    continue;
                }
                None => self.searched = self.arrived.len(),
            }
            if self.searched > OBJECT_LIMIT {
                return Err(Error::Service(
                    format!("an event of a watch is larger than {OBJECT_LIMIT} bytes").into(),
                ));
            }
            match self.body.frame().await {
                None if self.arrived.trim_ascii().is_empty() => return Ok(None),
                None => return Ok(Some(self.arrived.len())),
                Some(Ok(frame)) => {
                    self.pulse.heard();
                    if let Ok(data) = frame.into_data() {
                        self.arrived.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) if is_cut(&error) => return Ok(None),
                Some(Err(error)) => return Err(Error::ReadEvents(io::Error::other(error))),
            }
        }
    }
}

/// Returns true if the connection was closed within the answer, as load balancers do with old connections.
fn is_cut(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let is_end = |error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof;
        if error.downcast_ref::<io::Error>().is_some_and(is_end)
            || error.to_string().contains("unexpected EOF during chunk")
        {
            return true;
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;
    use http_body_util::StreamBody;
    use hyper::{
        Request, Response,
        body::{Bytes, Frame},
    };
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Api, Client, runtime::watcher::Config};

    use super::*;

    /// The events of an answer that arrives in pieces.
    async fn events(pieces: Vec<Result<Vec<u8>, io::Error>>) -> Events {
        let frames: Vec<_> = pieces
            .into_iter()
            .map(|piece| piece.map(|piece| Frame::data(Bytes::from(piece))))
            .collect();
        let mut body = Some(StreamBody::new(stream::iter(frames)));
        let answer =
            move |_: Request<Body>| std::future::ready(Ok::<_, Infallible>(Response::new(body.take().unwrap())));
        let client = Client::new(tower::service_fn(answer), "default");
        let selection = Selection::new(Api::<ConfigMap>::all(client), Config::default(), Pulse::default());
        let watch = selection.watch(&selection.watch_parameters(), "1").await;
        watch.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The events as `TYPE OBJECT`, and errors as text.
    async fn all(pieces: Vec<Result<Vec<u8>, io::Error>>) -> Vec<String> {
        let mut events = events(pieces).await;
        let mut texts = Vec::new();
        while let Some(event) = events.next().await {
            texts.push(match event {
                Ok(event) => format!("{:?} {}", event.r#type, String::from_utf8_lossy(event.text())),
                Err(error) => error.to_string(),
            });
        }
        texts
    }

    #[tokio::test]
    async fn events_are_cut_wherever_the_pieces_end() {
        let text = "{\"type\":\"ADDED\",\"object\":{\"a\":\"\\n\"}}\n\n{\"object\":{\"b\":1},\"type\":\"DELETED\"}\n{\"type\":\"BOOKMARK\",\"object\":{}}";
        for size in 1..60 {
            let pieces = text.as_bytes().chunks(size).map(|piece| Ok(piece.to_vec())).collect();
            let expected = ["Added {\"a\":\"\\n\"}", "Deleted {\"b\":1}", "Bookmark {}"];
            assert_eq!(all(pieces).await, expected, "{size}");
        }
    }

    #[tokio::test]
    async fn a_watch_that_is_cut_ends_without_an_error() {
        let line = b"{\"type\":\"MODIFIED\",\"object\":{}}\n".to_vec();
        let cut = io::Error::new(io::ErrorKind::UnexpectedEof, "closed");
        let half = line.get(..9).unwrap().to_vec();
        assert_eq!(
            all(vec![Ok(line.clone()), Ok(half.clone()), Err(cut)]).await,
            ["Modified {}"]
        );
        assert_eq!(all(vec![Ok(line.clone()), Ok(half)]).await, ["Modified {}"]);
        let reset = io::Error::new(io::ErrorKind::ConnectionReset, "reset by a test");
        let texts = all(vec![Ok(line), Err(reset)]).await;
        assert!(
            texts.len() == 2 && texts.iter().any(|text| text.contains("reset by a test")),
            "{texts:?}"
        );
    }

    #[tokio::test]
    async fn a_line_that_is_no_event_is_an_error_and_the_next_one_is_read() {
        let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old","code":410}"#;
        let text = format!("{status}\n{{\"type\":7}}\n{{\"type\":\"ADDED\",\"object\":{{}}}}\n");
        let texts = all(vec![Ok(text.into_bytes())]).await;
        assert_eq!(texts.len(), 3);
        assert!(texts.first().unwrap().contains("too old"), "{texts:?}");
        assert_eq!(texts.last().unwrap(), "Added {}");
    }

    #[tokio::test]
    async fn an_event_without_end_is_an_error() {
        let pieces = (0..64).map(|_| Ok(vec![b'x'; 1 << 20])).collect();
        let mut events = events(pieces).await;
        let error = events.next().await.unwrap().err().unwrap();
        assert!(error.to_string().contains("larger than"), "{error}");
        assert!(events.arrived.len() <= OBJECT_LIMIT + (1 << 20));
        assert!(events.next().await.is_none());
    }
}
