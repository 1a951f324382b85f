//! `olmkit init`, `create`, `delete`, `edit`, `update` and `adopt`. The library's own tests have the details.

use std::fs;
use std::path::Path;

use assert_cmd::Command;

fn olmkit(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("olmkit")
        .unwrap()
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_project_is_started_extended_and_changed() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("memcached-operator");
    fs::create_dir(&folder).unwrap();
    let (code, written, next) = olmkit(&folder, &["init", "--domain", "example.com"]);
    assert_eq!(code, 0, "{next}");
    assert!(
        written.contains("created PROJECT\n") && next.contains("olmkit create api"),
        "{written}{next}"
    );
    let kind = [
        "create",
        "api",
        "--group=cache",
        "--version=v1alpha1",
        "--kind=Memcached",
    ];
    let (code, written, errors) = olmkit(&folder, &kind);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(written.contains("created src/controller/memcached.rs\n"), "{written}");
    assert!(written.contains("changed src/packaging.rs\n"), "{written}");
    let (code, _, errors) = olmkit(&folder, &kind);
    assert_eq!(code, 2);
    assert_eq!(
        errors,
        "error: cache.example.com/v1alpha1 Memcached exists; --force overwrites its files\n"
    );
    let (code, written, _) = olmkit(&folder, &["edit", "--namespaced"]);
    assert_eq!(code, 0);
    assert!(written.contains("changed config/rbac/role.yaml\n"), "{written}");
    let (code, _, errors) = olmkit(&folder, &["edit"]);
    assert_eq!(code, 2, "{errors}");
    let (code, _, errors) = olmkit(&folder, &["init"]);
    assert_eq!(code, 1);
    assert!(errors.contains("is not empty: it contains"), "{errors}");
}

#[test]
fn names_that_nobody_would_accept_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for (flag, value) in [("--domain", "k8s.io"), ("--domain", "a_b"), ("--source", "elsewhere")] {
        let (code, _, errors) = olmkit(folder.path(), &["init", "--project-name=fine", flag, value]);
        assert_eq!(code, 2, "{errors}");
        assert!(errors.starts_with("error: "), "{errors}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let (code, _, errors) = olmkit(folder.path(), &["create", "api", "--version=v1", "--kind=Memcached"]);
    assert_eq!(code, 1);
    assert!(errors.contains("contains no file PROJECT"), "{errors}");
}

/// A project with two versions of a kind.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, errors) = olmkit(
        folder.path(),
        &["init", "--domain=example.com", "--project-name=memcached-operator"],
    );
    assert_eq!(code, 0, "{errors}");
    for version in ["v1", "v2"] {
        let flag = format!("--version={version}");
        let (code, _, errors) = olmkit(
            folder.path(),
            &["create", "api", "--group=cache", &flag, "--kind=Memcached"],
        );
        assert_eq!(code, 0, "{errors}");
    }
    folder
}

#[test]
fn webhooks_are_created_packaged_and_deleted() {
    let folder = project();
    let of = ["--group=cache", "--version=v1", "--kind=Memcached"];
    let mut create = vec!["create", "webhook"];
    create.extend(of);
    let (code, _, errors) = olmkit(folder.path(), &create);
    assert_eq!(code, 2);
    assert_eq!(
        errors,
        "error: give --defaulting, --programmatic-validation or --conversion\n"
    );
    create.extend([
        "--defaulting",
        "--programmatic-validation",
        "--conversion",
        "--spoke=v2",
    ]);
    let (code, written, errors) = olmkit(folder.path(), &create);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(
        written.contains("created src/webhook/memcached_conversion.rs\n"),
        "{written}"
    );

    // OLM's form of them, without what only cert-manager would fill.
    let generate = [
        "generate",
        "bundle",
        "--input-dir=config",
        "-q",
        "--strict",
        "--version=0.0.1",
    ];
    let (code, _, errors) = olmkit(folder.path(), &generate);
    assert_eq!(code, 0, "{errors}");
    assert!(!errors.contains("Use --strict"), "it is strict already: {errors}");
    let csv = folder
        .path()
        .join("bundle/manifests/memcached-operator.clusterserviceversion.yaml");
    let csv = fs::read_to_string(csv).unwrap();
    for expected in [
        "type: MutatingAdmissionWebhook",
        "type: ValidatingAdmissionWebhook",
        "type: ConversionWebhook",
        "webhookPath: /convert-cache-example-com-memcached",
        "targetPort: 9443",
        "- --webhook-bind-address=:9443",
    ] {
        assert!(csv.contains(expected), "{expected} in {csv}");
    }
    assert!(
        !csv.contains("webhook-server-cert") && !csv.contains("cert-manager"),
        "{csv}"
    );
    let (code, findings, errors) = olmkit(folder.path(), &["bundle", "validate", "bundle"]);
    assert_eq!(code, 0, "{findings}{errors}");
    let others: Vec<&str> = errors
        .lines()
        .chain(findings.lines())
        .filter(|line| line.starts_with("warning[") || line.starts_with("error["))
        .filter(|line| !line.starts_with("warning[IMG-1]"))
        .collect();
    assert!(others.is_empty(), "{others:?}");

    let mut delete = vec!["delete", "webhook"];
    delete.extend(of);
    let (code, written, _) = olmkit(folder.path(), &delete);
    assert_eq!(code, 0);
    assert!(written.contains("removed config/webhook/service.yaml\n"), "{written}");
    let (code, _, errors) = olmkit(folder.path(), &delete);
    assert_eq!(
        (code, errors.as_str()),
        (2, "error: cache.example.com/v1 Memcached has no webhook\n")
    );
}

#[test]
fn an_update_is_shown_before_it_is_made() {
    let folder = project();
    let (code, written, errors) = olmkit(folder.path(), &["update"]);
    assert_eq!(
        (code, written.as_str(), errors.as_str()),
        (0, "", "the project is up to date\n")
    );
    // As if an earlier version had written another line there.
    let path = folder.path().join("src/main.rs");
    let main = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let project = fs::read_to_string(folder.path().join("PROJECT")).unwrap();
    let (code, _, _) = olmkit(folder.path(), &["update", "--dry-run"]);
    assert_eq!(code, 0);
    assert_eq!(fs::read_to_string(folder.path().join("PROJECT")).unwrap(), project);
    fs::write(&path, main).unwrap();
    // Early projects had a layout, with which operator-sdk fails.
    let old = project.replace("plugins:\n", "layout:\n- rust.olmkit/v1\nplugins:\n");
    assert_ne!(old, project);
    fs::write(folder.path().join("PROJECT"), old).unwrap();
    let (code, diff, errors) = olmkit(folder.path(), &["update", "--dry-run"]);
    assert_eq!(code, 0, "{errors}");
    assert!(diff.contains("-layout:\n-- rust.olmkit/v1\n"), "{diff}");
}

/// operator-sdk 1.42 fails with every command if PROJECT has a key `namespaced` at the top.
#[test]
fn the_setting_namespaced_is_where_operator_sdk_does_not_look() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("PROJECT");
    let (code, _, errors) = olmkit(
        folder.path(),
        &[
            "init",
            "--domain",
            "example.com",
            "--project-name",
            "shop",
            "--namespaced",
        ],
    );
    assert_eq!(code, 0, "{errors}");
    let project = fs::read_to_string(&path).unwrap();
    let own = "plugins:\n  rust.olmkit/v1:\n";
    assert!(
        project.contains(own) && project.contains("    namespaced: true\n"),
        "{project}"
    );
    assert!(!project.contains("\nnamespaced:"), "{project}");
    // As kubebuilder writes it.
    let old = project
        .replace("    namespaced: true\n", "")
        .replace("plugins:\n", "namespaced: true\nplugins:\n");
    fs::write(&path, old).unwrap();
    let (code, diff, errors) = olmkit(folder.path(), &["update", "--dry-run"]);
    assert_eq!(code, 0, "{errors}");
    assert!(
        diff.contains("-namespaced: true\n") && diff.contains("+    namespaced: true\n"),
        "{diff}"
    );
    let (code, _, errors) = olmkit(folder.path(), &["edit", "--namespaced=false"]);
    assert_eq!(code, 0, "{errors}");
    assert!(!fs::read_to_string(&path).unwrap().contains("namespaced"));
}

#[test]
fn an_operator_that_exists_is_adopted() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "PROJECT",
        "domain: shop.io\nlayout: [go.kubebuilder.io/v4]\nprojectName: shop\n",
    );
    let (code, _, errors) = olmkit(folder.path(), &["adopt"]);
    assert_eq!(code, 1, "{errors}");
    assert!(
        errors.contains("config/default/kustomization.yaml is missing"),
        "{errors}"
    );
    write("config/default/kustomization.yaml", "resources: []\n");
    let (code, written, errors) = olmkit(folder.path(), &["adopt"]);
    assert_eq!(code, 0, "{errors}");
    assert!(
        written.contains("created olm.mk\n") && errors.contains("found the layout go.kubebuilder.io/v4"),
        "{written}{errors}"
    );
}
