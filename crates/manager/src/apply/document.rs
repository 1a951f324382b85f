//! OpenAPI documents, read while they arrive.
//!
//! The document of the core group has 1.6 MB, most of it descriptions and paths. An operator that reads it as a whole keeps that
//! memory: the allocator returns little of it.
use std::collections::HashMap;

use http_body_util::BodyExt as _;
use hyper::Request;
use kube::{Client, Error, client::Body};
use serde_json::Value;

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
    /// The JSON of each definition, without descriptions.
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
    /// The definition that has begun.
    definition: Vec<u8>,
    kept: usize,
}

impl Reader {
    /// Takes the next piece.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for &byte in bytes {
            let mark = self.scanner.step(byte);
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
                        name.push(byte);
                        self.kept += 1;
                    }
                }
            }
            let [first, second, _] = &self.names;
            let is_inside = depth > 3 || (depth == 3 && mark == Mark::Closes);
            if is_inside && first == b"components" && second == b"schemas" {
                self.definition.push(byte);
                self.kept += 1;
                if depth == 3 {
                    self.end_of_definition()?;
                }
            }
            if self.kept > LIMIT {
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
        let mut definition: Value = serde_json::from_slice(&self.definition).map_err(Error::SerdeError)?;
        strip(&mut definition);
        let [_, _, name] = &self.names;
        let name = String::from_utf8_lossy(name).into_owned();
        self.kept -= self.definition.len();
        let text = definition.to_string();
        self.kept += text.len();
        self.document.definitions.insert(name, text);
        self.definition.clear();
        Ok(())
    }
}

/// Removes descriptions. A property may have this name too, but it is no text.
fn strip(definition: &mut Value) {
    match definition {
        Value::Object(fields) => {
            fields.retain(|name, value| name != "description" || !value.is_string());
            fields.values_mut().for_each(strip);
        }
        Value::Array(entries) => entries.iter_mut().for_each(strip),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_read_wherever_its_pieces_end() {
        let definition = json!({
            "type": "object", "description": "a \"quoted\" } text",
            "properties": { "description": { "type": "string", "description": "text" }, "a": { "enum": ["}", "{"] } },
        });
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
                let properties = json!({ "description": { "type": "string" }, "a": { "enum": ["}", "{"] } });
                assert_eq!(read, json!({ "type": "object", "properties": properties }));
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
