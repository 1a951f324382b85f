//! The quick reader against the full one.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::nodes;
use crate::compose::{Document, parse_fully};
use crate::input::prepare;
use crate::{Error, Node};
use test_support::corpus;

fn fully(text: &str) -> Result<Document, Error> {
    parse_fully(&prepare(text.as_bytes())?, 0)
}

/// The quick reader must agree with the full one on everything that it accepts: values, spellings, styles and
/// positions.
fn check(text: &str) -> Result<Option<Node>, String> {
    let Some(quick) = nodes::read(text, 0) else {
        return Ok(None);
    };
    match fully(text) {
        Ok(full) if full.duplicates.is_empty() && same(&quick, &full.root) => Ok(Some(quick)),
        full => Err(format!("{text:?}\nquick: {quick:#?}\nfull: {full:#?}")),
    }
}

/// Equality under which `.nan` is itself.
fn same(a: &Node, b: &Node) -> bool {
    a == b || format!("{a:?}") == format!("{b:?}")
}

fn is_read(text: &str) -> bool {
    check(text)
        .unwrap_or_else(|difference| panic!("{difference}"))
        .is_some()
}

#[test]
fn reads_what_tools_and_people_write() {
    for text in [
        "a: 1\nb: two words\nc: 'it''s'\nd: \"x\\ty\"\n",
        "---\na:\n- b: 1\n  c:\n  - d\n  -   - e\n      - f\n-  \n",
        "a:\n  - 1\n  -\n  - ~\nb:\nc: # nothing\n",
        "a: one\n  two\n\n  three # remark\nb: http://x:80/#y\n",
        "a: |\n  x\n   y\n\n\n  z\n\n\nb: |-\n    x\nc: |+\n  x\n\nd: |2\n    x\n",
        "a: >\n  x\n  y\n\n  z\n   w\n  v\n\nb: >-\n  x\n  y\nc: >+\n\n",
        "a: |\n\nb: |+\n\nc: >\nd: |-\n",
        "a: 'one\n  two\n\n  three'\nb: \"one \\\n  two\\n\n  three\"\n",
        "verbs: [\"get\", list, 'w', 1, [a, {}], {x: y, \"z\": [ ]}] # remark\nempty: {}\nalso: [ ]\n",
        "a: [1,\n  2]\nb: {c: d,\ne: [\n]\n}\n",
        "[\n  {\n    \"a\": \"b\",\n    \"c\": {\"d\":[1,-2.5e+3,true,null]}\n  }\n]\n",
        "{\"a\":1,\"b\":{},\"c\": [],'d':\n2}\n",
        "ü: größe # ö\nb: \"ä\" # ö\nc: ö\n  ü\n",
        "1: a\ny: b\n1.5: c\n'1.0': d\n",
        "# head\na: # remark\n  # more\n  b: 1 # remark\n # odd\nc: d\n# tail\n",
        "2001-01-01\n",
        "- a\n- - b\n  - c: d\n    e: f\n",
    ] {
        assert!(is_read(text), "gave up: {text:?}");
    }
}

#[test]
fn leaves_what_it_does_not_know_to_the_full_reader() {
    for text in [
        "",
        "a: 1",
        "a: 1\r\n",
        "a: &x 1\nb: *x\n",
        "a: !!str 1\n",
        "? a\n: b\n",
        "a: b: c\n",
        "a: 1\na: 2\n",
        "~: 1\n",
        "<<: {a: 1}\n",
        "a: 1\n...\n",
        "a: 1\n---\nb: 2\n",
        "%YAML 1.1\n---\na: 1\n",
        "a:\n    b: 1\n  c: 2\n",
        "a:\n\tb: 1\n",
        "a: |\n    x\n   y\n",
        "a: |\n     \n  x\n",
        "a: [1,\n\t2]\n",
        "a: [1, # remark\n  2]\n",
        "a: [1,\n---\n2]\n",
        "a: [1,\n  2,\n]\n",
        "a: {b:1}\n",
        "[a\n: b]\n",
        "[\"a\"\n: b]\n",
        "{\"a\nb\": 1}\n",
        "[{a: 1}: 2]\n",
        "{a: 1}: 2\n",
        "a: 'x\n---\ny'\n",
        "a: \"x\\\n--- y\"\n",
        "a: 1 # x\n  2\n",
    ] {
        assert!(!is_read(text), "accepted: {text:?}");
    }
}

/// Fragments that form YAML together, and often nearly do.
const PIECES: [&str; 58] = [
    "a",
    "b",
    "key",
    "a: ",
    "b: ",
    "c:",
    "- ",
    "-",
    "  ",
    " ",
    "\n",
    "\n",
    "\n  ",
    "\n    ",
    "\n- ",
    "\n  - ",
    "\na: ",
    "\n  b: ",
    "\n    c: ",
    "'",
    "\"",
    "|",
    ">",
    "|-",
    ">+",
    "|2",
    "\n\n",
    "#",
    " # ",
    ": ",
    ":",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ",",
    "1",
    "0x1F",
    "true",
    "~",
    "''",
    "\\n",
    "\\",
    "ü",
    "\t",
    "---",
    "...",
    "%",
    "?",
    "<<",
    "&",
    "\"a\":",
    "\n, ",
    "[\n",
    "{\n",
    "\n}",
    "-1",
];

fn text_of_pieces() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(PIECES.as_slice());
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat() + "\n")
}

/// Well-formed block style with all kinds of scalars.
fn block_text() -> impl Strategy<Value = String> {
    let scalar = proptest::sample::select(
        [
            "x",
            "'q r'",
            "\"d\\te\"",
            "on",
            "07",
            "",
            "[]",
            "{a: [b, 'c']}",
            "text with: colon",
            "|\n~  lit\n~\n~   more\n",
            ">-\n~  fold\n~  ed\n\n",
            "plain\n~  going on\n",
            "'in\n~  quotes'",
            "# remark",
            "v # remark",
            "&anchor v",
            "*a",
            "!!int 3",
            "|+\n~  kept\n\n\n",
            "|1\n~ one\n",
        ]
        .as_slice(),
    );
    let leaf = scalar.prop_map(|text| vec![text.to_string()]);
    let tree = leaf.prop_recursive(5, 40, 4, |inner| {
        let children = || proptest::collection::vec(inner.clone(), 1..4);
        let mapping = children().prop_map(|values| {
            let entry = |(at, value): (usize, Vec<String>)| nested(&format!("k{at}:"), &value);
            values.into_iter().enumerate().flat_map(entry).collect::<Vec<String>>()
        });
        let sequence = children().prop_map(|values| {
            values
                .into_iter()
                .flat_map(|value| nested("-", &value))
                .collect::<Vec<String>>()
        });
        prop_oneof![mapping, sequence]
    });
    tree.prop_map(|lines| lines.join("\n").replace('~', "") + "\n")
}

/// JSON as its writers write it, compact or over lines.
fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<f64>().prop_map(serde_json::Value::from),
        "[ -~ü\\n\\t]{0,12}".prop_map(serde_json::Value::from),
    ];
    let tree = leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            proptest::collection::vec(("[ -~]{1,8}", inner), 0..4)
                .prop_map(|entries| serde_json::Value::Object(entries.into_iter().collect())),
        ]
    });
    (tree, any::<bool>()).prop_map(|(value, pretty)| {
        if pretty {
            format!("{value:#}\n")
        } else {
            format!("{value}\n")
        }
    })
}

/// Adds a node after a key or a dash: on its line if it is a scalar, else below.
fn nested(head: &str, value: &[String]) -> Vec<String> {
    let deeper = |line: &str| {
        line.split('\n')
            .map(|line| line.replacen('~', "~  ", 1))
            .collect::<Vec<_>>()
            .join("\n")
    };
    match value {
        [scalar] if !scalar.starts_with('k') && !scalar.starts_with('-') => vec![format!("{head} {}", deeper(scalar))],
        lines => {
            let mut all = vec![head.to_string()];
            all.extend(lines.iter().map(|line| format!("  {}", deeper(line))));
            all
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn never_differs_on_pieces(text in text_of_pieces()) {
        check(&text).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn never_differs_on_json(text in json_text(), cut in 0usize..200) {
        check(&text).map_err(TestCaseError::fail)?;
        if let Some(head) = text.get(..cut) {
            check(&format!("{head}\n")).map_err(TestCaseError::fail)?;
        }
    }

    #[test]
    fn never_differs_on_block_style(text in block_text(), cut in 0usize..400) {
        check(&text).map_err(TestCaseError::fail)?;
        // Broken off somewhere.
        if let Some(head) = text.get(..cut) {
            check(&format!("{head}\n")).map_err(TestCaseError::fail)?;
        }
    }
}

#[test]
fn reads_the_manifests_of_the_corpus() {
    let mut files = Vec::new();
    for part in ["bundles", "micro"] {
        let Some(folder) = corpus(part) else { return };
        manifests(&folder, &mut files);
    }
    files.sort();
    // The full reader takes its time in a debug build.
    let files: Vec<_> = files.iter().step_by(5).collect();
    let mut quick = 0;
    for file in &files {
        let Ok(text) = std::fs::read_to_string(file) else {
            continue;
        };
        let text = text.replace("\r\n", "\n");
        let text = if text.ends_with('\n') { text } else { text + "\n" };
        match check(&text) {
            Ok(Some(_)) => quick += 1,
            Ok(None) => {}
            Err(difference) => panic!("{}: {}", file.display(), difference.get(..2000).unwrap_or(&difference)),
        }
    }
    println!("{quick} of {} files are read quickly", files.len());
    assert!(
        quick * 100 > files.len() * 95,
        "too few files are read quickly: {quick} of {}",
        files.len()
    );
}

fn manifests(directory: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            manifests(&path, out);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml")
        {
            out.push(path);
        }
    }
}
