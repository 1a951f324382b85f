//! Fields that a bundle has no place for: reported by default, errors with `--strict`.

use super::support::{Folder, OPERATOR, said};

const METADATA: &str = include_str!("cases/deployment-annotations.yaml");
const NAMESPACES: &str = include_str!("cases/other-namespaces.yaml");
const CERTIFICATE: &str = include_str!("cases/cert-volume.yaml");

/// The lines about losses of a run without and with `--strict`, whose exit codes must be 0 and 1.
fn losses(input: &str) -> Vec<String> {
    let directory = Folder::new();
    let normal = directory.generate(&[], input);
    assert!(normal.status.success(), "{}", said(&normal));
    let strict = directory.generate(&["--strict"], input);
    assert_eq!(strict.status.code(), Some(1), "{}", said(&strict));
    let lines = |text: String| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with("lost: "));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(lines(said(&normal)), lines(said(&strict)));
    lines(said(&strict))
}

#[track_caller]
fn assert_named(lines: &[String], object: &str, what: &str) {
    let found = lines.iter().any(|line| line.contains(object) && line.contains(what));
    assert!(found, "{object}: {what}: {lines:#?}");
}

#[test]
fn metadata_of_deployments_and_accounts_is_reported() {
    let lines = losses(METADATA);
    assert_named(
        &lines,
        "Deployment shop-manager",
        "annotations ignore-check.example.com/replicas",
    );
    assert_named(&lines, "ServiceAccount shop-manager", "annotations x.example.com/role");
    assert_named(&lines, "ServiceAccount shop-manager", "labels a");
    assert_named(&lines, "ServiceAccount shop-manager", "imagePullSecrets pull");

    let directory = Folder::new();
    let allowed =
        "Deployment.annotations,ServiceAccount.annotations,ServiceAccount.labels,ServiceAccount.imagePullSecrets";
    let without_sample = METADATA.rsplit_once("---\n").unwrap().0;
    let output = directory.generate(&["--strict", "--allow-dropped", allowed], without_sample);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn notes_of_tools_and_descriptive_labels_are_no_loss() {
    let input = OPERATOR.replace(
        "kind: ServiceAccount\nmetadata:\n  name: manager\n",
        "kind: ServiceAccount\nmetadata:\n  name: manager\n  labels: {app.kubernetes.io/name: example}\n  \
         annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}'}\n",
    );
    assert_ne!(input, OPERATOR);
    let directory = Folder::new();
    let output = directory.generate(&["--strict"], &input);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn objects_of_other_namespaces_are_reported() {
    let lines = losses(NAMESPACES);
    for object in ["ServiceMonitor sm", "ConfigMap dash", "Role prom", "RoleBinding prom"] {
        assert_named(&lines, object, "moves from namespace");
    }
    assert!(!lines.iter().any(|line| line.contains("Deployment")), "{lines:#?}");
}

#[test]
fn roles_that_the_operator_may_hand_out_stay_objects_in_strict_mode() {
    let input = format!(
        "{OPERATOR}---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: binder}}\n\
         rules: [{{apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], verbs: [get, create]}}]\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: broker}}\n\
         rules: [{{apiGroups: [''], resources: [nodes], verbs: [get]}}]\n{}{}",
        binding("binder"),
        binding("broker"),
    );
    let file = |name: &str| format!("bundle/manifests/{name}_rbac.authorization.k8s.io_v1_clusterrole.yaml");
    let directory = Folder::new();
    let output = directory.olmkit(
        &[
            "generate",
            "bundle",
            "--package",
            "example-operator",
            "--version",
            "0.0.1",
        ],
        &input,
    );
    assert!(output.status.success());
    assert!(
        said(&output).contains("ClusterRole broker: is left out"),
        "{}",
        said(&output)
    );
    assert!(!said(&output).contains("ClusterRole binder"), "{}", said(&output));
    assert!(!directory.path(&file("broker")).exists(), "as operator-sdk");
    let output = directory.generate(&["--strict"], &input);
    assert!(output.status.success(), "{}", said(&output));
    assert!(directory.path(&file("broker")).exists());
    assert!(!directory.path(&file("binder")).exists());
    let rules = directory.csv()["spec"]["install"]["spec"]["clusterPermissions"].to_string();
    assert!(rules.contains("nodes") && rules.contains("rolebindings"), "{rules}");
}

fn binding(role: &str) -> String {
    format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {role}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}\n\
         subjects: [{{kind: ServiceAccount, name: manager, namespace: example-system}}]\n"
    )
}

#[test]
fn a_certificate_mount_that_olm_replaces_is_no_loss() {
    let directory = Folder::new();
    let output = directory.generate(&[], CERTIFICATE);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!said(&output).contains("webhook-server-cert"), "{}", said(&output));
    let elsewhere = CERTIFICATE.replace("/tmp/k8s-webhook-server/serving-certs", "/certs");
    let output = directory.generate(&[], &elsewhere);
    assert!(
        said(&output).contains("mounts Secret webhook-server-cert"),
        "{}",
        said(&output)
    );
    // Without a webhook OLM mounts nothing.
    let (no_webhook, _) = CERTIFICATE.rsplit_once("---\n").unwrap();
    let output = directory.generate(&[], no_webhook);
    assert!(
        said(&output).contains("mounts Secret webhook-server-cert"),
        "{}",
        said(&output)
    );
}
