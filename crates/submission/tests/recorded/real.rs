//! Whole operators of the public repositories.

use std::path::Path;
use std::sync::Arc;

use olmkit_submission::{Folder, Repository, check_bundle, check_catalogs, check_operator};
use serde_json::Value;
use test_support::corpus;

use super::answers::{Tally, found, recorded, strict, texts};

/// Compares the records of a file with this crate's results for the repositories in a directory.
fn compare(repositories: &Path, records: &Path, tally: &mut Tally) {
    let text = std::fs::read_to_string(records).unwrap();
    for record in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let text = |key: &str| record[key].as_str().unwrap_or_default();
        let suites = match text("repo") {
            "community" => ["community", "common"],
            _ => ["isv", "common"],
        };
        let options = strict(&suites, &texts(&record["skip_tests"]));
        let root = repositories.join(text("repo"));
        let repository = Repository::new(Arc::new(Folder::open(&root).unwrap()));
        let name = format!(
            "{}/{}/{}{}",
            text("repo"),
            text("operator"),
            text("kind"),
            text("bundle")
        );
        let operator = || {
            repository
                .operator(text("operator"))
                .unwrap_or_else(|| panic!("{name} is not in {}", root.display()))
        };
        let checked = match text("kind") {
            "operator" => check_operator(&repository, &operator(), &options),
            "bundle" => check_bundle(&repository, &operator(), text("bundle"), &options),
            _ => check_catalogs(&repository, &texts(&record["catalogs"]), &options),
        };
        let mut wanted = vec![recorded(&record["outputs"])];
        let also = record["expected_also"].as_array().into_iter().flatten();
        wanted.extend(also.map(|answer| recorded(answer.get("outputs").unwrap_or(answer))));
        tally.compare(&name, &found(&checked), &wanted);
    }
}

#[test]
fn real_operators_have_the_recorded_answers() {
    let Some(directory) = corpus("submission") else { return };
    let mut tally = Tally::default();
    for records in ["expected/real.jsonl", "expected/real-rest.jsonl"] {
        compare(&directory.join("repos"), &directory.join(records), &mut tally);
    }
    tally.finish("real operators", &[]);
}

/// As above, over fetched repositories. See `dev/submission/compare.sh DIRECTORY`.
#[test]
#[ignore = "needs fetched repositories: run dev/submission/compare.sh DIRECTORY"]
fn fetched_operators_have_the_recorded_answers() {
    let directory = corpus("submission").expect("the recorded answers");
    let repositories = std::env::var("SUBMISSION_REPOSITORIES").expect("SUBMISSION_REPOSITORIES names the directory");
    let mut tally = Tally::default();
    if let Some(records) = std::env::var_os("SUBMISSION_RECORDS") {
        compare(Path::new(&repositories), Path::new(&records), &mut tally);
        return tally.finish("fetched operators", &[]);
    }
    for records in ["expected/more.jsonl", "expected/more-rest.jsonl"] {
        compare(Path::new(&repositories), &directory.join(records), &mut tally);
    }
    // Two edges close the loop; which of them the original names depends on the seed of Python's hashes.
    tally.finish("fetched operators", &["community/oadp-operator/operator"]);
}
