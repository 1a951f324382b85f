//! Lint edge cases that one change of the bundle cannot show.

use olmkit::diagnostics::{Severity, fold_repeated};
use olmkit::validate::{Options, Outcome};

use super::changes::{CRD, CSV, bundle, changed, options, outcome};
use super::own_rules::MANAGER;

/// Returns true if CERT-1 reports a volume with a Secret that is mounted at a path, or nowhere.
fn waits(volume: &str, secret: &str, path: Option<&str>, service: Option<&str>) -> bool {
    let mount = path.map_or(String::new(), |path| {
        format!("\n                volumeMounts: [{{name: {volume}, mountPath: {path}}}]")
    });
    let pod =
        format!("              volumes: [{{name: {volume}, secret: {{secretName: {secret}}}}}]\n{MANAGER}{mount}");
    let mut tree = changed(CSV, MANAGER, &pod);
    if let Some(service) = service {
        tree.insert("manifests/tls.yaml", service.as_bytes().to_vec());
    }
    let outcome = outcome(tree, &options(""));
    outcome.findings().any(|finding| finding.rule == "CERT-1")
}

/// OLM makes a Secret for the webhooks of a Deployment. A volume may name it.
#[test]
fn the_certificate_of_olm_is_not_missing() {
    for (secret, is_missing) in [("demo-service-cert", false), ("other-service-cert", true)] {
        assert_eq!(waits("tls", secret, Some("/certs"), None), is_missing, "{secret}");
    }
}

/// OLM mounts its certificate in place of a container's mount at two paths, and the kubelet ignores a volume without
/// mounts.
#[test]
fn a_certificate_that_gives_way_to_that_of_olm_is_not_missing() {
    for (volume, path, is_missing) in [
        ("cert", Some("/tmp/k8s-webhook-server/serving-certs"), false),
        ("cert", Some("/apiserver.local.config/certificates"), false),
        ("cert", Some("/tmp/k8s-webhook-server/other"), true),
        ("webhook-cert", Some("/certs"), false),
        ("cert", None, false),
    ] {
        assert_eq!(
            waits(volume, "webhook-server-cert", path, None),
            is_missing,
            "{volume} {path:?}"
        );
    }
}

/// OpenShift creates the Secret that a Service of the bundle requests.
#[test]
fn a_certificate_of_openshift_is_not_missing() {
    for (annotation, is_missing) in [
        (
            "service.beta.openshift.io/serving-cert-secret-name: serving-cert",
            false,
        ),
        ("service.beta.openshift.io/serving-cert-secret-name: other-cert", true),
    ] {
        let service = format!(
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: tls\n  annotations:\n    {annotation}\n\
             spec:\n  ports: [{{port: 443}}]\n"
        );
        assert_eq!(
            waits("tls", "serving-cert", Some("/certs"), Some(&service)),
            is_missing,
            "{annotation}"
        );
    }
}

/// Fields that an example lacks are added together, and one finding names them.
#[test]
fn missing_fields_of_an_example_are_one_finding() {
    for (required, message) in [
        (
            "[size, a]",
            "the API server rejects example 1 of Widget: spec.a: is required",
        ),
        (
            "[size, a, b, c]",
            "the API server rejects example 1 of Widget: spec.a, spec.b and spec.c are required",
        ),
    ] {
        let properties = format!(
            "required: {required}\n            properties:\n              a: {{type: string}}\n              \
             b: {{type: string}}\n              c: {{type: string}}\n              size"
        );
        let outcome = outcome(
            changed(CRD, "properties:\n              size", &properties),
            &options(""),
        );
        let found = outcome.findings().filter(|finding| finding.rule == "EX-1");
        assert_eq!(found.map(|finding| &*finding.message).collect::<Vec<_>>(), [message]);
    }
}

/// An API of a group in which the operator writes no status, while it writes that of other groups, belongs to another
/// controller.
#[test]
fn a_status_of_another_controller_is_not_missed() {
    let is_missed = |group: &str, served: &str| {
        let mut tree = changed(CRD, "    schema:", "    subresources: {status: {}}\n    schema:");
        let text = String::from_utf8(tree.file(CRD).unwrap_or_default().to_vec()).expect("text");
        let other = text.replace("demo.example.com", group).replace("idget", "adget");
        tree.insert("manifests/other.yaml", other.into_bytes());
        let csv = String::from_utf8(tree.file(CSV).unwrap_or_default().to_vec()).expect("text");
        let granted = format!(
            "rules:\n        - {{apiGroups: [demo.example.com], resources: [{served}], verbs: ['*']}}\n        \
             - {{apiGroups: [{group}], resources: [wadgets], verbs: [create, update]}}\n"
        );
        tree.insert(CSV, csv.replacen("rules:\n", &granted, 1).into_bytes());
        let outcome = outcome(tree, &options(""));
        let mut found = outcome.findings().filter(|finding| finding.rule == "RBAC-9");
        found.any(|finding| {
            assert_eq!(finding.severity, Severity::Info);
            true
        })
    };
    assert!(is_missed("demo.example.com", "widgets/status"));
    assert!(is_missed("dns.example.org", "widgets"));
    assert!(!is_missed("dns.example.org", "widgets/status"));
    assert!(!is_missed("dns.example.org", "'*'"));
}

/// An image without the operator's tag is another one, but looks the same to its author. Only the registry can resolve
/// whether a tag and a digest are one image.
#[test]
fn the_shown_image_is_one_that_the_operator_uses() {
    for (image, words) in [
        (
            "quay.io/example/demo",
            "without the tag or digest that the operator uses: quay.io/example/demo@sha256:",
        ),
        ("quay.io/example/dem:1.0", "which the operator does not use"),
        ("quay.io/example/demo:1.0", ""),
    ] {
        let annotation = format!("    containerImage: {image}\n    capabilities: Basic");
        let outcome = outcome(changed(CSV, "    capabilities: Basic", &annotation), &options(""));
        let found = outcome.findings().find(|finding| finding.rule == "IMG-5");
        let message = found.map_or("", |finding| finding.message.as_str());
        assert!(
            message.contains(words) && message.is_empty() == words.is_empty(),
            "{image}: {message}"
        );
    }
}

/// Verbs for privilege escalation are one finding for each service account; with the names of objects they allow
/// little.
#[test]
fn escalation_is_one_finding() {
    let rules = "verbs: [get, list, watch, update]\n        - {apiGroups: [a], resources: [b], verbs: [bind]}\n        \
                 - {apiGroups: [a], resources: [c], verbs: [escalate, bind]}\n        \
                 - {apiGroups: [a], resources: [d], verbs: [impersonate], resourceNames: [e]}";
    let outcome = outcome(changed(CSV, "verbs: [get, list, watch, update]", rules), &options(""));
    let found = outcome.findings().filter(|finding| finding.rule == "RBAC-7");
    assert_eq!(
        found.map(|finding| &*finding.message).collect::<Vec<_>>(),
        ["the verbs bind, escalate let service account \"demo\" escalate its own permissions"]
    );
}

/// A CRD whose only version is stored is never converted, regardless of its conversion settings.
#[test]
fn only_several_versions_are_converted() {
    for (served, is_missing) in [("true", true), ("false", false)] {
        let versions = format!(
            "  conversion: {{strategy: Webhook, webhook: {{conversionReviewVersions: [v1]}}}}\n  versions:\n  \
             - {{name: v2, served: {served}, storage: false, schema: {{openAPIV3Schema: {{type: object}}}}}}\n"
        );
        let outcome = outcome(changed(CRD, "  versions:\n", &versions), &options(""));
        let missing = outcome.findings().any(|finding| finding.rule == "HOOK-7");
        assert_eq!(missing, is_missing, "{served}");
    }
}

/// A plugin in an image has a scheme where a proxy reads it.
#[test]
fn a_plugin_of_a_proxy_is_an_image() {
    let plugin = "RELATED_IMAGE_PLUGIN\n                  value: oci://quay.io/x/plugin:1";
    let outcome = outcome(
        changed(CSV, "LOG_LEVEL\n                  value: info", plugin),
        &options(""),
    );
    let found: Vec<&str> = outcome.findings().map(|finding| finding.rule).collect();
    assert!(!found.contains(&"IMG-3") && found.contains(&"IMG-4"), "{found:?}");
}

/// The messages of a rule.
fn messages(outcome: &Outcome, rule: &str) -> Vec<String> {
    let found = outcome.findings().filter(|finding| finding.rule == rule);
    found.map(|finding| finding.message.clone()).collect()
}

/// However often a field is unknown, it is one defect; of different ones the first ten are named.
#[test]
fn an_unknown_field_is_told_once() {
    let of_containers = |name: &dyn Fn(usize) -> String| {
        let containers: String = (0..13)
            .map(|at| {
                format!(
                    "              - {{name: c{at}, image: quay.io/example/c{at}, {}: 1}}\n",
                    name(at)
                )
            })
            .collect();
        let (list, manager) = MANAGER.split_once('\n').expect("two lines");
        let tree = changed(CSV, MANAGER, &format!("{list}\n{containers}{manager}"));
        messages(&outcome(tree, &options("")), "FILE-3")
    };
    let once = of_containers(&|_| "zzz".to_owned());
    assert_eq!(once.len(), 1, "{once:?}");
    assert!(once[0].ends_with("and 7 more)"), "{once:?}");
    let different = of_containers(&|at| format!("zzz{at}"));
    assert_eq!(
        different.last().map(String::as_str),
        Some("3 more unknown fields are silently dropped; the first is \"zzz10\" of Container")
    );
}

/// RBAC-5 findings for a rule under `permissions` if the operator supports all install modes.
fn not_granted(rule: &str) -> Vec<String> {
    let csv = String::from_utf8(bundle().file(CSV).unwrap_or_default().to_vec()).expect("text");
    let permissions = format!(
        "      permissions:\n      - serviceAccountName: demo\n        rules:\n        - {{{rule}}}\n      clusterPermissions:\n"
    );
    let csv = csv.replace("supported: false", "supported: true");
    let mut tree = bundle();
    tree.insert(
        CSV,
        csv.replacen("      clusterPermissions:\n", &permissions, 1)
            .into_bytes(),
    );
    messages(&outcome(tree, &options("")), "RBAC-5")
}

/// Three install modes are named as a sentence names them.
#[test]
fn install_modes_are_named_in_a_sentence() {
    assert_eq!(
        not_granted("apiGroups: [''], resources: [nodes], verbs: [get]"),
        [
            "installed for OwnNamespace, SingleNamespace or MultiNamespace, the operator is not granted nodes: \
             namespaced `permissions` become a Role"
        ]
    );
}

/// The API server checks the permission to bind a ClusterRole in the namespace of the RoleBinding.
#[test]
fn a_role_lets_cluster_roles_be_bound_in_its_namespace() {
    let of = |verb: &str| {
        not_granted(&format!(
            "apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [{verb}]"
        ))
    };
    assert!(of("bind").is_empty());
    assert_eq!(of("get").len(), 1);
}

/// A common defect of two examples is reported once in text output.
/// Kubernetes compiles a rule with the name of a keyword since 1.32.
#[test]
fn features_are_compared_with_the_oldest_kubernetes_release() {
    const FIELD: &str = "              size:\n";
    let finding = |oldest: &str, schema: &str| {
        let mut tree = changed(CSV, "  minKubeVersion: 1.25.0\n", oldest);
        let crd = changed(CRD, FIELD, &format!("{schema}{FIELD}"));
        tree.insert(CRD, crd.file(CRD).expect("file").to_vec());
        let outcome = outcome(tree, &options(""));
        assert_eq!(
            messages(&outcome, "CRD-30"),
            Vec::<String>::new(),
            "the newest release takes the schema"
        );
        let mut found = outcome.findings().filter(|finding| finding.rule == "KUBE-1");
        let first = found.next().map(|finding| (finding.severity, finding.message.clone()));
        assert!(found.next().is_none(), "one finding");
        first
    };
    let object = |rule: &str| {
        format!(
            "              place:\n                type: object\n                properties:\n                  namespace: {{type: string, maxLength: 9}}\n                x-kubernetes-validations:\n                - rule: {rule}\n"
        )
    };
    let (keyword, common) = (object("self.namespace == 'a'"), object("has(self.__namespace__)"));
    let message = |bound: &str| {
        format!(
            "the CEL expression \"self.namespace == 'a'\" uses fields that have the name of a keyword, and requires Kubernetes 1.32, \
             but {bound}: older releases refuse the definition"
        )
    };
    for (oldest, bound, severity) in [
        (
            "  minKubeVersion: 1.31.0\n",
            "minKubeVersion is 1.31.0",
            Severity::Warning,
        ),
        ("", "the bundle has no minKubeVersion", Severity::Info),
        (
            "  minKubeVersion: ' '\n",
            "the bundle has no minKubeVersion",
            Severity::Info,
        ),
    ] {
        assert_eq!(
            finding(oldest, &keyword),
            Some((severity, message(bound))),
            "{oldest:?}"
        );
    }
    // CSV-17 reports a version that is none.
    for oldest in ["  minKubeVersion: 1.32.0\n", "  minKubeVersion: v1.31\n"] {
        assert_eq!(finding(oldest, &keyword), None, "{oldest}");
    }
    // All platforms with catalogs in the public repositories have rules.
    assert_eq!(finding("", &common), None);
    assert_eq!(
        finding("  minKubeVersion: 1.24.0\n", &common).map(|(severity, _)| severity),
        Some(Severity::Warning)
    );
}

#[test]
fn examples_with_one_defect_are_told_together() {
    let example = |name: &str, spec: &str| {
        format!(
            "{{\"apiVersion\": \"demo.example.com/v1\", \"kind\": \"Widget\", \"metadata\": {{\"name\": \"{name}\"}}, \"spec\": {{{spec}}}}}"
        )
    };
    let wrong = "\"size\": 1, \"sise\": 1";
    let list = [
        example("a", wrong),
        example("b", wrong),
        example("c", wrong),
        example("d", "\"size\": 1, \"sort\": 1"),
    ];
    let before = format!("'[{}]'", example("a", "\"size\": 1"));
    let tree = changed(CSV, &before, &format!("'[{}]'", list.join(", ")));
    let outcome = outcome(tree, &options(""));
    let found = outcome.findings().filter(|finding| finding.rule == "EX-2").cloned();
    let told = fold_repeated(found.collect());
    let told: Vec<&str> = told.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].ends_with(" (the same in examples 2 and 3)"), "{told:?}");
}

/// operator-sdk accepts a boolean annotation. `opm render` and `catalog render` do not.
#[test]
fn a_bundle_that_no_catalog_can_contain_is_an_error_and_passes_operator_sdk() {
    for (value, is_readable) in [("\"true\"", true), ("true", false)] {
        let line = format!("    certified: {value}\n    capabilities: Basic");
        let folder = test_support::demo_bundle::folder(&[(CSV, "    capabilities: Basic", &line)]);
        let options = Options {
            directory: folder.path().join("demo"),
            ..options("")
        };
        let outcome = outcome(changed(CSV, "    capabilities: Basic", &line), &options);
        let found = outcome.findings().find(|finding| finding.rule == "OPM-1");
        let severity = found.map(|finding| finding.severity);
        assert_eq!(severity, (!is_readable).then_some(Severity::Error));
        if let Some(finding) = found {
            let message = "`catalog render` cannot read the bundle: json: cannot unmarshal bool into Go struct field \
                           ObjectMeta.metadata.annotations of type string";
            assert_eq!(finding.message, message);
        }
        // The API server rejects the annotation too, but one defect gives one finding.
        assert!(!outcome.findings().any(|finding| finding.rule == "CSV-23"));
        assert!(outcome.passed());
    }
}
