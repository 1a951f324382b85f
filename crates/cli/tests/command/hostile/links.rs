//! Links of bundles, catalogs and repositories that lead out of them, and files that never end.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

const SECRET: &str = "hunter2-of-the-host";
const ANNOTATIONS: &str = "\
annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: hello
  operators.operatorframework.io.bundle.channels.v1: stable
";
const CSV: &str = "\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: hello.v0.0.1
spec:
  version: 0.0.1
";
const CATALOG: &str = "\
schema: olm.package
name: hello
defaultChannel: stable
---
schema: olm.channel
package: hello
name: stable
entries:
- name: hello.v0.0.1
";

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A bundle, a catalog, and a Secret of the host outside them.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(
        &root.join("secret.yaml"),
        &format!("apiVersion: v1\nkind: Secret\nmetadata:\n  name: host\nstringData:\n  password: {SECRET}\n"),
    );
    write(&root.join("bundle/manifests/hello.clusterserviceversion.yaml"), CSV);
    write(&root.join("bundle/metadata/annotations.yaml"), ANNOTATIONS);
    write(&root.join("catalog/hello/catalog.yaml"), CATALOG);
    directory
}

fn run(root: &Path, arguments: &[&str]) -> Output {
    assert_cmd::Command::cargo_bin("olmkit")
        .unwrap()
        .args(arguments)
        .current_dir(root)
        .env("PASSWORD", SECRET)
        .env("XDG_DATA_HOME", root.join("data"))
        .env("SOURCE_DATE_EPOCH", "1")
        .timeout(std::time::Duration::from_secs(120))
        .output()
        .unwrap()
}

/// Runs a command that must fail without the secret in its output or in a file.
#[track_caller]
fn refused(root: &Path, arguments: &[&str], reason: &str) {
    let output = run(root, arguments);
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!output.status.success(), "{arguments:?}: {text}");
    assert!(!text.contains(SECRET), "{arguments:?}: {text}");
    assert!(text.contains(reason), "{arguments:?}: {text}");
    for entry in walkdir::WalkDir::new(root).into_iter().flatten() {
        let is_own = entry.file_name() == "secret.yaml";
        if entry.file_type().is_file() && !is_own {
            let bytes = std::fs::read(entry.path()).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(SECRET), "{arguments:?}: {}", entry.path().display());
        }
    }
}

/// Commands that read a bundle directory.
const OF_BUNDLES: &[&[&str]] = &[
    &["bundle", "validate", "bundle"],
    &["bundle", "validate", "bundle", "--fix"],
    &["bundle", "unpack", "bundle"],
    &["bundle", "diff", "bundle", "bundle"],
    &["catalog", "render", "bundle"],
    &["image", "build", "bundle", "bundle", "-t", "a:v1", "-o", "oci:image"],
    &["scorecard", "bundle", "--built-in"],
];

/// Commands that read a catalog directory.
const OF_CATALOGS: &[&[&str]] = &[
    &["catalog", "validate", "catalog"],
    &["catalog", "render", "catalog"],
    &["catalog", "list", "packages", "catalog"],
    &["image", "build", "catalog", "catalog", "-t", "a:v1", "-o", "oci:image"],
];

const LEADS_OUT: &str = "leads out of the directory";

#[test]
fn a_link_out_of_a_bundle_is_an_error_everywhere() {
    for target in ["../../secret.yaml", "/proc/self/environ", "ABSOLUTE"] {
        for name in ["manifests/secret.yaml", "metadata/secret.yaml", "manifests/inner"] {
            let directory = directory();
            let root = directory.path();
            let target = target.replace("ABSOLUTE", root.join("secret.yaml").to_str().unwrap());
            symlink(&target, root.join("bundle").join(name)).unwrap();
            for command in OF_BUNDLES {
                refused(root, command, LEADS_OUT);
            }
        }
    }
    let directory = directory();
    let root = directory.path();
    write(
        &root.join("outside/secret.yaml"),
        &std::fs::read_to_string(root.join("secret.yaml")).unwrap(),
    );
    std::fs::remove_dir_all(root.join("bundle/metadata")).unwrap();
    symlink("../outside", root.join("bundle/metadata")).unwrap();
    for command in OF_BUNDLES {
        refused(root, command, LEADS_OUT);
    }
}

#[test]
fn a_link_out_of_a_catalog_is_an_error_everywhere() {
    for target in ["../secret.yaml", "/proc/self/environ", ".."] {
        let directory = directory();
        let root = directory.path();
        symlink(target, root.join("catalog/linked.yaml")).unwrap();
        for command in OF_CATALOGS {
            refused(root, command, LEADS_OUT);
        }
    }
}

#[test]
fn links_inside_still_work() {
    let directory = directory();
    let root = directory.path();
    let real = root.join("bundle/manifests/hello.clusterserviceversion.yaml");
    std::fs::rename(&real, root.join("bundle/csv.yaml")).unwrap();
    symlink("../csv.yaml", &real).unwrap();
    symlink("hello/catalog.yaml", root.join("catalog/.indexignore")).unwrap();
    assert!(run(root, &["bundle", "unpack", "bundle"]).status.code().is_some());
    let output = run(root, &["bundle", "validate", "bundle", "-o", "json"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("findings") && !text.contains(LEADS_OUT), "{text}");
}

fn make_pipe(path: &Path) {
    let status = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(status.success());
}

fn git(root: &Path, arguments: &[&str]) {
    let output = std::process::Command::new("git")
        .args([
            "-C",
            root.to_str().unwrap(),
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.com",
        ])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
}

#[test]
fn nothing_outside_of_a_repository_is_read_or_released() {
    let directory = directory();
    let root = directory.path();
    let repository = root.join("repository");
    write(
        &repository.join("operators/hello/0.0.0/manifests/csv.yaml"),
        &CSV.replace("0.0.1", "0.0.0"),
    );
    write(
        &repository.join("operators/hello/0.0.0/metadata/annotations.yaml"),
        ANNOTATIONS,
    );
    write(
        &repository.join("operators/hello/ci.yaml"),
        "updateGraph: semver-mode\n",
    );
    git(&repository.parent().unwrap().join("repository"), &["init", "--quiet"]);
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "--quiet", "--message=a"]);
    // A bundle to release, with a link in it.
    symlink("/proc/self/environ", root.join("bundle/manifests/environment.yaml")).unwrap();
    refused(root, &["repo", "release", "bundle", "--repo", "repository"], LEADS_OUT);
    std::fs::remove_file(root.join("bundle/manifests/environment.yaml")).unwrap();
    // Links in the repository.
    for name in ["operators/hello/0.0.0/manifests/secret.yaml", "operators/hello/ci.yaml"] {
        let path = repository.join(name);
        let before = std::fs::read(&path).ok();
        let _ = std::fs::remove_file(&path);
        symlink(root.join("secret.yaml"), &path).unwrap();
        let output = run(root, &["repo", "check", "--repo", "repository", "--operator", "hello"]);
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(!output.status.success() && !text.contains(SECRET), "{name}: {text}");
        assert!(text.contains(LEADS_OUT), "{name}: {text}");
        std::fs::remove_file(&path).unwrap();
        if let Some(before) = before {
            std::fs::write(&path, before).unwrap();
        }
    }
}

/// Opening a pipe waits for a writer. The commands have two minutes here, and need none of it.
#[test]
fn pipes_are_refused_wherever_a_file_is_expected() {
    let directory = directory();
    let root = directory.path();
    let pipe = |name: &str| {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&path);
        make_pipe(&path);
    };
    pipe("baseline.json");
    let baseline = ["bundle", "validate", "bundle", "--baseline", "baseline.json"];
    refused(root, &baseline, "not a regular file");
    pipe("olmkit.toml");
    refused(root, &["bundle", "validate", "bundle"], "not a regular file");
    std::fs::remove_file(root.join("olmkit.toml")).unwrap();
    write(&root.join("layout/oci-layout"), "{\"imageLayoutVersion\":\"1.0.0\"}");
    pipe("layout/index.json");
    refused(root, &["bundle", "unpack", "oci:layout"], "not a regular file");
    let digest = "0".repeat(64);
    std::fs::remove_file(root.join("layout/index.json")).unwrap();
    let manifest = "application/vnd.oci.image.manifest.v1+json";
    write(
        &root.join("layout/index.json"),
        &format!(
            "{{\"schemaVersion\":2,\"manifests\":[{{\"mediaType\":\"{manifest}\",\"digest\":\"sha256:{digest}\",\"size\":10}}]}}"
        ),
    );
    pipe(&format!("layout/blobs/sha256/{digest}"));
    refused(root, &["bundle", "unpack", "oci:layout"], "not a regular file");
    pipe("Cargo.lock");
    let files = [
        "image",
        "build",
        "files",
        "-t",
        "a:v1",
        "--add",
        "bundle/metadata/annotations.yaml:/x",
        "-o",
        "oci:image",
    ];
    refused(
        root,
        &[&files[..], &["--sbom", "Cargo.lock:a"]].concat(),
        "not a regular file",
    );
    pipe("archive.tar");
    refused(
        root,
        &["bundle", "unpack", "oci-archive:archive.tar"],
        "not a regular file",
    );
    pipe("bundle/manifests/pipe.yaml");
    let output = run(root, &["bundle", "validate", "bundle"]);
    assert!(!output.status.success(), "{output:?}");
    pipe("catalog/pipe.yaml");
    refused(root, &["catalog", "validate", "catalog"], "not a regular file");
}

/// The files of a cloned project.
#[test]
fn commands_for_a_project_read_no_outside_file_and_no_pipe() {
    let directory = directory();
    let project = directory.path().join("project");
    std::fs::create_dir(&project).unwrap();
    write(&directory.path().join("secret.svg"), SECRET);
    for command in [
        &["init"][..],
        &["create", "api", "--group", "g", "--version", "v1", "--kind", "Kind"],
    ] {
        let output = run(&project, command);
        assert!(output.status.success(), "{output:?}");
    }
    let create = ["create", "api", "--group", "g", "--version", "v1", "--kind", "Other"];
    for (name, outside) in [
        ("PROJECT", "secret.yaml"),
        ("Cargo.toml", "secret.yaml"),
        ("Makefile", "secret.yaml"),
        ("src/api/mod.rs", "secret.yaml"),
        ("config/package.yaml", "secret.yaml"),
        ("config/icon.svg", "secret.svg"),
    ] {
        let path = project.join(name);
        let before = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let command: &[&str] = if name == "Makefile" { &["update"] } else { &create };
        symlink(directory.path().join(outside), &path).unwrap();
        refused(&project, command, LEADS_OUT);
        std::fs::remove_file(&path).unwrap();
        make_pipe(&path);
        refused(&project, command, "not a regular file");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, before).unwrap();
    }
    let output = run(&project, &create);
    assert!(output.status.success(), "{output:?}");
}

/// `--fix` looks for the source of a generated bundle.
#[test]
fn a_base_that_is_a_pipe_is_not_waited_for() {
    let directory = directory();
    let root = directory.path();
    let base = root.join("config/manifests/bases/hello.clusterserviceversion.yaml");
    std::fs::create_dir_all(base.parent().unwrap()).unwrap();
    make_pipe(&base);
    let output = run(root, &["bundle", "validate", "bundle", "--fix"]);
    assert!(output.status.code().is_some(), "{output:?}");
}

/// opm reads such files, and so do the servers.
#[test]
fn a_hidden_part_of_a_catalog_is_validated_like_the_rest() {
    let directory = directory();
    let root = directory.path();
    write(
        &root.join("catalog/.olmkit-x/catalog.yaml"),
        "schema: olm.channel\npackage: other\nname: inside\n",
    );
    write(
        &root.join("catalog/.olmkit-y.yaml"),
        "schema: olm.package\nname: hidden\n",
    );
    // A lock without a holder does not hide a directory.
    let lock = root.join("catalog/.olmkit-x/lock");
    write(&lock, "");
    write(&root.join("catalog/.indexignore"), "lock\n");
    let rendered = || {
        let output = run(root, &["catalog", "render", "catalog"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let validated = || {
        let output = run(root, &["catalog", "validate", "catalog"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let (text, findings) = (rendered(), validated());
    assert!(text.contains("inside") && text.contains("hidden"), "{text}");
    assert!(
        findings.contains(".olmkit-x/catalog.yaml") && findings.contains(".olmkit-y.yaml"),
        "{findings}"
    );
    // The directory of a running olmkit, which an image does not contain either.
    let held = std::fs::File::open(&lock).unwrap();
    held.lock().unwrap();
    let (text, findings) = (rendered(), validated());
    assert!(!text.contains("inside") && text.contains("hidden"), "{text}");
    assert!(
        !findings.contains(".olmkit-x") && findings.contains(".olmkit-y.yaml"),
        "{findings}"
    );
}
