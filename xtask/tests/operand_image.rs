//! `dev/operand-image.sh` compares the default memcached image with the tags of a registry.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

/// The script's exit code and output if the registry has these versions.
fn compared(versions: &[&str]) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let tags = directory.path().join("tags.json");
    let names: Vec<String> = versions
        .iter()
        .map(|version| format!("{{\"name\": \"{version}-alpine\"}}"))
        .collect();
    std::fs::write(&tags, format!("{{\"results\": [{}]}}", names.join(", "))).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dev/operand-image.sh");
    let output = Command::new(script).env("OPERAND_TAGS", &tags).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// memcached 1.6.42 to 1.6.45 fixed vulnerabilities.
#[test]
fn the_default_image_has_the_security_fixes() {
    let (code, text) = compared(&["1.6.41", "1.6.45"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn newer_images_are_reported() {
    for older in [&[][..], &["1.6.41"]] {
        let (code, text) = compared(&[older, &["99.0.1", "99.0.0"]].concat());
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("newer versions: 99.0.0 99.0.1"), "{text}");
    }
}

#[test]
fn an_answer_without_versions_is_an_error() {
    let (code, text) = compared(&[]);
    assert_eq!(code, Some(2), "{text}");
}
