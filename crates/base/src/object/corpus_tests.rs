//! The recorded vectors of the Go libraries, see `OLMKIT_CORPUS`.

use std::cmp::Ordering;

use serde_json::Value;

use super::*;
use test_support::corpus;

fn vectors(file: &str) -> Vec<Value> {
    let Some(path) = corpus(file) else { return Vec::new() };
    let text = std::fs::read_to_string(path).expect("vectors");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("vector"))
        .collect()
}

fn outcome<T: std::fmt::Display, E: std::fmt::Display>(result: Result<T, E>) -> (bool, String) {
    match result {
        Ok(value) => (true, value.to_string()),
        Err(error) => (false, error.to_string()),
    }
}

fn recorded(record: &Value, value: &str) -> (bool, String) {
    let ok = record["ok"].as_bool().expect("ok");
    (
        ok,
        record[if ok { value } else { "error" }]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    )
}

#[test]
fn versions_and_ranges_agree_with_blang_semver() {
    let all = vectors("semver/vectors.jsonl");
    for vector in &all {
        match vector["kind"].as_str().expect("kind") {
            "version" => {
                let text = vector["input"].as_str().expect("input");
                assert_eq!(
                    outcome(Version::parse(text)),
                    recorded(&vector["strict"], "canonical"),
                    "{text:?}"
                );
                assert_eq!(
                    outcome(Version::parse_tolerant(text)),
                    recorded(&vector["tolerant"], "canonical"),
                    "{text:?}"
                );
            }
            "compare" => {
                let side = |name: &str| Version::parse(vector[name].as_str().expect(name)).expect("version");
                let wanted = match vector["result"].as_i64() {
                    Some(-1) => Ordering::Less,
                    Some(0) => Ordering::Equal,
                    _ => Ordering::Greater,
                };
                assert_eq!(side("a").cmp(&side("b")), wanted, "{vector}");
            }
            _ => {
                let range = VersionRange::parse(vector["range"].as_str().expect("range"));
                let Some(matches) = vector.get("matches").and_then(Value::as_object) else {
                    let recorded = vector.get("error").and_then(Value::as_str).map(str::to_owned);
                    assert_eq!(range.err().map(|error| error.to_string()), recorded, "{vector}");
                    continue;
                };
                let range = range.unwrap_or_else(|error| panic!("{vector}: {error}"));
                for (version, wanted) in matches {
                    let parsed = Version::parse(version).expect("version");
                    if let Some(wanted) = wanted.as_bool() {
                        assert_eq!(range.contains(&parsed), wanted, "{version} in {vector}");
                    }
                }
            }
        }
    }
    println!("{} vectors agree", all.len());
}

#[test]
fn image_references_agree_with_distribution() {
    let all = vectors("reference/vectors.jsonl");
    let mut without_hashes = 0;
    for vector in &all {
        let input = vector["input"].as_str().expect("input");
        let ours = Reference::parse_normalized(input);
        // The program that recorded the vectors was linked without hash functions, which operator-sdk and opm have.
        if vector["error"] == "unsupported digest algorithm" && input.contains("@sha") {
            without_hashes += 1;
            assert!(
                !matches!(ours, Err(ReferenceError::DigestAlgorithm | ReferenceError::Format)),
                "{input:?}"
            );
            continue;
        }
        assert_eq!(outcome(ours.clone()), recorded(vector, "string"), "{input:?}");
        let Ok(reference) = ours else { continue };
        assert_eq!(
            reference.familiar(),
            vector["familiar"].as_str().expect("familiar"),
            "{input:?}"
        );
        assert_eq!(
            reference.registry().unwrap_or_default(),
            vector["domain"].as_str().expect("domain"),
            "{input:?}"
        );
        assert_eq!(
            reference.repository(),
            vector["path"].as_str().expect("path"),
            "{input:?}"
        );
        assert_eq!(reference.tag(), vector.get("tag").and_then(Value::as_str), "{input:?}");
        assert_eq!(
            reference.digest().map(ToString::to_string).as_deref(),
            vector.get("digest").and_then(Value::as_str),
            "{input:?}"
        );
    }
    println!(
        "{} vectors agree, {without_hashes} hold digests that were not checked",
        all.len() - without_hashes
    );
}
