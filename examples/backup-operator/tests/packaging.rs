//! From the types to a bundle, as `docs/guides/rust-operators.md` describes it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

use olmkit::bundle::generate::{self, Generated, Input, Options};
use serde_json::{Value, json};

fn bundle() -> Value {
    generated().csv
}

fn generated() -> Generated {
    let config = tempfile::tempdir().unwrap();
    backup_operator::project()
        .unwrap()
        .render()
        .unwrap()
        .write(config.path())
        .unwrap();
    let options = Options {
        package: "backup-operator".into(),
        layout: "unknown".into(),
        version: Some("0.1.0".into()),
        created_at: "2023-11-14T22:13:20Z".into(),
        strict: true,
        ..Options::default()
    };
    let input = Input::from_directory(config.path()).unwrap();
    match generate::generate(input, &options) {
        Ok(generated) => generated,
        Err((error, notices)) => panic!("{error}: {notices:#?}"),
    }
}

#[test]
fn both_versions_and_the_cluster_scoped_kind_are_owned() {
    let csv = bundle();
    let owned = csv["spec"]["customresourcedefinitions"]["owned"].as_array().unwrap();
    let names: Vec<(&str, &str)> = owned
        .iter()
        .map(|entry| (entry["kind"].as_str().unwrap(), entry["version"].as_str().unwrap()))
        .collect();
    assert_eq!(names, [("BackupClass", "v1"), ("Backup", "v1"), ("Backup", "v1alpha1")]);
    assert_eq!(owned[1]["specDescriptors"][0]["displayName"], "Cron line");
    assert_eq!(owned[1]["description"], "A volume that is saved at set times.");
    let samples: Value =
        serde_json::from_str(csv["metadata"]["annotations"]["alm-examples"].as_str().unwrap()).unwrap();
    assert_eq!(samples.as_array().unwrap().len(), 2);
}

#[test]
fn only_what_has_no_namespace_is_asked_for_in_the_cluster() {
    let generated = generated();
    let install = generated.csv["spec"]["install"]["spec"].clone();
    assert_eq!(
        install["clusterPermissions"][0]["rules"],
        json!([{"apiGroups": ["backup.example.com"], "resources": ["backupclasses"], "verbs": ["get", "list", "watch"]}])
    );
    let resources = |rules: &Value| -> Vec<String> {
        let rules = rules.as_array().unwrap().iter();
        rules
            .map(|rule| rule["resources"][0].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        resources(&install["permissions"][0]["rules"]),
        ["backups", "backups/status"]
    );
    // Permissions that it needs only in its own namespace are a Role of the bundle: OLM would grant permissions in all
    // watched namespaces.
    let mut roles = generated
        .manifests
        .iter()
        .filter(|(_, object)| object["kind"] == "Role");
    let (_, role) = roles.next().unwrap();
    assert_eq!(resources(&role["rules"]), ["secrets", "leases"]);
    assert!(roles.next().is_none());
}

#[test]
fn webhooks_belong_to_the_deployment() {
    let csv = bundle();
    let hooks = csv["spec"]["webhookdefinitions"].as_array().unwrap();
    let kinds: Vec<&str> = hooks.iter().map(|hook| hook["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ConversionWebhook", "ValidatingAdmissionWebhook"]);
    for hook in hooks {
        assert_eq!(hook["deploymentName"], "backup-operator-controller-manager");
        assert_eq!(hook["targetPort"], 9443);
    }
    assert_eq!(
        csv["spec"]["relatedImages"],
        json!([{"image": "docker.io/restic/restic:0.18.0", "name": "restic"}])
    );
}

#[test]
fn enums_with_data_have_a_structural_schema() {
    let files = backup_operator::project().unwrap().render().unwrap();
    let text = files.text("crd/bases/backup.example.com_backups.yaml").unwrap();
    let definition = olmkit::yaml::parse(text.as_bytes()).unwrap().to_json().unwrap();
    let target =
        &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["target"];
    assert_eq!(target["type"], "object");
    assert_eq!(
        target["oneOf"],
        json!([{"required": ["bucket"]}, {"required": ["volume"]}])
    );
    assert_eq!(target["properties"]["bucket"]["properties"]["url"]["type"], "string");
}

/// The code on the page after the scaffolded project must be in this crate, except for white space.
#[test]
fn the_page_quotes_this_crate() {
    let dense = |text: &str| -> String { text.split_whitespace().collect() };
    let sources = dense(concat!(
        include_str!("../src/api.rs"),
        include_str!("../src/conversion.rs"),
        include_str!("../src/lib.rs"),
        include_str!("../src/main.rs")
    ));
    let page = include_str!("../../../docs/guides/rust-operators.md");
    let (_, sections) = page.split_once("\n## 6. ").unwrap();
    let quotes: Vec<&str> = sections
        .split("```rust\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(quotes.len() >= 5);
    for quote in quotes {
        assert!(sources.contains(&dense(quote)), "{quote}");
    }
}
