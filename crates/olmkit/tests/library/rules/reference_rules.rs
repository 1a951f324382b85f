//! operator-sdk's rules of a default run: one small valid bundle, changed in one way at a time. Each change must break
//! exactly the listed rules.

use std::collections::BTreeSet;
use std::path::Path;

use olmkit::validate::{Options, Profile};

use super::changes::{
    ANNOTATIONS, CRD, CSV, Change, REMOVED, SERVICE, SUITE, bundle, changed, ids, options, outcome, wrong,
};

/// Locations and contents of the annotations, the manifests and the metadata.
pub const FILES: &[Change] = &[
    (ANNOTATIONS, "annotations:", "annotations: []\nx:", &["LOC-1"]),
    (ANNOTATIONS, "manifests/", "../manifests/", &["LOC-5", "META-1"]),
    (ANNOTATIONS, "registry+v1", "plain", &["FMT-7"]),
    (ANNOTATIONS, "alpha,stable", "\"\"", &["FMT-8"]),
    ("metadata/empty.yaml", "", "# nothing\n", &["FMT-10"]),
    (
        "metadata/dependencies.yaml",
        "",
        "dependencies:\n- type: olm.package\n  value: {packageName: a, version: ^1.0}\n",
        &["DEP-7", "V1-2"],
    ),
    ("manifests/README.md", "", "text\n", &["LOAD-5"]),
    ("manifests/.gitkeep", "", "", &["LOAD-4"]),
    ("manifests/crds/a.yaml", "", "", &["LOAD-3"]),
    (
        "manifests/namespace.yaml",
        "",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
        &["OBJ-1"],
    ),
    (
        SERVICE,
        "  name: demo-metrics",
        "  name: demo-metrics\n  namespace: x",
        &["OBJ-2"],
    ),
    (CRD, "plural: widgets", "plural: Widgets", &["CRD-1", "CRD-9"]),
    (CRD, "scope: Namespaced", "scope: namespaced", &["CRD-4"]),
    (CRD, "storage: true", "storage: 1", &["LOAD-7"]),
    (
        CSV,
        "version: v1\n      kind: Widget",
        "version: v2\n      kind: Widget",
        &["BND-2", "BND-3", "CSV-9", "CSV-10"],
    ),
    (CSV, "olm.skipRange", "olm.skiprange", &["CSV-19"]),
    (CSV, "1.25.0", "v1.25", &["CSV-17"]),
    (CSV, "    supported: true", "    supported: false", &["CSV-15", "V1-3"]),
    (CSV, "requests: {cpu", "limits: {cpu", &["GP-2"]),
    (
        "manifests/budget.yaml",
        "",
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n",
        &[],
    ),
    (
        CSV,
        "  displayName: Demo",
        "  displayName: Demo\n  apiservicedefinitions: {owned: [{group: a.b, version: v1, kind: A, name: as}]}",
        &["CSV-10", "V1-1"],
    ),
    (ANNOTATIONS, "", REMOVED, &["LOC-3"]),
    (ANNOTATIONS, "manifests/", "elsewhere/", &["LOC-6", "LOAD-1", "META-1"]),
    (CSV, "kind: ClusterServiceVersion", "kind: Subscription", &["LOAD-1"]),
    (
        "manifests/annotations.yaml",
        "",
        "annotations: [a]\n",
        &["LOAD-2", "LOAD-5"],
    ),
    (
        "manifests/other.yaml",
        "",
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: other.v1.0.0}\n",
        &["LOAD-6"],
    ),
    (CRD, "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v2", &["LOAD-8"]),
    (ANNOTATIONS, "mediatype.v1", "mediatype.v2", &["FMT-6", "FMT-7"]),
    (
        ANNOTATIONS,
        "default.v1: stable",
        "default.v1: \"\"",
        &["FMT-9", "CHAN-3"],
    ),
    (
        ANNOTATIONS,
        "  operators.operatorframework.io.bundle.channels.v1: alpha,stable\n",
        "",
        &["FMT-6", "FMT-8"],
    ),
];

/// The entries of metadata/dependencies.yaml.
pub const DEPENDENCIES: &[(&str, &str)] = &[
    ("{type: olm.crd, value: {}}", "DEP-1"),
    ("{type: olm.gvk, value: {version: v1, kind: A}}", "DEP-2"),
    ("{type: olm.gvk, value: {group: a.b, kind: A}}", "DEP-3"),
    ("{type: olm.gvk, value: {group: a.b, version: v1}}", "DEP-4"),
    ("{type: olm.package, value: {version: 1.0.0}}", "DEP-5"),
    ("{type: olm.package, value: {packageName: a}}", "DEP-6"),
    ("{type: olm.package, value: {packageName: a, version: ^1.0}}", "DEP-7"),
    ("{type: olm.label, value: {}}", "DEP-8"),
    ("{type: olm.constraint, value: {all: {constraints: []}}}", "DEP-9"),
    ("{type: olm.constraint, value: {cel: {rule: \"\"}}}", "DEP-10"),
    ("{type: olm.constraint, value: {cel: {rule: \"1 + 1\"}}}", "DEP-11"),
];

/// The manifests.
pub const MANIFESTS: &[Change] = &[
    (
        "manifests/again.yaml",
        "",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.demo.example.com}\nspec:\n  group: demo.example.com\n  names: {kind: Widget, plural: widgets}\n  scope: Namespaced\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]\n",
        &["BND-1"],
    ),
    (
        "manifests/account.yaml",
        "",
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: demo}\n",
        &["BND-4"],
    ),
    (CSV, "name: demo.v0.1.0", "name: Demo.v0.1.0", &["CSV-1"]),
    (CSV, "replaces: demo.v0.0.9", "replaces: Demo.v0.0.9", &["CSV-2"]),
    (
        CSV,
        "  annotations:\n    alm-examples: '[{\"apiVersion\": \"demo.example.com/v1\", \"kind\": \"Widget\", \"metadata\": {\"name\": \"a\"}, \"spec\": {\"size\": 1}}]'\n    capabilities: Basic Install\n    olm.skipRange: <0.1.0\n",
        "",
        &["CSV-3"],
    ),
    (CSV, "alm-examples:", "alm-exemples:", &["CSV-4"]),
    (
        CSV,
        "    capabilities: Basic",
        "    olm.examples: '[]'\n    capabilities: Basic",
        &["CSV-5"],
    ),
    (CSV, "'[{\"apiVersion\"", "'[{apiVersion\"", &["CSV-6"]),
    (CSV, "\"kind\": \"Widget\"", "\"kind\": \"\"", &["CSV-7"]),
    (
        CSV,
        "- name: widgets.demo.example.com",
        "- name: widgets",
        &["BND-2", "BND-3", "CSV-8", "CSV-9"],
    ),
    (
        CSV,
        "\"kind\": \"Widget\"",
        "\"kind\": \"Gadget\"",
        &["CSV-9", "CSV-10"],
    ),
    (
        CSV,
        "  installModes:\n  - type: OwnNamespace\n    supported: false\n  - type: SingleNamespace\n    supported: false\n  - type: MultiNamespace\n    supported: false\n  - type: AllNamespaces\n    supported: true\n",
        "",
        &["CSV-12"],
    ),
    (
        CSV,
        "  - type: OwnNamespace\n    supported: false\n",
        "  - type: OwnNamespace\n    supported: true\n",
        &[],
    ),
    (CSV, "  minKubeVersion: 1.25.0\n", "", &["CSV-16"]),
    (CSV, "  displayName: Demo\n", "", &["CSV-18"]),
    (
        CSV,
        "    capabilities: Basic",
        "    olm.properties: '[]'\n    capabilities: Basic",
        &["CSV-20"],
    ),
    (CSV, "apiVersion: operators.coreos.com/v1alpha1\n", "", &["CSV-21"]),
    (
        CRD,
        "  name: widgets.demo.example.com",
        "  name: gadgets.demo.example.com",
        &["CRD-1"],
    ),
    (CRD, "  name: widgets", "  namespace: x\n  name: widgets", &["CRD-2"]),
    (
        CRD,
        "  group: demo.example.com",
        "  group: demo",
        &["BND-2", "BND-3", "CRD-1", "CRD-3"],
    ),
    (
        CRD,
        "  - name: v1\n",
        "  - name: V1\n",
        &["BND-2", "BND-3", "CRD-5", "EX-3"],
    ),
    (CRD, "storage: true", "storage: false", &["CRD-7"]),
    (CRD, "    listKind: WidgetList", "    listKind: Widget", &["CRD-9"]),
    (
        CRD,
        "    schema:\n",
        "    additionalPrinterColumns: [{name: a, type: text, jsonPath: .spec.size}]\n    schema:\n",
        &["CRD-10"],
    ),
    (
        CRD,
        "    schema:\n",
        "    subresources: {scale: {specReplicasPath: .status.size, statusReplicasPath: .status.size}}\n    schema:\n",
        &["CRD-11"],
    ),
    (
        CRD,
        "  scope: Namespaced",
        "  scope: Namespaced\n  conversion: {strategy: Automatic}",
        &["CRD-12"],
    ),
    (
        CRD,
        "  scope: Namespaced",
        "  scope: Namespaced\n  preserveUnknownFields: true",
        &["CRD-14"],
    ),
    (
        CRD,
        "    schema:\n",
        "    selectableFields: [{jsonPath: .spec.none}]\n    schema:\n",
        &["CRD-19", "KUBE-1"],
    ),
    (
        CRD,
        "    schema:\n",
        "    deprecationWarning: old\n    schema:\n",
        &["CRD-20"],
    ),
];

#[test]
fn each_change_of_files_breaks_its_rules_and_no_others() {
    let wrong = wrong(FILES, SUITE);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_change_of_a_manifest_breaks_its_rules_and_no_others() {
    let wrong = wrong(MANIFESTS, SUITE);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_wrong_dependency_breaks_its_own_rule() {
    for (entry, rule) in DEPENDENCIES {
        let mut tree = bundle();
        tree.insert(
            "metadata/dependencies.yaml",
            format!("dependencies:\n- {entry}\n").into_bytes(),
        );
        let outcome = outcome(tree, &options(""));
        let mut found = ids(&outcome);
        // OLM v1 rejects entries of these types, even if they have other errors.
        let is_known = ["olm.gvk", "olm.package", "olm.constraint"]
            .iter()
            .any(|kind| entry.contains(kind));
        assert_eq!(found.remove("V1-2"), is_known, "{entry}");
        assert_eq!(found, BTreeSet::from([*rule]), "{entry}");
        assert!(!outcome.passed(), "{entry}");
    }
}

/// A conversion webhook of an operator that can be installed for one namespace.
#[test]
fn conversion_needs_all_namespaces_only() {
    let mut tree = changed(
        CSV,
        "    sideEffects: None",
        "    sideEffects: None\n    conversionCRDs: [widgets.demo.example.com]",
    );
    assert_eq!(ids(&outcome(tree.clone(), &options(""))), BTreeSet::new());
    let text = String::from_utf8(tree.file(CSV).expect("file").to_vec()).expect("text");
    let both = text.replacen("supported: false", "supported: true", 1);
    tree.insert(CSV, both.into_bytes());
    assert_eq!(ids(&outcome(tree, &options(""))), BTreeSet::from(["CSV-14"]));
}

/// `k8s.io` belongs to Kubernetes.
#[test]
fn a_group_of_kubernetes_needs_an_approval() {
    let mut tree = bundle();
    for file in [CRD, CSV] {
        let text = String::from_utf8(tree.file(file).expect("file").to_vec()).expect("text");
        tree.insert(file, text.replace("demo.example.com", "demo.k8s.io").into_bytes());
    }
    assert_eq!(ids(&outcome(tree, &options(""))), BTreeSet::from(["CRD-18"]));
}

#[test]
fn the_next_profile_has_three_rules_more() {
    let next = Options {
        profile: Profile::Api045,
        ..options("")
    };
    for (from, to, rule) in [
        ("  version: 0.1.0", "  version: 0.1.0\n  release: '1'", "BND-7"),
        (
            "  displayName: Demo",
            "  displayName: Demo\n  relatedImages: [{name: a, image: ''}]",
            "BND-8",
        ),
        (
            "  displayName: Demo",
            "  displayName: Demo\n  relatedImages: [{name: a, image: 'A B'}]",
            "BND-9",
        ),
    ] {
        let tree = changed(CSV, from, to);
        assert!(
            ids(&outcome(tree.clone(), &next)).contains(rule),
            "{rule}: {:?}",
            ids(&outcome(tree.clone(), &next))
        );
        assert!(!ids(&outcome(tree, &options(""))).contains(rule), "{rule}");
    }
}

#[test]
fn a_finding_has_a_place_and_a_hint() {
    let tree = changed(CSV, "1.25.0", "v1.25");
    let outcome = outcome(tree, &Options::default());
    let finding = outcome
        .findings()
        .find(|finding| finding.rule == "CSV-17")
        .expect("finding");
    assert_eq!(finding.file.as_deref(), Some(Path::new(CSV)));
    assert_eq!(
        finding.position.map(|position| (position.line, position.column)),
        Some((13, 19))
    );
    assert_eq!(finding.path.as_deref(), Some("spec.minKubeVersion"));
    assert!(finding.hint.as_deref().is_some_and(|hint| hint.contains("1.25.0")));
    let text = "Error: Value : (demo.v0.1.0) csv.Spec.MinKubeVersion has an invalid value: v1.25";
    assert_eq!(
        outcome.outputs().first().map(|output| output.message.as_str()),
        Some(text)
    );
}
