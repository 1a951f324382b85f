//! One file of a bundle as OLM v1 reads it: a stream of YAML or JSON documents, lists flattened.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use serde_json::Value;

use olmkit_base::limits;
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

/// The values that one side of a comparison may still have. [`COMPARED_VALUES`](limits::COMPARED_VALUES) is the limit for all its
/// files together.
#[derive(Debug)]
pub struct ComparedValues(Cell<u64>);

impl Default for ComparedValues {
    fn default() -> Self {
        Self(Cell::new(limits::COMPARED_VALUES.get()))
    }
}

impl ComparedValues {
    fn spend(&self, values: u64) -> io::Result<()> {
        let left = self.0.get().checked_sub(values);
        self.0.set(left.ok_or_else(|| limits::COMPARED_VALUES.exceeded())?);
        Ok(())
    }
}

/// Like [`objects`], with a limit on the values of all files. They are counted before a document is converted to JSON, which
/// takes several times the memory.
pub(super) fn objects_within(
    path: &str,
    bytes: &[u8],
    most: Option<&ComparedValues>,
) -> Result<Vec<Streamed>, StreamError> {
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
        if let Some(most) = most {
            most.spend(values(&node)).map_err(|error| StreamError {
                message: format!("error parsing {path}: there are too many values to compare: {error}"),
                position: Some(node.start),
            })?;
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
    if matches!(object.value.get("items"), None | Some(Value::Null)) {
        out.push(object);
        return Ok(());
    }
    flatten_list(&object.value, &object.node, None, out)
}

/// Adds the items of a list. Lists are nested to any depth, so only the items themselves are copied. `inherited` are the API version
/// and the kind of an item without its own.
fn flatten_list(
    list: &Value,
    node: &Node,
    inherited: Option<(&str, &str)>,
    out: &mut Vec<Streamed>,
) -> Result<(), String> {
    let text = |object: &Value, field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = match inherited {
        Some((api_version, kind)) => (api_version.to_owned(), kind.to_owned()),
        None => (text(list, "apiVersion"), text(list, "kind")),
    };
    let items = match list.get("items") {
        None | Some(Value::Null) => {
            let mut value = list.clone();
            if let (Some(_), Some(fields)) = (inherited, value.as_object_mut()) {
                fields.insert("kind".into(), kind.into());
                fields.insert("apiVersion".into(), api_version.into());
            }
            out.push(Streamed {
                value: Arc::new(value),
                node: Arc::new(node.clone()),
            });
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
    let nodes = node.get("items").map(Node::items).unwrap_or_default();
    for (at, item) in items.iter().enumerate() {
        if !item.is_object() {
            let kind = olmkit_go::json::kind(item);
            return Err(format!(
                "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            ));
        }
        // Items of a typed list may omit their kind.
        let missing = |field: &str| text(item, field).is_empty();
        let item_kind = kind.strip_suffix("List").unwrap_or(&kind);
        let inherited = (missing("kind") && missing("apiVersion")).then_some((api_version.as_str(), item_kind));
        if inherited.is_none() && missing("kind") {
            let text = olmkit_go::json::marshal(item);
            return Err(format!("Object 'Kind' is missing in '{text}'"));
        }
        flatten_list(item, nodes.get(at).unwrap_or(node), inherited, out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_lists_are_copied_once() {
        let open = r#"{"apiVersion": "v1", "kind": "List", "items": ["#;
        let name = "x".repeat(1000);
        let item = format!(r#"{{"apiVersion": "v1", "kind": "A", "metadata": {{"name": "{name}"}}}}"#);
        let text = format!("{}{item}, {item}{}\n", open.repeat(60), "]}".repeat(60));
        let objects = objects("file", text.as_bytes()).unwrap();
        assert_eq!(objects.len(), 2);
        // Each object is its own value, and no list is kept with it.
        let copied: usize = objects.iter().map(|object| object.value.to_string().len()).sum();
        assert!(copied < 3 * name.len(), "{copied}");
        assert!(objects.iter().all(|object| object.node.get("items").is_none()));
    }

    #[test]
    fn items_inherit_from_lists_of_lists() {
        let text = r#"{"apiVersion": "v1", "kind": "AListList", "items": [{"items": [{"a": 1}, {"apiVersion": "v2", "kind": "B"}]}]}"#;
        let objects = objects("file", text.as_bytes()).unwrap();
        let shown: Vec<String> = objects.iter().map(|object| object.value.to_string()).collect();
        assert_eq!(
            shown,
            [
                r#"{"a":1,"apiVersion":"v1","kind":"A"}"#,
                r#"{"apiVersion":"v2","kind":"B"}"#
            ]
        );
    }

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
