//! Fixes: each one on a bundle that has the defect, and all of them on real bundles.

use std::path::{Path, PathBuf};

use olmkit::bundle::load::{Limits, Tree};
use olmkit::fix::{Fixed, Options, fix};
use test_support::corpus;

/// The safe fixes of `scorecard --fix`.
const SAFE: Options = Options {
    unsafe_fixes: false,
    scorecard: true,
};

/// All fixes.
const ALL: Options = Options {
    unsafe_fixes: true,
    scorecard: true,
};

const CSV: &str = "apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: demo.v0.0.1 # the name
  annotations:
    # what users see first
    alm-examples: |-
      [
        {
          \"apiVersion\": \"example.com/v1\",
          \"kind\": \"Widget\",
          \"metadata\": {\"name\": \"w\"},
          \"spec\": {\"size\": 1},
          \"status\": {\"ready\": true}
        }
      ]
    capabilities: basic install
    categories: \"networking,Data base\"   # two
spec:
  displayName: Demo
  version: 0.0.1
  minKubeVersion: 1.25.0
  installModes:
  - {type: AllNamespaces, supported: true}
  customresourcedefinitions:
    owned:
    # the widget
    - kind: Widget
      name: widgets.example.com
      version: v1
      # behind it
    - kind: Gadget
      name: gadgets.example.com
      version: v1
      description: |
        Gadgets.

        # no comment
      displayName: Gadget

  description: A demo
  install:
    strategy: deployment
    spec:
      clusterPermissions:
      - serviceAccountName: demo
        rules:
        - apiGroups: [apps]
          resources: [deployments]
          verbs: ['*']
      deployments:
      - name: demo
        spec:
          selector: {matchLabels: {a: b}}
          template:
            metadata: {labels: {a: b}}
            spec:
              serviceAccountName: demo
              containers:
              - name: manager
                image: example.com/demo:v1 # pinned later
";

const ANNOTATIONS: &str = "annotations:
  operators.operatorframework.io.bundle.package.v1: demo
  operators.operatorframework.io.bundle.channels.v1: alpha
";

fn crd(kind: &str) -> String {
    let plural = format!("{}s", kind.to_lowercase());
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {plural}.example.com
spec:
  group: example.com
  names: {{kind: {kind}, listKind: {kind}List, plural: {plural}, singular: {}}}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {{status: {{}}}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size:
                description: |-
                  How many there
                  are. At least one.
                type: integer
                minimum: 1
          status:
            type: object
            properties:
              ready:
                type: boolean
",
        kind.to_lowercase()
    )
}

fn bundle(csv: &str) -> Tree {
    let widget = crd("Widget").replace("  scope: Namespaced\n", "  scope: Namespaced  \n");
    Tree::from_files([
        ("manifests/demo.clusterserviceversion.yaml", csv.into()),
        ("manifests/widgets.yaml", widget.trim_end().into()),
        ("manifests/gadgets.yaml", crd("Gadget").into_bytes()),
        ("metadata/annotations.yaml", ANNOTATIONS.into()),
    ])
}

fn titles(fixed: &Fixed) -> Vec<&str> {
    fixed.made.iter().map(|fix| fix.title.as_str()).collect()
}

fn after<'f>(fixed: &'f Fixed, file: &str) -> &'f str {
    let found = fixed.files.iter().find(|other| other.path.ends_with(file));
    &found.unwrap_or_else(|| panic!("{file} is as it was: {fixed:#?}")).after
}

/// The tree with the fixes, after verifying that a second run changes nothing.
fn again(tree: &Tree, fixed: &Fixed, options: Options) {
    let mut tree = tree.clone();
    for file in &fixed.files {
        tree.insert(&file.path, file.after.clone().into_bytes());
    }
    let second = fix(&tree, "bundle", options);
    assert_eq!((second.files, second.made), (Vec::new(), Vec::new()));
}

#[test]
fn safe_fixes_change_what_they_name_and_nothing_else() {
    let tree = bundle(CSV);
    let fixed = fix(&tree, "bundle", SAFE);
    assert_eq!(
        titles(&fixed),
        [
            "remove trailing spaces, end the file with a line end",
            "set the annotation operators.operatorframework.io.bundle.mediatype.v1 to registry+v1",
            "set the annotation operators.operatorframework.io.bundle.manifests.v1 to manifests/",
            "set the annotation operators.operatorframework.io.bundle.metadata.v1 to metadata/",
            "spell capabilities as in \"Basic Install\"",
            "spell categories as in \"Networking, Database\"",
            "add a spec descriptor for size of Widget v1",
            "add a status descriptor for ready of Widget v1",
        ],
        "{fixed:#?}"
    );
    assert_eq!(fixed.given_up, []);
    assert_eq!(after(&fixed, "widgets.yaml"), crd("Widget"));
    let expected = CSV
        .replace("capabilities: basic install", "capabilities: Basic Install")
        .replace("\"networking,Data base\"", "\"Networking, Database\"")
        .replace(
            "      name: widgets.example.com\n      version: v1\n",
            "      name: widgets.example.com
      specDescriptors:
      - description: How many there are.
        displayName: Size
        path: size
      statusDescriptors:
      - displayName: Ready
        path: ready
      version: v1
",
        );
    assert_eq!(after(&fixed, "clusterserviceversion.yaml"), expected);
    let expected = "annotations:
  operators.operatorframework.io.bundle.package.v1: demo
  operators.operatorframework.io.bundle.channels.v1: alpha
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
";
    assert_eq!(after(&fixed, "annotations.yaml"), expected);
    again(&tree, &fixed, SAFE);
    assert!(
        fixed.only_unsafe.iter().all(|fix| !fix.is_safe) && fixed.only_unsafe.len() == 4,
        "{fixed:#?}"
    );
}

#[test]
fn validation_adds_no_descriptors_that_only_scorecard_reports() {
    let fixed = fix(&bundle(CSV), "bundle", Options::default());
    let adds_descriptors = |title: &&str| title.contains("descriptor");
    assert!(!titles(&fixed).iter().any(adds_descriptors), "{fixed:#?}");
    assert_eq!(fixed.made.len(), 6, "{fixed:#?}");
}

#[test]
fn a_fix_that_is_not_made_has_one_reason() {
    let reasons = |csv: &str| -> Vec<String> {
        let fixed = fix(&bundle(csv), "bundle", Options::default());
        fixed
            .given_up
            .iter()
            .map(|given_up| given_up.reason.to_string())
            .collect()
    };
    assert_eq!(reasons(CSV), [""; 0]);
    let json = serde_json::json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "demo.v0.0.1", "annotations": {"capabilities": "basic install"}},
        "spec": {"displayName": "Demo", "version": "0.0.1", "minKubeVersion": "1.25.0"},
    });
    assert_eq!(
        reasons(&json.to_string()),
        ["the file cannot be changed in place: it is JSON"]
    );
    assert_eq!(
        reasons(&CSV.replace("  displayName: Demo\n", "  displayName: Demo\n  displayName: Demo\n")),
        ["the file cannot be changed in place: it contains a key twice"; 2]
    );
}

#[test]
fn a_version_of_kubernetes_becomes_three_numbers() {
    let tree = bundle(&CSV.replace("minKubeVersion: 1.25.0", "minKubeVersion: v1.25 # oldest"));
    let fixed = fix(&tree, "bundle", Options::default());
    assert!(titles(&fixed).contains(&"write minKubeVersion as 1.25.0"), "{fixed:#?}");
    assert!(after(&fixed, "clusterserviceversion.yaml").contains("  minKubeVersion: 1.25.0 # oldest\n"));
    again(&tree, &fixed, Options::default());
}

#[test]
fn unsafe_fixes_make_examples_resources_and_security_contexts() {
    let tree = bundle(CSV);
    let options = ALL;
    let fixed = fix(&tree, "bundle", options);
    assert_eq!(fixed.given_up, [], "{fixed:#?}");
    let csv = after(&fixed, "clusterserviceversion.yaml");
    for part in [
        "          \"status\": {\"ready\": true}
        },
        {
          \"apiVersion\": \"example.com/v1\",
          \"kind\": \"Gadget\",
          \"metadata\": {
            \"name\": \"gadget-sample\"
          },
          \"spec\": {
            \"size\": 1
          }
        }
      ]
    capabilities:",
        "    - kind: Gadget
      name: gadgets.example.com
      version: v1
      description: |
        Gadgets.

        # no comment
      displayName: Gadget
      resources:
      - kind: Deployment
        name: \"\"
        version: v1
      specDescriptors:
      - description: How many there are.
        displayName: Size
        path: size

  description: A demo\n",
        "              - name: manager
                image: example.com/demo:v1 # pinned later
                securityContext:
                  allowPrivilegeEscalation: false
                  capabilities:
                    drop:
                    - ALL\n",
        "              securityContext:
                runAsNonRoot: true
                seccompProfile:
                  type: RuntimeDefault\n",
    ] {
        assert!(csv.contains(part), "{part}\nis not in\n{csv}");
    }
    again(&tree, &fixed, options);
}

#[test]
fn files_in_other_forms_are_left_alone() {
    let json = serde_json::to_string(&serde_yaml_value(CSV)).unwrap();
    let two = format!("{CSV}---\nkind: Other\n");
    for csv in [json, two] {
        let fixed = fix(&bundle(&csv), "bundle", ALL);
        let changed = fixed
            .files
            .iter()
            .any(|file| file.path.contains("clusterserviceversion"));
        assert!(!changed, "{fixed:#?}");
    }
}

fn serde_yaml_value(text: &str) -> serde_json::Value {
    olmkit::yaml::parse(text.as_bytes()).unwrap().to_json().unwrap()
}

/// Over every eighth of the recorded bundles, or over all below the directory `OLMKIT_FIX_BUNDLES`: no new finding, no
/// worse result, no lost comment, and a second run changes nothing.
#[test]
fn fixes_of_real_bundles_prove_themselves() {
    let bundles = match std::env::var_os("OLMKIT_FIX_BUNDLES") {
        Some(folder) => bundles_below(Path::new(&folder)),
        None => {
            let Some(folder) = corpus("bundles") else { return };
            bundles_below(&folder).into_iter().step_by(8).collect()
        }
    };
    let mut counts = Counts::default();
    for bundle in &bundles {
        counts.add(bundle);
    }
    println!("{counts:?}");
    assert!(counts.bundles > 15 && counts.made > counts.bundles, "{counts:?}");
    let defects = (
        counts.new_findings,
        counts.worse,
        counts.lost_comments,
        counts.changed_twice,
    );
    assert_eq!(defects, (0, 0, 0, 0));
}

fn bundles_below(folder: &Path) -> Vec<PathBuf> {
    olmkit::validate::source::find_bundles(folder).unwrap_or_default()
}

#[derive(Debug, Default)]
struct Counts {
    bundles: usize,
    changed: usize,
    made: usize,
    given_up: usize,
    findings_before: usize,
    findings_after: usize,
    new_findings: usize,
    worse: usize,
    comments: usize,
    lost_comments: usize,
    changed_twice: usize,
}

impl Counts {
    fn add(&mut self, directory: &Path) {
        let Ok(tree) = Tree::from_dir(directory, Limits::default()) else {
            return;
        };
        let options = ALL;
        let fixed = fix(&tree, "bundle", options);
        self.bundles += 1;
        self.made += fixed.made.len();
        self.given_up += fixed.given_up.len();
        if fixed.files.is_empty() {
            return;
        }
        self.changed += 1;
        let mut changed = tree.clone();
        for file in &fixed.files {
            changed.insert(&file.path, file.after.clone().into_bytes());
            // No line may be lost, regardless of its content.
            let lines = |text: &str| -> Vec<String> {
                let comments = text.lines().map(str::trim).filter(|line| line.starts_with('#'));
                let mut lines: Vec<String> = comments.map(str::to_owned).collect();
                lines.sort();
                lines
            };
            let (before, after) = (lines(&file.before), lines(&file.after));
            self.comments += before.len();
            self.lost_comments += before.iter().filter(|line| !after.contains(line)).count();
        }
        let ((passed, before), (passes, after)) = (findings(&tree), findings(&changed));
        self.worse += usize::from(passed && !passes);
        self.findings_before += before.len();
        self.findings_after += after.len();
        let new: Vec<_> = after.iter().filter(|finding| !before.contains(finding)).collect();
        if !new.is_empty() {
            println!("{}: {new:#?}", directory.display());
        }
        self.new_findings += new.len();
        let second = fix(&changed, "bundle", options);
        self.changed_twice += usize::from(!second.files.is_empty());
        if !second.files.is_empty() {
            println!("{}: changed twice: {:#?}", directory.display(), second.made);
        }
    }
}

/// Rule, object and field of a finding.
type Place = (String, Option<String>, Option<String>);

/// Returns true if the bundle passes, and the findings as `bundle validate` has them: rule and place.
fn findings(tree: &Tree) -> (bool, Vec<Place>) {
    let reading = olmkit::bundle::load::read(tree.clone(), "bundle");
    let options = olmkit::validate::Options {
        selector: olmkit::validate::Selector::parse("suite=operatorframework").unwrap(),
        lints: true,
        unproven: true,
        ..Default::default()
    };
    let outcome = olmkit::validate::validate(&reading, &options);
    let findings = outcome.findings();
    let findings = findings.map(|finding| (finding.rule.to_string(), finding.object.clone(), finding.path.clone()));
    (outcome.passed(), findings.collect())
}

#[test]
fn line_ends_of_windows_are_kept() {
    let before = CSV.replace('\n', "\r\n");
    let fixed = fix(&bundle(&before), "bundle", SAFE);
    let titles = titles(&fixed);
    assert!(
        titles.contains(&"spell capabilities as in \"Basic Install\""),
        "{fixed:#?}"
    );
    for file in fixed.files.iter().filter(|file| file.before.contains('\r')) {
        assert_eq!(
            file.after.matches('\n').count(),
            file.after.matches("\r\n").count(),
            "{}",
            file.after
        );
    }
    assert!(fixed.files.iter().any(|file| file.before.contains('\r')));
}
