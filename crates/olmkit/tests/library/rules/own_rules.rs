//! Lints: one small valid bundle, changed in one way at a time. Each change must break exactly the listed rules, and
//! never changes operator-sdk's result.

use olmkit::diagnostics::Severity;

use super::changes::{ANNOTATIONS, CRD, CSV, Change, DIGEST, SERVICE, SUITE, changed, options, outcome, wrong};

/// File, text, its replacement (an empty text: something is appended), rules that break.
pub const CHANGES: &[Change] = &[
    // Another bundle of the package may be in the default channel.
    (ANNOTATIONS, "alpha,stable", "alpha", &[]),
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
    (
        "manifests/secret.yaml",
        "",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: x}\n",
        &["SEC-1"],
    ),
    (SERVICE, "", "---\nkind: X\n", &["FILE-1"]),
    (SERVICE, "kind: Service", "kind: Service\nkind: Service", &["FILE-2"]),
    (
        CRD,
        "  name: widgets",
        "  annotations: {cert-manager.io/inject-ca-from: a/b}\n  name: widgets",
        &["CERT-2"],
    ),
    (
        CRD,
        "  versions:\n",
        "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: a, namespace: b}}}}\n  versions:\n  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n",
        &["HOOK-7"],
    ),
    // One version is never converted.
    (
        CRD,
        "  scope: Namespaced",
        "  scope: Namespaced\n  conversion:\n    strategy: Webhook\n    webhook:\n      conversionReviewVersions: [v1]\n      clientConfig:\n        service: {name: a, namespace: b}",
        &[],
    ),
    (CSV, "  replaces: demo.v0.0.9", "  replaces: demo.v0.1.0", &["UPG-1"]),
    (CSV, "<0.1.0", "~0.1.0", &["UPG-2"]),
    (CSV, "<0.1.0", "<=0.1.0", &["UPG-3"]),
    (CSV, "  version: 0.1.0", "  version: 0.1.1", &["NAME-1"]),
    (
        CSV,
        "    capabilities: Basic",
        "    olm.operatorNamespace: demo\n    capabilities: Basic",
        &["COPY-1"],
    ),
    (
        CSV,
        "  annotations:",
        "  labels: {olm.copiedFrom: demo}\n  annotations:",
        &["COPY-1"],
    ),
    (
        CSV,
        "      - serviceAccountName: demo",
        "      - serviceAccountName: other",
        &["RBAC-1", "RBAC-2"],
    ),
    // The old name of the field.
    (
        CSV,
        "serviceAccountName: demo\n              ",
        "serviceAccount: demo\n              ",
        &[],
    ),
    // A service account of a workload that the operator starts.
    (
        CSV,
        "clusterPermissions:\n",
        "permissions:\n      - serviceAccountName: worker\n        rules:\n        - {apiGroups: [\"\"], resources: [pods], verbs: [get]}\n      clusterPermissions:\n",
        &[],
    ),
    (CSV, "verbs: [get, list, watch, update]", "verbs: [get]", &["RBAC-3"]),
    (CSV, "resources: [leases]", "resources: [events]", &["RBAC-4"]),
    // For all namespaces OLM makes a ClusterRole of `permissions`.
    (
        CSV,
        "clusterPermissions:",
        "permissions:\n      - serviceAccountName: demo\n        rules:\n        - {apiGroups: [\"\"], resources: [nodes], verbs: [get]}\n      clusterPermissions:",
        &[],
    ),
    (
        CSV,
        IN_SOME_NAMESPACES,
        "  - type: MultiNamespace\n    supported: true\n  - type: AllNamespaces\n    supported: true\n  install:\n    strategy: deployment\n    spec:\n      permissions:\n      - serviceAccountName: demo\n        rules:\n        - {apiGroups: [\"\"], resources: [nodes], verbs: [get]}\n",
        &["RBAC-5"],
    ),
    // A Role is enough to read the namespace that it is in, but not to list namespaces; and to use security context constraints there.
    (
        CSV,
        IN_SOME_NAMESPACES,
        "  - type: MultiNamespace\n    supported: true\n  - type: AllNamespaces\n    supported: true\n  install:\n    strategy: deployment\n    spec:\n      permissions:\n      - serviceAccountName: demo\n        rules:\n        - {apiGroups: [\"\"], resources: [namespaces], verbs: [get, patch]}\n        - {apiGroups: [security.openshift.io], resources: [securitycontextconstraints], verbs: [use]}\n        - {apiGroups: [authorization.k8s.io], resources: [selfsubjectaccessreviews], verbs: [create]}\n",
        &[],
    ),
    (
        CSV,
        IN_SOME_NAMESPACES,
        "  - type: MultiNamespace\n    supported: true\n  - type: AllNamespaces\n    supported: true\n  install:\n    strategy: deployment\n    spec:\n      permissions:\n      - serviceAccountName: demo\n        rules:\n        - {apiGroups: [\"\"], resources: [namespaces], verbs: [get, list]}\n",
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
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: a}\nroleRef: {kind: ClusterRole, name: view}\nsubjects: [{kind: ServiceAccount, name: demo, namespace: b}]\n",
        &["RBAC-8"],
    ),
    // The account of another operator is where that is installed.
    (
        "manifests/binding.yaml",
        "",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: a}\nroleRef: {kind: ClusterRole, name: view}\nsubjects: [{kind: ServiceAccount, name: a, namespace: b}]\n",
        &[],
    ),
    (CSV, "deploymentName: demo", "deploymentName: hook", &["HOOK-1"]),
    (CSV, "generateName: vwidget", "generateName: V_widget", &["HOOK-3"]),
    // The API server requires three segments.
    (CSV, "generateName: vwidget.", "generateName: ", &["HOOK-3"]),
    (
        "metadata/properties.yaml",
        "",
        "properties:\n- type: olm.gvk.required\n  value: {group: a.example.com, kind: A, version: v1}\n",
        &["V1-2"],
    ),
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
        MANAGER,
        "              volumes: [{name: cert, secret: {secretName: webhook-server-cert}}]\n              containers:\n              - name: manager\n                volumeMounts: [{name: cert, mountPath: /certs}]",
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
        "LOG_LEVEL\n                  value: info",
        "RELATED_IMAGE_CACHE\n                  value: quay.io/x/cache@sha256:1111111111111111111111111111111111111111111111111111111111111111",
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
    (
        CSV,
        "allowPrivilegeEscalation: false",
        "privileged: true",
        &["POD-1", "POD-4"],
    ),
    (CSV, "labels: {app: demo}", "labels: {app: other}", &["POD-2"]),
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
    (
        CRD,
        "type: integer",
        "type: integer\n                format: int32\n                maximum: 4294967295",
        &["CRD-37", "EX-1"],
    ),
    (
        CRD,
        "type: integer",
        "type: integer\n                format: int64\n                maximum: 4294967295",
        &[],
    ),
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
        CRD,
        "    schema:",
        "    subresources: {status: {}}\n    schema:",
        &["RBAC-9"],
    ),
    (
        CSV,
        "  webhookdefinitions:\n",
        "  webhookdefinitions:\n  - type: ValidatingAdmissionWebhook\n    generateName: vwidget.example.com\n    deploymentName: demo\n    admissionReviewVersions: [v1]\n    sideEffects: None\n    failurePolicy: Ignore\n",
        &["HOOK-2"],
    ),
    (
        CSV,
        "    rules:\n    - apiGroups: [demo.example.com]",
        "    rules:\n    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}\n    - apiGroups: [demo.example.com]",
        &["HOOK-8"],
    ),
    (
        CSV,
        "containerPort: 443",
        "containerPort: 443\n    targetPort: webhook-server",
        &["HOOK-9"],
    ),
    (
        CSV,
        "containerPort: 443",
        "containerPort: 443\n    targetPort: 9443",
        &[],
    ),
    (
        CSV,
        "  displayName: Demo",
        "  displayname: Demo\n  dispalyNames: Demo",
        &["CSV-23", "FILE-3"],
    ),
    (
        CRD,
        "                type: integer",
        "                type: integer\n                minimun: 1",
        &["FILE-3"],
    ),
    (
        CSV,
        "  displayName: Demo",
        "  displayName: Demo\n  icon: [{base64data: iVBORw0KGgo=, mediatype: image/svg+xml}]",
        &["ICON-1"],
    ),
    (
        CSV,
        "  displayName: Demo",
        "  displayName: Demo\n  icon: [{base64data: '***', mediatype: image/svg+xml}]",
        &["ICON-1"],
    ),
    (
        "metadata/dependencies.yaml",
        "",
        "dependencies:\n- type: olm.gvk\n  value: {group: demo.example.com, version: v1, kind: Widget}\n",
        &["META-4", "V1-2"],
    ),
    (
        "manifests/monitor.yaml",
        "",
        "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: a}\n",
        &["KUBE-2"],
    ),
    (
        "manifests/map.yaml",
        "",
        "apiVersion: demo.example.com/v1\nkind: ConfigMap\nmetadata: {name: a}\n",
        &["KUBE-3"],
    ),
    (
        CSV,
        "    name: Example",
        "    name: Provider Name\n    url: https://your.domain",
        &["META-5"],
    ),
    // A status without fields is never written.
    (
        CRD,
        "    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n",
        "    subresources: {status: {}}\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          status: {type: object}\n",
        &[],
    ),
    (CSV, "capabilities: {drop: [ALL]}", "capabilities: {}", &["POD-4"]),
    (CSV, "runAsNonRoot: true", "runAsUser: 0", &["POD-1", "POD-4"]),
    (
        CSV,
        "      deployments:\n",
        "      deployments:\n      - name: demo\n        spec: {selector: {}, template: {metadata: {}, spec: {serviceAccountName: demo, containers: []}}}\n",
        &["POD-3", "POD-5"],
    ),
    (CSV, "containerPort: 443", "containerPort: 99999", &["CSV-23"]),
    (CSV, "containerPort: 443", "containerPort: 9443", &[]),
    (CSV, "cpu: 10m", "cpu: 1x", &["LOAD-7"]),
    (CSV, "- name: LOG_LEVEL", "- name: A=B", &["POD-5"]),
    (
        "manifests/map.yaml",
        "",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 1}\n",
        &["OBJ-3"],
    ),
    (
        "manifests/map.yaml",
        "",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '1'}\n",
        &[],
    ),
];

#[test]
fn each_change_breaks_its_rules_and_no_others() {
    let wrong = wrong(CHANGES, SUITE);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Digests are for mirrors: an operator that does not claim to be mirrored loses nothing with a tag.
#[test]
fn tags_are_a_warning_for_disconnected_clusters() {
    for (annotation, severity) in [
        ("", Severity::Info),
        (
            "features.operators.openshift.io/disconnected: \"true\"",
            Severity::Warning,
        ),
        (
            "features.operators.openshift.io/disconnected: \"false\"",
            Severity::Info,
        ),
        (
            "operators.openshift.io/infrastructure-features: '[\"Disconnected\"]'",
            Severity::Warning,
        ),
    ] {
        let mut tree = changed(CSV, DIGEST, ":1.0");
        let text = String::from_utf8(tree.file(CSV).unwrap_or_default().to_vec()).expect("text");
        let annotated = text.replacen(
            "    capabilities: Basic",
            &format!("    {annotation}\n    capabilities: Basic"),
            1,
        );
        tree.insert(CSV, annotated.into_bytes());
        let outcome = outcome(tree, &options(""));
        let found = outcome.findings().find(|finding| finding.rule == "IMG-1");
        assert_eq!(found.map(|finding| finding.severity), Some(severity), "{annotation:?}");
    }
}

/// The end of the install modes, in front of the permissions.
const IN_SOME_NAMESPACES: &str = "  - type: MultiNamespace\n    supported: false\n  - type: AllNamespaces\n    supported: true\n  install:\n    strategy: deployment\n    spec:\n";

/// The start of the containers, before which volumes can be inserted.
pub const MANAGER: &str = "              containers:\n              - name: manager";
