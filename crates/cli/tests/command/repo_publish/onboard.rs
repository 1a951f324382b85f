//! Onboarding of made-up operators.

use super::Desk;

fn with_bundles() -> Desk {
    let desk = Desk::new();
    desk.write(
        "operators/hello/ci.yaml",
        "---\n# who may approve\nreviewers:\n  - a # first\nupdateGraph: replaces-mode\n",
    );
    desk.in_repository("0.0.1", "");
    desk.in_repository("0.0.2", "  replaces: hello.v0.0.1\n");
    desk.in_repository("0.0.3", "  replaces: hello.v0.0.2\n  skips:\n  - hello.v0.0.1\n");
    desk
}

#[test]
fn a_folder_of_bundles_becomes_a_template_a_mapping_and_catalogs() {
    let desk = with_bundles();
    let before = desk.files();
    let said = desk.run(&["onboard", "hello", "--dry-run"]);
    said.fine();
    assert!(
        said.out.contains("create catalogs/v4.20/hello/catalog.yaml\n"),
        "{}",
        said.out
    );
    assert_eq!(desk.files(), before, "a dry run writes nothing");
    let said = desk.run(&["onboard", "hello"]);
    said.fine();
    assert!(
        said.err.contains("operators/hello/ci.yaml: updateGraph is removed"),
        "{}",
        said.err
    );
    let ci = desk.text("operators/hello/ci.yaml");
    assert_eq!(
        ci,
        "---\n# who may approve\nreviewers:\n  - a # first\nfbc:\n  catalog_mapping:\n  - catalog_names:\n    - v4.20\n    - v4.21\n    \
         template_name: basic.yaml\n    type: olm.template.basic\n  enabled: true\n"
    );
    let template = desk.text("operators/hello/catalog-templates/basic.yaml");
    assert!(
        template.contains("image: quay.io/community/hello:0.0.3\n"),
        "{template}"
    );
    let catalog = desk.text("catalogs/v4.20/hello/catalog.yaml");
    assert!(
        catalog.contains("replaces: hello.v0.0.2\n  skips:\n  - hello.v0.0.1\n"),
        "{catalog}"
    );
    assert!(
        catalog.contains("olm.csv.metadata") && !catalog.contains("olm.bundle.object"),
        "{catalog}"
    );
    desk.run(&["onboard", "hello"])
        .refused("already uses file-based catalogs");
    let done = desk.files();
    let said = desk.run(&["onboard", "hello", "--replace"]);
    said.fine();
    assert!(!said.err.contains("updateGraph"), "{}", said.err);
    assert_eq!(
        desk.files(),
        done,
        "from its own catalogs the operator gets the same again"
    );
}

#[test]
fn skipped_bundles_get_no_chain() {
    let desk = Desk::new();
    desk.write("operators/hello/ci.yaml", "updateGraph: replaces-mode\n");
    desk.in_repository("0.0.1", "");
    desk.in_repository("0.1.0", "  replaces: hello.v0.0.1\n");
    desk.in_repository("0.1.1", "  replaces: hello.v0.1.0\n  skips:\n  - hello.v0.0.1\n");
    desk.in_repository("0.1.2", "  skips:\n  - hello.v0.1.0\n  - hello.v0.1.1\n");
    let said = desk.run(&["onboard", "hello"]);
    said.fine();
    let catalog = desk.text("catalogs/v4.20/hello/catalog.yaml");
    let entries = "entries:\n- name: hello.v0.1.0\n- name: hello.v0.1.1\n- name: hello.v0.1.2\n  skips:\n  - hello.v0.1.0\n  \
                   - hello.v0.1.1\n";
    assert!(catalog.contains(entries), "{catalog}");
    assert!(!catalog.contains("hello.v0.0.1"), "{catalog}");
    assert!(
        said.err.contains("hello.v0.0.1 has no place in stable of v4.20, v4.21"),
        "{}",
        said.err
    );
}

#[test]
fn a_bundle_that_nothing_replaces_is_named() {
    let desk = with_bundles();
    desk.in_repository("0.0.0", "");
    let said = desk.run(&["onboard", "hello"]);
    said.fine();
    assert!(
        said.err.contains("hello.v0.0.0 has no place in stable of v4.20, v4.21"),
        "{}",
        said.err
    );
    assert!(!desk.text("catalogs/v4.21/hello/catalog.yaml").contains("hello.v0.0.0"));
}

#[test]
fn semver_mode_is_the_chain_of_versions() {
    let desk = with_bundles();
    desk.write("operators/hello/ci.yaml", "updateGraph: semver-mode\n");
    desk.in_repository("0.0.10", "");
    desk.run(&["onboard", "hello"]).fine();
    let catalog = desk.text("catalogs/v4.20/hello/catalog.yaml");
    assert!(
        catalog.contains("- name: hello.v0.0.10\n  replaces: hello.v0.0.3\n"),
        "{catalog}"
    );
}

#[test]
fn a_failed_onboarding_changes_no_file() {
    let desk = with_bundles();
    let before = desk.files();
    desk.run(&["onboard", "other"]).refused("no operator \"other\"");
    desk.run(&["onboard", "hello", "--catalogs", "v4.20=missing"])
        .refused("missing");
    desk.run(&["onboard", "hello", "--image-ref-template", "r.io/{{.Name}}:v1"])
        .refused("check_bundle_images_in_fbc");
    assert_eq!(desk.files(), before);
    desk.write("config.yaml", "organization: certified-operators\n");
    desk.run(&["onboard", "hello"]).refused("pass --image-ref-template");
    desk.in_repository("0.0.4", "  replaces: hello.v0.0.4\n");
    desk.run(&["onboard", "hello", "--image-ref-template", "r.io/{{.Name}}:v1"])
        .refused("validate-catalog-format");
    desk.write(
        "operators/hello/0.0.5/manifests/hello.clusterserviceversion.yaml",
        "a: [\n",
    );
    desk.write("operators/hello/0.0.5/metadata/annotations.yaml", "annotations: {}\n");
    desk.run(&["onboard", "hello", "--image-ref-template", "r.io/{{.Name}}:v1"])
        .refused("operators/hello/0.0.5");
    assert!(!desk.root().join("catalogs").exists());
}

#[test]
fn published_catalogs_win_over_bundles() {
    let desk = with_bundles();
    let catalog = "---\nschema: olm.package\nname: hello\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: hello\nname: \
                   stable\nentries:\n- name: hello.v0.0.1\n  skipRange: <0.0.1\n---\nschema: olm.bundle\nname: hello.v0.0.1\npackage: \
                   hello\nimage: quay.io/community/hello:0.0.1\nproperties:\n- type: olm.package\n  value: {packageName: hello, \
                   version: 0.0.1}\n";
    for name in ["v4.12", "v4.13"] {
        desk.write(&format!("published/{name}/hello/catalog.yaml"), catalog);
    }
    let other = catalog.replace("skipRange: <0.0.1", "skipRange: <0.0.0");
    desk.write("published/v4.14/hello/catalog.yaml", &other);
    desk.run(&["onboard", "hello", "--catalogs", "published"]).fine();
    let ci = desk.text("operators/hello/ci.yaml");
    assert!(
        ci.contains("- v4.12\n    - v4.13\n    template_name: v4.12.yaml"),
        "{ci}"
    );
    assert!(ci.contains("- v4.14\n    template_name: v4.14.yaml"), "{ci}");
    assert!(
        desk.text("catalogs/v4.13/hello/catalog.yaml")
            .contains("skipRange: <0.0.1")
    );
    assert!(
        desk.text("catalogs/v4.14/hello/catalog.yaml")
            .contains("skipRange: <0.0.0")
    );
}

/// Both names are one release. Its catalogs are called v5.0.
#[test]
fn openshift_4_23_and_5_0_have_one_catalog() {
    for annotation in ["v4.23", "v5.0", "=v4.23", "v4.23-v5.0"] {
        let desk = Desk::new();
        let others = "---\nschema: olm.package\nname: other\ndefaultChannel: a\n---\nschema: olm.channel\npackage: other\nname: a\nentries: []\n";
        desk.write("catalogs/v5.0/other/catalog.yaml", others);
        desk.write("operators/hello/ci.yaml", "updateGraph: replaces-mode\n");
        for (version, spec) in [("0.0.1", ""), ("0.0.2", "  replaces: hello.v0.0.1\n")] {
            desk.in_repository(version, spec);
            let file = format!("operators/hello/{version}/metadata/annotations.yaml");
            desk.write(&file, &desk.text(&file).replace("v4.20-v4.21", annotation));
        }
        // The second bundle is released later.
        let second = desk.root().join("operators/hello/0.0.2");
        let later = desk.directory.path().join("0.0.2");
        std::fs::rename(&second, &later).unwrap();
        desk.run(&["onboard", "hello"]).fine();
        assert!(
            desk.text("operators/hello/ci.yaml")
                .contains("- catalog_names:\n    - v5.0\n    template_name"),
            "{annotation}"
        );
        assert!(
            desk.text("catalogs/v5.0/hello/catalog.yaml")
                .contains("- name: hello.v0.0.1\n"),
            "{annotation}"
        );
        desk.commit_all();
        desk.run(&["check"]).fine();

        std::fs::rename(&later, &second).unwrap();
        let release =
            "catalog_templates:\n- template_name: basic.yaml\n  channels: [stable]\n  replaces: hello.v0.0.1\n";
        desk.write("operators/hello/0.0.2/release-config.yaml", release);
        desk.commit_all();
        desk.run(&[
            "release",
            "operators/hello/0.0.2",
            "--image",
            "quay.io/community/hello:0.0.2",
        ])
        .fine();
        assert!(
            desk.text("catalogs/v5.0/hello/catalog.yaml")
                .contains("- name: hello.v0.0.2\n  replaces: hello.v0.0.1\n"),
            "{annotation}"
        );
        assert!(!desk.root().join("catalogs/v4.23").exists(), "{annotation}");
    }
}

#[test]
fn a_comment_before_the_document_of_ci_yaml_stays() {
    let desk = with_bundles();
    let head = "#\n# Copyright (c) 2019-2023 Example\n#\n\n---\n# See also the documentation\n";
    desk.write(
        "operators/hello/ci.yaml",
        &format!("{head}updateGraph: replaces-mode\naddReviewers: true\nreviewers:\n  - a\n"),
    );
    desk.run(&["onboard", "hello"]).fine();
    let ci = desk.text("operators/hello/ci.yaml");
    assert!(
        ci.starts_with(&format!("{head}addReviewers: true\nreviewers:\n  - a\nfbc:\n")),
        "{ci}"
    );
}

#[test]
fn an_empty_ci_yaml_gets_the_mapping() {
    for text in ["", "---\n", "# nothing yet\n"] {
        let desk = with_bundles();
        desk.write("operators/hello/ci.yaml", text);
        desk.run(&["onboard", "hello"]).fine();
        let ci = desk.text("operators/hello/ci.yaml");
        assert!(
            ci.starts_with(text) && ci.contains("fbc:\n  catalog_mapping:\n"),
            "{text:?}: {ci}"
        );
    }
}
