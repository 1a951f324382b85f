//! `olmkit bundle unpack`: a bundle as manifests that need no OLM.

use serde_json::{Value, json};

use super::support::{Folder, OPERATOR, said};

fn unpack(directory: &Folder, flags: &[&str]) -> Vec<Value> {
    let output = directory.olmkit(&[&["bundle", "unpack", "bundle"], flags].concat(), "");
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    text.split("---\n")
        .map(|document| serde_yaml::from_str(document).unwrap())
        .collect()
}

fn find<'a>(manifests: &'a [Value], kind: &str) -> &'a Value {
    manifests
        .iter()
        .find(|manifest| manifest["kind"] == kind)
        .unwrap_or_else(|| panic!("no {kind}"))
}

#[test]
fn all_namespaces_lift_the_permissions() {
    let directory = Folder::new();
    assert!(directory.generate(&["--strict"], OPERATOR).status.success());
    let manifests = unpack(&directory, &["--namespace", "mine"]);
    let kinds: Vec<&str> = manifests
        .iter()
        .filter_map(|manifest| manifest["kind"].as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "Namespace",
            "CustomResourceDefinition",
            "ServiceAccount",
            "ClusterRole",
            "ClusterRoleBinding",
            "Deployment"
        ]
    );
    let deployment = find(&manifests, "Deployment");
    assert_eq!(deployment["metadata"]["namespace"], "mine");
    assert_eq!(
        deployment["spec"]["template"]["metadata"]["annotations"]["olm.targetNamespaces"],
        ""
    );
    assert_eq!(
        find(&manifests, "ClusterRoleBinding")["subjects"][0]["namespace"],
        "mine"
    );
    assert_eq!(
        find(&manifests, "ClusterRole")["rules"][0]["verbs"],
        json!(["get", "list"])
    );
}

#[test]
fn install_modes_that_are_not_supported_are_refused() {
    let directory = Folder::new();
    assert!(directory.generate(&["--strict"], OPERATOR).status.success());
    let output = directory.olmkit(&["bundle", "unpack", "bundle", "--watch-namespaces", "a,b"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("it supports AllNamespaces"), "{}", said(&output));
}
