//! One test for each thing that is better than in the reference.

use serde_json::json;

use super::support::{Folder, OPERATOR, said};

#[test]
fn objects_that_bundles_cannot_have_are_reported_and_refused_by_strict() {
    let job = "---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n";
    let directory = Folder::new();
    let output = directory.generate(&[], &format!("{OPERATOR}{job}"));
    assert!(output.status.success());
    assert!(said(&output).contains("Job migrate"), "{}", said(&output));
    assert!(said(&output).contains("standard input:"), "{}", said(&output));

    let strict = Folder::new();
    let output = strict.generate(&["--strict"], &format!("{OPERATOR}{job}"));
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("OLM runs Deployments only"), "{}", said(&output));
    assert!(strict.files().is_empty(), "nothing is written");
    let output = strict.generate(&["--strict", "--allow-dropped", "Job"], &format!("{OPERATOR}{job}"));
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn bad_input_names_file_and_object_and_leaves_the_old_bundle() {
    let directory = Folder::new();
    assert!(directory.generate(&["--strict"], OPERATOR).status.success());
    let before = directory.files();
    let no_deployment = OPERATOR.replace("kind: Deployment", "kind: DaemonSet");
    let two_csvs = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: other.v1.0.0\n---\n";
    let no_definition = OPERATOR.replace("apiVersion: example.com/v1", "apiVersion: example.org/v1");
    let unknown_version = OPERATOR.replace("apiVersion: example.com/v1", "apiVersion: example.com/v9");
    let wrong_type = OPERATOR.replace("  template:\n", "  replicas: three\n  template:\n");
    for (input, expected) in [
        (String::new(), "the input contains no object"),
        (no_deployment, "the input: contains no Deployment"),
        (format!("{two_csvs}{OPERATOR}"), "ClusterServiceVersion other.v1.0.0"),
        (no_definition, "Example sample"),
        (unknown_version, "version v9 is not served"),
        (format!("{OPERATOR}---\n\u{1}\u{2}: binary\n"), "cannot be read as YAML"),
        (wrong_type, "Deployment manager, at /spec/replicas"),
    ] {
        let output = directory.generate(&["--strict"], &input);
        assert_eq!(output.status.code(), Some(1), "{expected}: {}", said(&output));
        assert!(said(&output).contains(expected), "{expected}: {}", said(&output));
        assert_eq!(directory.files(), before, "{expected}: the old bundle is untouched");
    }
    let output = directory.olmkit(
        &["generate", "bundle", "--package", "example-operator", "--version", "v1"],
        OPERATOR,
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("v1"), "{}", said(&output));
}

/// They configure how manifests are assembled and are not manifests themselves.
#[test]
fn kustomizations_beside_manifests_do_not_count_as_lost() {
    let directory = Folder::new();
    directory.write("config/operator.yaml", OPERATOR);
    let text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [operator.yaml]\n";
    directory.write("config/kustomization.yaml", text);
    let output = directory.generate(&["--strict", "--input-dir", "config"], "");
    assert!(output.status.success(), "{}", said(&output));
    assert!(!said(&output).contains("ustomiz"), "{}", said(&output));
}

#[test]
fn a_wrong_file_in_a_directory_is_named() {
    let directory = Folder::new();
    directory.write("deploy/operator.yaml", OPERATOR);
    directory.write(
        "deploy/job.yaml",
        "# a job\n---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n",
    );
    let output = directory.generate(&["--strict", "--input-dir", "deploy"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("deploy/job.yaml:3: Job migrate"),
        "{}",
        said(&output)
    );
}

#[test]
fn stale_files_go_in_strict_mode() {
    let directory = Folder::new();
    assert!(directory.generate(&[], OPERATOR).status.success());
    directory.write(
        "bundle/manifests/old_v1_configmap.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: old\n",
    );
    assert!(directory.generate(&[], OPERATOR).status.success());
    assert!(
        directory.path("bundle/manifests/old_v1_configmap.yaml").exists(),
        "the default keeps it, as operator-sdk does"
    );
    let output = directory.generate(&["--strict"], OPERATOR);
    assert!(said(&output).contains("old_v1_configmap.yaml"), "{}", said(&output));
    assert!(!directory.path("bundle/manifests/old_v1_configmap.yaml").exists());
}

#[test]
fn rendering_twice_in_another_place_gives_the_same_bytes() {
    let (first, second) = (Folder::new(), Folder::new());
    assert!(first.generate(&["--strict"], OPERATOR).status.success());
    let output = assert_cmd::Command::cargo_bin("olmkit")
        .unwrap()
        .args([
            "generate",
            "bundle",
            "-q",
            "--strict",
            "--package",
            "example-operator",
            "--version",
            "0.0.1",
        ])
        .current_dir(second.path("."))
        .envs([
            ("SOURCE_DATE_EPOCH", "1700000000"),
            ("TZ", "Asia/Kathmandu"),
            ("LC_ALL", "tr_TR.UTF-8"),
        ])
        .write_stdin(OPERATOR)
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(first.files(), second.files());
}

#[test]
fn the_creation_time_stays_while_all_else_does() {
    let directory = Folder::new();
    let time = |directory: &Folder| directory.csv()["metadata"]["annotations"]["createdAt"].clone();
    let run = |epoch: &str, input: &str| {
        let output = assert_cmd::Command::cargo_bin("olmkit")
            .unwrap()
            .args([
                "generate",
                "bundle",
                "-q",
                "--package",
                "example-operator",
                "--version",
                "0.0.1",
            ])
            .current_dir(directory.path("."))
            .env("SOURCE_DATE_EPOCH", epoch)
            .write_stdin(input)
            .output()
            .unwrap();
        assert!(output.status.success());
        time(&directory)
    };
    assert_eq!(run("1700000000", OPERATOR), "2023-11-14T22:13:20Z");
    assert_eq!(run("1800000000", OPERATOR), "2023-11-14T22:13:20Z");
    assert_eq!(
        run("1800000000", &OPERATOR.replace("operator:v1", "operator:v2")),
        "2027-01-15T08:00:00Z"
    );
}

#[test]
fn additions_to_base_and_metadata_survive() {
    let directory = Folder::new();
    directory.write(
        "config/manifests/bases/example-operator.clusterserviceversion.yaml",
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: example-operator.v0.0.0\n  annotations:\n    \
         mine: kept\n  labels:\n    also: kept\nspec:\n  displayName: Example\n  installModes:\n  - type: AllNamespaces\n    supported: true\n  relatedImages:\n  - name: \
         helper\n    image: example.com/helper:v1\n",
    );
    directory.write(
        "bundle/metadata/annotations.yaml",
        "annotations:\n  com.example.own: \"1.0\"\n",
    );
    let default = directory.generate(&[], OPERATOR);
    assert!(default.status.success(), "{}", said(&default));
    assert!(said(&default).contains("related image helper"), "{}", said(&default));
    directory.write(
        "bundle/metadata/annotations.yaml",
        "annotations:\n  com.example.own: \"1.0\"\n",
    );
    assert!(directory.generate(&["--strict"], OPERATOR).status.success());
    let csv = directory.csv();
    assert_eq!(csv["metadata"]["annotations"]["mine"], "kept");
    assert_eq!(csv["metadata"]["labels"]["also"], "kept");
    assert_eq!(
        csv["spec"]["relatedImages"],
        json!([{"image": "example.com/helper:v1", "name": "helper"}])
    );
    assert_eq!(
        directory.manifest("bundle/metadata/annotations.yaml")["annotations"]["com.example.own"],
        "1.0"
    );
    assert!(
        directory
            .text("bundle.Dockerfile")
            .contains("LABEL com.example.own=\"1.0\"")
    );
}

#[test]
fn equal_rules_become_one() {
    let directory = Folder::new();
    assert!(directory.generate(&["--strict"], OPERATOR).status.success());
    assert_eq!(
        directory.csv()["spec"]["install"]["spec"]["permissions"],
        json!([{
            "serviceAccountName": "manager",
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
        }])
    );
}

#[test]
fn a_bound_role_that_is_not_there_is_an_error() {
    let directory = Folder::new();
    let input = OPERATOR.replacen(
        "kind: Role\nmetadata:\n  name: own",
        "kind: Role\nmetadata:\n  name: other",
        1,
    );
    let output = directory.generate(&["--strict"], &input);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("binds own, which is not in the input"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_binding_into_another_namespace_is_reported() {
    let directory = Folder::new();
    let input = OPERATOR.replace(
        "kind: RoleBinding\nmetadata:\n  name: own\n  namespace: example-system",
        "kind: RoleBinding\nmetadata:\n  name: own\n  namespace: kube-system",
    );
    let output = directory.generate(&["--strict"], &input);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("gives rules in namespace kube-system"),
        "{}",
        said(&output)
    );
}

/// kustomize's output for a Go operator with webhooks and metrics: two certificate volumes, of which OLM replaces one
/// and nothing fills the other.
const CERTIFICATES: &str = r#"---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: hooks
  namespace: example-system
spec:
  selector: {matchLabels: {app: hooks}}
  template:
    metadata: {labels: {app: hooks}}
    spec:
      serviceAccountName: manager
      containers:
      - name: manager
        image: example.com/operator:v1
        args: [--metrics-cert-path=/tmp/metrics-certs, --webhook-cert-path=/tmp/k8s-webhook-server/serving-certs, --leader-elect]
        volumeMounts:
        - {mountPath: /tmp/metrics-certs, name: metrics-certs}
        - {mountPath: /tmp/k8s-webhook-server/serving-certs, name: webhook-certs}
        - {mountPath: /data, name: data}
      volumes:
      - {name: metrics-certs, secret: {secretName: metrics-server-cert}}
      - {name: webhook-certs, secret: {secretName: webhook-server-cert}}
      - {name: data, emptyDir: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: metrics}
spec: {secretName: metrics-server-cert}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: serving}
spec: {secretName: webhook-server-cert}
---
apiVersion: v1
kind: Service
metadata: {name: hooks}
spec: {selector: {app: hooks}, ports: [{port: 443, targetPort: 9443}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hooks}
webhooks:
- name: v.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: hooks, namespace: example-system, path: /validate}}
"#;

#[test]
fn certificate_volumes_mounts_and_arguments_go_together() {
    let directory = Folder::new();
    let output = directory.generate(&["--strict"], &format!("{OPERATOR}{CERTIFICATES}"));
    assert!(output.status.success(), "{}", said(&output));
    let csv = directory.csv();
    let pod = &csv["spec"]["install"]["spec"]["deployments"][1]["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"], json!([{"name": "data", "emptyDir": {}}]));
    let container = &pod["containers"][0];
    assert_eq!(
        container["volumeMounts"],
        json!([{"mountPath": "/data", "name": "data"}])
    );
    assert_eq!(
        container["args"],
        json!([
            "--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs",
            "--leader-elect"
        ])
    );
    assert_eq!(csv["spec"]["webhookdefinitions"][0]["deploymentName"], "hooks");
    assert_eq!(csv["spec"]["webhookdefinitions"][0]["targetPort"], 9443);
}

#[test]
fn selectors_and_conditions_of_webhooks_are_reported() {
    let directory = Folder::new();
    let input = format!(
        "{OPERATOR}{CERTIFICATES}  namespaceSelector: {{matchLabels: {{a: b}}}}\n  matchConditions: [{{name: x, expression: 'true'}}]\n"
    );
    let output = directory.generate(&["--strict"], &input);
    assert_eq!(output.status.code(), Some(1));
    for expected in ["has a namespaceSelector", "has matchConditions"] {
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
}

#[test]
fn images_are_pinned_from_a_file() {
    let directory = Folder::new();
    let digest = format!("sha256:{}", "a".repeat(64));
    directory.write("digests.yaml", &format!("example.com/operator:v1: {digest}\n"));
    let output = directory.generate(&["--image-digests", "digests.yaml"], OPERATOR);
    assert!(output.status.success(), "{}", said(&output));
    let csv = directory.csv();
    let pinned = format!("example.com/operator@{digest}");
    assert_eq!(
        csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["containers"][0]["image"],
        pinned
    );
    assert_eq!(
        csv["spec"]["relatedImages"],
        json!([{"image": pinned, "name": "manager"}])
    );
}

#[test]
fn upgrade_edges_come_from_flags_or_a_catalog() {
    let directory = Folder::new();
    let flags = [
        "--replaces",
        "0.0.0",
        "--skips",
        "0.0.0-rc.1,example-operator.v0.0.0-rc.2",
        "--skip-range",
        "<0.0.1",
    ];
    assert!(directory.generate(&flags, OPERATOR).status.success());
    let csv = directory.csv();
    assert_eq!(csv["spec"]["replaces"], "example-operator.v0.0.0");
    assert_eq!(
        csv["spec"]["skips"],
        json!(["example-operator.v0.0.0-rc.1", "example-operator.v0.0.0-rc.2"])
    );
    assert_eq!(csv["metadata"]["annotations"]["olm.skipRange"], "<0.0.1");

    directory.write(
        "catalog/catalog.yaml",
        "schema: olm.channel\npackage: example-operator\nname: alpha\nentries:\n- name: example-operator.v0.0.0\n- name: example-operator.v0.0.0-9\n  \
         replaces: example-operator.v0.0.0\n",
    );
    let output = directory.generate(&["--from-catalog", "catalog"], OPERATOR);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(directory.csv()["spec"]["replaces"], "example-operator.v0.0.0-9");
}

#[test]
fn the_annotation_keeps_watched_rules_out_of_cluster_permissions() {
    let role = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: watched\nrules:\n- apiGroups: [example.com]\n  resources: \
                [examples]\n  verbs: [list]\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata:\n  name: watched\n  annotations:\n    \
                olmkit.dev/permissions: namespaced\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: watched}\nsubjects:\n- {kind: \
                ServiceAccount, name: manager, namespace: example-system}\n";
    let directory = Folder::new();
    let output = directory.generate(&["--strict"], &format!("{OPERATOR}{role}"));
    assert!(output.status.success(), "{}", said(&output));
    let install = directory.csv()["spec"]["install"]["spec"].clone();
    assert!(install.get("clusterPermissions").is_none());
    assert_eq!(install["permissions"][0]["rules"][1]["resources"], json!(["examples"]));
}

#[test]
fn a_base_is_generated_without_questions_without_a_terminal() {
    let directory = Folder::new();
    directory.write(
        "PROJECT",
        "projectName: example-operator\nlayout:\n- go.kubebuilder.io/v4\nversion: \"3\"\n",
    );
    let output = directory.olmkit(
        &[
            "generate",
            "kustomize",
            "manifests",
            "-q",
            "--display-name",
            "Example",
            "--description",
            "Does it.",
            "--maintainers",
            "Jo:jo@example.com",
            "--keywords",
            "a,b",
        ],
        "",
    );
    assert!(output.status.success(), "{}", said(&output));
    let path = "config/manifests/bases/example-operator.clusterserviceversion.yaml";
    let base = directory.manifest(path);
    assert_eq!(base["spec"]["displayName"], "Example");
    assert_eq!(
        base["spec"]["maintainers"],
        json!([{"email": "jo@example.com", "name": "Jo"}])
    );
    assert_eq!(base["metadata"]["name"], "example-operator.v0.0.0");
    assert!(
        directory
            .text("config/manifests/kustomization.yaml")
            .contains("bases/example-operator.clusterserviceversion.yaml")
    );
    let before = directory.text(path);
    assert!(
        directory
            .olmkit(&["generate", "kustomize", "manifests", "-q"], "")
            .status
            .success()
    );
    assert_eq!(directory.text(path), before, "an existing base is not changed");
}

/// The commands of the `bundle` target that operator-sdk 1.42 scaffolds, with a substitute for kustomize.
#[test]
fn the_bundle_target_of_a_scaffolded_makefile_runs_unmodified() {
    let directory = Folder::new();
    directory.write(
        "PROJECT",
        "projectName: example-operator\nlayout:\n- go.kubebuilder.io/v4\nversion: \"3\"\n",
    );
    directory.write("built.yaml", OPERATOR);
    directory.write(
        "kustomize",
        "#!/bin/sh\ncase $1 in build) cat built.yaml ;; edit) : ;; esac\n",
    );
    directory.write("config/manager/kustomization.yaml", "resources:\n- manager.yaml\n");
    let makefile = "\
VERSION ?= 0.0.1\nifneq ($(origin CHANNELS), undefined)\nBUNDLE_CHANNELS := --channels=$(CHANNELS)\nendif\n\
ifneq ($(origin DEFAULT_CHANNEL), undefined)\nBUNDLE_DEFAULT_CHANNEL := --default-channel=$(DEFAULT_CHANNEL)\nendif\n\
BUNDLE_METADATA_OPTS ?= $(BUNDLE_CHANNELS) $(BUNDLE_DEFAULT_CHANNEL)\n\
BUNDLE_GEN_FLAGS ?= -q --overwrite --version $(VERSION) $(BUNDLE_METADATA_OPTS)\n\
IMG ?= controller:latest\nSHELL = /usr/bin/env bash -o pipefail\n.SHELLFLAGS = -ec\nKUSTOMIZE = $(CURDIR)/kustomize\n\
bundle:\n\t$(OPERATOR_SDK) generate kustomize manifests -q\n\
\tcd config/manager && $(KUSTOMIZE) edit set image controller=$(IMG)\n\
\t$(KUSTOMIZE) build config/manifests | $(OPERATOR_SDK) generate bundle $(BUNDLE_GEN_FLAGS)\n\
\t$(OPERATOR_SDK) bundle validate ./bundle\n";
    directory.write("Makefile", makefile);
    let output = std::process::Command::new("bash")
        .args([
            "-c",
            "chmod +x kustomize && make bundle CHANNELS=stable DEFAULT_CHANNEL=stable",
        ])
        .arg("bash")
        .env("OPERATOR_SDK", assert_cmd::cargo::cargo_bin("olmkit"))
        .current_dir(directory.path("."))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        said(&output)
    );
    let annotations = directory.manifest("bundle/metadata/annotations.yaml");
    assert_eq!(
        annotations["annotations"]["operators.operatorframework.io.bundle.channels.v1"],
        "stable"
    );
    assert_eq!(directory.csv()["metadata"]["name"], "example-operator.v0.0.1");
}
