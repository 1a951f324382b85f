//! OpenAPI documents, read while they arrive.
//!
//! The document of the core group has 1.6 MB, most of it descriptions and paths. An operator that reads it as a whole keeps that
//! memory: the allocator returns little of it.
use std::{collections::HashMap, ops::Range};

use http_body_util::BodyExt as _;
use hyper::Request;
use kube::{Client, Error, client::Body};
use serde_json::value::RawValue;

use crate::{
    follow::refusal,
    scan::{Mark, Scanner},
};

/// The text that is kept of a document.
const LIMIT: usize = 16 << 20;

/// The parts of a document that describe kinds.
#[derive(Default)]
pub struct Document {
    /// The paths that end with `/status`.
    pub status_paths: Vec<String>,
    /// The JSON of each definition. Descriptions are empty.
    pub definitions: HashMap<String, String>,
}

/// Reads the document at `url`.
pub async fn read(client: &Client, url: &str) -> Result<Document, Error> {
    let request = Request::get(url).body(Body::empty()).map_err(Error::HttpError)?;
    let answer = client.send(request).await?;
    if !answer.status().is_success() {
        return Err(refusal(answer).await);
    }
    let (mut body, mut reader) = (answer.into_body(), Reader::default());
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            reader.feed(&data)?;
        }
    }
    Ok(reader.document)
}

/// Takes a document in pieces.
#[derive(Default)]
pub struct Reader {
    pub document: Document,
    scanner: Scanner,
    /// The last string in the outermost object, in the one below, and in the one below that: the names of fields.
    names: [Vec<u8>; 3],
    /// The depth of the string that is being read, if it is one of `names`.
    naming: Option<usize>,
    definition: Definition,
    kept: usize,
}

/// A definition that has begun, without descriptions.
#[derive(Default)]
struct Definition {
    text: Vec<u8>,
    /// Where the string begins that is being read.
    begun: usize,
    /// Where the content of the last string is.
    last: Range<usize>,
    /// The depth of the default that is being read. It is data, and may have a field of any name.
    default: Option<usize>,
}

impl Definition {
    /// Takes the next piece, after which the document has this depth.
    fn take(&mut self, mark: Mark, piece: &[u8], depth: usize) {
        match mark {
            Mark::StringBegins => self.begun = self.text.len() + 1,
            Mark::StringEnds => {
                if self.default.is_none() && self.is_value_of(b"description", self.begun.saturating_sub(1)) {
                    self.text.truncate(self.begun);
                }
                self.last = self.begun..self.text.len();
            }
            Mark::Opens { .. } if self.default.is_none() && self.is_value_of(b"default", self.text.len()) => {
                self.default = Some(depth);
            }
            Mark::Closes if self.default.is_some_and(|default| depth < default) => self.default = None,
            _ => {}
        }
        self.text.extend_from_slice(piece);
    }

    /// Returns true if the value that begins at `start` is that of a field with this name.
    fn is_value_of(&self, name: &[u8], start: usize) -> bool {
        let is_named = self.text.get(self.last.clone()) == Some(name);
        let between = self.text.get(self.last.end + 1..start).unwrap_or_default();
        is_named && between.trim_ascii() == b":"
    }
}

impl Reader {
    /// Takes the next piece.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while let Some((mark, piece)) = self.scanner.next(&mut bytes) {
            let depth = self.scanner.depth;
            match mark {
                Mark::StringBegins => {
                    self.naming = depth.checked_sub(1).filter(|&level| level < self.names.len());
                    if let Some(name) = self.naming.and_then(|level| self.names.get_mut(level)) {
                        name.clear();
                    }
                }
                Mark::StringEnds => {
                    if self.naming.take() == Some(1) {
                        self.named_path();
                    }
                }
                _ => {
                    if let Some(name) = self.naming.and_then(|level| self.names.get_mut(level)) {
                        name.extend_from_slice(piece);
                        self.kept += piece.len();
                    }
                }
            }
            let [first, second, _] = &self.names;
            let is_inside = depth > 3 || (depth == 3 && mark == Mark::Closes);
            if is_inside && first == b"components" && second == b"schemas" {
                self.definition.take(mark, piece, depth);
                if depth == 3 {
                    self.end_of_definition()?;
                }
            }
            if self.kept + self.definition.text.len() > LIMIT {
                return Err(Error::Service(
                    format!("an OpenAPI document is larger than {LIMIT} bytes").into(),
                ));
            }
        }
        Ok(())
    }

    /// The name of a path has ended, or of another field at this depth.
    fn named_path(&mut self) {
        let [first, second, _] = &self.names;
        if first == b"paths" && second.ends_with(b"/status") {
            let path = String::from_utf8_lossy(second).into_owned();
            self.document.status_paths.push(path);
        }
    }

    fn end_of_definition(&mut self) -> Result<(), Error> {
        let definition = std::mem::take(&mut self.definition);
        let text: &RawValue = serde_json::from_slice(&definition.text).map_err(Error::SerdeError)?;
        let [_, _, name] = &self.names;
        let name = String::from_utf8_lossy(name).into_owned();
        self.kept += text.get().len();
        self.document.definitions.insert(name, text.get().to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_document_is_read_wherever_its_pieces_end() {
        let definition = json!({
            "type": "object", "description": "a \"quoted\" } text",
            "properties": {
                "description": { "type": "string", "description": "text" },
                "a": { "enum": ["}", "{"], "default": { "description": "data" }, "description": "text" },
                "default": { "type": "string", "description": "" },
            },
            "required": ["description", "default"],
        });
        let mut without_descriptions = definition.clone();
        for pointer in [
            "/description",
            "/properties/description/description",
            "/properties/a/description",
        ] {
            *without_descriptions.pointer_mut(pointer).unwrap() = json!("");
        }
        let document = json!({
            "openapi": "3.0.0",
            "components": { "schemas": { "io.k8s.A": definition, "io.k8s.B": { "type": "string" } },
                "securitySchemes": { "T": { "type": "apiKey" } } },
            "paths": {
                "/apis/a/v1/things/{name}/status": { "get": { "description": "x/status" } },
                "/apis/a/v1/things/{name}": { "get": {} },
            },
        });
        for text in [document.to_string(), serde_json::to_string_pretty(&document).unwrap()] {
            for size in 1..40 {
                let mut reader = Reader::default();
                text.as_bytes()
                    .chunks(size)
                    .for_each(|piece| reader.feed(piece).unwrap());
                let Document {
                    status_paths,
                    definitions,
                } = reader.document;
                assert_eq!(status_paths, ["/apis/a/v1/things/{name}/status"], "{size}");
                assert_eq!(definitions.len(), 2);
                let read: Value = serde_json::from_str(&definitions["io.k8s.A"]).unwrap();
                assert_eq!(read, without_descriptions);
            }
        }
    }

    #[test]
    fn a_document_without_end_is_an_error() {
        let mut reader = Reader::default();
        reader
            .feed(br#"{"components":{"schemas":{"a":{"description":""#)
            .unwrap();
        let piece = vec![b'x'; 1 << 20];
        let error = (0..32).find_map(|_| reader.feed(&piece).err()).unwrap();
        assert!(error.to_string().contains("larger than"));
    }
}
