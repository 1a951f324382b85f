//! Output and exit code of `olmkit bundle validate`, for the committed bundle and broken copies of it.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::demo_bundle::{ANNOTATIONS, CSV, copy, folder};

pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

pub fn run(folder: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::cargo_bin("olmkit").expect("program");
    let output = command
        .current_dir(folder)
        .env("OLMKIT_IMAGE_STORE", folder.join("store"))
        .args(arguments)
        .output()
        .expect("run");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    Run {
        code: output.status.code().expect("exit code"),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

pub fn validate(folder: &Path, arguments: &[&str]) -> Run {
    run(folder, &[&["bundle", "validate"], arguments].concat())
}

/// Every kind of finding: errors and warnings, with and without place, end and hint.
fn broken() -> TempDir {
    folder(&[
        (CSV, "minKubeVersion: 1.25.0", "minKubeVersion: v1.25"),
        (CSV, "  replaces: demo.v0.0.9", "  replaces: demo.v0.1.0"),
        (CSV, "    supported: true", "    supported: false"),
        (ANNOTATIONS, "alpha,stable", "alpha"),
    ])
}

/// Returns true if a value fits a JSON schema, as far as docs/report.schema.json uses the language. Members that it does not name are
/// misfits: nothing may be printed that is not described.
fn misfits(schema: &Value, root: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let target = root.pointer(name.trim_start_matches('#')).expect("definition");
        return misfits(target, root, value, at, out);
    }
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            out.push(format!("{at}: {what}: {value}"));
        }
    };
    match schema["type"].as_str() {
        Some("object") => expect(value.is_object(), "no object"),
        Some("array") => expect(value.is_array(), "no list"),
        Some("string") => expect(value.is_string(), "no text"),
        Some("integer") => expect(value.is_u64(), "no whole number"),
        Some("boolean") => expect(value.is_boolean(), "no truth value"),
        _ => expect(
            schema.get("const").is_some() || schema.get("enum").is_some(),
            "no type in the schema",
        ),
    }
    if let Some(wanted) = schema.get("const") {
        expect(value == wanted, "another constant");
    }
    if let Some(values) = schema["enum"].as_array() {
        expect(values.contains(value), "none of the values");
    }
    if let Some(least) = schema["minimum"].as_u64() {
        expect(value.as_u64() >= Some(least), "too small");
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        expect(
            value.get(name.as_str().expect("name")).is_some(),
            &format!("{name} is missing"),
        );
    }
    for (key, inner) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(key) {
            Some(schema) => misfits(schema, root, inner, &format!("{at}.{key}"), out),
            None => out.push(format!("{at}.{key}: not described")),
        }
    }
    for (index, inner) in value.as_array().into_iter().flatten().enumerate() {
        misfits(&schema["items"], root, inner, &format!("{at}[{index}]"), out);
    }
}

#[test]
fn json_fits_its_published_schema() {
    let path = test_support::repository("docs/report.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).expect("schema")).expect("JSON");
    for (folder, passed) in [(folder(&[]), true), (broken(), false)] {
        let printed = validate(folder.path(), &["demo", "-o", "json"]);
        let report: Value = serde_json::from_str(&printed.out).expect("JSON");
        let mut out = Vec::new();
        misfits(&schema, &schema, &report, "report", &mut out);
        assert!(out.is_empty(), "{}", out.join("\n"));
        assert_eq!(report["passed"], json!(passed));
        let of = |severity: &str| {
            let findings = report["findings"].as_array().expect("findings");
            findings
                .iter()
                .filter(|finding| finding["severity"] == severity)
                .count()
        };
        assert_eq!(report["errors"], json!(of("error")));
        assert_eq!(report["warnings"], json!(of("warning")));
    }
}

#[test]
fn sarif_has_the_structure_of_2_1_0() {
    let folder = broken();
    let printed = validate(folder.path(), &["demo", "-o", "sarif"]);
    assert_eq!(printed.code, 1);
    let log: Value = serde_json::from_str(&printed.out).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    let runs = log["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 1);
    let driver = &runs[0]["tool"]["driver"];
    assert_eq!(driver["name"], "olmkit");
    let rules = driver["rules"].as_array().expect("rules");
    let results = runs[0]["results"].as_array().expect("results");
    assert!(results.len() >= 4, "{results:?}");
    for rule in rules {
        assert!(
            rule["shortDescription"]["text"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{rule}"
        );
    }
    for result in results {
        let at = usize::try_from(result["ruleIndex"].as_u64().expect("index")).expect("index");
        assert_eq!(rules[at]["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().expect("level")));
        assert!(result["message"]["text"].as_str().is_some_and(|text| !text.is_empty()));
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().expect("URI");
        assert!(uri.starts_with("demo/") && !uri.contains(['\\', ' ']), "{uri}");
        if let Some(region) = place.get("region") {
            assert!(
                region["startLine"].as_u64() >= Some(1) && region["startColumn"].as_u64() >= Some(1),
                "{region}"
            );
            assert!(
                region
                    .get("endLine")
                    .is_none_or(|end| end.as_u64() >= region["startLine"].as_u64()),
                "{region}"
            );
        }
    }
}

#[test]
fn github_gets_one_command_for_each_finding() {
    let folder = broken();
    let printed = validate(folder.path(), &["demo", "-o", "github"]);
    assert_eq!(printed.code, 1);
    let commands: Vec<&str> = printed.out.lines().collect();
    assert!(commands.len() >= 4);
    for command in commands {
        let known = ["::error ", "::warning ", "::notice "]
            .iter()
            .any(|word| command.starts_with(word));
        assert!(known && command.contains("file=demo/"), "{command}");
    }
    assert!(
        printed
            .out
            .contains("file=demo/manifests/demo.clusterserviceversion.yaml,line=13"),
        "{}",
        printed.out
    );
}

#[test]
fn json_alpha1_is_operator_sdks_unless_strict() {
    let folder = folder(&[(ANNOTATIONS, "alpha,stable", "\"alpha, stable\"")]);
    let plain = validate(folder.path(), &["demo", "-o", "json-alpha1"]);
    assert_eq!(plain.code, 0, "{}", plain.err);
    assert_eq!(plain.out, "{\n    \"passed\": true,\n    \"outputs\": null\n}\n");
    let strict = validate(
        folder.path(),
        &["demo", "-o", "json-alpha1", "--strict", "--rules", "all"],
    );
    assert_eq!(strict.code, 1);
    let outputs: Value = serde_json::from_str(&strict.out).expect("JSON");
    assert_eq!(outputs["passed"], json!(true));
    assert!(
        outputs["outputs"][0]["message"]
            .as_str()
            .is_some_and(|text| text.starts_with("CHAN-2: ")),
        "{outputs}"
    );
}

#[test]
fn exit_codes_tell_findings_from_wrong_usage() {
    let warned = folder(&[(ANNOTATIONS, "alpha,stable", "\"alpha, stable\"")]);
    for (arguments, code) in [
        (&["demo"][..], 0),
        (&["demo", "--rules", "all", "--fail-on", "warning"], 1),
        (&["demo", "--rules", "all", "--strict"], 1),
        (&["demo", "--strict"], 0),
        (&["demo", "--strict", "--no-lints"], 0),
        (&["demo", "--select-optional", "name=nothing"], 2),
        (&["demo", "--output", "xml"], 2),
        (&["demo", "--optional-values", "k8s-version"], 2),
        (&[], 2),
        (&["./nowhere"], 1),
    ] {
        let printed = validate(warned.path(), arguments);
        assert_eq!(printed.code, code, "{arguments:?}: {}{}", printed.out, printed.err);
    }
}

/// OPM-1 is the only lint that changes the result. operator-sdk's own output does not contain it.
#[test]
fn a_bundle_that_cannot_be_rendered_fails_except_for_operator_sdk() {
    let unreadable = folder(&[(
        CSV,
        "    capabilities: Basic",
        "    certified: true\n    capabilities: Basic",
    )]);
    for (arguments, code) in [
        (&["demo"][..], 1),
        (&["demo", "-o", "json"], 1),
        (&["demo", "-o", "json-alpha1"], 0),
        (&["demo", "--ignore", "OPM-1"], 0),
        (&["demo", "--no-lints"], 0),
    ] {
        let printed = validate(unreadable.path(), arguments);
        assert_eq!(printed.code, code, "{arguments:?}: {}{}", printed.out, printed.err);
        let lines = printed.out.lines().chain(printed.err.lines());
        assert!(
            lines.clone().all(|line| line.len() < 1000),
            "the document is not part of the message"
        );
    }
    let rendered = run(unreadable.path(), &["catalog", "render", "demo"]);
    assert_eq!(rendered.code, 1, "{}", rendered.out);
    // `image build bundle` rejects only bundles that operator-sdk rejects too.
    let unlabeled = folder(&[(ANNOTATIONS, "", "  extra: {a: b}\n")]);
    let printed = validate(unlabeled.path(), &["demo", "-o", "json-alpha1"]);
    assert_eq!(printed.code, 1, "{}", printed.out);
    let built = run(
        unlabeled.path(),
        &["image", "build", "bundle", "demo", "-t", "example.com/demo:v1"],
    );
    assert_eq!(built.code, 1, "{}", built.out);
    assert!(
        built.err.contains("cannot unmarshal object into Go struct field"),
        "{}",
        built.err
    );
}

#[test]
fn the_next_profile_knows_more_kinds_and_image_names() {
    let folder = folder(&[(
        CSV,
        "  displayName: Demo",
        "  displayName: Demo\n  relatedImages: [{name: a, image: 'https://quay.io/x/a'}]",
    )]);
    let monitor = "apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nmetadata:\n  name: demo\n";
    fs::write(folder.path().join("demo/manifests/monitor.yaml"), monitor).expect("write");
    let messages = |profile: &str| validate(folder.path(), &["demo", "-o", "json-alpha1", "--profile", profile]).out;
    let (current, next) = (messages("operator-sdk-1.42"), messages("api-0.45"));
    assert!(
        current.contains("PodMonitor") && !current.contains("https://quay.io/x/a"),
        "{current}"
    );
    assert!(
        !next.contains("PodMonitor") && next.contains("https://quay.io/x/a"),
        "{next}"
    );
}

#[test]
fn many_bundles_end_in_a_summary() {
    let folder = tempfile::tempdir().expect("temporary directory");
    copy(folder.path(), "operators/good", &[]);
    copy(
        folder.path(),
        "operators/more/bad",
        &[(CSV, "    supported: true", "    supported: false")],
    );
    copy(
        folder.path(),
        "operators/unreadable",
        &[(CSV, "  displayName: Demo", "   displayName: Demo")],
    );
    let printed = validate(folder.path(), &["--recursive", "operators", "--short"]);
    assert_eq!(printed.code, 1);
    assert!(
        printed.out.ends_with("3 bundles, 1 passed, 2 failed\n"),
        "{}",
        printed.out
    );
    for (name, verdict) in [("good", "passed"), ("bad", "failed"), ("unreadable", "not loaded")] {
        let line = printed
            .out
            .lines()
            .find(|line| line.contains(name) && line.contains(verdict));
        assert!(line.is_some(), "no {name} {verdict}: {}", printed.out);
    }
    let listed = validate(folder.path(), &["operators/good", "operators/more/bad", "-o", "json"]);
    assert!(
        listed.out.contains("operators/more/bad/manifests") && listed.code == 1,
        "{}",
        listed.out
    );
    let none = validate(folder.path(), &["--recursive", "operators/good/manifests"]);
    assert!(none.code == 1 && none.out.is_empty(), "{}", none.out);
    assert!(none.err.contains("no bundles found in"), "{}", none.err);
    let allowed = validate(
        folder.path(),
        &["--recursive", "operators/good/manifests", "--allow-empty", "-o", "json"],
    );
    assert!(
        allowed.code == 0 && allowed.out.contains("\"passed\": true"),
        "{}",
        allowed.out
    );
    let unread = validate(
        folder.path(),
        &["operators/good", "--optional-values", "k8s=1.30,k8s-version=1.30"],
    );
    assert!(
        unread
            .err
            .contains("no validator reads --optional-values k8s; known are k8s-version"),
        "{}",
        unread.err
    );
    assert_eq!(unread.err.matches("no validator reads").count(), 1, "{}", unread.err);
}

#[test]
fn text_is_enough_to_repair_what_is_broken() {
    // The defect, and the parts of the output that name the position and the fix.
    for (file, from, to, wanted) in [
        (
            CSV,
            "  displayName: Demo",
            "   displayName: Demo",
            &[":11:3", "indented otherwise"][..],
        ),
        (
            CSV,
            "  displayName: Demo",
            "\tdisplayName: Demo",
            &[":10:1", "spaces, not tabs"],
        ),
        (
            CSV,
            "displayName: Demo",
            "displayName: [Demo]",
            &[":10:16", "must be a string, got a list"],
        ),
        (CSV, "version: 0.1.0", "version: 1.x", &[":11:12", "three numbers"]),
        (
            CSV,
            "name: demo.v0.1.0",
            "name: Demo_1",
            &[":4:9", "lower-case letters"],
        ),
        (
            ANNOTATIONS,
            "alpha,stable",
            "\"\"",
            &["channels.v1", "separated by commas"],
        ),
    ] {
        let folder = folder(&[(file, from, to)]);
        let printed = validate(folder.path(), &["demo", "--no-lints"]);
        assert_eq!(printed.code, 1);
        for words in wanted {
            assert!(printed.out.contains(words), "no {words:?} in {}", printed.out);
        }
        assert!(!printed.err.contains("level=fatal"), "printed twice: {}", printed.err);
    }
}

#[test]
fn images_are_read_in_place_and_their_labels_compared() {
    let folder = folder(&[]);
    let at = folder.path();
    let channels = "operators.operatorframework.io.bundle.channels.v1=beta";
    let versions = "com.redhat.openshift.versions=v4.1";
    for (output, labels, differs) in [
        ("oci:layout", &[][..], ""),
        ("oci-archive:demo.tar", &[], ""),
        (
            "oci:other",
            &["--label", channels],
            "channels.v1 is \\\"beta\\\", but the annotation is",
        ),
        (
            "oci:versions",
            &["--label", versions],
            "versions is \\\"v4.1\\\", but the annotation is missing",
        ),
    ] {
        let tag = "example.com/demo-bundle:v1";
        let build = [
            &["image", "build", "bundle", "demo", "--tag", tag, "--output", output],
            labels,
        ]
        .concat();
        let built = run(at, &build);
        assert_eq!(built.code, 0, "{output}: {}", built.err);
        let printed = validate(at, &[output, "-o", "json"]);
        assert_eq!(printed.code, 0, "{output}: {}{}", printed.out, printed.err);
        assert_eq!(printed.out.contains("META-3"), !differs.is_empty(), "{}", printed.out);
        assert!(printed.out.contains(differs), "{}", printed.out);
    }
}

/// All readers of bundles in a catalog check the labels first.
#[test]
fn an_image_without_bundle_labels_is_reported_once() {
    let folder = folder(&[]);
    let at = folder.path();
    let files = [
        "image",
        "build",
        "files",
        "--add",
        "demo/manifests:/manifests",
        "--add",
        "demo/metadata:/metadata",
        "--tag",
        "example.com/demo:v1",
        "--output",
        "oci:plain",
    ];
    let built = run(at, &files);
    assert_eq!(built.code, 0, "{}", built.err);
    let printed = validate(at, &["oci:plain", "-o", "concise"]);
    assert_eq!(printed.code, 0, "{}{}", printed.out, printed.err);
    assert_eq!(printed.out.matches("META-3").count(), 1, "{}", printed.out);
    assert!(
        printed.out.contains("opm does not recognize it as a bundle image"),
        "{}",
        printed.out
    );
}

/// People read a defect once, with the places where it repeats. Programs and `full` have each.
#[test]
fn repeated_findings_appear_once_in_text() {
    let more = "      description: A widget\n    \
                - {name: gadgets.demo.example.com, version: v1, kind: Gadget}\n    \
                - {name: gizmos.demo.example.com, version: v1, kind: Gizmo}\n";
    let bundle = folder(&[(CSV, "      description: A widget\n", more)]);
    for (form, times) in [("text", 1), ("full", 2), ("json", 2), ("concise", 2)] {
        let printed = validate(bundle.path(), &["demo", "-o", form, "--select", "CSV-10"]);
        assert_eq!(
            printed.out.matches("has no example").count(),
            times,
            "{form}: {}",
            printed.out
        );
    }
    let printed = validate(bundle.path(), &["demo", "--select", "CSV-10"]);
    assert!(
        printed.out.contains("Kind=Gadget has no example (also Kind=Gizmo)"),
        "{}",
        printed.out
    );
}
