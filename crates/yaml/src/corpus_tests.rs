//! The recorded vectors of the Go libraries. They are not part of the repository: see `OLMKIT_CORPUS`.

use base64::Engine as _;
use serde_json::Value;

use super::*;
use test_support::corpus;

/// The vectors of a file as trees: our own JSON reader has no trouble with the deep ones.
fn trees(file: &str) -> Option<Vec<Node>> {
    let text = text_of(file)?;
    let origin = Position { line: 1, column: 1 };
    let trees = text.lines().map(|line| match json_text::first_value(line, origin) {
        Ok(json_text::First::Value(node, _)) => node,
        _ => panic!("not a vector: {line}"),
    });
    Some(trees.collect())
}

fn vectors(file: &str) -> Option<Vec<Value>> {
    Some(
        trees(file)?
            .iter()
            .map(|tree| tree.to_json().expect("vector"))
            .collect(),
    )
}

fn text_of(file: &str) -> Option<String> {
    Some(std::fs::read_to_string(corpus(file)?).expect("vectors"))
}

/// JSON values as Go compares them: by number, not by spelling.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn report(what: &str, total: usize, failures: &[String]) {
    println!("{what}: {} of {total} vectors agree", total - failures.len());
    assert!(
        failures.is_empty(),
        "{} differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn reads_what_go_reads() {
    let Some(vectors) = vectors("yaml/read.jsonl") else {
        return;
    };
    let mut failures = Vec::new();
    let mut texts_differ = Vec::new();
    for vector in &vectors {
        let bytes = match vector.get("yaml_base64") {
            Some(text) => base64::engine::general_purpose::STANDARD
                .decode(text.as_str().unwrap())
                .unwrap(),
            None => vector["yaml"].as_str().unwrap().as_bytes().to_vec(),
        };
        let shown: String = String::from_utf8_lossy(&bytes).chars().take(60).collect();
        let ours = parse_document(&bytes).and_then(|document| Ok((document.root.to_json()?, document.duplicates)));
        match (&ours, vector.get("json"), vector.get("error")) {
            (Ok((json, _)), Some(wanted), None) if same(json, wanted) => {}
            (Err(error), _, Some(wanted)) => {
                if error.to_string() != wanted.as_str().unwrap() {
                    texts_differ.push(format!("{shown:?}: ours {error}, Go's {wanted}"));
                }
            }
            _ => failures.push(format!("{shown:?}: ours {ours:?}, wanted {vector}")),
        }
        if let Ok((_, duplicates)) = &ours
            // Two keys that differ in Go but become the same JSON key are worth a note, too.
            && shown != "1: a\n\"1\": b"
            && duplicates.is_empty() == vector.get("strict_error").is_some()
        {
            failures.push(format!(
                "{shown:?}: duplicates {duplicates:?}, wanted {:?}",
                vector.get("strict_error")
            ));
        }
    }
    println!(
        "error messages that differ: {}\n{}",
        texts_differ.len(),
        texts_differ.join("\n")
    );
    report("read", vectors.len(), &failures);
}

#[test]
fn splits_streams_as_go_does() {
    let Some(vectors) = vectors("yaml/stream.jsonl") else {
        return;
    };
    let mut failures = Vec::new();
    for vector in &vectors {
        let input = vector["input"].as_str().unwrap();
        let lookahead = vector["lookahead"].as_u64().unwrap() as usize;
        let (mut ours, mut error) = (Vec::new(), None);
        for item in documents_with_lookahead(input.as_bytes(), lookahead) {
            match item.and_then(|node| node.to_json()) {
                Ok(value) => ours.push(value),
                Err(problem) => error = Some(problem),
            }
        }
        let wanted = vector["documents"].as_array().unwrap();
        let documents_agree = ours.len() == wanted.len() && ours.iter().zip(wanted).all(|(a, b)| same(a, b));
        if !documents_agree || error.is_some() != vector.get("error").is_some() {
            let shown: String = input.chars().take(80).collect();
            failures.push(format!(
                "{shown:?} ({lookahead}): ours {} {error:?}, wanted {} {:?}",
                ours.len(),
                wanted.len(),
                vector.get("error")
            ));
        }
    }
    report("stream", vectors.len(), &failures);
}

/// go-yaml's order of keys is not transitive on this set: `v10` < `v1alpha1` < `v2` < `v10`. Go's output then depends
/// on its random map order.
const WITHOUT_ORDER: &str = "v1alpha1: 1\nv1beta1: 1\nv1beta2: 1";

#[test]
fn writes_what_go_writes() {
    let Some(vectors) = trees("yaml/write.jsonl") else {
        return;
    };
    let mut failures = Vec::new();
    for vector in &vectors {
        let json = vector.get("json").expect("json");
        let wanted = vector.get("yaml").and_then(Node::as_str);
        let ours = writer::node_to_string(json);
        match (&ours, wanted) {
            (Ok(text), Some(wanted)) if text == wanted || wanted.contains(WITHOUT_ORDER) => {}
            (Err(_), None) => {}
            _ => failures.push(format!("ours {ours:?}, wanted {wanted:?} for {:?}", json.to_json())),
        }
        let by_value = json.to_json().and_then(|value| value_to_string(&value));
        if by_value != ours && !json.spelling().is_some_and(|text| text.contains('e')) {
            failures.push(format!("as a value {by_value:?}, as text {ours:?}"));
        }
    }
    report("write", vectors.len(), &failures);
}

/// The struct of the vectors for typed decoding.
#[derive(serde::Deserialize, serde::Serialize, Default, Debug)]
#[serde(rename = "typed", default)]
struct Typed {
    #[serde(skip_serializing_if = "String::is_empty")]
    s: String,
    #[serde(skip_serializing_if = "is_default")]
    i: i64,
    #[serde(skip_serializing_if = "is_default")]
    b: bool,
    #[serde(skip_serializing_if = "is_default")]
    f: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    l: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    m: std::collections::BTreeMap<String, String>,
    #[serde(skip_serializing_if = "is_default")]
    ms: std::collections::BTreeMap<String, i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<Box<Typed>>,
    #[serde(skip_serializing_if = "Value::is_null")]
    a: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    r: Option<Value>,
    #[serde(skip_serializing_if = "Bytes::is_empty")]
    y: Bytes,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Go's `[]byte`.
#[derive(Default, Debug)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl serde::Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&base64::engine::general_purpose::STANDARD.encode(&self.0))
    }
}

impl<'de> serde::Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
                Ok(Bytes(bytes))
            }
        }
        deserializer.deserialize_byte_buf(Visitor)
    }
}

#[test]
fn decodes_into_types_as_go_does() {
    let Some(vectors) = vectors("yaml/typed.jsonl") else {
        return;
    };
    let (mut failures, mut texts_differ) = (Vec::new(), 0);
    for vector in &vectors {
        let text = vector["yaml"].as_str().expect("yaml");
        let ours = from_slice::<Typed>(text.as_bytes());
        match (&ours, vector.get("json"), vector.get("error").and_then(Value::as_str)) {
            (Ok(typed), Some(wanted), None) if same(&serde_json::to_value(typed).expect("JSON"), wanted) => {}
            (Err(error), None, Some(wanted)) => {
                assert!(error.position().is_some(), "{text:?}: {error} has no place");
                texts_differ += usize::from(error.to_string().replace("int64", "int") != wanted);
            }
            // Go's raw JSON keeps a null that serde cannot distinguish from an absent field.
            (Ok(typed), Some(wanted), None) if typed.r.is_none() && wanted["r"].is_null() => {}
            _ => failures.push(format!("{text:?}: ours {ours:?}, wanted {vector}")),
        }
    }
    println!("error messages that differ: {texts_differ}");
    report("typed", vectors.len(), &failures);
}
