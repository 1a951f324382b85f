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
         rules: [{{apiGroups: [''], resources: [nodes], verbs: [get]}}]\n---\n\
         apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: handed-out}}\n\
         rules: [{{apiGroups: [''], resources: [services], verbs: [get]}}]\n{}{}",
        binding("binder"),
        binding("broker"),
    );
    let file = |name: &str| format!("bundle/manifests/{name}_rbac.authorization.k8s.io_v1_clusterrole.yaml");
    let directory = Folder::new();
    let output = directory.generate_with_notes(&[], &input);
    assert!(output.status.success());
    assert!(
        said(&output).contains("ClusterRole broker: is left out"),
        "{}",
        said(&output)
    );
    assert!(!said(&output).contains("ClusterRole binder"), "{}", said(&output));
    assert!(!directory.path(&file("broker")).exists(), "as operator-sdk");
    assert!(directory.path(&file("handed-out")).exists(), "no account has it yet");
    let output = directory.generate(&["--strict"], &input);
    assert!(output.status.success(), "{}", said(&output));
    assert!(directory.path(&file("broker")).exists());
    assert!(!directory.path(&file("binder")).exists());
    assert!(directory.path(&file("handed-out")).exists());
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

const DEPLOYMENT: &str = "kind: Deployment\nmetadata:\n  name: manager\n";
const OTHER_SUBJECT: &str =
    "subjects:\n- kind: Group\n  name: admins\n  apiGroup: rbac.authorization.k8s.io\n- kind: ServiceAccount\n";

/// The example operator with one change.
#[track_caller]
fn changed(from: &str, to: &str) -> String {
    let input = OPERATOR.replacen(from, to, 1);
    assert_ne!(input, OPERATOR, "{from}");
    input
}

#[test]
fn an_account_without_rules_is_reported() {
    let (before, rest) = OPERATOR.split_once("---\napiVersion: rbac").unwrap();
    let (_, rest) = rest.split_once("---\napiVersion: apps/v1").unwrap();
    let input = format!("{before}---\napiVersion: apps/v1{rest}");
    let directory = Folder::new();
    let output = directory.generate(&["--strict"], &input);
    assert!(output.status.success(), "{}", said(&output));
    let expected = "ServiceAccount manager: is left out: OLM creates only service accounts with rules";
    assert!(said(&output).contains(expected), "{}", said(&output));
    let output = directory.generate(&["--strict", "--allow-dropped", "ServiceAccount"], &input);
    assert!(!said(&output).contains(expected), "{}", said(&output));
}

#[test]
fn a_role_that_also_binds_others_stays_an_object_in_strict_mode() {
    let input = changed("subjects:\n- kind: ServiceAccount\n", OTHER_SUBJECT);
    let directory = Folder::new();
    let output = directory.generate(&[], &input);
    assert!(output.status.success(), "{}", said(&output));
    let lost =
        "Role own: is left out and only its rules are kept: the other subjects of RoleBinding own get no permissions";
    assert!(said(&output).contains(lost), "{}", said(&output));
    let role = "bundle/manifests/own_rbac.authorization.k8s.io_v1_role.yaml";
    assert!(!directory.path(role).exists(), "as operator-sdk");
    let output = directory.generate(&["--strict"], &input);
    assert!(output.status.success(), "{}", said(&output));
    assert!(directory.path(role).exists());
    let binding = directory.manifest("bundle/manifests/own_rbac.authorization.k8s.io_v1_rolebinding.yaml");
    assert_eq!(binding["subjects"].as_array().unwrap().len(), 1, "{binding}");
    assert_eq!(binding["subjects"][0]["name"], "admins");
}

#[test]
fn a_role_that_another_one_aggregates_stays_an_object_in_strict_mode() {
    let roles = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: part, labels: {shop: view}}\n\
                 rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]\n---\n\
                 apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: whole}\n\
                 aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: shop, operator: In, values: [view, edit]}]}]}\n";
    let file = "bundle/manifests/part_rbac.authorization.k8s.io_v1_clusterrole.yaml";
    let directory = Folder::new();
    let output = directory.generate(&["--strict"], &format!("{OPERATOR}{roles}{}", binding("part")));
    assert!(output.status.success(), "{}", said(&output));
    assert!(directory.path(file).exists());
    let edited = roles.replace("values: [view, edit]", "values: [edit]");
    let directory = Folder::new();
    let output = directory.generate(&["--strict"], &format!("{OPERATOR}{edited}{}", binding("part")));
    assert!(output.status.success(), "{}", said(&output));
    assert!(!directory.path(file).exists());
}

#[test]
fn bindings_to_accounts_of_a_fixed_namespace_are_reported() {
    let role = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: other}\n\
                rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]\n";
    let elsewhere = binding("other").replace("example-system", "elsewhere");
    let lines = losses(&format!("{OPERATOR}{role}{elsewhere}"));
    assert_named(
        &lines,
        "ClusterRoleBinding other",
        "is for service account elsewhere/manager",
    );
    let output = Folder::new().generate_with_notes(&[], &format!("{OPERATOR}{role}{elsewhere}"));
    let fix = "change the namespace of the subject to example-system";
    assert!(said(&output).contains(fix), "{}", said(&output));
    let account = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: scraper, namespace: example-system}\n";
    let input = format!(
        "{OPERATOR}{role}{account}{}",
        binding("other").replace("name: manager", "name: scraper")
    );
    let lines = losses(&input);
    assert_named(
        &lines,
        "ClusterRoleBinding other",
        "grants nothing outside namespace example-system",
    );
    let directory = Folder::new();
    let output = directory.generate(&["--strict", "--extra-service-accounts", "scraper"], &input);
    assert!(output.status.success(), "{}", said(&output));
}

/// kustomize leaves kubebuilder's placeholder in a binding if the input lacks the account.
#[test]
fn the_placeholder_for_the_namespace_of_the_operator_is_no_loss() {
    let role = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: other}\n\
                rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]\n";
    let bound = binding("other").replace("example-system", "system");
    let config = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: system}\n";
    let directory = Folder::new();
    let output = directory.generate(&["--strict"], &format!("{OPERATOR}{role}{bound}{config}"));
    assert!(output.status.success(), "{}", said(&output));
    let rules = directory.csv()["spec"]["install"]["spec"]["clusterPermissions"].to_string();
    assert!(rules.contains("nodes"), "{rules}");
    // The binding to another account stays an object, and OLM does not replace the placeholder.
    let account = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: agent, namespace: system}\n";
    let lines = losses(&format!(
        "{OPERATOR}{role}{account}{}",
        bound.replace("name: manager", "name: agent")
    ));
    assert_named(
        &lines,
        "ClusterRoleBinding other",
        "grants nothing outside namespace system",
    );
}

#[test]
fn two_objects_of_one_name_and_metadata_of_webhook_configurations_are_losses() {
    let map = |namespace: &str| {
        format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config, namespace: {namespace}}}\ndata: {{a: {namespace}}}\n"
        )
    };
    let lines = losses(&format!("{OPERATOR}{}{}", map("example-system"), map("elsewhere")));
    assert_named(
        &lines,
        "ConfigMap config",
        "has the kind and name of an object before it",
    );
    let (_, deployment) = OPERATOR.split_once("---\napiVersion: apps/v1").unwrap();
    let (deployment, _) = deployment.split_once("---\n").unwrap();
    let second = deployment
        .replace("example-system", "elsewhere")
        .replace("app: example", "app: second");
    let lines = losses(&format!("{OPERATOR}---\napiVersion: apps/v1{second}"));
    assert_named(
        &lines,
        "Deployment manager",
        "conflicts with another Deployment of the same name",
    );
    let hook = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata:\n  name: v\n  \
                annotations: {cert-manager.io/inject-ca-from: a/b}\n  labels: {admissions.enforcer/disabled: \"true\"}\nwebhooks: \
                [{name: v.example.com, clientConfig: {service: {name: s, namespace: example-system}}}]\n";
    let lines = losses(&format!("{OPERATOR}{hook}"));
    assert_named(
        &lines,
        "ValidatingWebhookConfiguration v",
        "labels admissions.enforcer/disabled",
    );
    assert!(!lines.iter().any(|line| line.contains("annotations")), "{lines:#?}");
}

#[test]
fn a_revision_limit_that_olm_sets_itself_is_noted() {
    let input = changed(
        "spec:\n  selector:\n    matchLabels:\n",
        "spec:\n  revisionHistoryLimit: 5\n  selector:\n    matchLabels:\n",
    );
    let directory = Folder::new();
    let output = directory.generate_with_notes(&["--strict"], &input);
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("revisionHistoryLimit 5: OLM sets 1"),
        "{}",
        said(&output)
    );
    let input = changed(DEPLOYMENT, &format!("{DEPLOYMENT}  finalizers: [a.example.com/b]\n"));
    assert_named(&losses(&input), "Deployment manager", "finalizers a.example.com/b");
}

#[test]
fn fields_that_a_type_does_not_have_are_losses() {
    let input = changed(
        "      containers:\n",
        "      hostnameOverride: x\n      tolerations: []\n      containers:\n",
    );
    let lines = losses(&input.replace(
        "name: manager\n      serviceAccountName",
        "name: manager\n        imagePullPolcy: Always\n      serviceAccountName",
    ));
    let expected =
        "loses spec.template.spec.containers[0].imagePullPolcy, spec.template.spec.hostnameOverride: the type";
    assert_named(&lines, "Deployment manager", expected);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let directory = Folder::new();
    let base = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: example-operator.v0.0.0}\n\
                spec: {displayname: Example, maturty: alpha}\n";
    directory.write(
        "config/manifests/bases/example-operator.clusterserviceversion.yaml",
        base,
    );
    let output = directory.generate(&[], OPERATOR);
    let expected = "loses spec.maturty: the type of the kind has no such field";
    assert!(said(&output).contains(expected), "{}", said(&output));
}

#[test]
fn labels_of_a_namespace_that_pods_depend_on_are_reported() {
    let namespace = |labels: &str| {
        format!(
            "{OPERATOR}---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: example-system, labels: {{{labels}}}}}\n"
        )
    };
    let directory = Folder::new();
    let run = |labels: &str| {
        let output = directory.generate(&["--strict"], &namespace(labels));
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    };
    let text = run("pod-security.kubernetes.io/enforce: privileged, openshift.io/cluster-monitoring: \"true\", a: b");
    let expected =
        "is left out with its labels openshift.io/cluster-monitoring, pod-security.kubernetes.io/enforce: users";
    assert!(text.contains(expected), "{text}");
    let text = run("control-plane: x, pod-security.kubernetes.io/enforce: restricted");
    assert!(!text.contains("left out with its labels"), "{text}");
}

/// kustomize writes `commonLabels` to every object. They are on the Deployment too and have no prefix.
#[test]
fn labels_that_all_objects_have_in_common_are_no_loss() {
    let account = "kind: ServiceAccount\nmetadata:\n  name: manager\n";
    let labels = "  labels: {shop-operator: '', team: a}\n";
    let webhook = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata:\n  \
                   name: v\n  labels: {shop-operator: ''}\nwebhooks: []\n";
    let input = changed(DEPLOYMENT, &format!("{DEPLOYMENT}{labels}")) + webhook;
    let input = input.replacen(account, &format!("{account}{labels}"), 1);
    let directory = Folder::new();
    let output = directory.generate(&["--strict"], &input);
    assert!(output.status.success(), "{}", said(&output));
    // Another value, or a key that a tool selects by.
    for other in [
        "  labels: {team: b}\n",
        "  labels: {velero.io/exclude-from-backup: 'true'}\n",
    ] {
        let input = input.replacen(&format!("{account}{labels}"), &format!("{account}{other}"), 1);
        let key = other.split(['{', ':']).nth(2).unwrap().trim();
        assert_named(
            &losses(&input),
            "ServiceAccount manager",
            &format!("loses labels {key}"),
        );
    }
}

const SUGGESTION: &str = "---\napiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  \
                          name: example-operator.v0.0.0\n  annotations: {operatorframework.io/suggested-namespace: NAMESPACE}\n\
                          spec: {displayName: Example, installModes: [{type: AllNamespaces, supported: true}]}\n";

/// A binding that stays an object names the namespace of its account.
#[test]
fn bindings_for_the_suggested_namespace_are_no_loss() {
    let other = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: agent, namespace: example-system}\n---\n\
                 apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: agent}\n\
                 rules: [{apiGroups: [''], resources: [nodes], verbs: [get]}]\n";
    let bound = |role: &str, account: &str| binding(role).replace("name: manager", &format!("name: {account}"));
    for (objects, object) in [
        (
            format!("{other}{}", bound("agent", "agent")),
            "ClusterRoleBinding agent",
        ),
        (bound("view", "manager"), "ClusterRoleBinding view"),
    ] {
        let input = format!("{OPERATOR}{objects}");
        assert_named(&losses(&input), object, "");
        assert_named(
            &losses(&format!("{input}{}", SUGGESTION.replace("NAMESPACE", "other"))),
            object,
            "",
        );
        let suggested = format!("{input}{}", SUGGESTION.replace("NAMESPACE", "example-system"));
        let template =
            "operatorframework.io/suggested-namespace-template: '{\"metadata\": {\"name\": \"example-system\"}}'";
        let templated = suggested.replace("operatorframework.io/suggested-namespace: example-system", template);
        assert_ne!(suggested, templated);
        for input in [suggested, templated] {
            let directory = Folder::new();
            let output = directory.generate(&["--strict"], &input);
            assert!(output.status.success(), "{}", said(&output));
            assert!(said(&output).contains("warning: standard input:"), "{}", said(&output));
            assert!(said(&output).contains(object), "{}", said(&output));
        }
    }
}

/// OLM binds the account of a Deployment that serves an API or webhooks to two roles of the cluster, and registers the API.
#[test]
fn bindings_that_olm_makes_itself_are_no_loss() {
    let reader = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n\
                  metadata: {name: auth-reader, namespace: kube-system}\n\
                  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}\n\
                  subjects: [{kind: ServiceAccount, name: manager, namespace: example-system}]\n";
    let api = "---\napiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1beta1.metrics.example.com}\n\
               spec: {group: metrics.example.com, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100, \
               service: {name: manager, namespace: example-system}}\n";
    let input = format!("{OPERATOR}{}{reader}{api}", binding("system:auth-delegator"));
    let lines = losses(&input);
    for object in [
        "RoleBinding auth-reader",
        "ClusterRoleBinding system:auth-delegator",
        "APIService v1beta1",
    ] {
        assert_named(&lines, object, "");
    }
    let definition = "displayName: Example, apiservicedefinitions: {owned: [{group: metrics.example.com, version: v1beta1, \
                      kind: Value, name: values, deploymentName: manager, containerPort: 6443, displayName: a, description: b}]}, ";
    let base = SUGGESTION.replace("displayName: Example, ", definition);
    assert!(base.contains("apiservicedefinitions"));
    let directory = Folder::new();
    let described = format!("{input}{base}");
    let output = directory.generate(&["--strict"], &described);
    assert!(output.status.success(), "{}", said(&output));
    // The account of a Deployment without the API gets nothing.
    let lines = losses(&described.replace("deploymentName: manager", "deploymentName: other"));
    assert_named(&lines, "RoleBinding auth-reader", "");
}

/// `cat config/*.yaml` may print an object twice.
#[test]
fn an_object_that_is_repeated_without_a_difference_is_no_loss() {
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: example-system}\n\
                   spec: {selector: {a: b}, ports: [{port: 80}]}\n";
    let directory = Folder::new();
    let input = format!("{OPERATOR}{service}---\n{OPERATOR}{service}");
    let output = directory.generate_with_notes(&["--strict"], &input);
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("Service web: repeats the object at standard input:"),
        "{}",
        said(&output)
    );
    assert!(!directory.path("bundle/manifests/dup0_web_v1_service.yaml").exists());
    // Two Services with one name are one object for OLM.
    let input = format!("{OPERATOR}{service}{}", service.replace("port: 80", "port: 81"));
    assert_named(
        &losses(&input),
        "Service web",
        "has the kind and name of an object before it",
    );
}
