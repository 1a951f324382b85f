//! Every recorded case: same exit status, same files, same bytes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::support::files;
use test_support::corpus;

/// A case that olmkit rejects: a failed command in front of the pipe must not overwrite a bundle.
const REJECTED: &str = "empty-stdin";

#[test]
fn recorded_cases_give_equal_bundles() {
    let Some(root) = corpus("generate") else { return };
    // The recorded commands call operator-sdk. Here the name leads to olmkit.
    let tools = tempfile::tempdir().unwrap();
    let tool = tools.path().join("operator-sdk");
    let program = assert_cmd::cargo::cargo_bin("olmkit");
    std::fs::write(&tool, format!("#!/bin/sh\nexec '{}' \"$@\"\n", program.display())).unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        tools.path().display(),
        std::env::var("PATH").unwrap_or_default()
    );

    let mut cases: Vec<PathBuf> = std::fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.retain(|case| case.join("command.txt").exists());
    cases.sort();
    let mut differences = Vec::new();
    for case in &cases {
        differences.extend(compare(case, &path));
    }
    println!("{} recorded cases, {} differences", cases.len(), differences.len());
    assert!(!cases.is_empty());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Runs one case and describes the deviations from the record.
fn compare(case: &Path, path: &str) -> Vec<String> {
    let name = case.file_name().unwrap().to_string_lossy().into_owned();
    let directory = tempfile::tempdir().unwrap();
    let mut given = Vec::new();
    for (file, bytes) in files(case) {
        if file.starts_with("expected/") || file == "result.json" || file == "command.txt" {
            continue;
        }
        let to = directory.path().join(&file);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::write(to, bytes).unwrap();
        given.push(file);
    }
    let output = Command::new("bash")
        .arg(case.join("command.txt"))
        .current_dir(directory.path())
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let result: serde_json::Value = serde_json::from_slice(&std::fs::read(case.join("result.json")).unwrap()).unwrap();
    let mut made = files(directory.path());
    made.retain(|file, _| !given.contains(file));
    if !output.stdout.is_empty() {
        made.insert("stdout.txt".into(), output.stdout.clone());
    }
    let expected = if case.join("expected").is_dir() {
        files(&case.join("expected"))
    } else {
        Default::default()
    };
    if name == REJECTED {
        let is_right = output.status.code() == Some(1) && made.is_empty();
        return (!is_right)
            .then(|| format!("{name}: is accepted"))
            .into_iter()
            .collect();
    }
    let mut differences = Vec::new();
    if output.status.code().map(i64::from) != result["exit"].as_i64() {
        let said = String::from_utf8_lossy(&output.stderr);
        differences.push(format!(
            "{name}: exit {:?} instead of {}: {said}",
            output.status.code(),
            result["exit"]
        ));
    }
    for file in made.keys().chain(expected.keys()) {
        let (mine, theirs) = (
            made.get(file).map(|bytes| timeless(bytes)),
            expected.get(file).map(|bytes| timeless(bytes)),
        );
        if mine != theirs {
            differences.push(format!("{name}: {file} differs, is missing or is too much"));
        }
    }
    differences.dedup();
    differences
}

/// The bytes without the time of the run.
fn timeless(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines()
        .map(|line| match line.split_once("createdAt: ") {
            Some((before, _)) => format!("{before}createdAt\n"),
            None => format!("{line}\n"),
        })
        .collect()
}
