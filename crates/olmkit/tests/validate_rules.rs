//! One small valid bundle, changed in one way at a time: each change breaks the rules that are named beside it, no others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

use std::collections::BTreeSet;
use std::path::Path;

use olmkit::bundle::load::{self, Limits, Tree};
use olmkit::validate::{self, Options, Selector, rules};

const CSV: &str = "manifests/demo.clusterserviceversion.yaml";
const CRD: &str = "manifests/demo.example.com_widgets.yaml";
const SERVICE: &str = "manifests/demo-metrics_v1_service.yaml";
const ANNOTATIONS: &str = "metadata/annotations.yaml";
const DIGEST: &str = "@sha256:0000000000000000000000000000000000000000000000000000000000000000";

fn bundle() -> Tree {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/demo-bundle");
    Tree::from_dir(&path, Limits::default()).expect("the committed bundle")
}

fn changed(file: &str, from: &str, to: &str) -> Tree {
    let mut tree = bundle();
    let text = String::from_utf8(tree.file(file).unwrap_or_default().to_vec()).expect("text");
    if from.is_empty() {
        tree.insert(file, format!("{text}{to}").into_bytes());
    } else {
        assert!(text.contains(from), "{file} has no {from:?}");
        tree.insert(file, text.replacen(from, to, 1).into_bytes());
    }
    tree
}

/// The ids of the rules that a bundle breaks, and whether operator-sdk passes it.
fn broken(tree: Tree) -> (BTreeSet<&'static str>, bool) {
    let selector = Selector::parse("suite=operatorframework").expect("selector");
    let outcome = validate::validate(
        &load::read(tree, "demo"),
        &Options {
            extra: true,
            selector,
            ..Options::default()
        },
    );
    (
        outcome.findings().map(|finding| finding.rule).collect(),
        outcome.passed(),
    )
}

#[test]
fn the_unchanged_bundle_is_fine_but_for_its_missing_icon() {
    let (ids, passed) = broken(bundle());
    assert_eq!((ids, passed), (BTreeSet::from(["HUB-7"]), true));
}

#[test]
fn each_change_breaks_its_rules_and_no_others() {
    // File, text, its replacement (an empty text: something is appended), rules that break.
    let changes: &[(&str, &str, &str, &[&str])] = &[
        (ANNOTATIONS, "annotations:", "annotations: []\nx:", &["LOC-1"]),
        (ANNOTATIONS, "manifests/", "../manifests/", &["LOC-5", "META-1"]),
        (ANNOTATIONS, "registry+v1", "plain", &["FMT-7"]),
        (ANNOTATIONS, "alpha,stable", "\"\"", &["FMT-8"]),
        (ANNOTATIONS, "alpha,stable", "alpha", &["CHAN-1"]),
        (ANNOTATIONS, "alpha,stable", "\"alpha, stable\"", &["CHAN-2"]),
        (
            ANNOTATIONS,
            "  operators.operatorframework.io.bundle.channel.default.v1: stable\n",
            "",
            &["CHAN-3"],
        ),
        (ANNOTATIONS, ": demo", ": Demo_1", &["CHAN-4"]),
        (ANNOTATIONS, "metadata/", "meta/", &["META-1"]),
        ("metadata/properties.yaml", "", "properties: {a: b}\n", &["META-2"]),
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
            "manifests/secret.yaml",
            "",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: x}\n",
            &["SEC-1"],
        ),
        (
            SERVICE,
            "  name: demo-metrics",
            "  name: demo-metrics\n  namespace: x",
            &["OBJ-2"],
        ),
        (SERVICE, "", "---\nkind: X\n", &["FILE-1"]),
        (SERVICE, "kind: Service", "kind: Service\nkind: Service", &["FILE-2"]),
        (CRD, "plural: widgets", "plural: Widgets", &["CRD-1", "CRD-9"]),
        (CRD, "scope: Namespaced", "scope: namespaced", &["CRD-4"]),
        (CRD, "storage: true", "storage: 1", &["LOAD-7"]),
        (
            CRD,
            "  name: widgets",
            "  annotations: {cert-manager.io/inject-ca-from: a/b}\n  name: widgets",
            &["CERT-2"],
        ),
        (
            CRD,
            "  scope: Namespaced",
            "  scope: Namespaced\n  conversion:\n    strategy: Webhook\n    webhook:\n      conversionReviewVersions: [v1]\n      clientConfig:\n        service: {name: a, namespace: b}",
            &["HOOK-7"],
        ),
        (
            CSV,
            "version: v1\n      kind: Widget",
            "version: v2\n      kind: Widget",
            &["BND-2", "BND-3", "CSV-9", "CSV-10"],
        ),
        (CSV, "  replaces: demo.v0.0.9", "  replaces: demo.v0.1.0", &["UPG-1"]),
        (CSV, "<0.1.0", "~0.1.0", &["UPG-2"]),
        (CSV, "<0.1.0", "<=0.1.0", &["UPG-3"]),
        (CSV, "  version: 0.1.0", "  version: 0.1.1", &["NAME-1"]),
        (CSV, "olm.skipRange", "olm.skiprange", &["CSV-19"]),
        (CSV, "1.25.0", "v1.25", &["CSV-17", "HUB-11"]),
        (CSV, "    supported: true", "    supported: false", &["CSV-15", "V1-3"]),
        (
            CSV,
            "      - serviceAccountName: demo",
            "      - serviceAccountName: other",
            &["RBAC-1", "RBAC-2"],
        ),
        (CSV, "verbs: [get, list, watch, update]", "verbs: [get]", &["RBAC-3"]),
        (CSV, "resources: [leases]", "resources: [events]", &["RBAC-4"]),
        (
            CSV,
            "clusterPermissions:",
            "permissions:\n      - serviceAccountName: demo\n        rules:\n        - {apiGroups: [\"\"], resources: [nodes], verbs: [get]}\n      clusterPermissions:",
            &["RBAC-5"],
        ),
        (
            CSV,
            "apiGroups: [demo.example.com]\n          resources: [widgets]\n          verbs: [get, list, watch, update]",
            "apiGroups: ['*']\n          resources: ['*']\n          verbs: ['*']",
            &["RBAC-6"],
        ),
        (CSV, "watch, update]", "watch, escalate]", &["RBAC-7"]),
        (
            "manifests/binding.yaml",
            "",
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: a}\nsubjects: [{kind: ServiceAccount, name: a, namespace: b}]\n",
            &["RBAC-8"],
        ),
        (CSV, "deploymentName: demo", "deploymentName: hook", &["HOOK-1"]),
        (CSV, "generateName: vwidget", "generateName: V_widget", &["HOOK-3"]),
        (
            CSV,
            "rules:\n    - apiGroups: [demo.example.com]",
            "rules:\n    - apiGroups: ['*']",
            &["HOOK-4"],
        ),
        (
            CSV,
            "admissionReviewVersions: [v1]",
            "admissionReviewVersions: [v1beta1]",
            &["HOOK-5"],
        ),
        (
            CSV,
            "    sideEffects: None",
            "    sideEffects: None\n    conversionCRDs: [gadgets.demo.example.com]",
            &["HOOK-6"],
        ),
        (
            CSV,
            "              containers:",
            "              volumes: [{name: cert, secret: {secretName: webhook-server-cert}}]\n              containers:",
            &["CERT-1"],
        ),
        (CSV, DIGEST, ":1.0", &["IMG-1"]),
        (CSV, DIGEST, "", &["IMG-2"]),
        (
            CSV,
            "quay.io/example/demo@",
            "https://quay.io/example/demo@",
            &["IMG-3"],
        ),
        (
            CSV,
            "  displayName: Demo",
            "  displayName: Demo\n  relatedImages: [{name: a, image: quay.io/x/a}]",
            &["IMG-4"],
        ),
        (
            CSV,
            "capabilities: Basic",
            "containerImage: quay.io/x/old\n    capabilities: Basic",
            &["IMG-5"],
        ),
        (
            CSV,
            "LOG_LEVEL\n                  value: info",
            "DB_PASSWORD\n                  value: hunter2",
            &["SEC-2"],
        ),
        (CSV, "allowPrivilegeEscalation: false", "privileged: true", &["POD-1"]),
        (CSV, "labels: {app: demo}", "labels: {app: other}", &["POD-2"]),
        (CSV, "requests: {cpu", "limits: {cpu", &["GP-2"]),
        (
            CRD,
            "type: integer",
            "type: integer\n                default: one",
            &["CRD-30"],
        ),
        (
            CRD,
            "            type: object\n            properties:\n              size",
            "            properties:\n              size",
            &["CRD-30"],
        ),
        (
            CRD,
            "type: integer",
            "type: integer\n                x-kubernetes-validations: [{rule: 'self > '}]",
            &["CRD-30"],
        ),
        (
            CRD,
            "type: integer",
            "type: integer\n                x-kubernetes-validations: [{rule: 'self > 1'}]",
            &["EX-1"],
        ),
        (CSV, "\"size\": 1", "\"size\": \"1\"", &["EX-1"]),
        (CSV, "\"size\": 1", "\"sise\": 1", &["EX-2"]),
        (CSV, "\"metadata\": {\"name\": \"a\"}, ", "", &["EX-3"]),
        (
            CSV,
            "      description: A widget",
            "      description: A widget\n      specDescriptors: [{path: size}, {path: spec.size}]",
            &["DESC-1"],
        ),
        (
            CRD,
            "    schema:",
            "    selectableFields: [{jsonPath: .spec.size}]\n    schema:",
            &["KUBE-1"],
        ),
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
    ];
    let mut wrong = Vec::new();
    for (file, from, to, expected) in changes {
        let (mut ids, passed) = broken(changed(file, from, to));
        ids.remove("HUB-7");
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        if ids != expected {
            wrong.push(format!("{file}: {from:?} -> {to:?}: {ids:?} instead of {expected:?}"));
        }
        let own = |id: &&str| rules::find(id).is_some_and(|rule| rule.origin == rules::Origin::Own);
        if ids.iter().all(own) && !passed {
            wrong.push(format!(
                "{file}: {from:?} -> {to:?}: rules of our own changed the verdict"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_finding_tells_the_place_and_the_way_out() {
    let tree = changed(CSV, "1.25.0", "v1.25");
    let outcome = validate::validate(&load::read(tree, "demo"), &Options::default());
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
