//! `generate bundle --kustomize`, with a substitute that prints kustomize's output for the directory.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use super::support::{Folder, said};

/// A finding in an object names the file that defines it, not a line of kustomize's output.
#[test]
fn findings_name_the_files_of_the_kustomization() {
    let directory = Folder::new();
    directory.write(
        "config/default/kustomization.yaml",
        "namePrefix: demo-\nresources: [../manager]\nconfigMapGenerator: [{name: settings, literals: [a=b]}]\n",
    );
    directory.write("config/manager/kustomization.yaml", "resources: [manager.yaml]\n");
    directory.write(
        "config/manager/manager.yaml",
        "# Two\napiVersion: example.com/v1\nkind: Odd\nmetadata: {name: one}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: system}\n",
    );
    directory.write(
        "bin/kustomize",
        "#!/bin/sh\ncat <<'END'\napiVersion: v1\nkind: Namespace\nmetadata: {name: demo-system}\n---\napiVersion: example.com/v1\n\
         kind: Odd\nmetadata: {name: demo-one}\n---\napiVersion: example.com/v1\nkind: Odd\nmetadata: {name: patched}\nEND\n",
    );
    fs::set_permissions(directory.path("bin/kustomize"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new(assert_cmd::cargo::cargo_bin("olmkit"))
        .args("generate bundle --kustomize config/default --package demo --version 0.1.0".split(' '))
        .current_dir(directory.path(""))
        .env("PATH", format!("{}:{path}", directory.path("bin").display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = said(&output);
    for place in [
        "config/manager/manager.yaml:2: Odd demo-one:",
        "config/manager/manager.yaml:6: Namespace demo-system:",
        "config/default/kustomization.yaml: Odd patched:",
    ] {
        assert!(said.contains(place), "{place}: {said}");
    }
    assert!(!said.contains("standard input"), "{said}");
}
