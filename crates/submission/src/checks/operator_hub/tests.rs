//! A fixture for each rule, both ways.

use olmkit::diagnostics::Severity;

use super::is_sound;
use crate::checks::fixture::{ANNOTATIONS, CI, CSV, Edit, checks, found, found_with};
use crate::{Options, Suite};

fn errors(edits: &[Edit<'_>]) -> Vec<&'static str> {
    checks(&found(Suite::OperatorHub, edits), Severity::Error)
}

const OLD_CRD: &str = "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata:\n  name: \
                       hellos.example.com\nspec:\n  group: example.com\n  version: v1\n  scope: Namespaced\n  names: {kind: Hello, \
                       listKind: HelloList, plural: hellos, singular: hello}\n";
const CRD: &str = "operators/hello/0.0.1/manifests/hellos.yaml";
const OWNED: Edit<'_> = (
    CSV,
    "customresourcedefinitions: {}",
    "customresourcedefinitions:\n    owned:\n    - {name: hellos.example.com, kind: Hello, version: v1, displayName: Hello, description: Hello.}",
);
const MAX: &str = "operatorhub.io/ui-metadata-max-k8s-version";

#[test]
fn the_sound_operator_has_no_finding() {
    let all = found(Suite::OperatorHub, &[]);
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn each_rule_finds_its_defect_and_nothing_else() {
    let max = |version: &str| format!("capabilities: Basic Install\n    {MAX}: \"{version}\"");
    let (max_121, max_130, max_no) = (max("1.21"), max("1.30"), max("new"));
    let capabilities = "capabilities: Basic Install";
    let package = "package.v1: hello";
    let cases: Vec<(&str, Vec<Edit<'_>>, Vec<&str>)> = vec![
        (
            "package manifests",
            vec![("operators/hello/hello.package.yaml", "", "x")],
            vec!["format"],
        ),
        (
            "a directory of manifests",
            vec![("operators/hello/0.0.2/a.yaml", "", "x")],
            vec!["format"],
        ),
        (
            "other package",
            vec![(ANNOTATIONS, package, "package.v1: other")],
            vec!["package"],
        ),
        (
            "no reviewers",
            vec![(CI, "reviewers:\n- octocat", "reviewers: []")],
            vec!["reviewers"],
        ),
        (
            "no category",
            vec![(CSV, "    categories: Database\n", "")],
            vec!["categories"],
        ),
        (
            "unknown category",
            vec![(CSV, "categories: Database", "categories: Fun")],
            vec!["sdk"],
        ),
        (
            "own category",
            vec![
                (CSV, "categories: Database", "categories: Fun"),
                ("categories.json", "", "{\"categories\": [\"Fun\"]}"),
            ],
            vec![],
        ),
        (
            "not an own category",
            vec![("categories.json", "", "{\"categories\": [\"Fun\"]}")],
            vec!["sdk"],
        ),
        (
            "no maintainers",
            vec![(CSV, "email: ann@example.com", "email: ann")],
            vec!["sdk"],
        ),
        (
            "other version",
            vec![(CSV, "version: 0.0.1", "version: 0.0.2")],
            vec!["version"],
        ),
        (
            "replaces in replaces-mode",
            vec![(CSV, "maturity: alpha", "replaces: hello.v0.0.0")],
            vec![],
        ),
        (
            "replaces without a mode",
            vec![
                (CSV, "maturity: alpha", "replaces: hello.v0.0.0"),
                (CI, "updateGraph: replaces-mode\n", ""),
            ],
            vec!["update-graph"],
        ),
        (
            "skips in semver-mode",
            vec![
                (CSV, "maturity: alpha", "skips: [hello.v0.0.0]"),
                (CI, "replaces-mode", "semver-mode"),
            ],
            vec!["update-graph"],
        ),
        (
            "unused image",
            vec![(CSV, "containerImage: quay.io/example", "containerImage: quay.io/other")],
            vec!["containerImage"],
        ),
        (
            "other label",
            vec![(
                "operators/hello/0.0.1/metadata/labels.yaml",
                "",
                "labels: {com.redhat.openshift.versions: v4.1}\n",
            )],
            vec!["labels"],
        ),
        (
            "same label",
            vec![(
                "operators/hello/0.0.1/metadata/labels.yaml",
                "",
                "labels: {com.redhat.openshift.versions: v4.20, other: x}\n",
            )],
            vec![],
        ),
        (
            "a version that is none",
            vec![(CSV, capabilities, &max_no)],
            vec!["max-k8s-version"],
        ),
        ("a version", vec![(CSV, capabilities, &max_130)], vec![]),
        (
            "removed API",
            vec![(CRD, "", OLD_CRD), OWNED],
            vec!["max-k8s-version", "sdk"],
        ),
        (
            "removed API and too new a version",
            vec![(CRD, "", OLD_CRD), OWNED, (CSV, capabilities, &max_130)],
            vec!["max-k8s-version", "sdk"],
        ),
        (
            "removed API and an old version, for which there is no cluster",
            vec![(CRD, "", OLD_CRD), OWNED, (CSV, capabilities, &max_121)],
            vec!["max-k8s-version", "sdk"],
        ),
        (
            "too old a cluster",
            vec![(CSV, capabilities, &max_121)],
            vec!["max-k8s-version"],
        ),
    ];
    for (name, edits, wanted) in cases {
        let all = found(Suite::OperatorHub, &edits);
        assert_eq!(checks(&all, Severity::Error), wanted, "{name}: {all:#?}");
    }
}

#[test]
fn a_bundle_without_deployments_cannot_be_tested() {
    let edit = (CSV, "      deployments:\n", "      deployments: []\n      other:\n");
    assert!(errors(&[edit]).contains(&"deployments"));
}

#[test]
fn a_dockerfile_with_other_labels_is_a_warning() {
    let dockerfile = "operators/hello/0.0.1/Dockerfile";
    let labels = |channel: &str| {
        format!(
            "FROM scratch\nLABEL operators.operatorframework.io.bundle.channels.v1={channel} \\\n  \
             operators.operatorframework.io.bundle.manifests.v1=\"manifests/\"\n\
             LABEL operators.operatorframework.io.bundle.mediatype.v1=registry+v1\n\
             LABEL operators.operatorframework.io.bundle.metadata.v1=metadata/\n\
             LABEL operators.operatorframework.io.bundle.package.v1=hello\nlabel com.redhat.openshift.versions=v4.20\n"
        )
    };
    let warnings = |channel| {
        checks(
            &found(Suite::OperatorHub, &[(dockerfile, "", &labels(channel))]),
            Severity::Warning,
        )
    };
    assert_eq!(warnings("stable"), [""; 0]);
    assert_eq!(warnings("beta"), ["labels"]);
}

#[test]
fn names_with_other_characters_are_refused() {
    assert!(is_sound("hello-operator_1.0"));
    assert!(!is_sound("hello world") && !is_sound("") && !is_sound("é"));
    assert!(
        errors(&[
            ("operators/hello/0.0 2/manifests/a.yaml", "", ""),
            ("operators/hello/0.0 2/metadata/annotations.yaml", "", "annotations: {}")
        ])
        .contains(&"names")
    );
}

/// The versions that a check of all bundles 0.0.1, 0.0.2 and 0.0.3 reports as stranded. `spec` and `annotations` are
/// lines of the newest one.
fn left_behind(mode: &str, spec: &str, annotations: &str, pull_request: bool) -> Vec<String> {
    let csv = |version: &str, spec: &str, annotations: &str| {
        include_str!("../fixture.yaml")
            .replace("hello.v0.0.1", &format!("hello.v{version}"))
            .replace("version: 0.0.1", &format!("version: {version}"))
            .replace("maturity: alpha", spec)
            .replace(
                "    categories: Database\n",
                &format!("    categories: Database\n{annotations}"),
            )
    };
    let annotations_file = "annotations:\n  operators.operatorframework.io.bundle.package.v1: hello\n  \
                            operators.operatorframework.io.bundle.channels.v1: stable\n";
    let (second, newest) = (
        csv("0.0.2", "replaces: hello.v0.0.1", ""),
        csv("0.0.3", spec, annotations),
    );
    let edits = [
        (CI, "replaces-mode", mode),
        (
            "operators/hello/0.0.2/manifests/hello.clusterserviceversion.yaml",
            "",
            second.as_str(),
        ),
        ("operators/hello/0.0.2/metadata/annotations.yaml", "", annotations_file),
        (
            "operators/hello/0.0.3/manifests/hello.clusterserviceversion.yaml",
            "",
            newest.as_str(),
        ),
        ("operators/hello/0.0.3/metadata/annotations.yaml", "", annotations_file),
    ];
    let options = Options {
        suites: vec![Suite::OperatorHub],
        pull_request,
        ..Options::default()
    };
    let all = found_with(&options, &edits);
    let below = all.iter().filter(|checked| checked.check == "below-head");
    below
        .map(|checked| {
            assert_eq!(checked.finding.severity, Severity::Warning);
            let file = checked.finding.file.as_ref().unwrap().display().to_string();
            file.split('/').nth(2).unwrap().to_owned()
        })
        .collect()
}

#[test]
fn a_bundle_that_no_newer_one_replaces_is_below_the_head() {
    let modes = "replaces-mode";
    // As a patch release of an older minor version.
    assert_eq!(left_behind(modes, "replaces: hello.v0.0.1", "", false), ["0.0.2"]);
    // The release of the head itself strands it.
    assert_eq!(
        left_behind(modes, "replaces: hello.v0.0.1", "", true),
        ["0.0.2", "0.0.3"]
    );
    for (spec, annotations) in [
        ("replaces: hello.v0.0.2", ""),
        ("replaces: hello.v0.0.1\n  skips: [hello.v0.0.2]", ""),
        ("replaces: hello.v0.0.1", "    olm.skipRange: <0.0.3\n"),
    ] {
        assert_eq!(
            left_behind(modes, spec, annotations, true),
            [""; 0],
            "{spec} {annotations}"
        );
    }
    assert_eq!(left_behind("semver-mode", "maturity: alpha", "", true), [""; 0]);
}
