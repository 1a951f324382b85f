//! Settings of projects: selection, severities, baselines, comments, `olmkit.toml`, and the formats that show them.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;
use test_support::demo_bundle::{ANNOTATIONS, CSV, copy, folder};

use super::outputs::{run, validate};

const FAULT: (&str, &str, &str) = (CSV, "minKubeVersion: 1.25.0", "minKubeVersion: v1.25");

/// A directory with a bundle that fails by CSV-17.
fn project() -> TempDir {
    let project = tempfile::tempdir().unwrap();
    copy(project.path(), "bundle", &[FAULT]);
    project
}

fn rules(out: &str, list: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(out).unwrap();
    let found = report[list].as_array().cloned().unwrap_or_default();
    found
        .iter()
        .map(|finding| finding["rule"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_rule_that_is_ignored_decides_nothing_and_stays_visible() {
    let project = project();
    assert_eq!(validate(project.path(), &["bundle"]).code, 1);
    let run = validate(project.path(), &["bundle", "--ignore", "CSV-17"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(run.out.contains("1 finding ignored"), "{}", run.out);
    let run = validate(project.path(), &["bundle", "--ignore", "CSV-17", "-o", "json"]);
    assert_eq!(rules(&run.out, "suppressed"), ["CSV-17"]);
    // operator-sdk's result does not change.
    let run = validate(project.path(), &["bundle", "--ignore", "CSV-17", "-o", "json-alpha1"]);
    assert_eq!(run.code, 1);
    assert!(run.out.contains("v1.25"), "{}", run.out);
}

#[test]
fn an_unknown_rule_is_refused_with_the_nearest() {
    let project = project();
    let run = validate(project.path(), &["bundle", "--select", "CVS"]);
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(
        run.err.contains("no rule \"CVS\", did you mean \"CSV\"?"),
        "{}",
        run.err
    );
    let run = validate(project.path(), &["bundle", "--severity", "CSV"]);
    assert!(run.err.contains("use RULE=SEVERITY"), "{}", run.err);
}

#[test]
fn flags_count_before_the_environment_and_that_before_the_file() {
    let project = project();
    fs::write(
        project.path().join("olmkit.toml"),
        "select = [\"CSV\"]\nfail-on = \"warning\"\n",
    )
    .unwrap();
    let bundle = project.path().join("bundle");
    let run = validate(&bundle, &[".", "-o", "json"]);
    assert_eq!(rules(&run.out, "findings"), ["CSV-17"]);
    let run = validate(&bundle, &[".", "-o", "json", "--select", "IMG"]);
    assert!(rules(&run.out, "findings").iter().all(|rule| rule.starts_with("IMG")));
    let run = validate(&bundle, &[".", "--severity", "CSV-17=warning"]);
    assert_eq!(run.code, 1, "warnings fail: {}", run.out);
    let run = validate(&bundle, &[".", "--severity", "CSV-17=warning", "--fail-on", "error"]);
    assert_eq!(run.code, 0, "{}", run.out);
    let run = validate(&bundle, &[".", "--severity", "CSV-17=warning", "--isolated"]);
    assert_eq!(run.code, 0, "{}", run.out);
    // Files in a bundle must not affect its result.
    fs::write(bundle.join("olmkit.toml"), "ignore = [\"all\"]\n").unwrap();
    assert_eq!(validate(&bundle, &["."]).code, 1);
    let run = run_config(&bundle);
    assert!(run.contains("select = [\"CSV\"]"), "{run}");
}

fn run_config(folder: &std::path::Path) -> String {
    let run = run(folder, &["config"]);
    assert_eq!(run.code, 0, "{}", run.err);
    run.out
}

#[test]
fn wrong_settings_name_file_and_line() {
    let project = project();
    fs::write(project.path().join("olmkit.toml"), "ignore = []\nselct = []\n").unwrap();
    let run = validate(project.path(), &["bundle"]);
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(
        run.err.contains("olmkit.toml") && run.err.contains("line 2"),
        "{}",
        run.err
    );
    assert!(run.err.contains("unknown field `selct`"), "{}", run.err);
}

#[test]
fn a_baseline_lets_only_new_findings_fail() {
    let project = project();
    let run = validate(project.path(), &["bundle", "--write-baseline", "known.json"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let run = validate(project.path(), &["bundle", "--baseline", "known.json", "--strict"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(run.out.contains("in the baseline"), "{}", run.out);
    // Named otherwise, the files are the same.
    let bundle = project.path().join("bundle");
    let run = validate(
        project.path(),
        &[bundle.to_str().unwrap(), "--baseline", "known.json", "--strict"],
    );
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    let annotations = project.path().join("bundle").join(ANNOTATIONS);
    let text = fs::read_to_string(&annotations).unwrap();
    fs::write(&annotations, text.replace("manifests/", "manifest/")).unwrap();
    let run = validate(project.path(), &["bundle", "--baseline", "known.json"]);
    assert_eq!(run.code, 1, "{}", run.out);
    let run = validate(
        project.path(),
        &["bundle", "--baseline", "bundle/metadata/annotations.yaml"],
    );
    assert_eq!(run.code, 2);
    assert!(run.err.contains("is not a baseline"), "{}", run.err);
}

#[test]
fn a_comment_ignores_its_place_and_needs_a_reason() {
    let with = |comment: &str| {
        folder(&[(
            CSV,
            "minKubeVersion: 1.25.0",
            &format!("minKubeVersion: v1.25 # olmkit: ignore CSV-17{comment}"),
        )])
    };
    let explained = with(" our console reads it");
    let run = validate(&explained.path().join("demo"), &[".", "-o", "json"]);
    assert_eq!(rules(&run.out, "suppressed"), ["CSV-17"]);
    assert!(run.out.contains("our console reads it"), "{}", run.out);
    assert_eq!(
        validate(&explained.path().join("demo"), &[".", "--no-ignore-comments"]).code,
        1
    );
    assert_eq!(validate(&with("").path().join("demo"), &["."]).code, 1);
}

#[test]
fn findings_are_shown_by_line_by_rule_and_as_tests() {
    let project = project();
    let run = validate(project.path(), &["bundle", "-o", "concise", "--select", "CSV"]);
    let expected = "bundle/manifests/demo.clusterserviceversion.yaml:";
    assert!(
        run.out.starts_with(expected) && run.out.contains(": error[CSV-17] "),
        "{}",
        run.out
    );
    assert_eq!(run.out.lines().count(), 1);
    let run = validate(project.path(), &["bundle", "-o", "junit", "--select", "CSV"]);
    assert!(run.out.contains("tests=\"1\" failures=\"1\""), "{}", run.out);
    assert!(run.out.contains("<failure type=\"error\""), "{}", run.out);
    // More than ten bundles: each rule once, the failed ones named.
    for number in 0..11 {
        copy(project.path(), &format!("many/{number}"), &[FAULT]);
    }
    let run = validate(project.path(), &["--recursive", "many", "--select", "CSV"]);
    assert_eq!(run.out.matches("error[CSV-17]").count(), 1, "{}", run.out);
    assert!(run.out.contains("11 findings in 11 bundles"), "{}", run.out);
    assert!(run.out.contains("11 bundles: 0 passed, 11 failed"), "{}", run.out);
    let run = validate(
        project.path(),
        &["--recursive", "many", "--select", "CSV", "-o", "full"],
    );
    assert_eq!(run.out.matches("error[CSV-17]").count(), 11);
}

#[test]
fn sarif_has_help_fingerprints_and_what_was_set_aside() {
    let project = project();
    let run = validate(
        project.path(),
        &["bundle", "-o", "sarif", "--select", "CSV", "--ignore", "CSV-17"],
    );
    let log: Value = serde_json::from_str(&run.out).unwrap();
    let run = &log["runs"][0];
    let rule = &run["tool"]["driver"]["rules"][0];
    assert!(
        rule["help"]["markdown"]
            .as_str()
            .unwrap()
            .contains("olmkit explain CSV-17"),
        "{rule}"
    );
    let result = &run["results"][0];
    assert!(
        result["partialFingerprints"]["olmkit/v1"]
            .as_str()
            .unwrap()
            .ends_with(":1")
    );
    assert_eq!(result["suppressions"][0]["kind"], "external");
}
