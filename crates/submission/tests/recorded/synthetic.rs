//! Synthetic repositories, each of which breaks one rule.

use std::sync::Arc;

use olmkit_submission::{Memory, Repository, check_bundle, check_catalogs, check_operator};
use serde_json::Value;
use test_support::corpus;

use super::answers::{Line, Tally, found, recorded, strict, texts};

/// The files of a record.
pub fn files(value: &Value) -> Memory {
    let files = value.as_object().unwrap().iter();
    files
        .map(|(path, text)| (path.clone(), text.as_str().unwrap().as_bytes().to_vec()))
        .collect()
}

/// The answer to one call of the pipeline's static tests.
pub fn answer(
    files: Memory,
    (operator, bundle): (&str, &str),
    catalogs: &[String],
    suites: &[String],
    skip: &[String],
) -> Vec<Line> {
    let repository = Repository::new(Arc::new(files));
    let suites: Vec<&str> = suites.iter().map(String::as_str).collect();
    let options = strict(&suites, skip);
    let mut all = Vec::new();
    if let Some(operator) = repository.operator(operator) {
        all.extend(check_operator(&repository, &operator, &options));
        all.extend(check_bundle(&repository, &operator, bundle, &options));
    }
    all.extend(check_catalogs(&repository, catalogs, &options));
    found(&all)
}

#[test]
fn made_up_repositories_have_the_recorded_answers() {
    let Some(directory) = corpus("submission") else { return };
    let text = std::fs::read_to_string(directory.join("synthetic.jsonl")).unwrap();
    let mut tally = Tally::default();
    for record in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        if record["kind"] != "static" {
            continue;
        }
        let text = |key: &str| record[key].as_str().unwrap_or_default();
        let catalogs: Vec<String> = match &record["affected_catalogs"] {
            Value::String(list) => list
                .split(',')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
            list => texts(list),
        };
        let own = answer(
            files(&record["files"]),
            (text("operator"), text("bundle")),
            &catalogs,
            &texts(&record["suites"]),
            &texts(&record["skip_tests"]),
        );
        let mut wanted = vec![recorded(&record["expected"]["outputs"])];
        let also = record["expected_also"].as_array().into_iter().flatten();
        wanted.extend(also.map(|answer| recorded(&answer["outputs"])));
        tally.compare(text("name"), &own, &wanted);
    }
    tally.finish("made-up repositories", &[]);
}
