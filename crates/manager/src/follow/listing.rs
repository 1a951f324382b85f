//! Lists that are read object by object.
//!
//! kube's client keeps a page of a list three times: as bytes, as text and as objects. A page of 500 objects of a megabyte, which any
//! tenant can create, would take more memory than an operator has. Here a page is cut into its objects while it arrives,
//! so that only one is in memory, and no error or log line has its content.
use http_body_util::{BodyExt as _, Limited};
use hyper::{Request, Response};
use kube::{
    Api, Client, Error,
    api::{ListParams, VersionMatch, WatchParams},
    client::Body,
    core::Status,
    runtime::watcher::{Config, ListSemantic},
};
use serde::Deserialize;

use crate::{
    scan::{Mark, Scanner},
    transport::Pulse,
};

/// Objects that are larger are not read. The API server takes requests of at most 3 MiB.
pub const OBJECT_LIMIT: usize = 16 << 20;
/// The parts of a list besides its objects.
pub const REST_LIMIT: usize = 64 << 10;

/// The objects of one kind that a watch selects.
pub struct Selection {
    client: Client,
    /// Hears the answers.
    pub pulse: Pulse,
    pub url: String,
    config: Config,
    pub metadata_only: bool,
}

/// A list without its objects.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PageMeta {
    resource_version: String,
    r#continue: String,
}

impl Selection {
    /// The objects of `api` that `config` selects.
    pub fn new<K: kube::Resource>(api: Api<K>, config: Config, pulse: Pulse) -> Self {
        Self {
            url: api.resource_url().to_owned(),
            client: api.into_client(),
            pulse,
            config,
            metadata_only: K::metadata_api(),
        }
    }

    /// The parameters of a watch of the same objects.
    pub fn watch_parameters(&self) -> WatchParams {
        WatchParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            timeout: self.config.timeout,
            bookmarks: self.config.bookmarks,
            send_initial_events: false,
        }
    }

    /// Reads all pages and passes the JSON of each object on. Returns the resource version of the list. Empty if the API server sent none.
    pub async fn each(&self, mut take: impl FnMut(&[u8]) -> serde_json::Result<()>) -> Result<String, Error> {
        let mut next = None;
        loop {
            let page = self.page(next, &mut take).await?.metadata;
            if page.r#continue.is_empty() {
                return Ok(page.resource_version);
            }
            next = Some(page.r#continue);
        }
    }

    async fn page(
        &self,
        next: Option<String>,
        take: &mut impl FnMut(&[u8]) -> serde_json::Result<()>,
    ) -> Result<Page, Error> {
        let answer = self.send(self.request(next)?).await?;
        let mut body = answer.into_body();
        let mut objects = Objects::default();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            self.pulse.heard();
            objects.feed(&data, |object| take(object).map_err(Error::SerdeError))?;
        }
        serde_json::from_slice(&objects.rest).map_err(Error::SerdeError)
    }

    /// Sends a request, and returns the answer that is no refusal.
    pub async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Error> {
        let answer = self.pulse.send(&self.client, request).await?;
        match answer.status().is_success() {
            true => Ok(answer),
            false => Err(refusal(answer).await),
        }
    }

    fn request(&self, next: Option<String>) -> Result<Request<Body>, Error> {
        let is_first = next.is_none();
        let any = is_first && self.config.list_semantic == ListSemantic::Any;
        let parameters = ListParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            limit: self.config.page_size,
            continue_token: next,
            resource_version: any.then(|| "0".to_owned()),
            version_match: any.then_some(VersionMatch::NotOlderThan),
            ..ListParams::default()
        };
        let request = kube::core::Request::new(&self.url);
        let request = match self.metadata_only {
            true => request.list_metadata(&parameters),
            false => request.list(&parameters),
        };
        Ok(request.map_err(Error::BuildRequest)?.map(Body::from))
    }
}

/// The error that the API server answered.
pub async fn refusal(answer: Response<Body>) -> Error {
    let code = answer.status().as_u16();
    let text = match Limited::new(answer.into_body(), REST_LIMIT).collect().await {
        Ok(text) => text.to_bytes(),
        Err(_) => Default::default(),
    };
    let status = serde_json::from_slice::<Status>(&text).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(&text);
        Status::failure(text.trim(), "Failed to parse error data").with_code(code)
    });
    Error::Api(status.boxed())
}

/// Cuts the text of a list into its objects while it arrives.
#[derive(Default)]
struct Objects {
    /// The list without its objects.
    rest: Vec<u8>,
    /// The object that has begun.
    object: Vec<u8>,
    scanner: Scanner,
    /// Inside the list of objects.
    in_items: bool,
    /// Where the last string of the outermost object is in `rest`: the name of a field, when a colon follows.
    name: (usize, usize),
}

impl Objects {
    fn feed(&mut self, mut bytes: &[u8], mut object: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        loop {
            let was_in_items = self.in_items;
            let Some((mark, piece)) = self.scanner.next(&mut bytes) else {
                return Ok(());
            };
            let depth = self.scanner.depth;
            let mut ends = false;
            match mark {
                Mark::StringBegins if depth == 1 => self.name.0 = self.rest.len() + 1,
                Mark::StringEnds if depth == 1 => self.name.1 = self.rest.len(),
                Mark::Opens { list: true } if depth == 2 => {
                    self.in_items |= self.rest.get(self.name.0..self.name.1) == Some(b"items");
                }
                Mark::Closes if self.in_items && depth == 1 => {
                    self.in_items = false;
                    ends = true;
                }
                Mark::Separates if self.in_items && depth == 2 => ends = true,
                _ => {}
            }
            if ends {
                if !self.object.iter().all(u8::is_ascii_whitespace) {
                    object(&self.object)?;
                }
                self.object.clear();
                // One large object must not keep its memory for the whole list.
                self.object.shrink_to(REST_LIMIT);
            }
            let (part, limit) = match was_in_items && self.in_items {
                true if ends => continue,
                true => (&mut self.object, OBJECT_LIMIT),
                false => (&mut self.rest, REST_LIMIT),
            };
            if part.len() + piece.len() > limit {
                return Err(Error::Service(
                    format!("a part of a list is larger than {limit} bytes").into(),
                ));
            }
            part.extend_from_slice(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The objects of a list that arrives in pieces of `size` bytes, and the list without them.
    fn cut(text: &str, size: usize) -> (Vec<Value>, Value) {
        let (mut objects, mut found) = (Objects::default(), Vec::new());
        for piece in text.as_bytes().chunks(size) {
            let read = objects.feed(piece, |object| {
                found.push(serde_json::from_slice(object).map_err(Error::SerdeError)?);
                Ok(())
            });
            read.unwrap();
        }
        (found, serde_json::from_slice(&objects.rest).unwrap())
    }

    #[test]
    fn a_list_is_cut_wherever_its_pieces_end() {
        let items = [
            json!({"metadata": {"name": "a", "annotations": {"x": "}],[{\",\\"}}, "items": [1, [2, {"items": []}]]}),
            json!({}),
            json!({"data": {"items": "[\"]"}}),
        ];
        let lists = [
            json!({"kind": "List", "metadata": {"resourceVersion": "7", "continue": "x"}, "items": items}),
            json!({"items": items, "metadata": {"resourceVersion": "7", "continue": "x", "items": [3]}}),
        ];
        for list in lists {
            for text in [list.to_string(), serde_json::to_string_pretty(&list).unwrap()] {
                for size in 1..40 {
                    let (found, rest) = cut(&text, size);
                    assert_eq!(found, items, "{size}");
                    assert_eq!(rest["metadata"], list["metadata"]);
                    assert_eq!(rest["items"], json!([]));
                }
            }
        }
        let (found, rest) = cut(r#"{"metadata":{"resourceVersion":"1"},"items":null}"#, 3);
        assert!(found.is_empty());
        assert_eq!(rest["metadata"]["resourceVersion"], "1");
    }

    /// 500 MB of objects of a megabyte each.
    #[test]
    fn no_more_than_one_object_is_held() {
        let object = format!(
            r#"{{"metadata":{{"name":"a","annotations":{{"x":"{}"}}}}}}"#,
            "x".repeat(1 << 20)
        );
        let (mut objects, mut count, mut most) = (Objects::default(), 0, 0);
        let mut take = |_: &[u8]| {
            count += 1;
            Ok(())
        };
        objects
            .feed(br#"{"metadata":{"resourceVersion":"1"},"items":["#, &mut take)
            .unwrap();
        for index in 0..500 {
            if index > 0 {
                objects.feed(b",", &mut take).unwrap();
            }
            for piece in object.as_bytes().chunks(16 << 10) {
                objects.feed(piece, &mut take).unwrap();
                most = most.max(objects.object.capacity() + objects.rest.capacity());
            }
        }
        objects.feed(b"]}", &mut take).unwrap();
        assert_eq!(count, 500);
        assert!(most <= 4 << 20, "{most} bytes");
    }

    #[test]
    fn an_object_without_end_is_an_error() {
        let mut objects = Objects::default();
        objects.feed(br#"{"items":[{"a":""#, |_| Ok(())).unwrap();
        let piece = vec![b'x'; 1 << 20];
        let ended = (0..64).find_map(|_| objects.feed(&piece, |_| Ok(())).err());
        assert!(ended.unwrap().to_string().contains("larger than"));
        assert!(objects.object.len() <= OBJECT_LIMIT);
    }
}
