//! Compares the built-in tests of scorecard with the recorded answers of operator-sdk: states, and errors and
//! suggestions as multisets.

use std::collections::BTreeSet;
use std::path::Path;

use olmkit::bundle::load::{self, Limits, Reading, Tree};
use olmkit::scorecard::{Answer, Builtin, Bundle, State, TestResult};
use serde_json::Value;
use test_support::corpus;

use crate::conformance::normalize;

/// The recorded results. `more.jsonl` is read if its inputs are in the directory `OLMKIT_MORE_BUNDLES`.
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

/// Each error or suggestion in a result has a finding with its position, and vice versa.
#[test]
fn findings_say_what_results_say() {
    let Some(folder) = corpus("scorecard") else { return };
    let text = std::fs::read_to_string(folder.join("synthetic.jsonl")).unwrap();
    let mut seen = BTreeSet::new();
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let files = record["files"].as_object().unwrap().iter();
        let files = files.map(|(path, text)| (path.as_str(), text.as_str().unwrap().into()));
        let reading = load::read(Tree::from_files(files), "bundle");
        let bundle = Bundle::new(&reading);
        for test in record["expected"].as_object().unwrap().keys() {
            let answer = bundle.answer(&Builtin {
                name: Some(test.clone()),
            });
            let has_text = !answer.result.errors.is_empty() || !answer.result.suggestions.is_empty();
            let name = record["name"].as_str().unwrap();
            assert!(
                answer.findings.is_empty() || has_text || answer.result.state != State::Pass,
                "{name} {test}"
            );
            assert!(
                !has_text && answer.result.state == State::Pass || !answer.findings.is_empty(),
                "{name} {test}"
            );
            for finding in answer.findings {
                let is_placed = finding.file.is_some() || finding.rule == "SC-1";
                assert!(is_placed, "{name} {test}: {finding:?}");
                seen.insert(finding.rule.to_string());
            }
        }
    }
    let of_scorecard: Vec<&String> = seen.iter().filter(|rule| rule.starts_with("SC-")).collect();
    assert_eq!(of_scorecard, ["SC-2", "SC-3", "SC-4", "SC-5", "SC-6", "SC-7", "SC-9"]);
}

const CSV: &str = "apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: demo.v0.0.1
  annotations:
    alm-examples: |-
      [
        {\"apiVersion\": \"example.com/v1\", \"kind\": \"Widget\", \"metadata\": {\"name\": \"a\"}, \"spec\": {}},
        {
          \"apiVersion\": \"example.com/v1\", \"kind\": \"Widget\",
          \"metadata\": {\"name\": \"b\"}
        }
      ]
spec:
  version: 0.0.1
  customresourcedefinitions:
    owned: [{name: widgets.example.com, kind: Widget, version: v1}]
  install: {strategy: deployment}
";

const ANNOTATIONS: &str = "annotations:\n  operators.operatorframework.io.bundle.manifests.v1: manifests/\n";

fn answer(test: &str, csv: &str, more: &[(&'static str, &str)]) -> Answer {
    let own = [("manifests/csv.yaml", csv), ("metadata/annotations.yaml", ANNOTATIONS)];
    let files = own
        .iter()
        .chain(more)
        .map(|(path, text)| (*path, text.as_bytes().to_vec()));
    let reading = load::read(Tree::from_files(files), "bundle");
    Bundle::new(&reading).answer(&Builtin {
        name: Some(test.to_owned()),
    })
}

/// A finding about an example names its line in the annotation.
#[test]
fn findings_about_examples_name_their_lines() {
    let answer = answer("basic-check-spec", CSV, &[]);
    let [finding] = answer.findings.as_slice() else {
        panic!("{answer:#?}")
    };
    assert_eq!(finding.position.map(|position| position.line), Some(9));
    assert_eq!(finding.object.as_deref(), Some("Widget/b"));
    assert_eq!(finding.message, "the example Widget \"b\" has no spec");
}

#[test]
fn a_status_without_descriptors_is_a_finding() {
    let csv = CSV.replace("\"spec\": {}", "\"status\": {\"a\": 1}");
    assert_ne!(csv, CSV);
    let found = answer("olm-status-descriptors", &csv, &[]).findings;
    let found: Vec<(&str, Option<&str>)> = found
        .iter()
        .map(|finding| (finding.rule, finding.path.as_deref()))
        .collect();
    let owned = "spec.customresourcedefinitions.owned[0]";
    assert_eq!(
        found,
        [
            ("SC-8", Some(owned)),
            ("SC-9", Some("metadata.annotations.alm-examples"))
        ]
    );
}

/// A valid bundle, with another file that makes every test fail.
#[test]
fn a_file_elsewhere_ends_every_test() {
    let elsewhere = [("tests/other.yaml", "kind: ClusterServiceVersion\nspec: 1\n")];
    let answer = answer("olm-crds-have-resources", CSV, &elsewhere);
    assert_eq!(answer.result.state, State::Fail);
    let [finding] = answer.findings.as_slice() else {
        panic!("{answer:#?}")
    };
    assert_eq!(finding.rule, "SC-1");
    assert!(
        finding.message.contains("unable to parse CSV other.yaml: "),
        "{}",
        finding.message
    );
}

fn read(directory: &Path) -> Reading {
    load::read(Tree::from_dir(directory, Limits::default()).unwrap(), "/bundle")
}

/// The difference. `None` if there is none.
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
