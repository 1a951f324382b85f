//! The rules of operator-sdk's optional validators, tested as the others are.

use std::collections::{BTreeMap, BTreeSet};

use olmkit::diagnostics::Severity;
use olmkit::validate::{Options, Profile};

use super::changes::{CRD, CSV, Change, SUITE, bundle, changed, ids, options, outcome, wrong};

/// The suite.
pub const CHANGES: &[Change] = &[
    (CSV, "    name: Example", "    url: https://redhat.com", &["HUB-1"]),
    (
        CSV,
        "  displayName: Demo",
        "  displayName: Demo\n  maintainers: [{name: a}]",
        &["HUB-2"],
    ),
    (
        CSV,
        "  displayName: Demo",
        "  displayName: Demo\n  maintainers: [{name: a, email: nobody}]",
        &["HUB-3"],
    ),
    (
        CSV,
        "  displayName: Demo",
        "  displayName: Demo\n  links: [{name: a}]",
        &["HUB-4"],
    ),
    (
        CSV,
        "  displayName: Demo",
        "  displayName: Demo\n  links: [{name: a, url: www.example.com}]",
        &["HUB-5"],
    ),
    (CSV, "  version: 0.1.0\n", "", &["HUB-6"]),
    (
        CSV,
        "  displayName: Demo",
        "  displayName: Demo\n  icon: [{base64data: R0lGODlh, mediatype: image/gif}, {base64data: R0lGODlh, mediatype: image/gif}]",
        &["HUB-8"],
    ),
    (
        CSV,
        "  displayName: Demo",
        "  displayName: Demo\n  icon: [{mediatype: image/gif}]",
        &["CSV-23", "HUB-9"],
    ),
    (
        CSV,
        "  displayName: Demo",
        "  displayName: Demo\n  icon: [{base64data: R0lGODlh, mediatype: image/tiff}]",
        &["HUB-10", "ICON-1"],
    ),
    (
        CSV,
        "  displayName: Demo",
        "  displayName: Demo\n  icon: []",
        &["HUB-13"],
    ),
    (CSV, "Basic Install", "Basic", &["CAP-1"]),
    (
        CSV,
        "    capabilities:",
        "    categories: Toys\n    capabilities:",
        &["CAT-1"],
    ),
    (
        CRD,
        "apiVersion: apiextensions.k8s.io/v1\n",
        "apiVersion: apiextensions.k8s.io/v1beta1\n",
        &["API-22", "CRD-14", "CRD-7"],
    ),
    (
        "manifests/budget.yaml",
        "",
        "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n",
        &["API-25"],
    ),
    (
        CSV,
        "        - apiGroups: [coordination.k8s.io]",
        "        - {apiGroups: [policy], resources: [poddisruptionbudgets], verbs: [get]}\n        - apiGroups: [coordination.k8s.io]",
        &["API-25-RBAC"],
    ),
    (
        "manifests/scaler.yaml",
        "",
        "apiVersion: autoscaling/v2beta2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\n",
        &["API-26", "OBJ-1"],
    ),
    (
        CSV,
        "      deployments:\n",
        "      deployment:\n",
        &["CSV-18", "GP-1", "HOOK-1", "FILE-3"],
    ),
    (CSV, "      description: A widget\n", "", &["GP-3"]),
    (
        CSV,
        "        - apiGroups: [coordination.k8s.io]",
        "        - {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [create]}\n        - apiGroups: [coordination.k8s.io]",
        &["GP-5"],
    ),
    (CSV, "name: demo.v0.1.0", "name: demo.v0.1", &["GP-6"]),
    (CSV, "name: demo.v0.1.0", "name: demo-0.1.0", &["GP-7"]),
];

#[test]
fn each_change_breaks_its_rules_and_no_others() {
    let wrong = wrong(CHANGES, SUITE);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_picture_of_a_known_type_is_fine() {
    let tree = changed(
        CSV,
        "  displayName: Demo",
        "  displayName: Demo\n  icon: [{base64data: R0lGODlh, mediatype: image/gif}]",
    );
    assert_eq!(ids(&outcome(tree, &options(SUITE))), BTreeSet::new());
}

#[test]
fn the_deprecated_hub_validator_warns_that_it_is_deprecated() {
    let found = ids(&outcome(bundle(), &options("name=operatorhub")));
    assert_eq!(found, BTreeSet::from(["HUB-0", "HUB-7"]));
}

#[test]
fn removed_apis_are_errors_from_the_named_release_on() {
    let tree = changed(
        "manifests/budget.yaml",
        "",
        "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n",
    );
    let with = |version: &str, minimum: &str| {
        let mut tree = tree.clone();
        let text = String::from_utf8(tree.file(CSV).expect("file").to_vec()).expect("text");
        tree.insert(CSV, text.replace("1.25.0", minimum).into_bytes());
        let options = Options {
            values: BTreeMap::from([("k8s-version".to_string(), version.to_string())]),
            ..options("name=alpha-deprecated-apis")
        };
        let outcome = outcome(tree, &options);
        (outcome.passed(), ids(&outcome))
    };
    assert_eq!(with("1.24", "1.24.0"), (true, BTreeSet::from(["API-25"])));
    assert_eq!(with("1.25", "1.24.0"), (false, BTreeSet::from(["API-25"])));
    assert_eq!(with("1.24", "1.25.0"), (false, BTreeSet::from(["API-25"])));
    assert_eq!(with("new", "1.24.0"), (false, BTreeSet::from(["API-1", "API-25"])));
    assert_eq!(
        with("1.24", "new"),
        (false, BTreeSet::from(["API-2", "API-25", "CSV-17"]))
    );
}

#[test]
fn another_list_of_categories_is_read_from_a_file() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let file = folder.path().join("categories.json");
    std::fs::write(&file, r#"{"categories": ["Toys"]}"#).expect("write");
    let with = |file: &std::path::Path| Options {
        categories_file: Some(file.display().to_string()),
        ..options("name=categories")
    };
    let tree = changed(CSV, "    capabilities:", "    categories: Toys\n    capabilities:");
    assert_eq!(ids(&outcome(tree.clone(), &with(&file))), BTreeSet::new());
    assert_eq!(
        ids(&outcome(tree.clone(), &with(&folder.path().join("none")))),
        BTreeSet::from(["CAT-2"])
    );
    assert_eq!(
        ids(&outcome(tree, &options("name=categories"))),
        BTreeSet::from(["CAT-1"])
    );
}

#[test]
fn a_bundle_with_removed_apis_says_which_openshift_it_is_for() {
    let definition = |tree: &mut olmkit::bundle::load::Tree| {
        let text = String::from_utf8(tree.file(CRD).expect("file").to_vec()).expect("text");
        let old = text.replace("apiextensions.k8s.io/v1\n", "apiextensions.k8s.io/v1beta1\n");
        tree.insert(CRD, old.into_bytes());
    };
    let folder = tempfile::tempdir().expect("temporary directory");
    let dockerfile = folder.path().join("bundle.Dockerfile");
    let community = |properties: &str, label: &str| {
        let mut tree = changed(
            CSV,
            "    capabilities:",
            &format!("    olm.properties: '{properties}'\n    capabilities:"),
        );
        definition(&mut tree);
        std::fs::write(&dockerfile, format!("FROM scratch\nLABEL {label}\n")).expect("write");
        let options = Options {
            values: BTreeMap::from([("index-path".to_string(), dockerfile.display().to_string())]),
            lints: false,
            ..options("name=community")
        };
        let mut found = ids(&outcome(tree, &options));
        found.retain(|id| id.starts_with("COM"));
        found
    };
    let fine = r#"[{"type": "olm.maxOpenShiftVersion", "value": "4.8"}]"#;
    let late = r#"[{"type": "olm.maxOpenShiftVersion", "value": "4.9"}]"#;
    let range = "com.redhat.openshift.versions=v4.5-v4.8";
    assert_eq!(community(fine, range), BTreeSet::new());
    assert_eq!(community(late, range), BTreeSet::from(["COM-1"]));
    assert_eq!(
        community(fine, "com.redhat.openshift.versions=v4.5-v4.9"),
        BTreeSet::from(["COM-2"])
    );
    assert_eq!(community("[]", "nothing=here"), BTreeSet::from(["COM-1", "COM-2"]));
}

#[test]
fn the_next_profile_counts_fewer_permissions_as_removed() {
    let tree = changed(
        CSV,
        "        - apiGroups: [coordination.k8s.io]",
        "        - {apiGroups: [policy], resources: [poddisruptionbudgets], verbs: [get]}\n        - apiGroups: [coordination.k8s.io]",
    );
    let next = Options {
        profile: Profile::Api045,
        ..options("name=alpha-deprecated-apis")
    };
    assert_eq!(ids(&outcome(tree, &next)), BTreeSet::new());
}

/// operator-sdk warns about six kinds of resources that still exist.
#[test]
fn permissions_for_resources_that_exist_are_an_info_and_one_for_removed_ones_a_warning() {
    let shown = |resources: &str| {
        let from = "        - apiGroups: [coordination.k8s.io]";
        let rule = format!("        - {{apiGroups: [policy, batch], resources: [{resources}], verbs: [get]}}\n{from}");
        let outcome = outcome(changed(CSV, from, &rule), &options(SUITE));
        let found: Vec<_> = outcome
            .findings()
            .filter(|finding| finding.rule == "API-25-RBAC")
            .cloned()
            .collect();
        let [finding] = found.as_slice() else {
            panic!("{found:#?}")
        };
        let is_reported = |output: &olmkit::validate::Output| output.message.contains("removed in v1.25");
        assert!(outcome.passed() && outcome.outputs().iter().any(is_reported));
        finding.clone()
    };
    let finding = shown("poddisruptionbudgets, cronjobs");
    assert_eq!(finding.severity, Severity::Info);
    assert!(
        finding
            .message
            .starts_with("operator-sdk warns about permissions for cronjobs, poddisruptionbudgets. Nothing is wrong:"),
        "{}",
        finding.message
    );
    assert_eq!(
        finding.path.as_deref(),
        Some("spec.install.spec.clusterPermissions[0].rules[1]")
    );
    let finding = shown("podsecuritypolicies, cronjobs");
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding.message.contains("removed podsecuritypolicies"),
        "{}",
        finding.message
    );
}

/// The validators of operator-sdk repeat each other in its own output, not in ours.
#[test]
fn a_missing_minimum_version_is_shown_once_and_reported_as_operator_sdk_does() {
    let outcome = outcome(changed(CSV, "  minKubeVersion: 1.25.0\n", ""), &options(SUITE));
    let about = |text: &str| text.contains("minKubeVersion");
    assert_eq!(outcome.findings().filter(|finding| about(&finding.message)).count(), 1);
    assert_eq!(
        outcome.outputs().iter().filter(|output| about(&output.message)).count(),
        2
    );
}
