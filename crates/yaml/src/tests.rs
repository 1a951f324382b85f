//! Behavior that needs no recorded data, and runs everywhere.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;

fn read(text: &str) -> Json {
    parse(text.as_bytes())
        .and_then(|node| node.to_json())
        .unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn refusal(bytes: &[u8]) -> Error {
    parse(bytes).expect_err("an error")
}

#[test]
fn yaml_1_1_words_and_numbers() {
    let text = "{a: on, b: y, c: 0644, d: 1_000, e: 0x1F, f: ~, g: 2020-01-01, h: '1', y: z, 1.50: k}";
    let wanted = json!({"a": true, "b": true, "c": 420, "d": 1000, "e": 31, "f": null, "g": "2020-01-01", "h": "1",
        "true": "z", "1.5": "k"});
    assert_eq!(read(text), wanted);
}

#[test]
fn the_last_of_two_keys_wins_and_is_noted() {
    let document = parse_document(b"a: 1\nb: 2\na: 3\n").expect("document");
    assert_eq!(document.root.get("a").and_then(Node::as_i64), Some(3));
    let [note] = document.duplicates.as_slice() else {
        panic!("{:?}", document.duplicates)
    };
    assert_eq!(
        (note.key.as_str(), note.first.line, note.second.line, note.merged),
        ("a", 1, 3, false)
    );
}

#[test]
fn merges_apply_where_they_stand() {
    assert_eq!(
        read("x: &x {b: 1, c: 2}\na:\n  b: 0\n  <<: *x\n")["a"],
        json!({"b": 1, "c": 2})
    );
    assert_eq!(
        read("x: &x {b: 1}\ny: &y {b: 2, c: 3}\na:\n  <<: [*x, *y]\n")["a"],
        json!({"b": 1, "c": 3})
    );
}

#[test]
fn a_block_scalar_may_end_without_a_line_end() {
    for (text, wanted) in [
        ("a: |\n  x", "x"),
        ("a: |\n  x\n", "x\n"),
        ("a: |+\n  x\n\n", "x\n\n"),
        ("a: |+\n  x\n  ", "x\n"),
        ("a: |\n  x\n     ", "x\n   "),
        ("a: >\n  x\n  y", "x y"),
        ("a: |+\n  ", ""),
    ] {
        assert_eq!(read(text)["a"], json!(wanted), "{text:?}");
    }
}

#[test]
fn errors_have_gos_text_and_the_true_place() {
    let error = refusal(b"a: b\n c: d\n");
    assert_eq!(
        error.to_string(),
        "yaml: line 2: mapping values are not allowed in this context"
    );
    assert_eq!(error.position(), Some(Position { line: 2, column: 3 }));
    // go-yaml counts lines from 0 in errors of its parser stage.
    let error = refusal(b"a:\n  b: c\n d: e\n");
    assert_eq!(error.to_string(), "yaml: line 2: did not find expected key");
    assert_eq!(error.position().map(|position| position.line), Some(3));
}

#[test]
fn hostile_input_ends_in_an_error() {
    let bomb = (1..30).fold("a0: &a0 [x, x]\n".to_owned(), |text, at| {
        let before = at - 1;
        format!("{text}a{at}: &a{at} [*a{before}, *a{before}, *a{before}, *a{before}]\n")
    });
    let deep = "[".repeat(100_000);
    let deep_blocks: String = (0..2000).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let many = format!("[{}]", "a,".repeat(MAX_NODES + 1));
    let nested_anchors = format!("{}{}", "&a [".repeat(400), "x,".repeat(100_000));
    // Few nodes, but each of them is copied with its text.
    let long = "x".repeat(4 << 20);
    let repeated = format!("a: &a {long}\nb: [{}]\n", "*a, ".repeat(900));
    let nested_text = format!("{}{long}{}\n", "&a [".repeat(400), "]".repeat(400));
    for (what, bytes) in [
        ("a long text that is repeated", repeated.as_bytes()),
        ("a long text in nested anchors", nested_text.as_bytes()),
        ("an alias bomb", bomb.as_bytes()),
        ("deep brackets", deep.as_bytes()),
        ("deep blocks", deep_blocks.as_bytes()),
        ("too many nodes", many.as_bytes()),
        ("nested anchors", nested_anchors.as_bytes()),
        ("an alias to itself", b"a: &a [*a]"),
        ("a control character", b"a: \x01"),
        ("broken UTF-8", b"a: \xff\xfe"),
        ("half a UTF-16 character", b"\xff\xfea\x00b"),
        ("a lone surrogate", b"\xff\xfe\x00\xd8a\x00"),
    ] {
        assert!(parse(bytes).is_err(), "{what}");
    }
    let large = vec![b' '; MAX_DOCUMENT_BYTES + 1];
    assert!(matches!(refusal(&large), Error::Limit { .. }));
}

#[test]
fn documents_are_split_at_lines_of_dashes() {
    let all: Vec<Json> = documents(b"a: 1\n---\n---\nb: 2\n--- # end\n# nothing\n")
        .map(|item| item.expect("document").to_json().expect("JSON"))
        .collect();
    assert_eq!(all, [json!({"a": 1}), json!({"b": 2}), Json::Null]);
    let places: Vec<u32> = documents(b"a: 1\n---\nb: 2\n")
        .map(|item| item.expect("document").start.line)
        .collect();
    assert_eq!(places, [1, 3]);
    let error = documents(b"a: |\n  x\n-----BEGIN\n")
        .next()
        .expect("item")
        .expect_err("separator");
    assert_eq!(error.to_string(), "invalid Yaml document separator: --BEGIN");
    assert_eq!(error.position().map(|position| position.line), Some(3));
}

#[test]
fn json_streams_need_no_separators() {
    let all: Vec<Json> = documents(b"{\"a\": 1}{\"b\": \"\\ud83d\\ude00\\/\"}\n {\"c\": [1, 2.5]}")
        .map(|item| item.expect("document").to_json().expect("JSON"))
        .collect();
    assert_eq!(all, [json!({"a": 1}), json!({"b": "😀/"}), json!({"c": [1, 2.5]})]);
}

#[test]
fn writes_what_go_programs_read_back() {
    let value = json!({"on": "y", "b": ["no", "1_000", "0x1", "1:30", "2020-01-01", "~", ""], "v10": 1, "v9": 2,
        "text": "a\nb\n", "long": "word ".repeat(30), "tab": "\t", "list": [[1], {"a": []}], "none": {}});
    insta::assert_snapshot!(value_to_string(&value).expect("YAML"));
}

#[derive(serde::Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    display_name: String,
    #[serde(default)]
    replicas: i32,
    #[serde(default)]
    paused: bool,
    #[serde(default)]
    labels: std::collections::BTreeMap<String, String>,
}

#[derive(serde::Deserialize, Debug)]
struct Object {
    spec: Spec,
}

#[test]
fn fields_match_in_any_case_and_scalars_become_text() {
    let text = b"SPEC:\n  displayname: 4.10\n  replicas: 3.0\n  paused: null\n  labels: {a: yes, b: 7, c: }\n";
    let object: Object = from_slice(text).expect("object");
    assert_eq!(object.spec.display_name, "4.1");
    assert_eq!((object.spec.replicas, object.spec.paused), (3, false));
    assert_eq!(object.spec.labels.into_values().collect::<Vec<_>>(), ["true", "7", ""]);
}

#[test]
fn a_misfit_is_reported_at_its_place() {
    let error = from_slice::<Object>(b"spec:\n  labels:\n    a: b\n  replicas: \"3\"\n").expect_err("misfit");
    assert_eq!(
        error.to_string(),
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go struct field \
         Spec.spec.replicas of type int32"
    );
    assert_eq!(error.path(), Some("spec.replicas"));
    assert_eq!(error.position(), Some(Position { line: 4, column: 13 }));
}

/// JSON values with strings that YAML writers often get wrong.
fn values() -> impl Strategy<Value = Json> {
    let text = prop_oneof![
        "[ -~\u{a0}-\u{2ff}\u{4e00}-\u{4e10}\u{1f600}\n\t]{0,40}",
        "[-+.:#?!&*%@`'\"|>, a0ynNo~_=]{0,8}",
        "(a+ ){0,40}b",
        Just("2020-01-01".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        (-1e9..1e9f64).prop_map(Json::from),
        text.clone().prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            prop::collection::btree_map(text.clone(), inner, 0..5)
                .prop_map(|entries| Json::Object(entries.into_iter().collect())),
        ]
    })
}

fn close(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a.as_f64() == b.as_f64(),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((ka, a), (kb, b))| ka == kb && close(a, b))
        }
        _ => a == b,
    }
}

proptest! {
    #[test]
    fn written_values_are_read_back(value in values()) {
        let text = value_to_string(&value).expect("YAML");
        prop_assert!(close(&read(&text), &value), "{text}");
    }

    #[test]
    fn an_independent_reader_agrees(value in values()) {
        let text = value_to_string(&value).expect("YAML");
        let other: Json = serde_yaml::from_str(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert!(close(&other, &value), "{text}");
    }

    #[test]
    fn no_text_makes_the_reader_crash(text in "[-a!&*:,\\[\\]{}#|>?'\"%@ \n\t\\\\x0~<]{0,60}") {
        let _ = parse(text.as_bytes()).map(|node| node.to_json());
        documents(text.as_bytes()).for_each(drop);
    }
}
