//! `--fix`, `--unsafe-fixes` and `--diff`.

use std::fs;
use std::os::unix::fs::symlink;

use super::outputs::validate;
use test_support::demo_bundle::{CSV, folder};

const CAPABILITIES: (&str, &str, &str) = (
    CSV,
    "    capabilities: Basic Install\n",
    "    capabilities: basic install # by hand\n",
);

#[test]
fn fixes_are_written_and_named_and_the_rest_is_validated() {
    let folder = folder(&[CAPABILITIES]);
    let csv = folder.path().join("demo").join(CSV);
    let before = fs::read_to_string(&csv).unwrap();
    let run = validate(folder.path(), &["demo", "--fix"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    let line = format!("fixed: demo/{CSV}: spell capabilities as in \"Basic Install\"\n");
    assert!(run.err.contains(&line), "{}", run.err);
    let after = fs::read_to_string(&csv).unwrap();
    assert!(after.contains("    capabilities: Basic Install # by hand\n"), "{after}");
    let lost: Vec<&str> = before
        .lines()
        .filter(|line| !after.lines().any(|other| other == *line))
        .collect();
    assert_eq!(lost, ["    capabilities: basic install # by hand"]);
    let again = validate(folder.path(), &["demo", "--fix"]);
    assert!(!again.err.contains("fixed: "), "{}", again.err);
    assert_eq!(fs::read_to_string(&csv).unwrap(), after);
}

#[test]
fn a_difference_writes_nothing() {
    let folder = folder(&[CAPABILITIES]);
    let csv = folder.path().join("demo").join(CSV);
    let before = fs::read_to_string(&csv).unwrap();
    let run = validate(folder.path(), &["demo", "--diff"]);
    assert_eq!(run.code, 1);
    for part in [
        format!("--- demo/{CSV}\n+++ demo/{CSV}\n@@ "),
        "\n-    capabilities: basic install # by hand\n+    capabilities: Basic Install # by hand\n".to_owned(),
    ] {
        assert!(run.out.contains(&part), "{}", run.out);
    }
    assert_eq!(fs::read_to_string(&csv).unwrap(), before);
    validate(folder.path(), &["demo", "--fix"]);
    let run = validate(folder.path(), &["demo", "--diff"]);
    assert_eq!((run.code, run.out.as_str()), (0, ""));
}

#[test]
fn what_must_not_be_written_is_refused() {
    let folder = folder(&[CAPABILITIES]);
    let csv = folder.path().join("demo").join(CSV);
    let other = folder.path().join("elsewhere.yaml");
    fs::rename(&csv, &other).unwrap();
    symlink(&other, &csv).unwrap();
    let before = fs::read_to_string(&other).unwrap();
    let run = validate(folder.path(), &["demo", "--fix"]);
    assert_eq!(run.code, 1);
    assert!(
        run.err.contains("it is a symbolic link; fix the file it leads to"),
        "{}",
        run.err
    );
    assert_eq!(fs::read_to_string(&other).unwrap(), before);
    assert!(csv.symlink_metadata().unwrap().is_symlink());

    let run = validate(folder.path(), &["demo", "--unsafe-fixes"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("--unsafe-fixes needs --fix or --diff"), "{}", run.err);
}
