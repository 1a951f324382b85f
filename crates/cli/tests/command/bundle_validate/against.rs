//! `--against`: the effects of an upgrade from an earlier bundle on existing custom resources.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::outputs::{Run, run, validate};
use test_support::demo_bundle::{ANNOTATIONS, CRD, CSV, copy};

/// The bundle as it was before: another name, a lower version.
const EARLIER: [(&str, &str, &str); 3] = [
    (CSV, "name: demo.v0.1.0", "name: demo.v0.0.9"),
    (CSV, "  version: 0.1.0", "  version: 0.0.9"),
    (CSV, "  replaces: demo.v0.0.9", "  replaces: demo.v0.0.8"),
];

fn directory(before: &[(&str, &str, &str)], after: &[(&str, &str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("temporary directory");
    copy(directory.path(), "before", &[&EARLIER, before].concat());
    copy(directory.path(), "demo", after);
    directory
}

fn findings(printed: &Run) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(&printed.out).unwrap_or_else(|error| panic!("{error}: {}", printed.err));
    let findings = report["findings"].as_array().expect("findings").iter();
    findings
        .map(|finding| {
            let text = |key: &str| finding[key].as_str().unwrap_or_default().to_string();
            (text("rule"), text("message"))
        })
        .collect()
}

fn compare(directory: &Path, against: &str) -> Vec<(String, String)> {
    findings(&validate(directory, &["demo", "--against", against, "-o", "json"]))
}

#[test]
fn an_upgrade_that_takes_nothing_away_is_fine() {
    let directory = directory(&[], &[]);
    assert_eq!(compare(directory.path(), "before"), []);
}

#[test]
fn each_loss_is_reported() {
    let two_versions = "  - name: v0\n    served: true\n    storage: false\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}\n  - name: v1\n";
    // A part of the earlier bundle, its change, and the one rule that reports it.
    type Changes<'c> = &'c [(&'c str, &'c str, &'c str)];
    let rows: &[(Changes<'_>, Changes<'_>, &str, &str)] = &[
        (
            &[],
            &[(CRD, "type: integer", "type: integer\n                maximum: 5")],
            "CRD-34",
            "spec.size has maximum 5",
        ),
        (
            &[(CRD, "type: integer", "type: integer\n                default: 3")],
            &[(CRD, "type: integer", "type: integer\n                default: 5")],
            "V1-13",
            "since demo.v0.0.9: OLM v1 blocks the upgrade: v1: ^.spec.size: default: default value changed",
        ),
        (
            &[(
                CRD,
                "type: integer",
                "type: integer\n              colour:\n                type: string",
            )],
            &[],
            "CRD-35",
            "spec.colour was removed",
        ),
        (
            &[(CRD, "  - name: v1\n", two_versions)],
            &[],
            "CRD-32",
            "version v0, which was served, was removed",
        ),
        (
            &[(CRD, "scope: Namespaced", "scope: Cluster")],
            &[],
            "CRD-33",
            "the scope was Cluster, now it is Namespaced",
        ),
        (
            &[(CRD, "demo.example.com", "old.example.com")],
            &[],
            "CRD-31",
            "has widgets.old.example.com, this bundle does not",
        ),
        (
            &[(CSV, "  version: 0.0.9", "  version: 0.2.0")],
            &[],
            "UPG-5",
            "0.1.0 is not higher than 0.2.0",
        ),
        (
            &[
                (CRD, "  - name: v1\n", two_versions),
                (
                    CRD,
                    "  scope: Namespaced",
                    "  scope: Namespaced\n  conversion: {strategy: Webhook}",
                ),
            ],
            &[(CRD, "  - name: v1\n", two_versions)],
            "CRD-36",
            "were converted by a webhook",
        ),
    ];
    for (before, after, rule, words) in rows {
        let directory = directory(before, after);
        let findings = compare(directory.path(), "before");
        assert_eq!(findings.len(), 1, "{rule}: {findings:?}");
        assert!(
            findings[0].0 == *rule && findings[0].1.contains(words),
            "{rule}: {findings:?}"
        );
    }
}

#[test]
fn an_example_of_the_earlier_bundle_stands_for_what_users_have() {
    let directory = directory(
        &[(CSV, "\"size\": 1", "\"size\": 9")],
        &[(CRD, "type: integer", "type: integer\n                maximum: 5")],
    );
    let findings = compare(directory.path(), "before");
    let mut rules: Vec<&str> = findings.iter().map(|(rule, _)| rule.as_str()).collect();
    rules.sort_unstable();
    assert_eq!(rules, ["CRD-34", "EX-4"], "{findings:?}");
    assert!(
        findings
            .iter()
            .any(|(_, message)| message.contains("of demo.v0.0.9 is no longer valid")),
        "{findings:?}"
    );
}

#[test]
fn text_has_the_place_and_a_hint() {
    let directory = directory(
        &[],
        &[(CRD, "type: integer", "type: integer\n                maximum: 5")],
    );
    let printed = validate(directory.path(), &["demo", "--against", "before"]);
    assert_eq!(printed.code, 0);
    for words in [
        "demo/manifests/demo.example.com_widgets.yaml:26:",
        "maximum: 5",
        "OLM then rejects the upgrade",
    ] {
        assert!(printed.out.contains(words), "no {words:?} in {}", printed.out);
    }
    let strict = validate(directory.path(), &["demo", "--against", "before", "--strict"]);
    assert_eq!(strict.code, 1);
}

/// A catalog with the earlier bundle, inline unless `flags` select another format.
fn catalog(directory: &Path, flags: &[&str]) {
    let rendered = run(
        directory,
        &[&["catalog", "render", "before", "-o", "yaml"], flags].concat(),
    );
    assert_eq!(rendered.code, 0, "{}", rendered.err);
    let channel = "schema: olm.package\nname: demo\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: demo\nname: stable\nentries:\n- name: demo.v0.0.9\n";
    fs::create_dir_all(directory.join("catalog")).expect("directory");
    fs::write(
        directory.join("catalog/demo.yaml"),
        format!("{channel}{}", rendered.out),
    )
    .expect("write");
}

#[test]
fn a_catalog_knows_the_bundle_that_is_replaced() {
    let change = (CRD, "type: integer", "type: integer\n                maximum: 5");
    let directory = directory(&[], &[change]);
    catalog(directory.path(), &[]);
    let findings = compare(directory.path(), "catalog");
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].0, "CRD-34");

    copy(
        directory.path(),
        "demo",
        &[
            change,
            (CSV, "  replaces: demo.v0.0.9", "  replaces: demo.v0.0.7"),
            (CSV, "<0.1.0", "<0.0.1"),
        ],
    );
    let findings = compare(directory.path(), "catalog");
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(
        findings[0].0 == "UPG-4" && findings[0].1.contains("demo.v0.0.7"),
        "{findings:?}"
    );

    // Another package of the catalog has nothing to do with it.
    copy(directory.path(), "demo", &[(ANNOTATIONS, ": demo", ": other")]);
    assert_eq!(compare(directory.path(), "catalog"), []);
}

#[test]
fn a_catalog_without_definitions_says_so() {
    let directory = directory(&[], &[]);
    catalog(
        directory.path(),
        &[
            "--migrate-level",
            "bundle-object-to-csv-metadata",
            "--alpha-image-ref-template",
            "quay.io/example/demo-bundle:v{{.Version}}",
        ],
    );
    let findings = compare(directory.path(), "catalog");
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(
        findings[0].0 == "UPG-6" && findings[0].1.contains("--against quay.io/example/demo-bundle:v0.0.9"),
        "{findings:?}"
    );
}

#[test]
fn images_are_compared_with_too() {
    let directory = directory(
        &[],
        &[(CRD, "type: integer", "type: integer\n                maximum: 5")],
    );
    let built = run(
        directory.path(),
        &[
            "image",
            "build",
            "bundle",
            "before",
            "--tag",
            "example.com/demo-bundle:v0.0.9",
            "--output",
            "oci:layout",
        ],
    );
    assert_eq!(built.code, 0, "{}", built.err);
    for against in ["oci:layout", "layout"] {
        let findings = compare(directory.path(), against);
        assert_eq!(findings.len(), 1, "{against}: {findings:?}");
        assert_eq!(findings[0].0, "CRD-34");
    }
}

#[test]
fn unusable_values_of_against_are_reported() {
    let directory = directory(&[(CSV, "kind: ClusterServiceVersion", "kind: Nothing")], &[]);
    fs::create_dir(directory.path().join("empty")).expect("directory");
    for (against, flags, code, words) in [
        ("before", &[][..], 1, "cannot compare with before"),
        ("./nowhere", &[], 1, "./nowhere"),
        ("empty", &[], 1, "no bundles found"),
        ("demo", &["--no-lints"], 2, "--no-lints"),
        ("demo", &["-o", "json-alpha1"], 2, "--strict"),
    ] {
        let printed = validate(directory.path(), &[&["demo", "--against", against], flags].concat());
        assert_eq!(printed.code, code, "{against}: {}{}", printed.out, printed.err);
        assert!(printed.err.contains(words), "{against}: {}", printed.err);
    }
}
