//! One file of a bundle as OLM v1 reads it: a stream of YAML or JSON documents, lists flattened.

use std::sync::Arc;

use serde_json::Value;

use olmkit_base::limits::Limit;
use olmkit_go::structs::decode::decode;
use olmkit_yaml::{self as yaml, Node, Position};

/// An object of a stream.
#[derive(Debug, Clone)]
pub(super) struct Streamed {
    pub value: Arc<Value>,
    pub node: Arc<Node>,
}

/// Why a stream cannot be read.
#[derive(Debug, Clone)]
pub(super) struct StreamError {
    pub message: String,
    pub position: Option<Position>,
}

/// Returns true if every reader treats a file as one YAML document, so that another reader's tree can be reused: no
/// JSON, no separator except at the start, and a final line end, which this reader would add.
pub(super) fn is_one_document(bytes: &[u8]) -> bool {
    let after_separator = bytes.strip_prefix(b"---\n").unwrap_or(bytes);
    !after_separator.trim_ascii_start().starts_with(b"{")
        && !after_separator.starts_with(b"---")
        && memchr::memmem::find(after_separator, b"\n---").is_none()
        && bytes.ends_with(b"\n")
}

/// Reads the objects of a file.
pub(super) fn objects(path: &str, bytes: &[u8]) -> Result<Vec<Streamed>, StreamError> {
    objects_within(path, bytes, None)
}

/// Like [`objects`], with a limit on the values of a document. They are counted before the document is converted to JSON, which
/// takes several times the memory.
pub(super) fn objects_within(path: &str, bytes: &[u8], most: Option<&Limit>) -> Result<Vec<Streamed>, StreamError> {
    let mut objects = Vec::new();
    for document in yaml::documents(bytes) {
        let failed = |error: yaml::Error| {
            let text = match &error {
                yaml::Error::Convert(_) | yaml::Error::Unmarshal(_) => error.to_string(),
                _ => format!("error converting YAML to JSON: {error}"),
            };
            StreamError {
                message: format!("error parsing {path}: {text}"),
                position: error.position(),
            }
        };
        let node = document.map_err(failed)?;
        if let Some(limit) = most.filter(|limit| values(&node) > limit.get()) {
            return Err(StreamError {
                message: format!(
                    "error parsing {path}: its document has too many values: {}",
                    limit.exceeded()
                ),
                position: Some(node.start),
            });
        }
        let value = node.to_json().map_err(failed)?;
        let document = Streamed {
            value: Arc::new(value),
            node: Arc::new(node),
        };
        objects.extend(objects_of(path, document)?);
    }
    Ok(objects)
}

/// Number of values in a document, without keys.
fn values(node: &Node) -> u64 {
    let below = match &node.value {
        yaml::Value::Sequence(items) => items.iter().map(values).sum(),
        yaml::Value::Mapping(entries) => entries.iter().map(|(_, value)| values(value)).sum(),
        _ => 0,
    };
    1 + below
}

/// The objects of one document.
pub(super) fn objects_of(path: &str, document: Streamed) -> Result<Vec<Streamed>, StreamError> {
    let mut objects = Vec::new();
    if document.value.is_null() {
        return Ok(objects);
    }
    let position = document.node.start;
    let undecoded = |message: String| StreamError {
        message: format!("unable to decode \"{path}\": {message}"),
        position: Some(position),
    };
    check(&document.value).map_err(undecoded)?;
    flatten(document, &mut objects).map_err(undecoded)?;
    Ok(objects)
}

/// The decoder's requirements for a document: a map with a kind and valid metadata.
fn check(value: &Value) -> Result<(), String> {
    if !value.is_object() {
        let kind = olmkit_go::json::kind(value);
        return Err(format!(
            "json: cannot unmarshal {kind} into Go value of type unstructured.detector"
        ));
    }
    if value.get("kind").and_then(Value::as_str).unwrap_or_default().is_empty() {
        let text = olmkit_go::json::marshal(value);
        return Err(format!("Object 'Kind' is missing in '{text}'"));
    }
    let mut metadata = serde_json::Map::new();
    for field in ["apiVersion", "kind", "metadata"] {
        if let Some(value) = value.get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    // Any type that has no other fields than these.
    decode(&Value::Object(metadata), "ServiceAccount", false)
        .map(drop)
        .map_err(|error| error.message)
}

/// A list is each of its items, to any depth.
fn flatten(object: Streamed, out: &mut Vec<Streamed>) -> Result<(), String> {
    let items = match object.value.get("items") {
        None | Some(Value::Null) => {
            out.push(object);
            return Ok(());
        }
        Some(Value::Array(items)) => items,
        Some(other) => {
            let kind = olmkit_go::json::kind(other);
            return Err(format!(
                "json: cannot unmarshal {kind} into Go struct field decodeList.items of type []json.RawMessage"
            ));
        }
    };
    let text = |field: &str| object.value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    for (at, item) in items.iter().enumerate() {
        let node = object.node.pointer(&format!("/items/{at}"));
        let Value::Object(mut fields) = item.clone() else {
            let kind = olmkit_go::json::kind(item);
            return Err(format!(
                "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            ));
        };
        // Items of a typed list may omit their kind.
        let missing = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default().is_empty();
        if missing("kind") && missing("apiVersion") {
            fields.insert("kind".into(), kind.strip_suffix("List").unwrap_or(kind).into());
            fields.insert("apiVersion".into(), api_version.into());
        } else if missing("kind") {
            let text = olmkit_go::json::marshal(item);
            return Err(format!("Object 'Kind' is missing in '{text}'"));
        }
        let item = Streamed {
            value: Arc::new(Value::Object(fields)),
            node: node.map_or_else(|| Arc::clone(&object.node), |node| Arc::new(node.clone())),
        };
        flatten(item, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_one_document;

    #[test]
    fn a_tree_is_shared_where_all_readers_see_one_document() {
        for one in [
            "kind: A\n",
            "---\nkind: A\n",
            "kind: A\ntext: a---b\n",
            "# {\nkind: A\n",
        ] {
            assert!(is_one_document(one.as_bytes()), "{one:?}");
        }
        let others = [
            "kind: A",
            "kind: A\n---\n",
            "---\n---\nkind: A\n",
            "--- # text\nkind: A\n",
            "---\r\nkind: A\r\n",
            "\n---\nkind: A\n",
            " {\"kind\": \"A\"}\n",
            "---\n{}\n",
        ];
        for other in others {
            assert!(!is_one_document(other.as_bytes()), "{other:?}");
        }
    }
}
