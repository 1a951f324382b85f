//! Made-up pull requests.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use olmkit_submission::{Change, Folder, Git, Repository};
use serde_json::{Value, json};
use test_support::corpus;

use super::answers::{Line, Tally, recorded, texts};
use super::synthetic::{answer, files};

fn git(directory: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.com",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
}

/// Replaces all files of the working tree.
fn write(directory: &Path, files: &Value) {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.file_name() == ".git" {
            continue;
        }
        if entry.path().is_dir() {
            std::fs::remove_dir_all(entry.path()).unwrap();
        } else {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    for (path, text) in files.as_object().unwrap() {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.as_str().unwrap()).unwrap();
    }
}

fn line(kind: &str, text: String) -> Line {
    ("change".to_owned(), kind.to_owned(), text)
}

/// The answer to a change as lines.
fn own(record: &Value, directory: &Path, renames: bool) -> Vec<Line> {
    let git = Git::new(directory, olmkit::process::Launcher::default());
    let base = git.resolve("base").unwrap();
    let changed = git.changed(&base, renames).unwrap();
    let head = Repository::new(Arc::new(Folder::open(directory).unwrap()));
    let base = Repository::new(Arc::new(git.commit(&base).unwrap()));
    let change = Change::detect(&head, &base, &changed);
    let mut lines = vec![line("changed_files", json!(changed).to_string())];
    let checked = change.check(&head, &base);
    if checked.iter().any(|checked| checked.is_traceback) {
        lines.push(line("crash", String::new()));
        return lines;
    }
    lines.extend(
        checked
            .iter()
            .map(|checked| line("error", checked.finding.message.clone())),
    );
    match change.summary() {
        Err(_) => lines.push(line("detected_crash", String::new())),
        Ok(summary) => {
            lines.push(line("detected", json!(summary).to_string()));
            if checked.is_empty() && change.touches_bundle_or_catalog() {
                let (operator, bundle) = change.target();
                let target = (
                    operator.as_deref().unwrap_or_default(),
                    bundle.as_deref().unwrap_or_default(),
                );
                lines.extend(answer(
                    files(&record["files"]),
                    target,
                    &change.affected_catalogs(),
                    &texts(&record["suites"]),
                    &texts(&record["skip_tests"]),
                ));
            }
        }
    }
    lines
}

fn wanted(recording: &Value) -> Vec<Line> {
    let mut lines = vec![line("changed_files", recording["changed_files"].to_string())];
    if recording.get("crash").is_some() {
        lines.push(line("crash", String::new()));
        return lines;
    }
    lines.extend(texts(&recording["errors"]).into_iter().map(|text| line("error", text)));
    if recording.get("detected_crash").is_some() {
        lines.push(line("detected_crash", String::new()));
        return lines;
    }
    let mut detected = recording["detected"].clone();
    let mut extra = texts(&detected["extra_files"]);
    extra.sort();
    detected["extra_files"] = json!(extra);
    lines.push(line("detected", detected.to_string()));
    lines.extend(recorded(&recording["static"]["outputs"]));
    lines
}

/// Compares recorded pull requests with this crate's results.
fn compare(records: &Path, tally: &mut Tally) {
    let text = std::fs::read_to_string(records).unwrap();
    for record in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        if record["kind"] != "pr" {
            continue;
        }
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        git(directory, &["init", "-q"]);
        write(directory, &record["base"]);
        git(directory, &["add", "-A"]);
        git(directory, &["commit", "-qm", "base"]);
        git(directory, &["branch", "base"]);
        write(directory, &record["files"]);
        git(directory, &["add", "-A"]);
        let name = record["name"].as_str().unwrap();
        for (key, renames) in [("changes", false), ("changes_with_renames", true)] {
            let Some(recording) = record["expected"].get(key) else {
                continue;
            };
            let (mut own, mut wanted) = (own(&record, directory, renames), wanted(recording));
            own.sort();
            wanted.sort();
            tally.compare(&format!("{name} {key}"), &own, &[wanted]);
        }
    }
}

#[test]
fn made_up_pull_requests_have_the_recorded_answers() {
    let Some(directory) = corpus("submission") else { return };
    let mut tally = Tally::default();
    compare(&directory.join("synthetic.jsonl"), &mut tally);
    tally.finish("made-up pull requests", &[]);
}

/// As above, with random changes to fetched repositories. See `dev/submission/live.sh`.
#[test]
#[ignore = "needs a recording: run dev/submission/live.sh"]
fn random_pull_requests_have_the_recorded_answers() {
    let records = std::env::var("SUBMISSION_CHANGES").expect("SUBMISSION_CHANGES names the recording");
    let mut tally = Tally::default();
    compare(Path::new(&records), &mut tally);
    tally.finish("random pull requests", &[]);
}
