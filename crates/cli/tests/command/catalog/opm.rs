//! Under the name `opm`.

use super::{Desk, NEW, OLD, SOURCE};

#[test]
fn under_the_name_opm_the_spelling_is_that_of_opm() {
    let desk = Desk::with_catalog();
    let same = |ours: &[&str], theirs: &[&str]| {
        let theirs = [&["opm"], theirs].concat();
        assert_eq!(desk.run(ours).ok(), desk.run(&theirs).ok(), "{theirs:?}");
    };
    same(&["catalog", "render", "catalog"], &["render", "catalog"]);
    same(
        &["catalog", "list", "bundles", "catalog"],
        &["alpha", "list", "bundles", "catalog"],
    );
    same(&["catalog", "graph", "catalog"], &["alpha", "render-graph", "catalog"]);
    same(
        &["catalog", "template", "convert", "basic", SOURCE],
        &["alpha", "convert-template", "basic", SOURCE],
    );
    assert_eq!(
        desk.run(&["opm", "validate", "catalog"]).ok(),
        "",
        "opm is silent where all is well"
    );
    for (output, ours) in [("json", "opm-json"), ("yaml", "opm-yaml")] {
        same(
            &["catalog", "validate", "catalog", "-o", ours],
            &["validate", "catalog", "-o", output],
        );
    }
    let unknown = desk.run(&["opm", "validate", "catalog", "-o", "sarif"]);
    assert!(unknown.err.contains("possible values: json, yaml"), "{}", unknown.err);
    assert_eq!(unknown.code, 2);
    std::fs::write(
        desk.path("catalog/broken.yaml"),
        "schema: olm.package\nname: q\ndefaultChannel: c\n",
    )
    .unwrap();
    desk.run(&["opm", "validate", "catalog"])
        .refused("invalid package \"q\"");
    let broken = desk.run(&["opm", "validate", "catalog", "-o", "json"]);
    assert!(broken.out.contains("invalid package \\\"q\\\""), "{}", broken.out);
    assert_eq!(broken.code, 1, "{}", broken.err);
    desk.run(&["opm", "generate", "dockerfile", "catalog"]).ok();
    assert!(
        desk.run(&["opm", "version"])
            .ok()
            .starts_with("Version: version.Version{")
    );
}

#[test]
fn index_add_makes_a_file_based_catalog() {
    let desk = Desk::new();
    let add = |bundles: &str, tool: &str, more: &[&str]| {
        let first = [
            "opm",
            "index",
            "add",
            "--mode",
            "semver",
            "--binary",
            "server",
            "--bundles",
            bundles,
        ];
        desk.run(&[&first[..], &["--container-tool", tool], more].concat())
    };
    add("old,new", "none", &["--generate"]).ok();
    assert!(desk.text("index.Dockerfile").contains("index.configs.v1=/configs"));
    let list = desk.run(&["catalog", "list", "bundles", "index"]).ok();
    assert!(
        list.lines().any(|line| line.contains(NEW) && line.contains(OLD)),
        "{list}"
    );

    let built = add("old", "none", &["--tag", "registry.example.com/c:v1"]);
    assert!(built.err.contains("file-based catalog"), "{}", built.err);
    assert!(built.ok().starts_with("registry.example.com/c@sha256:"));
    let from = [
        "--from-index",
        "store:registry.example.com/c:v1",
        "--tag",
        "registry.example.com/c:v2",
    ];
    add("new", "none", &from).ok();
    let list = desk
        .run(&["catalog", "list", "bundles", "store:registry.example.com/c:v2"])
        .ok();
    assert!(list.contains(OLD) && list.contains(NEW), "{list}");
    add("old", "none", &from).refused("already exists in the catalog");
    add("old", "no-such-tool", &["--tag", "registry.example.com/c:v3"]).refused("--container-tool none");
}
