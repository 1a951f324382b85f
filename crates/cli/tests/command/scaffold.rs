//! `olmkit init`, `create api` and `edit`; the library's own tests have the details.

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
        "Error: cache.example.com/v1alpha1 Memcached exists; --force writes its files anew\n"
    );
    let (code, written, _) = olmkit(&folder, &["edit", "--namespaced"]);
    assert_eq!(code, 0);
    assert!(written.contains("removed config/rbac/role.yaml\n"), "{written}");
    let (code, _, errors) = olmkit(&folder, &["edit"]);
    assert_eq!(code, 2, "{errors}");
    let (code, _, errors) = olmkit(&folder, &["init"]);
    assert_eq!(code, 1);
    assert!(errors.contains("is not empty: it holds"), "{errors}");
}

#[test]
fn names_that_nobody_would_accept_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for (flag, value) in [("--domain", "k8s.io"), ("--domain", "a_b"), ("--source", "elsewhere")] {
        let (code, _, errors) = olmkit(folder.path(), &["init", "--project-name=fine", flag, value]);
        assert_eq!(code, 2, "{errors}");
        assert!(
            errors.starts_with("Error: ") || errors.starts_with("error: "),
            "{errors}"
        );
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let (code, _, errors) = olmkit(folder.path(), &["create", "api", "--version=v1", "--kind=Memcached"]);
    assert_eq!(code, 1);
    assert!(errors.contains("holds no file PROJECT"), "{errors}");
}
