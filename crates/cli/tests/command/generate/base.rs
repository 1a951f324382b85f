//! The base CSV of a Go project.

use serde_json::json;

use super::support::{Folder, OPERATOR, said};

#[test]
fn owned_kinds_come_from_the_definitions_of_a_go_project() {
    let directory = Folder::new();
    let definition = OPERATOR.split("---\n").next().unwrap();
    let described = definition.replace(
        "        type: object\n",
        "        description: Example does it.\n        type: object\n",
    );
    directory.write("config/crd/bases/example.com_examples.yaml", &described);
    let run = |layout: &str| {
        directory.write(
            "PROJECT",
            &format!("projectName: example-operator\nlayout:\n- {layout}\nversion: \"3\"\nresources:\n- {{group: example, domain: com, kind: Example, version: v1}}\n"),
        );
        let output = directory.olmkit(&["generate", "kustomize", "manifests", "-q"], "");
        assert!(output.status.success(), "{}", said(&output));
        let base = directory.manifest("config/manifests/bases/example-operator.clusterserviceversion.yaml");
        base["spec"]["customresourcedefinitions"].clone()
    };
    assert_eq!(
        run("helm.sdk.operatorframework.io/v1"),
        json!({}),
        "as operator-sdk leaves it"
    );
    let owned = json!([{
        "name": "examples.example.com", "version": "v1", "kind": "Example",
        "displayName": "Example", "description": "Example does it.",
    }]);
    assert_eq!(run("go.kubebuilder.io/v4"), json!({ "owned": owned }));
    assert_eq!(run("go.kubebuilder.io/v4"), json!({ "owned": owned }), "once");
}

#[test]
fn a_project_without_a_name_is_named_after_its_directory() {
    let directory = Folder::new();
    directory.write(
        "Shop-Operator/PROJECT",
        "layout:\n- helm.sdk.operatorframework.io/v1\nversion: \"3\"\n",
    );
    directory.write(
        "not_a_label/PROJECT",
        "layout:\n- helm.sdk.operatorframework.io/v1\nversion: \"3\"\n",
    );
    let run = |below: &str| {
        let mut command = assert_cmd::Command::cargo_bin("olmkit").unwrap();
        command.args(["generate", "kustomize", "manifests"]);
        command.current_dir(directory.path(below)).output().unwrap()
    };
    let output = run("Shop-Operator");
    assert!(output.status.success(), "{}", said(&output));
    let base = "Shop-Operator/config/manifests/bases/shop-operator.clusterserviceversion.yaml";
    assert!(directory.path(base).is_file());
    let output = run("not_a_label");
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("is not a DNS label"), "{}", said(&output));
}
