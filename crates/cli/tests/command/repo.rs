//! `olmkit repo check`

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::help::ends_when_its_reader_is_gone;

const ANNOTATIONS: &str = "\
annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: hello
  operators.operatorframework.io.bundle.channels.v1: stable
";

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn bundle(root: &Path, version: &str, spec: &str) {
    let directory = format!("operators/hello/{version}");
    let csv = format!(
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: hello.v{version}\nspec:\n  \
         version: {version}\n{spec}"
    );
    write(
        root,
        &format!("{directory}/manifests/hello.clusterserviceversion.yaml"),
        &csv,
    );
    write(root, &format!("{directory}/metadata/annotations.yaml"), ANNOTATIONS);
}

/// A repository with one operator and two bundles.
fn repository() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, "operators/hello/ci.yaml", "updateGraph: replaces-mode\n");
    bundle(root, "0.0.1", "");
    bundle(root, "0.0.2", "  replaces: hello.v0.0.1\n");
    directory
}

fn run(root: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = assert_cmd::Command::cargo_bin("olmkit")
        .unwrap()
        .args(["repo", "check"])
        .args(arguments)
        .current_dir(root)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn git(root: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
}

#[test]
fn equal_findings_of_many_bundles_are_shown_once() {
    let directory = repository();
    for patch in 3..15 {
        bundle(directory.path(), &format!("0.0.{patch}"), "  replaces: hello.v9.9.9\n");
    }
    let (code, out, _) = run(directory.path(), &[]);
    let (whole, concise) = (
        run(directory.path(), &["-o", "full"]),
        run(directory.path(), &["-o", "concise"]),
    );
    assert_eq!((code, whole.0, concise.0), (1, 1, 1), "{out}");
    let found = concise.1.lines().count();
    assert!(found >= 12, "{found}");
    assert!(whole.1.lines().count() > found);
    assert!(out.lines().count() < 80, "{out}");
    assert!(out.contains("finding") && out.contains("in 1 operator"), "{out}");
    assert!(out.starts_with("Failed:\n  hello ("), "{out}");
    assert!(out.contains(" and 13 more"), "{out}");
    assert!(out.contains("14 bundles"), "{out}");
    assert!(out.ends_with("-o full or concise prints each finding\n"), "{out}");
    // The same totals, however they are shown.
    let totals = |text: &str| text.lines().find(|line| line.contains(" checked: ")).map(str::to_owned);
    assert_eq!(totals(&out), totals(&whole.1));
}

/// A repository with several operators, each with this number of bundles.
fn operators(names: &[&str], bundles: usize) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for name in names {
        write(directory.path(), "operators/hello/ci.yaml", "updateGraph: legacy\n");
        for patch in 1..=bundles {
            bundle(directory.path(), &format!("0.0.{patch}"), "  replaces: hello.v9.9.9\n");
        }
        let operators = directory.path().join("operators");
        std::fs::rename(operators.join("hello"), operators.join(name)).unwrap();
    }
    directory
}

fn olmkit(root: &Path, threads: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("olmkit"));
    command
        .args(["repo", "check"])
        .args(arguments)
        .current_dir(root)
        .env("RAYON_NUM_THREADS", threads);
    command
}

#[test]
fn operators_come_by_name_however_many_threads_check_them() {
    let names = ["a", "a-b", "b", "c", "d", "e"];
    for bundles in [1, 3] {
        let directory = operators(&names, bundles);
        for format in ["text", "full", "concise", "github", "json", "sarif", "junit"] {
            let printed = |threads| {
                let output = olmkit(directory.path(), threads, &["-o", format]).output().unwrap();
                assert_eq!(output.status.code(), Some(1), "{format}");
                String::from_utf8(output.stdout).unwrap()
            };
            let one = printed("1");
            for _ in 0..3 {
                assert_eq!(printed("4"), one, "{format}");
            }
            if matches!(format, "full" | "concise" | "github") {
                let places = names.map(|name| one.find(&format!("operators/{name}/")).unwrap());
                assert!(places.is_sorted(), "{format}: {one}");
                let after = one.rfind("operators/a/").unwrap();
                assert!(after < one.find("operators/a-b/").unwrap(), "{format}: {one}");
            }
        }
    }
}

#[test]
fn operators_that_fail_are_named_before_the_rules_that_they_break() {
    let directory = operators(&["b", "a"], 6);
    let (_, out, _) = run(directory.path(), &[]);
    let failed: Vec<&str> = out.lines().take(4).collect();
    assert!(
        matches!(failed.as_slice(), ["Failed:", a, b, ""] if a.starts_with("  a (") && b.starts_with("  b (")),
        "{out}"
    );
    assert_eq!(
        out.matches("error[pipeline/check_replaces_availability]").count(),
        1,
        "{out}"
    );
    assert!(out.contains("in 2 operators"), "{out}");
}

/// Repeated findings within an operator are printed once, and again for another operator that has them.
#[test]
fn repeated_findings_are_folded_by_operator() {
    let directory = operators(&["a", "b"], 3);
    let (_, out, _) = run(directory.path(), &["--short"]);
    let about = "CSV does not define metadata.annotations.categories (also ";
    let lines: Vec<&str> = out.lines().filter(|line| line.contains(about)).collect();
    let [a, b] = lines.as_slice() else { panic!("{out}") };
    assert!(a.contains("operators/a/") && !a.contains("operators/b/"), "{a}");
    assert!(b.contains("operators/b/") && !b.contains("operators/a/"), "{b}");
    assert!(out.contains("2 operators, 6 bundles"), "{out}");
}

#[test]
fn a_closed_pipe_keeps_the_exit_code() {
    let directory = operators(&["a", "b", "c", "d"], 4);
    for format in ["text", "full", "concise", "github", "json"] {
        ends_when_its_reader_is_gone(&mut olmkit(directory.path(), "2", &["-o", format]), 1);
    }
}

#[test]
fn findings_have_their_place_and_what_was_not_checked_is_named() {
    let directory = repository();
    bundle(directory.path(), "0.0.3", "  replaces: hello.v0.0.9\n");
    let (code, out, _) = run(directory.path(), &["--operator", "hello"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("error[pipeline/check_replaces_availability]"), "{out}");
    let place = "operators/hello/0.0.3/manifests/hello.clusterserviceversion.yaml:7:13";
    assert!(out.contains(place), "{out}");
    assert!(out.contains("1 operator, 3 bundles and 0 catalogs checked"), "{out}");
    assert!(out.contains("not checked") && out.contains("DeployableByOLM"), "{out}");
}

#[test]
fn the_json_of_the_pipeline_has_its_shape() {
    let directory = repository();
    let arguments = [
        "--operator",
        "hello",
        "--bundle",
        "0.0.2",
        "--strict-compat",
        "-o",
        "pipeline-json",
    ];
    let (code, out, _) = run(directory.path(), &arguments);
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &result["passed"]), (1, &Value::Bool(false)));
    let outputs = result["outputs"].as_array().unwrap();
    let description = outputs
        .iter()
        .find(|output| output["message"] == "CSV does not define spec.description")
        .unwrap();
    assert_eq!(description["type"], "error");
    assert_eq!(description["check"], "check_required_fields");
    assert_eq!(description["test_suite"], "operatorcert.static_tests.community");
}

#[test]
fn sarif_and_annotations_know_the_rules() {
    let directory = repository();
    let (_, out, _) = run(directory.path(), &["-o", "sarif"]);
    let log: Value = serde_json::from_str(&out).unwrap();
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    assert!(
        rules.iter().all(|rule| rule["shortDescription"]["text"].is_string()),
        "{rules:?}"
    );
    let (_, out, _) = run(directory.path(), &["-o", "github"]);
    assert!(out.contains("::error file=operators/hello/0.0.1/"), "{out}");
}

#[test]
fn a_change_is_checked_as_a_whole() {
    let directory = repository();
    let root = directory.path();
    git(root, &["init", "-q"]);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-qm", "base"]);
    let skip = [
        "--skip",
        "check_required_fields",
        "--skip",
        "check_osdk_bundle_validate_operatorhub",
    ];
    let skip = [&skip[..], &["--skip", "check_osdk_bundle_validate_operator_framework"]].concat();
    let base = |more: &[&str]| run(root, &[&["--base", "HEAD"], &skip[..], more].concat());
    bundle(root, "0.0.3", "  replaces: hello.v0.0.2\n");
    let (code, out, _) = base(&[]);
    assert_eq!(code, 0, "a new bundle that is not yet added to git: {out}");
    assert!(out.contains("1 operator, 1 bundle and 0 catalogs checked"), "{out}");
    write(root, "README.md", "x");
    bundle(root, "0.0.2", "  replaces: hello.v0.0.1\n  maturity: alpha\n");
    let (code, out, _) = base(&[]);
    assert_eq!(code, 1);
    for rule in ["check_extra_files", "check_modified_bundles"] {
        assert!(out.contains(rule), "{rule}: {out}");
    }
}

#[test]
fn names_of_commits_that_are_flags_or_absent_are_refused() {
    let directory = repository();
    let (code, _, error) = run(directory.path(), &["--base", "HEAD"]);
    assert!(code == 1 && error.contains("is not a git repository"), "{error}");
    git(directory.path(), &["init", "-q"]);
    for (base, wanted) in [
        ("--base=--output=x", "is not the name of a commit"),
        ("--base=main", "fetch it first"),
    ] {
        let (code, _, error) = run(directory.path(), &[base]);
        assert!(code == 1 && error.contains(wanted), "{base}: {error}");
    }
    let (code, _, error) = run(
        &directory.path().join("operators"),
        &["--repo", "..", "--base", "--help"],
    );
    assert_eq!(code, 2, "{error}");
}

#[test]
fn wrong_usage_names_the_way_out() {
    let directory = repository();
    for (arguments, code, wanted) in [
        (vec!["--operator", "nope"], 1, "no operator \"nope\""),
        (vec!["--operator", "hello", "--bundle", "9"], 1, "operators/hello/9"),
        (vec!["--operator", "../../etc"], 1, "no operator"),
        (vec!["--skip", "nope"], 2, "check_using_fbc"),
        (vec!["--ocp-versions", "x"], 2, "4.14-4.22"),
        (vec!["--repo", "operators"], 1, "pass its root as --repo"),
    ] {
        let (status, _, error) = run(directory.path(), &arguments);
        assert_eq!(status, code, "{arguments:?}: {error}");
        assert!(error.contains(wanted), "{arguments:?}: {error}");
    }
}

#[test]
fn known_defects_of_the_pipeline_differ_unless_its_verdict_is_wanted() {
    let directory = repository();
    let root = directory.path();
    let range = format!("{ANNOTATIONS}  com.redhat.openshift.versions: =v4.20\n");
    bundle(root, "0.0.3", "  replaces: hello.v0.0.2\n  minKubeVersion: 1.33.0\n");
    write(root, "operators/hello/0.0.3/metadata/annotations.yaml", &range);
    let arguments = ["--operator", "hello", "--bundle", "0.0.3", "--short"];
    let (_, out, _) = run(root, &arguments);
    assert!(out.contains("warning[pipeline/check_api_version_constraints]"), "{out}");
    assert!(out.contains("differs from the hosted pipeline"), "{out}");
    let (_, out, _) = run(root, &[&arguments[..], &["--strict-compat", "-o", "full"]].concat());
    assert!(out.contains("error[pipeline/check_api_version_constraints]"), "{out}");
    assert!(!out.contains("differs from the hosted pipeline"), "{out}");
}

#[test]
fn a_range_without_a_supported_version_names_the_supported_ones() {
    let directory = repository();
    let root = directory.path();
    bundle(root, "0.0.3", "  replaces: hello.v0.0.2\n");
    for range in ["v4.8-v4.10", "v5.1", "v4.22-v4.20"] {
        let annotations = format!("{ANNOTATIONS}  com.redhat.openshift.versions: {range}\n");
        write(root, "operators/hello/0.0.3/metadata/annotations.yaml", &annotations);
        let arguments = [
            "--operator",
            "hello",
            "--bundle",
            "0.0.3",
            "--short",
            "--ocp-versions",
            "4.20-4.22",
        ];
        let (_, out, _) = run(root, &arguments);
        assert!(out.contains("selects no supported OpenShift version"), "{range}: {out}");
        assert!(
            out.contains("include a supported version (4.20 to 4.22); "),
            "{range}: {out}"
        );
    }
}

#[test]
fn one_broken_file_is_one_finding_and_waivers_are_shown() {
    let directory = repository();
    let root = directory.path();
    write(root, "operators/hello/ci.yaml", "a: b: c\n");
    let config = "tests:\n- name: check_required_fields\n  ignore_operators: [hel]\n";
    write(root, "config.yaml", config);
    let (_, out, _) = run(root, &["--operator", "hello", "--bundle", "0.0.2", "--short"]);
    assert_eq!(
        out.matches("operators/hello/ci.yaml:1:5").count(),
        2,
        "once for operator and bundle: {out}"
    );
    assert!(
        out.contains("waived by config.yaml: check_required_fields of hello"),
        "{out}"
    );
}

#[test]
fn duplicate_findings_appear_once_except_in_pipeline_results() {
    let directory = repository();
    let root = directory.path();
    let arguments = ["--operator", "hello", "--bundle", "0.0.2", "--short"];
    let message = "csv.Spec.minKubeVersion is not informed";
    let (_, once, _) = run(root, &arguments);
    assert_eq!(once.matches(message).count(), 1, "{once}");
    assert!(
        once.contains("; also found by check_osdk_bundle_validate_operatorhub\n"),
        "{once}"
    );
    let (_, all, _) = run(root, &[&arguments[..], &["--strict-compat", "-o", "full"]].concat());
    assert_eq!(all.matches(message).count(), 4, "{all}");
}

#[test]
fn fixes_are_made_in_the_bundle_that_is_checked() {
    let directory = repository();
    let path = directory.path().join("operators/hello/0.0.2/metadata/annotations.yaml");
    let line = "  operators.operatorframework.io.bundle.manifests.v1: manifests/\n";
    let without = ANNOTATIONS.replace(line, "  # ours\n");
    std::fs::write(&path, &without).unwrap();
    let (code, _, err) = run(directory.path(), &["--operator", "hello", "--fix"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("require --bundle or --base"), "{err}");
    let one = ["--operator", "hello", "--bundle", "0.0.2"];
    let (code, out, _) = run(directory.path(), &[&one[..], &["--diff"]].concat());
    assert_eq!(code, 1, "{out}");
    assert!(out.contains(&format!("+{line}")), "{out}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), without);
    let (_, _, err) = run(directory.path(), &[&one[..], &["--fix"]].concat());
    assert!(err.contains("fixed: "), "{err}");
    let fixed = std::fs::read_to_string(&path).unwrap();
    assert!(fixed.contains(line) && fixed.contains("  # ours\n"), "{fixed}");
    let (_, _, err) = run(directory.path(), &[&one[..], &["--fix"]].concat());
    assert!(!err.contains("fixed: "), "{err}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), fixed);
}

/// The author of a submission writes them.
#[test]
fn comments_in_a_repository_turn_no_finding_off() {
    let comments = [
        "# olmkit: ignore-file check_required_fields,pipeline/check_required_fields known\n",
        "  description: |\n    # olmkit: ignore-file pipeline/check_required_fields,check_required_fields known\n",
    ];
    let mut found = Vec::new();
    for comment in ["", comments[0], comments[1]] {
        let directory = repository();
        git(directory.path(), &["init", "--quiet", "--initial-branch=main"]);
        git(directory.path(), &["add", "."]);
        git(directory.path(), &["commit", "--quiet", "--message=a"]);
        bundle(
            directory.path(),
            "0.0.3",
            &format!("  replaces: hello.v0.0.2\n{comment}"),
        );
        for selected in [&["--operator", "hello"][..], &["--base", "main"]] {
            let (code, out, err) = run(directory.path(), &[selected, &["-o", "json"]].concat());
            assert_eq!(code, 1, "{comment}: {out}{err}");
            let json: Value = serde_json::from_str(&out).unwrap();
            let of_rule = |finding: &&Value| finding["rule"] == "pipeline/check_required_fields";
            let findings = json["findings"].as_array().unwrap();
            let newest = findings.iter().filter(of_rule);
            let newest = newest.filter(|finding| finding["file"].as_str().is_some_and(|file| file.contains("0.0.3")));
            found.push((selected[0].to_owned(), newest.count() > 0));
            assert!(json.get("suppressed").is_none(), "{out}");
        }
    }
    assert!(found.iter().all(|(_, is_found)| *is_found), "{found:?}");
}
