//! Whole outputs of the renderers.

use super::*;
use olmkit_yaml::{Position, parse};

define_rules! {
    DEMO_MODES = {
        id: "demo-modes",
        severity: Severity::Error,
        origin: Origin::Lint,
        summary: "Install modes are a list.",
        why: "Nothing else can be read.",
        bad: "installModes: none",
        good: "installModes: []",
        since: "0.1.0",
    }
    DEMO_NAME = {
        id: "demo-name",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Names are in lower case.",
        why: "Others are refused.",
        bad: "name: Demo",
        good: "name: demo",
        since: "0.1.0",
    }
    DEMO_SIZE = {
        id: "demo-size",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "Demos are small.",
        why: "They are read by people.",
        bad: "1 MB",
        good: "1 kB",
        since: "0.1.0",
    }
}

const SOURCE: &[u8] = b"metadata:\n  name: Demo\nspec:\n  installModes: none\n";

fn report(file: &std::path::Path) -> Report {
    let node = parse(SOURCE).expect("YAML");
    let name = node.pointer("/metadata/name").expect("name");
    let modes = node.pointer("/spec/installModes").expect("install modes");
    let mut report: Report = [
        Finding::new(&DEMO_MODES, Severity::Error, "spec.installModes is not a list")
            .object("ClusterServiceVersion/Demo")
            .path("spec.installModes")
            .file(file)
            .at_node(modes),
        Finding::new(
            &DEMO_NAME,
            Severity::Warning,
            "50% of names,\nlike Demo, are not in lower case",
        )
        .file(file)
        .at_node(name)
        .hint("write demo"),
        Finding::new(&DEMO_SIZE, Severity::Info, "nothing to point at"),
    ]
    .into_iter()
    .collect();
    report.sort();
    report
}

fn rendered(write: impl FnOnce(&Report, &mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let folder = tempfile::tempdir().expect("temporary directory");
    let file = folder.path().join("csv.yaml");
    std::fs::write(&file, SOURCE).expect("file");
    let mut out = Vec::new();
    write(&report(&file), &mut out).expect("write");
    String::from_utf8(out)
        .expect("UTF-8")
        .replace(&*folder.path().to_string_lossy(), "bundle")
}

#[test]
fn text_points_at_the_source() {
    insta::assert_snapshot!(rendered(|report, out| write_text(report, TextOptions::default(), out)));
}

#[test]
fn json_counts_and_lists() {
    insta::assert_snapshot!(rendered(write_json));
}

#[test]
fn sarif_names_rules_and_regions() {
    insta::assert_snapshot!(rendered(|report, out| write_sarif(report, RULES, out)));
}

#[test]
fn github_commands_cannot_be_injected() {
    let text = rendered(write_github);
    insta::assert_snapshot!(text);
    assert_eq!(text.lines().count(), 3);
}

#[test]
fn a_place_outside_the_file_does_no_harm() {
    let text = rendered(|report, out| {
        let mut report = report.clone();
        for finding in &mut report.findings {
            finding.position = Some(Position { line: 900, column: 900 });
        }
        write_text(&report, TextOptions::default(), out)
    });
    assert!(text.contains("bundle/csv.yaml:900:900"), "{text}");
}

#[test]
fn source_lines_fit_the_terminal() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let file = folder.path().join("long.yaml");
    let text = format!(
        "examples: {{widgets-of-many-kinds-and-sizes: {{}}, and-one-more: '{}'}}\n",
        "{\"kind\": \"Widget\"}, ".repeat(40)
    );
    std::fs::write(&file, &text).expect("file");
    let node = parse(text.as_bytes()).expect("YAML");
    let value = node.pointer("/examples/and-one-more").expect("value");
    let report: Report = [Finding::new(&DEMO_MODES, Severity::Error, "too long")
        .file(&file)
        .at_node(value)]
    .into_iter()
    .collect();
    for width in [80, 120] {
        let options = TextOptions {
            width: Some(width),
            ..TextOptions::default()
        };
        let mut out = Vec::new();
        write_text(&report, options, &mut out).expect("write");
        let out = String::from_utf8(out).expect("UTF-8");
        assert!(out.contains("long.yaml:1:63\n"), "{out}");
        let longest = out
            .lines()
            .filter(|line| line.contains(" | "))
            .map(|line| line.chars().count())
            .max();
        assert!(
            longest.is_some_and(|longest| longest <= width && longest > width - 20),
            "{width}: {longest:?}\n{out}"
        );
    }
}

#[test]
fn thousands_of_findings_in_one_line_are_shown_soon() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("csv.yaml");
    std::fs::write(&file, "{\"a\": \"ä\"}, ".repeat(100_000)).unwrap();
    let finding = |number: u32| {
        let position = Position {
            line: 1,
            column: 1 + 300 * number,
        };
        Finding::new(&DEMO_SIZE, Severity::Error, "wrong")
            .file(&file)
            .at(position)
    };
    let report: Report = (0..4000).map(finding).collect();
    let started = std::time::Instant::now();
    let mut out = Vec::new();
    write_text(&report, TextOptions::default(), &mut out).unwrap();
    assert!(
        started.elapsed() < std::time::Duration::from_secs(60),
        "{:?}",
        started.elapsed()
    );
    assert!(out.len() < 4000 * 1000, "{} bytes", out.len());
}
