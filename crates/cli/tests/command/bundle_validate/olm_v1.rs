//! OLM v1's behavior for a bundle: `bundle render`, `bundle diff`, `crd diff`, `--profile olmv1`.

use test_support::demo_bundle::{CRD, CSV, SERVICE, copy};

use super::outputs::run;

/// The bundle, and an earlier one whose only field had a default.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("temporary directory");
    copy(directory.path(), "demo", &[]);
    copy(
        directory.path(),
        "before",
        &[
            (CSV, "  version: 0.1.0", "  version: 0.0.9"),
            (CSV, "resources: [leases]\n", "resources: [leases, pods]\n"),
            (CRD, "scope: Namespaced", "scope: Cluster"),
        ],
    );
    directory
}

#[test]
fn a_bundle_is_rendered_for_kubectl() {
    let directory = directory();
    let printed = run(
        directory.path(),
        &["bundle", "render", "--olmv1", "demo", "-n", "mine", "--owner", "demo"],
    );
    assert_eq!(printed.code, 0, "{}", printed.err);
    let kinds: Vec<&str> = printed
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("kind: "))
        .collect();
    assert_eq!(
        kinds,
        [
            "ServiceAccount",
            "ClusterRole",
            "ClusterRoleBinding",
            "CustomResourceDefinition",
            "Service",
            "Deployment",
            "ValidatingWebhookConfiguration",
            "Service",
            "Issuer",
            "Certificate"
        ]
    );
    let labels = printed.out.matches("olm.operatorframework.io/owner-name: demo").count();
    assert_eq!(labels, kinds.len());
}

#[test]
fn bundles_that_olm_v1_rejects_are_not_rendered() {
    let directory = directory();
    let watching = [
        "bundle",
        "render",
        "--olmv1",
        "demo",
        "-n",
        "mine",
        "--watch-namespace",
        "other",
    ];
    let printed = run(directory.path(), &watching);
    assert_eq!((printed.code, printed.out.as_str()), (1, ""));
    assert!(
        printed.err.contains("unknown field \"watchNamespace\""),
        "{}",
        printed.err
    );
    let printed = run(directory.path(), &["bundle", "render", "demo", "-n", "mine"]);
    assert_eq!(printed.code, 2, "{}", printed.err);
}

#[test]
fn an_upgrade_is_summed_up_and_judged() {
    let directory = directory();
    let printed = run(directory.path(), &["bundle", "diff", "before", "demo"]);
    assert_eq!(printed.code, 1, "{}", printed.err);
    let lines = [
        "No longer needed:",
        "cluster: create, get, update pods of coordination.k8s.io",
        "version 0.0.9",
    ];
    for line in lines {
        assert!(printed.out.contains(line), "{line}: {}", printed.out);
    }
    assert!(
        printed
            .out
            .contains("error[V1-13]: scope: scope changed : \"Cluster\" -> \"Namespaced\"")
    );
    assert!(printed.out.contains(&format!("demo/{CRD}:12:")), "{}", printed.out);
    let same = run(directory.path(), &["bundle", "diff", "demo", "demo"]);
    assert_eq!(same.code, 0, "{}", same.err);
}

#[test]
fn definitions_are_compared_by_name() {
    let directory = directory();
    let (before, now) = (format!("before/{CRD}"), format!("demo/{CRD}"));
    let printed = run(directory.path(), &["crd", "diff", &before, &now]);
    assert_eq!(printed.code, 1, "{}", printed.err);
    assert!(printed.out.contains(&format!("{now}:12:")), "{}", printed.out);
    assert_eq!(run(directory.path(), &["crd", "diff", &now, &now]).code, 0);
    let other = run(directory.path(), &["crd", "diff", &format!("demo/{SERVICE}"), &now]);
    assert_eq!(other.code, 1);
    assert!(other.err.contains("nothing to compare"), "{}", other.err);
}

#[test]
fn the_profile_has_releases() {
    let directory = directory();
    let validate = |profile: &str| run(directory.path(), &["bundle", "validate", "demo", "--profile", profile]);
    assert_eq!(validate("olmv1").code, 0);
    let old = validate("olmv1=1.5");
    assert_eq!(old.code, 1);
    assert!(old.out.contains("error[V1-12]"), "{}", old.out);
    let unknown = validate("olmv1=2");
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("name one from 1.5 to 1.12"), "{}", unknown.err);
}

#[test]
fn our_operator_has_its_lease_in_the_namespace_that_it_runs_in() {
    let bundle = test_support::repository("bundle");
    let bundle = bundle.to_str().unwrap();
    let directory = tempfile::tempdir().expect("temporary directory");
    let validated = run(
        directory.path(),
        &["bundle", "validate", bundle, "--profile", "olmv1", "--strict"],
    );
    assert_eq!(
        (validated.code, validated.out.matches("V1-").count()),
        (0, 0),
        "{}",
        validated.out
    );
    let arguments = [
        "bundle",
        "render",
        "--olmv1",
        bundle,
        "-n",
        "mine",
        "--watch-namespace",
        "shop",
    ];
    let printed = run(directory.path(), &arguments);
    assert_eq!(printed.code, 0, "{}", printed.err);
    let with_leases: Vec<&str> = printed
        .out
        .split("---\n")
        .filter(|object| object.contains("- leases\n"))
        .collect();
    let [role] = with_leases.as_slice() else {
        panic!("{with_leases:#?}")
    };
    assert!(
        role.contains("kind: Role\n") && role.contains("  namespace: mine\n"),
        "{role}"
    );
    let bound = printed.out.split("---\n").any(|object| {
        let of_role = object.contains("kind: RoleBinding\n")
            && object.contains("  name: memcached-operator-leader-election-role\n");
        // Without a namespace an account is in that of the binding.
        of_role && object.contains("  namespace: mine\n") && object.matches("namespace:").count() == 1
    });
    assert!(bound, "{}", printed.out);
}

#[test]
fn an_upgrade_is_summed_up_for_programs_and_pull_requests() {
    let directory = directory();
    let printed = run(directory.path(), &["bundle", "diff", "before", "demo", "-o", "json"]);
    assert_eq!(printed.code, 1, "{}", printed.err);
    let json: serde_json::Value = serde_json::from_str(&printed.out).unwrap();
    assert_eq!(json["upgradable"], false);
    let lost = json["summary"]["lost"].as_array().unwrap();
    assert!(lost.contains(&"version 0.0.9".into()), "{json}");
    assert_eq!(json["findings"][0]["rule"], "V1-13", "{json}");
    let printed = run(
        directory.path(),
        &["bundle", "diff", "before", "demo", "-o", "markdown"],
    );
    assert_eq!(printed.code, 1, "{}", printed.err);
    for line in [
        "### Lost\n",
        "- `version 0.0.9`\n",
        "### OLM v1 blocks the upgrade\n",
        "  - `scope: spec.scope`\n",
    ] {
        assert!(printed.out.contains(line), "{line}: {}", printed.out);
    }
    let printed = run(directory.path(), &["bundle", "diff", "demo", "demo", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&printed.out).unwrap();
    assert_eq!(
        (printed.code, &json["upgradable"]),
        (0, &true.into()),
        "{}",
        printed.out
    );
    let printed = run(directory.path(), &["bundle", "diff", "demo", "demo", "-o", "markdown"]);
    assert!(printed.out.starts_with("No differences in "), "{}", printed.out);
}

#[test]
fn many_changes_of_a_definition_are_grouped() {
    let directory = tempfile::tempdir().unwrap();
    let definition = |limit: usize| {
        let properties = (0..30).fold(String::new(), |all, number| {
            format!("{all}              p{number}: {{type: string, maxLength: {limit}}}\n")
        });
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: carts.shop.example.com}}\n\
             spec:\n  group: shop.example.com\n  scope: Namespaced\n  names: {{kind: Cart, listKind: CartList, plural: carts, \
             singular: cart}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      \
             openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            type: object\n            \
             properties:\n{properties}"
        )
    };
    std::fs::write(directory.path().join("old.yaml"), definition(9)).unwrap();
    std::fs::write(directory.path().join("new.yaml"), definition(8)).unwrap();
    let printed = run(directory.path(), &["crd", "diff", "old.yaml", "new.yaml"]);
    assert_eq!(printed.code, 1, "{}", printed.err);
    assert_eq!(printed.out.lines().count(), 3, "{}", printed.out);
    assert!(
        printed
            .out
            .starts_with("error[V1-13]: carts.shop.example.com: OLM v1 blocks 30 changes\n  maxLength: .spec.p"),
        "{}",
        printed.out
    );
    assert!(printed.out.contains(" and 27 more\n"), "{}", printed.out);
    let full = run(directory.path(), &["crd", "diff", "old.yaml", "new.yaml", "--full"]);
    assert_eq!(full.out.matches("error[V1-13]").count(), 30, "{}", full.out);
    // The same definitions in two bundles.
    for (name, definition) in [("old", definition(9)), ("new", definition(8))] {
        copy(directory.path(), name, &[("manifests/carts.yaml", "", &definition)]);
    }
    let bundles = run(directory.path(), &["bundle", "diff", "old", "new"]);
    assert!(bundles.out.lines().count() < 10, "{}", bundles.out);
    assert!(bundles.out.contains(" and 27 more\n"), "{}", bundles.out);
    let full = run(directory.path(), &["bundle", "diff", "old", "new", "--full"]);
    assert!(full.out.lines().count() > 30, "{}", full.out);
}
