//! The command and its inputs: registries, external validators, unreadable files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::outputs::{run, validate};
use test_support::demo_bundle::{ANNOTATIONS, CSV, folder};
use test_support::registry::{Registry, Setup, free_port};

#[test]
fn an_image_is_pulled_from_a_registry() {
    let Some(registry) = Registry::start(&Setup::default()) else {
        return;
    };
    let image = format!("{}/example/demo-bundle:v0.1.0", registry.host());
    let good = folder(&[]);
    let built = run(
        good.path(),
        &[
            "image",
            "build",
            "bundle",
            "demo",
            "--tag",
            &image,
            "--output",
            "push",
            "--use-http",
        ],
    );
    assert_eq!(built.code, 0, "{}{}", built.out, built.err);
    let printed = validate(good.path(), &[&image, "--use-http"]);
    assert_eq!(printed.code, 0, "{}{}", printed.out, printed.err);
    assert!(printed.err.contains("Unpacking"), "{}", printed.err);

    let broken = folder(&[(ANNOTATIONS, "alpha,stable", "\"\"")]);
    let image = format!("{}/example/broken-bundle:v0.1.0", registry.host());
    let built = run(
        broken.path(),
        &[
            "image",
            "build",
            "bundle",
            "demo",
            "--tag",
            &image,
            "--output",
            "push",
            "--use-http",
        ],
    );
    assert_eq!(built.code, 0, "{}{}", built.out, built.err);
    let printed = validate(broken.path(), &[&image, "--use-http"]);
    assert_eq!(printed.code, 1, "{}{}", printed.out, printed.err);
    assert!(
        printed.out.contains("FMT-8") && printed.out.contains("metadata/annotations.yaml"),
        "{}",
        printed.out
    );

    // The temporary directory must not appear, because users do not know it.
    let place = format!("{image}/metadata/annotations.yaml:6:");
    assert!(
        printed.out.contains(&place) && !printed.out.contains("/bundle-"),
        "{}",
        printed.out
    );
    let json = validate(broken.path(), &[&image, "--use-http", "-o", "json"]);
    assert!(json.out.contains("\"metadata/annotations.yaml\""), "{}", json.out);

    let missing = format!("{}/example/none:v1", registry.host());
    let printed = validate(good.path(), &[&missing, "--use-http"]);
    assert_eq!(printed.code, 1);
    assert!(
        printed.err.contains(&missing) && printed.err.contains("manifest unknown"),
        "{}",
        printed.err
    );
}

#[test]
fn a_registry_that_is_not_there_is_named() {
    let folder = folder(&[]);
    let image = format!("localhost:{}/example/demo:v1", free_port());
    let printed = validate(folder.path(), &[&image, "--use-http"]);
    assert_eq!(printed.code, 1);
    assert!(printed.err.contains(&image), "{}", printed.err);
}

#[test]
fn an_external_validator_adds_findings() {
    let folder = folder(&[]);
    let program = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("mode");
        path.display().to_string()
    };
    let good = program(
        "good",
        r#"echo '{"Name":"x","Errors":null,"Warnings":[{"Level":"Warning","Detail":"mind the gap"}]}'"#,
    );
    let bad = program(
        "bad",
        r#"echo '{"Name":"x","Errors":[{"Level":"Error","Detail":"too late"}],"Warnings":null}'"#,
    );
    let failing = program("failing", "echo oh >&2; exit 3");
    let printed = validate(folder.path(), &["demo", "--alpha-select-external", &good]);
    assert_eq!(printed.code, 0, "{}", printed.err);
    assert!(
        printed.out.contains("EXT-1") && printed.out.contains("mind the gap"),
        "{}",
        printed.out
    );
    let both = format!("{good}:{bad}");
    let printed = validate(folder.path(), &["demo", "--alpha-select-external", &both]);
    assert_eq!(printed.code, 1);
    assert!(printed.out.contains("too late"), "{}", printed.out);
    let printed = validate(folder.path(), &["demo", "--alpha-select-external", &failing]);
    assert_eq!(printed.code, 1);
    assert!(printed.out.contains("failing failed"), "{}{}", printed.out, printed.err);
    assert!(!printed.err.contains("success"), "{}", printed.err);
}

fn rename(folder: &Path, from: &str, to: &str) {
    fs::rename(folder.join("demo").join(from), folder.join("demo").join(to)).expect("rename");
}

#[test]
fn missing_directories_are_reported() {
    let without_manifests = folder(&[(ANNOTATIONS, "manifests/", "objects/")]);
    rename(without_manifests.path(), "manifests", "objects");
    let printed = validate(without_manifests.path(), &["demo"]);
    assert!(printed.out.contains("FMT-2"), "{}", printed.out);
    assert_eq!(printed.code, 1);

    // The annotations name another directory, and `manifests` is empty.
    let empty = folder(&[(ANNOTATIONS, "manifests/", "objects/")]);
    rename(empty.path(), "manifests", "objects");
    fs::create_dir(empty.path().join("demo/manifests")).expect("directory");
    let printed = validate(empty.path(), &["demo"]);
    assert!(printed.out.contains("FMT-4"), "{}", printed.out);

    // The annotations are in another directory of the bundle, and `metadata` has none.
    let elsewhere = folder(&[]);
    rename(elsewhere.path(), "metadata/annotations.yaml", "annotations.yaml");
    let printed = validate(elsewhere.path(), &["demo"]);
    assert!(printed.out.contains("FMT-5"), "{}", printed.out);
    fs::remove_dir(elsewhere.path().join("demo/metadata")).expect("remove");
    let printed = validate(elsewhere.path(), &["demo"]);
    assert!(printed.out.contains("FMT-3"), "{}", printed.out);
}

#[test]
fn an_entry_that_is_not_a_file_is_reported() {
    let folder = folder(&[]);
    std::os::unix::fs::symlink("nowhere", folder.path().join("demo/manifests/link.yaml")).expect("link");
    let printed = validate(folder.path(), &["demo"]);
    assert_eq!(printed.code, 1);
    assert!(
        printed.out.contains("LOC-7") && printed.out.contains("link.yaml"),
        "{}",
        printed.out
    );
}

/// Unverified rules run on request. `explain` names the evidence of a rule.
#[test]
fn rules_that_nothing_proves_run_on_request() {
    let descriptor = (
        CSV,
        "      description: A widget",
        "      description: A widget\n      specDescriptors: [{path: spec.size}]",
    );
    let bundle = folder(&[descriptor]);
    let usual = validate(bundle.path(), &["demo"]);
    assert!(!usual.out.contains("DESC-1"), "{}", usual.out);
    let all = validate(bundle.path(), &["demo", "--rules", "all"]);
    assert!(all.out.contains("DESC-1"), "{}", all.out);
    let unproven = run(bundle.path(), &["explain", "DESC-1"]);
    assert!(unproven.out.contains("--rules all"), "{}", unproven.out);
    let proven = run(bundle.path(), &["explain", "EX-1"]);
    assert!(
        proven
            .out
            .contains("verified by the API server (Kubernetes 1.36, since 1.16)"),
        "{}",
        proven.out
    );
}
