//! Checks permissions, pins and tokens in the GitHub workflows and in `action.yml`, and runs the action's check.

use std::path::PathBuf;

use serde_json::Value;
use test_support::demo_bundle;

/// All workflows and the action, with their paths.
fn documents() -> Vec<(PathBuf, Value)> {
    let folder = test_support::repository(".github/workflows");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.push(test_support::repository("action.yml"));
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let value = olmkit::yaml::parse(text.as_bytes()).unwrap().to_json().unwrap();
        (path, value)
    };
    paths.into_iter().map(read).collect()
}

/// The jobs of a workflow. An action has one job without a name.
fn jobs(document: &Value) -> Vec<(&str, &Value)> {
    match document.get("jobs").and_then(Value::as_object) {
        Some(jobs) => jobs.iter().map(|(name, job)| (name.as_str(), job)).collect(),
        None => vec![("", &document["runs"])],
    }
}

fn steps(job: &Value) -> &[Value] {
    job["steps"].as_array().unwrap()
}

#[test]
fn actions_are_pinned_by_digest_and_leave_no_credentials() {
    let mut used = 0;
    for (path, document) in documents() {
        for (job, step) in jobs(&document)
            .iter()
            .flat_map(|(name, job)| steps(job).iter().map(move |step| (name, step)))
        {
            let Some(action) = step["uses"].as_str() else { continue };
            used += 1;
            let place = format!("{}: {job}: {action}", path.display());
            let (name, version) = action.split_once('@').unwrap();
            assert!(
                version.len() == 40 && version.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{place}"
            );
            if name == "actions/checkout" {
                assert_eq!(step["with"]["persist-credentials"], false, "{place}");
            }
        }
    }
    assert!(used > 10, "{used}");
}

#[test]
fn jobs_have_no_more_permissions_than_they_need() {
    for (path, document) in documents() {
        if path.ends_with("action.yml") {
            continue;
        }
        // A job without permissions inherits these.
        assert_eq!(
            document["permissions"],
            serde_json::json!({"contents": "read"}),
            "{}",
            path.display()
        );
        // YAML 1.1 reads `on` as a boolean.
        let triggers = document["true"].as_object().unwrap();
        assert!(!triggers.contains_key("pull_request_target"), "{}", path.display());
    }
}

/// A dependency's build script could read the token of its job.
#[test]
fn nothing_is_compiled_beside_a_token() {
    let mut privileged = Vec::new();
    for (path, document) in documents() {
        for (name, job) in jobs(&document) {
            // crates.io trusts the workflow, so no job needs a stored token.
            let text = job.to_string();
            assert!(!text.contains("secrets"), "{}: {name} has a secret", path.display());
            let writes = job["permissions"]
                .as_object()
                .is_some_and(|permissions| permissions.values().any(|kind| kind == "write"));
            if !writes {
                continue;
            }
            privileged.push(name.to_owned());
            for run in steps(job).iter().filter_map(|step| step["run"].as_str()) {
                let place = format!("{}: {name}: {run}", path.display());
                assert!(!run.contains("cargo ") && !run.contains("make "), "{place}");
                for script in run.split_whitespace().filter(|word| word.starts_with("dev/")) {
                    let text = std::fs::read_to_string(test_support::repository(script)).unwrap();
                    let compiles = |line: &&str| {
                        let line = line.trim_start();
                        ["build", "run", "test", "install"]
                            .iter()
                            .any(|word| line.contains(&format!("cargo {word} ")))
                            || line.contains("cargo publish ") && !line.contains("--no-verify")
                    };
                    let compiling: Vec<&str> = text
                        .lines()
                        .filter(|line| !line.starts_with('#'))
                        .filter(compiles)
                        .collect();
                    assert!(compiling.is_empty(), "{place}: {compiling:?}");
                }
            }
        }
    }
    privileged.sort();
    assert_eq!(privileged, ["crates", "publish"]);
}

/// The author of a pull request writes the comments and may choose the name of the bundle.
#[test]
fn a_bundle_turns_no_finding_of_the_action_off() {
    let action = documents().into_iter().find(|(path, _)| path.ends_with("action.yml"));
    let action = action.unwrap().1;
    let step = steps(&action["runs"]).iter().find(|step| step["id"] == "validate");
    let script = step.unwrap()["run"].as_str().unwrap();
    let root = tempfile::tempdir().unwrap();
    let olmkit = assert_cmd::cargo::cargo_bin("olmkit");
    let mut search = vec![olmkit.parent().unwrap().to_owned()];
    search.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    for name in ["bundle", "--help"] {
        let wrong = "minKubeVersion: v1.25 # olmkit: ignore-file CSV-17 known";
        demo_bundle::copy(
            root.path(),
            name,
            &[(demo_bundle::CSV, "minKubeVersion: 1.25.0", wrong)],
        );
        let run = |program: &str, arguments: &[&str]| {
            std::process::Command::new(program)
                .args(arguments)
                .current_dir(root.path())
                .env("PATH", std::env::join_paths(&search).unwrap())
                .env("RUNNER_TEMP", root.path())
                .env("GITHUB_OUTPUT", root.path().join("output"))
                .env("ARGUMENTS", "--short")
                .env("BUNDLE", name)
                .output()
                .unwrap()
        };
        let of_csv_17 = |sarif: &[u8]| {
            let sarif: Value = serde_json::from_slice(sarif).unwrap();
            let results = sarif["runs"][0]["results"].as_array().unwrap().iter();
            let of_rule = results.filter(|result| result["ruleId"] == "CSV-17");
            of_rule
                .map(|result| result.get("suppressions").is_some())
                .collect::<Vec<_>>()
        };
        let with = run("olmkit", &["bundle", "validate", "-o", "sarif", "--", name]);
        assert_eq!(of_csv_17(&with.stdout), [true], "{with:?}");
        let output = run("bash", &["-euo", "pipefail", "-c", script]);
        assert!(output.status.success(), "{output:?}");
        let sarif = std::fs::read(root.path().join("olmkit.sarif")).unwrap();
        assert_eq!(of_csv_17(&sarif), [false], "{name}");
        let outputs = std::fs::read_to_string(root.path().join("output")).unwrap();
        assert!(outputs.ends_with("status=1\n"), "{outputs}");
    }
}
