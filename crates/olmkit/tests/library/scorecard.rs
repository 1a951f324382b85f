//! The built-in tests of scorecard beside the recorded answers of operator-sdk: states, and errors and suggestions as multisets.

use std::path::Path;

use olmkit::bundle::load::{self, Limits, Reading, Tree};
use olmkit::scorecard::{Builtin, Bundle, State, TestResult};
use serde_json::Value;
use test_support::corpus;

use crate::conformance::normalize;

/// The recorded results; `more.jsonl` is read where its inputs stand in the folder `OLMKIT_MORE_BUNDLES`.
#[test]
fn the_built_in_tests_answer_as_recorded() {
    let Some(folder) = corpus("scorecard") else { return };
    let lines = |file: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (mut equal, mut all, mut different) = (0, 0, Vec::new());
    let mut compare = |name: &str, reading: &Reading, expected: &Value| {
        for (test, expected) in expected.as_object().unwrap() {
            all += 1;
            let result = Bundle::new(reading).run(&Builtin {
                name: Some(test.clone()),
            });
            match difference(&result, expected) {
                None => equal += 1,
                Some(difference) => different.push(format!("{name} {test}: {difference}")),
            }
        }
    };
    for record in lines("synthetic.jsonl") {
        let files = record["files"].as_object().unwrap();
        let files = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str().unwrap().into()));
        let reading = load::read(Tree::from_files(files), "/bundle");
        compare(record["name"].as_str().unwrap(), &reading, &record["expected"]);
    }
    for record in lines("expected/real.jsonl") {
        let input = folder.join(record["input"].as_str().unwrap());
        compare(record["bundle"].as_str().unwrap(), &read(&input), &record["tests"]);
    }
    if let Some(more) = std::env::var_os("OLMKIT_MORE_BUNDLES") {
        for record in lines("expected/more.jsonl") {
            let name = record["bundle"].as_str().unwrap();
            compare(name, &read(&Path::new(&more).join(name)), &record["tests"]);
        }
    }
    println!("{equal} of {all} equal");
    assert!(all > 700, "{all}");
    assert!(different.is_empty(), "{}", different.join("\n"));
}

fn read(directory: &Path) -> Reading {
    load::read(Tree::from_dir(directory, Limits::default()).unwrap(), "/bundle")
}

/// What differs; `None` if nothing does.
fn difference(result: &TestResult, expected: &Value) -> Option<String> {
    for end in ["fatal", "panic"] {
        if let Some(text) = expected[end].as_str() {
            // scorecard's result is a failure with this text as its log.
            let same = result.state == State::Fail && result.log.contains(text);
            return (!same).then(|| format!("{end} {text}\n  got {result:?}"));
        }
    }
    let texts = |value: &Value| -> Vec<String> {
        let mut texts: Vec<String> = value
            .as_array()
            .into_iter()
            .flatten()
            .map(|text| normalize(&text.as_str().unwrap().replace('…', "")))
            .collect();
        texts.sort();
        texts
    };
    let own = serde_json::to_value(result).unwrap();
    for field in ["name", "state", "log"] {
        let (own, expected) = (
            own[field].as_str().unwrap_or(""),
            expected[field].as_str().unwrap_or(""),
        );
        if own != expected {
            return Some(format!("{field}\n  expected {expected:?}\n  got      {own:?}"));
        }
    }
    for field in ["errors", "suggestions"] {
        let (own, expected) = (texts(&own[field]), texts(&expected[field]));
        if own != expected {
            return Some(format!("{field}\n  expected {expected:?}\n  got      {own:?}"));
        }
    }
    None
}
