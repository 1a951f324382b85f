//! The validator `multiarch`, with a container tool that answers what each test writes down.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

use test_support::demo_bundle::{CSV, DIGEST, folder};

const IMAGE: &str = "quay.io/example/demo";

/// Runs the validator with a `docker` that has the platforms of these images. Others cannot be pulled.
fn run(changes: &[(&str, &str, &str)], images: &[(&str, &[&str])], flags: &[&str]) -> (Vec<String>, i32) {
    let folder = folder(changes);
    let mut script =
        String::from("#!/bin/sh\ncase \"$1 $2\" in pull*) image=$2 ;; *) image=$3 ;; esac\ncase \"$image\" in\n");
    for (image, platforms) in images {
        let entries: Vec<String> = platforms
            .iter()
            .map(|platform| {
                let (os, architecture) = platform.split_once('/').expect("os/architecture");
                format!("{{\"platform\":{{\"os\":\"{os}\",\"architecture\":\"{architecture}\"}}}}")
            })
            .collect();
        script.push_str(&format!(
            "{image}*) [ \"$1\" = pull ] || echo '{{\"manifests\":[{}]}}' ;;\n",
            entries.join(",")
        ));
    }
    script.push_str("*) echo no such image >&2; exit 1 ;;\nesac\n");
    let tool = folder.path().join("bin/docker");
    fs::create_dir(folder.path().join("bin")).expect("directory");
    fs::write(&tool, script).expect("write");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).expect("mode");
    let path = format!("{}:/usr/bin:/bin", folder.path().join("bin").display());
    let output = Command::cargo_bin("olmkit")
        .expect("program")
        .current_dir(folder.path())
        .env("PATH", path)
        .args([
            "bundle",
            "validate",
            "demo",
            "--select-optional",
            "name=multiarch",
            "-o",
            "json",
            "--no-lints",
        ])
        .args(flags)
        .output()
        .expect("run");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let lines = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|finding| {
            let text = |key: &str| finding[key].as_str().unwrap_or_default();
            format!("{} {}: {}", text("rule"), text("severity"), text("message"))
        })
        .collect();
    (lines, output.status.code().expect("exit code"))
}

fn rules(lines: &[String]) -> Vec<&str> {
    lines
        .iter()
        .map(|line| line.split(' ').next().unwrap_or_default())
        .collect()
}

const AFFINITY: (&str, &str, &str) = (
    CSV,
    "              serviceAccountName: demo\n",
    "              serviceAccountName: demo\n              affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux]}, {key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}]}]}}}\n",
);
const LABELS: (&str, &str, &str) = (
    CSV,
    "  annotations:\n",
    "  labels: {operatorframework.io/arch.amd64: supported, operatorframework.io/arch.arm64: supported, operatorframework.io/os.linux: supported}\n  annotations:\n",
);

#[test]
fn images_labels_and_affinity_that_agree_are_fine() {
    let (lines, code) = run(&[AFFINITY, LABELS], &[(IMAGE, &["linux/amd64", "linux/arm64"])], &[]);
    assert_eq!((lines, code), (Vec::new(), 0));
}

#[test]
fn a_label_without_its_image_is_an_error() {
    let (lines, code) = run(&[AFFINITY, LABELS], &[(IMAGE, &["linux/amd64"])], &[]);
    assert_eq!(rules(&lines), ["MA-1", "MA-6"], "{lines:?}");
    assert!(lines[0].contains("(linux.arm64) was not found"), "{lines:?}");
    assert_eq!(code, 1);
}

#[test]
fn a_platform_of_the_image_without_label_is_a_warning() {
    let images: &[(&str, &[&str])] = &[(IMAGE, &["linux/amd64", "linux/arm64", "windows/amd64"])];
    let (lines, code) = run(&[], images, &[]);
    assert_eq!(rules(&lines), ["MA-2", "MA-3", "MA-5"], "{lines:?}");
    assert_eq!(code, 0);
}

#[test]
fn other_images_are_compared_with_the_managers() {
    let proxy = format!(
        "              - name: proxy\n                image: quay.io/example/proxy{DIGEST}\n                resources: {{requests: {{cpu: 1m}}}}\n              - name: manager\n"
    );
    let change = (CSV, "              - name: manager\n", proxy.as_str());
    let images: &[(&str, &[&str])] = &[
        (IMAGE, &["linux/amd64", "linux/arm64"]),
        ("quay.io/example/proxy", &["linux/amd64"]),
    ];
    let (lines, code) = run(&[LABELS, change, AFFINITY], images, &[]);
    assert!(
        rules(&lines).contains(&"MA-4") && rules(&lines).contains(&"MA-1"),
        "{lines:?}"
    );
    assert_eq!(code, 1);
}

#[test]
fn images_that_cannot_be_inspected_are_reported() {
    let (lines, code) = run(&[], &[], &[]);
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("MA-0 warning: unable to inspect the image")),
        "{lines:?}"
    );
    assert!(lines.iter().any(|line| line.contains("no such image")), "{lines:?}");
    assert_eq!(code, 0);
    // A name that the tool would take for a flag never reaches it.
    let (lines, _) = run(
        &[(CSV, "image: quay.io/example/demo@", "image: --config=/x@")],
        &[("", &[])],
        &[],
    );
    assert!(
        lines.iter().any(|line| line.contains("is not an image name")),
        "{lines:?}"
    );
}

#[test]
fn only_docker_and_podman_are_asked() {
    let (lines, code) = run(&[], &[], &["--optional-values", "container-tools=crictl"]);
    assert_eq!(rules(&lines), ["MA-0"], "{lines:?}");
    assert_eq!(code, 1);
    // No podman is on the path of these tests' tool.
    if !Path::new("/usr/bin/podman").exists() && !Path::new("/bin/podman").exists() {
        let (lines, _) = run(&[], &[], &["--optional-values", "container-tools=podman"]);
        assert!(lines.iter().any(|line| line.contains("podman pull")), "{lines:?}");
    }
}

/// Attestations are in an index as platform `unknown/unknown`.
#[test]
fn the_next_profile_passes_over_attestations() {
    let images: &[(&str, &[&str])] = &[(IMAGE, &["linux/amd64", "unknown/unknown"])];
    let (lines, _) = run(&[], images, &[]);
    assert!(rules(&lines).contains(&"MA-2"), "{lines:?}");
    let (lines, _) = run(&[], images, &["--profile", "api-0.45"]);
    assert!(!rules(&lines).contains(&"MA-2"), "{lines:?}");
}
