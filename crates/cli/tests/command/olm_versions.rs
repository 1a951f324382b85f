//! Flags that the chosen version of OLM does not have.

#[test]
fn a_flag_of_the_other_version_is_refused_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = test_support::repository("bundle");
    let bundle = bundle.to_str().unwrap();
    for (arguments, said) in [
        (
            &["run", "bundle", bundle, "--push-to", "r.test/a"][..],
            "pass --olm v1 as well",
        ),
        (
            &["run", "bundle", bundle, "--olm", "v1", "--serve-from-host"],
            "pass --push-to",
        ),
        (
            &["run", "bundle", bundle, "--olm", "v1", "--pull-secret-name", "a"],
            "docs/guides/olm-v1.md",
        ),
        (
            &["run", "bundle", bundle, "--olm", "v1", "--service-account", "a"],
            "omit it",
        ),
        (
            &["run", "bundle", bundle, "--olm", "v1", "--pull-from", "r.test/a"],
            "--push-to",
        ),
        (
            &["cleanup", "cache", "--olm", "v1", "--delete-crds"],
            "omit these flags",
        ),
        (
            &["cleanup", "cache", "--olm", "v1", "--delete-all=false"],
            "omit these flags",
        ),
        (
            &["extension", "install", "cache", "--version", "1.0 - 2.0"],
            ">=1.2, <2",
        ),
        (
            &["extension", "install", "../cache", "--dry-run"],
            "cannot name objects",
        ),
    ] {
        let output = assert_cmd::Command::cargo_bin("olmkit")
            .unwrap()
            .args(arguments)
            .env("HOME", directory.path())
            .env("KUBECONFIG", kubeconfig(directory.path()))
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}

/// A cluster at an address without a server.
fn kubeconfig(directory: &std::path::Path) -> std::path::PathBuf {
    let path = directory.join("kubeconfig");
    let text = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]}"#;
    std::fs::write(&path, text).unwrap();
    path
}
