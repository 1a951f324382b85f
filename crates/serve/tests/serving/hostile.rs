//! Malformed and hostile catalogs and indexes: the quick reader never differs from the full one, and nothing ends
//! in a crash or a wrong answer.

use std::path::Path;

use olmkit::catalog::text::{Html, Numbers, Value, block};
use olmkit::catalog::validate;
use olmkit::yaml;
use olmkit_serve::index::{Index, Storage};
use olmkit_serve::source::{self, INDEX_FILE, Options};
use proptest::prelude::*;
use proptest::sample::select;

/// Fragments of YAML. Most combinations are nearly valid.
const PIECES: &[&str] = &[
    "a",
    "b",
    "name",
    "on",
    "~",
    "null",
    "1",
    "0644",
    "1_000",
    "-1",
    "1e3",
    ".5",
    "0x1f",
    "2024-01-01",
    "12:30",
    "<<",
    "=",
    "'it''s'",
    "\"x\\ty\"",
    "\"\\u2028\"",
    "\"open",
    "'",
    "\"",
    "|",
    "|-",
    "|+",
    "|2",
    ">",
    ">-",
    "- ",
    "-",
    "- - ",
    "? ",
    ": ",
    ":",
    ", ",
    "[",
    "]",
    "{",
    "}",
    "{}",
    "[]",
    "&x ",
    "*x",
    "!t ",
    "!!str ",
    "#",
    " # c",
    "@",
    "`",
    "%",
    "\t",
    "  ",
    "é",
    "\u{a0}",
    "\u{85}",
    "\u{feff}",
    "\u{2028}",
    "😀",
    "...",
    "---",
    "a: 1",
    "b:",
    "- x",
    "- y: 2",
    "key with blanks: text with: colon",
    "url: http://x/?a=b#c",
    "long: text that goes on",
];

fn texts() -> impl Strategy<Value = String> {
    let line = (0_usize..7, prop::collection::vec(select(PIECES), 0..4));
    prop::collection::vec(line, 1..12).prop_map(|lines| {
        let lines = lines
            .iter()
            .map(|(indent, pieces)| " ".repeat(*indent) + &pieces.concat() + "\n");
        lines.collect()
    })
}

/// Output of the writer for a value, so that valid input occurs as well.
fn written() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        prop::collection::vec(select(PIECES), 0..4).prop_map(|pieces| pieces.concat()),
        prop::collection::vec(select(PIECES), 0..4).prop_map(|pieces| pieces.join("\n")),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        (-1e9_f64..1e9).prop_map(Into::into),
        text.clone().prop_map(Into::into),
    ];
    let value = leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..5).prop_map(|entries| entries.into_iter().collect()),
        ]
    });
    // The Go library rejects some strings as keys, and so does the writer.
    value.prop_filter_map("not written", |value| yaml::value_to_string(&value).ok())
}

/// If the quick reader accepts the input, the full reader must return the same.
fn readers_agree(text: &str) -> Result<bool, TestCaseError> {
    let Some(quick) = block::read(text) else {
        return Ok(false);
    };
    let full = yaml::parse(text.as_bytes()).and_then(|node| node.to_json());
    let full = full.map_err(|error| TestCaseError::fail(format!("{text:?}: {quick:?}, but: {error}")))?;
    // The full reader makes integers of whole floats. Both are the same in JSON.
    let json = |value: Value<'_>| value.to_json(Numbers::Keep, Html::Plain);
    prop_assert_eq!(json(quick), json(Value::from(full)), "{:?}", text);
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_quick_reader_agrees_with_the_full_one(text in texts()) {
        readers_agree(&text)?;
    }

    #[test]
    fn the_quick_reader_agrees_on_what_the_writer_writes(text in written()) {
        readers_agree(&text)?;
    }
}

const CATALOG: &str = "---\nschema: olm.package\nname: p\ndefaultChannel: c\n---\nschema: olm.channel\nname: c\npackage: p\n\
    entries:\n- name: p.v1\n---\nschema: olm.bundle\nname: p.v1\npackage: p\nimage: r.io/p:v1\nproperties:\n\
    - type: olm.package\n  value:\n    packageName: p\n    version: 1.0.0\n- type: olm.csv.metadata\n  value:\n    \
    displayName: P\n---\nschema: example.com.note\npackage: p\nname: first\nvalue: 1\n";

fn write_catalog(root: &Path, text: &[u8]) -> std::path::PathBuf {
    let configs = root.join("configs");
    std::fs::create_dir_all(&configs).unwrap();
    std::fs::write(configs.join("catalog.yaml"), text).unwrap();
    configs
}

/// Everything in an index. Pieces that cannot be read are omitted.
fn everything(index: &Index) -> Vec<String> {
    let mut answers = vec![format!("{:?}", index.packages())];
    for slot in index.packages() {
        let Ok(section) = index.section(slot) else { continue };
        answers.push(format!("{section:?}"));
        for bundle in &section.bundles {
            answers.extend(index.piece(bundle.common).map(|bytes| format!("{bytes:?}")));
            answers.extend(index.piece(bundle.manifests).map(|bytes| format!("{bytes:?}")));
        }
    }
    answers.extend((0..index.blocks()).filter_map(|block| Some(format!("{:?}", index.block(block).ok()?))));
    answers.extend(index.customs("example.com.note", "p").map(|blobs| format!("{blobs:?}")));
    answers
}

#[test]
fn a_damaged_index_is_built_anew_or_gives_errors_and_never_wrong_answers() {
    let root = tempfile::tempdir().unwrap();
    let configs = write_catalog(root.path(), CATALOG.as_bytes());
    let cache = root.path().join("cache");
    let options = Options {
        cache: Some(&cache),
        ..Options::default()
    };
    let right = everything(&source::index(&configs, options).unwrap().0);
    assert_eq!(right.len(), 6);
    let whole = std::fs::read(cache.join(INDEX_FILE)).unwrap();
    let mut refused = 0;
    for at in 0..whole.len() {
        for bit in [0, 7] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            match Index::open(Storage::Memory(damaged)) {
                Ok(index) => {
                    for answer in everything(&index) {
                        assert!(right.contains(&answer), "byte {at}, bit {bit}: {answer}");
                    }
                }
                Err(_) => refused += 1,
            }
        }
        assert!(
            Index::open(Storage::Memory(whole[..at].to_vec())).is_err(),
            "cut at {at}"
        );
    }
    println!(
        "{} bytes: {refused} of {} flips refused at once",
        whole.len(),
        whole.len() * 2
    );
    assert!(refused > 0 && refused < whole.len() * 2, "both ways occur");
    // On disk the same leads to a new index.
    for length in [0, 1, whole.len() / 3, whole.len() - 1] {
        std::fs::write(cache.join(INDEX_FILE), &whole[..length]).unwrap();
        let (index, _) = source::index(&configs, options).unwrap();
        assert_eq!(everything(&index), right);
        assert_eq!(std::fs::read(cache.join(INDEX_FILE)).unwrap(), whole);
    }
}

/// A change of a text that keeps most of it.
#[derive(Debug, Clone)]
enum Change {
    Cut(usize, usize),
    Put(usize, String),
    Byte(usize, u8),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let at = || 0..CATALOG.len();
    let change = prop_oneof![
        (at(), 0_usize..40).prop_map(|(at, length)| Change::Cut(at, length)),
        (at(), select(PIECES)).prop_map(|(at, piece)| Change::Put(at, piece.to_owned())),
        (at(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
    ];
    prop::collection::vec(change, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Catalogs that validation accepts are served completely, those that it rejects are served in part or not at all,
    /// and nothing crashes.
    #[test]
    fn any_catalog_is_served_refused_or_served_in_part(changes in changes()) {
        let mut text = CATALOG.as_bytes().to_vec();
        for change in changes {
            match change {
                Change::Cut(at, length) => {
                    let at = at.min(text.len());
                    let end = (at + length).min(text.len());
                    text.drain(at..end);
                }
                Change::Put(at, piece) => {
                    let at = at.min(text.len());
                    text.splice(at..at, piece.bytes());
                }
                Change::Byte(at, byte) => {
                    if let Some(place) = text.get_mut(at) {
                        *place = byte;
                    }
                }
            }
        }
        let root = tempfile::tempdir().unwrap();
        let configs = write_catalog(root.path(), &text);
        let verdict = validate::directory(&configs);
        let _ = verdict.report(olmkit::diagnostics::Severity::Info);
        match source::index(&configs, Options::default()) {
            Ok((index, _)) => {
                if verdict.passed() {
                    prop_assert!(
                        index.broken().iter().all(|broken| broken.message.contains("schema")),
                        "{:?}",
                        index.broken()
                    );
                } else {
                    prop_assert!(!index.broken().is_empty(), "{:?}", verdict.opm_text);
                }
            }
            Err(error) => prop_assert!(!verdict.passed() || error.to_string().contains("schema"), "{error}"),
        }
    }
}
