//! `make deploy`: which image is deployed.
use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

const RENDERED: &str = "kind: Deployment\n      - image: quay.io/a/operator:v0.1.0\n        name: manager\n";

fn set_image(from: &str, to: &str) -> Output {
    let mut child = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/dev/set-image.sh"))
        .args([from, to])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(RENDERED.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn the_image_that_is_asked_for_is_deployed() {
    let output = set_image("quay.io/a/operator:v0.1.0", "localhost:5000/mine:dev");
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = RENDERED.replace("quay.io/a/operator:v0.1.0", "localhost:5000/mine:dev");
    assert!(output.status.success());
    assert_eq!(text, expected);
}

/// Also where it only begins like the one that is there.
#[test]
fn nothing_is_deployed_if_another_image_was_rendered() {
    for from in ["quay.io/a/operator:v0.2.0", "quay.io/a/operator:v0.1"] {
        let output = set_image(from, "localhost:5000/mine:dev");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{from}");
        assert!(text.contains(from) && text.contains("make manifests"), "{text}");
        assert!(output.stdout.is_empty(), "{from}");
    }
}
