//! Typical broken bundles: the message is sufficient to repair them. Each output is recorded completely.

use std::fs;
use std::path::Path;

use super::outputs::validate;
use test_support::demo_bundle::{ANNOTATIONS, CRD, CSV, folder};

/// The output for the bundle in `demo`, both standard output and standard error.
fn printed(folder: &Path, bundle: &str) -> String {
    let printed = validate(folder, &[bundle]);
    assert_eq!(printed.code, 1, "{}{}", printed.out, printed.err);
    format!("{}{}", printed.out, printed.err)
}

fn broken(file: &str, from: &str, to: &str) -> String {
    printed(folder(&[(file, from, to)]).path(), "demo")
}

#[test]
fn a_quote_that_is_not_closed() {
    insta::assert_snapshot!(broken(CSV, "displayName: Demo", "displayName: \"Demo"));
}

#[test]
fn a_wrong_indentation() {
    insta::assert_snapshot!(broken(CSV, "  displayName: Demo", "   displayName: Demo"));
}

#[test]
fn a_text_in_place_of_a_number() {
    insta::assert_snapshot!(broken(CSV, "replicas: 1", "replicas: \"1\""));
}

#[test]
fn a_missing_name_and_a_missing_field() {
    let folder = folder(&[(CSV, "  name: demo.v0.1.0\n", ""), (CSV, "  displayName: Demo\n", "")]);
    insta::assert_snapshot!(printed(folder.path(), "demo"));
}

#[test]
fn one_definition_in_two_files() {
    let folder = folder(&[]);
    let (from, to) = (
        folder.path().join("demo").join(CRD),
        folder.path().join("demo/manifests/copy.yaml"),
    );
    fs::copy(from, to).expect("copy");
    insta::assert_snapshot!(printed(folder.path(), "demo"));
}

#[test]
fn an_api_version_that_nobody_reads() {
    insta::assert_snapshot!(broken(CRD, "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1alpha1"));
}

#[test]
fn a_readme_among_the_manifests() {
    let folder = folder(&[]);
    fs::write(folder.path().join("demo/manifests/README.md"), "# Demo\n").expect("write");
    insta::assert_snapshot!(printed(folder.path(), "demo"));
}

#[test]
fn examples_with_a_comma_too_many() {
    let from = "alm-examples: '[{\"apiVersion\": \"demo.example.com/v1\", \"kind\": \"Widget\", \"metadata\": {\"name\": \"a\"}, \"spec\": {\"size\": 1}}]'";
    let to = "alm-examples: |-\n      [\n        {\n          \"apiVersion\": \"demo.example.com/v1\",\n          \"kind\": \"Widget\",\n          \"spec\": {\"size\": 1,}\n        }\n      ]";
    insta::assert_snapshot!(broken(CSV, from, to));
}

#[test]
fn an_owned_api_of_another_version() {
    insta::assert_snapshot!(broken(
        CSV,
        "version: v1\n      kind: Widget",
        "version: v2\n      kind: Widget"
    ));
}

#[test]
fn annotations_of_another_layout() {
    insta::assert_snapshot!(broken(ANNOTATIONS, "annotations:", "labels:"));
}

#[test]
fn directories_that_are_not_bundles() {
    let folder = folder(&[]);
    fs::create_dir(folder.path().join("empty")).expect("directory");
    let mut all = String::new();
    for directory in ["empty", "demo/manifests", ".", "./nowhere", "demo/nowhere"] {
        all.push_str(&format!("# {directory}\n{}\n", printed(folder.path(), directory)));
    }
    insta::assert_snapshot!(all);
}
