//! `olmkit scorecard`: configuration, selector, forms, exit status.

use std::path::Path;
use std::process::{Command, Output};

const CSV: &str = r#"apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: demo.v0.0.1
  annotations:
    alm-examples: '[{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}]'
spec:
  version: 0.0.1
  installModes:
  - {type: AllNamespaces, supported: true}
  customresourcedefinitions:
    owned:
    - name: widgets.example.com
      kind: Widget
      version: v1
  install:
    strategy: deployment
"#;

const ANNOTATIONS: &str = "annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: demo
  operators.operatorframework.io.bundle.channels.v1: alpha
";

const CONFIG: &str = "apiVersion: scorecard.operatorframework.io/v1alpha3
kind: Configuration
stages:
- parallel: true
  tests:
  - image: registry.test/mirror/scorecard-test@sha256:2e728c5e67a7f4dec0df157a322dd5671212e8ae60f69137463bd4fdfbff8747
    entrypoint: [scorecard-test, basic-check-spec]
    labels: {suite: basic, test: basic-check-spec-test}
  - image: quay.io/operator-framework/scorecard-test:v1.42.3
    entrypoint: [scorecard-test, olm-crds-have-resources]
    labels: {suite: olm, number: 1}
- tests:
  - image: quay.io/operator-framework/scorecard-test-kuttl:v1.42.3
    labels: {suite: kuttl}
";

fn bundle(config: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("manifests/demo.clusterserviceversion.yaml", CSV),
        ("metadata/annotations.yaml", ANNOTATIONS),
        ("tests/scorecard/config.yaml", config),
    ] {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    directory
}

fn scorecard(bundle: &Path, arguments: &[&str]) -> Output {
    let parent = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(bundle, parent.path().join("b")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_olmkit"));
    command.arg("scorecard").arg("b").args(arguments);
    command.current_dir(parent.path()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_selected_tests_run_and_all_must_pass() {
    let bundle = bundle(CONFIG);
    let output = scorecard(bundle.path(), &["--selector", "suite=basic"]);
    assert!(output.status.success(), "{output:?}");
    let expected = format!(
        "{}\nImage:      registry.test/mirror/scorecard-test@sha256:2e728c5e67a7f4dec0df157a322dd5671212e8ae60f69137463bd4fdfbff8747\n\
         Entrypoint: [scorecard-test basic-check-spec]\nLabels:\n\t\"suite\":\"basic\"\n\t\"test\":\"basic-check-spec-test\"\n\
         Results:\n\tName: basic-check-spec\n\tState: pass\n\n\n\n",
        "-".repeat(80)
    );
    assert_eq!(text(&output.stdout), expected);

    let output = scorecard(bundle.path(), &["-l", "suite in (olm)"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("\tErrors:\n\t\tOwned CRDs do not have resources specified\n"));

    let output = scorecard(bundle.path(), &["-l", "suite=none"]);
    assert!(output.status.success());
    assert_eq!(text(&output.stdout), "0 tests selected\n");

    let output = scorecard(bundle.path(), &["-l", "suite in"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).starts_with("error: could not parse selector "),
        "{output:?}"
    );
}

#[test]
fn a_test_that_needs_a_cluster_does_not_pass() {
    let bundle = bundle(CONFIG);
    let output = scorecard(bundle.path(), &["-l", "suite=kuttl", "-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let result = &list["items"][0]["status"]["results"][0];
    assert_eq!(result["state"], "error");
    assert_eq!(
        result["errors"][0],
        "not run: without --cluster only the built-in tests run; image quay.io/operator-framework/scorecard-test-kuttl:v1.42.3"
    );
}

#[test]
fn listing_runs_nothing() {
    let bundle = bundle(CONFIG);
    let output = scorecard(bundle.path(), &["--list", "-o", "json"]);
    assert!(output.status.success());
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 3);
    assert!(items.iter().all(|item| item["status"] == serde_json::json!({})));
    // Numbers are converted if a string is expected.
    assert_eq!(items[1]["spec"]["labels"]["number"], "1");
}

#[test]
fn the_configuration_is_where_flag_or_annotations_say() {
    let bundle = bundle("stages: []\n");
    let run = |arguments: &[&str]| scorecard(bundle.path(), arguments);
    assert_eq!(text(&run(&[]).stdout), "0 tests selected\n");
    let output = run(&["--built-in", "--list", "-o", "xunit"]);
    assert_eq!(text(&output.stdout).matches("<testsuite ").count(), 6);
    std::fs::write(bundle.path().join("other.yaml"), CONFIG).unwrap();
    assert_eq!(
        text(&run(&["-c", "b/other.yaml", "-L"]).stdout)
            .matches("Image:")
            .count(),
        3
    );

    let annotations = format!(
        "{ANNOTATIONS}  operators.operatorframework.io.test.mediatype.v1: scorecard+v1\n  operators.operatorframework.io.test.config.v1: mine/\n"
    );
    std::fs::write(bundle.path().join("metadata/annotations.yaml"), annotations).unwrap();
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(
        error.contains("could not find config file b/mine/config.yaml; pass another file with --config"),
        "{error}"
    );
    std::fs::create_dir(bundle.path().join("mine")).unwrap();
    std::fs::write(
        bundle.path().join("mine/config.yaml"),
        "stages:\n- tests:\n  - image: [a]\n",
    )
    .unwrap();
    let error = text(&run(&[]).stderr);
    assert!(
        error.contains("b/mine/config.yaml:3:12: stages[0].tests[0].image failed: "),
        "{error}"
    );
}

#[test]
fn flags_for_pods_are_taken_and_named() {
    let bundle = bundle("stages: []\n");
    let flags = [
        "-w",
        "60s",
        "-n",
        "x",
        "-s",
        "y",
        "-x",
        "-t",
        "out",
        "-b",
        "i",
        "-u",
        "j",
        "--pod-security",
        "restricted",
    ];
    let output = scorecard(bundle.path(), &flags);
    assert!(output.status.success(), "{output:?}");
    assert!(
        text(&output.stderr).starts_with("note: without --cluster no pods are started; ignored: --namespace, "),
        "{output:?}"
    );
}
