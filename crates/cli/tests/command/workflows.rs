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
    paths.into_iter().map(read).collect()
}

/// A new project.
fn scaffold() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    assert_cmd::Command::cargo_bin("olmkit")
        .unwrap()
        .args(["init", "--domain", "example.com", "--project-name", "demo"])
        .current_dir(folder.path())
        .assert()
        .success();
    folder
}

fn read(path: PathBuf) -> (PathBuf, Value) {
    let text = std::fs::read_to_string(&path).unwrap();
    let value = olmkit::yaml::parse(text.as_bytes()).unwrap().to_json().unwrap();
    (path, value)
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
    let project = scaffold();
    let of_project = read(project.path().join(".github/workflows/test.yml"));
    assert_eq!(of_project.1["permissions"], serde_json::json!({"contents": "read"}));
    let mut used = 0;
    for (path, document) in documents().into_iter().chain([of_project]) {
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

/// An image must not change with a tag or a newer dependency.
#[test]
fn a_dockerfile_builds_locked_dependencies_from_a_certain_image() {
    let project = scaffold();
    let text = std::fs::read_to_string(project.path().join("Dockerfile")).unwrap();
    let mut bases = text.lines().filter_map(|line| line.strip_prefix("FROM "));
    let is_certain = |base: &str| {
        let image = base.split(' ').next().unwrap();
        let version = image
            .split_once(':')
            .map(|(_, tag)| tag.split('-').next().unwrap().split('.'));
        let all_numbers = |parts: std::str::Split<'_, char>| {
            let numbers: Vec<&str> = parts.collect();
            numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u32>().is_ok())
        };
        image == "scratch" || image.contains("@sha256:") || version.is_some_and(all_numbers)
    };
    assert!(bases.clone().count() == 2 && bases.all(is_certain), "{text}");
    assert!(text.contains("add the digest that `docker pull` prints"), "{text}");
    let mut compiled = text
        .split("RUN ")
        .skip(1)
        .flat_map(|run| run.split("&&"))
        .filter(|run| run.contains("cargo "));
    assert!(
        compiled.clone().count() == 1 && compiled.all(|run| run.contains("cargo build --locked")),
        "{text}"
    );
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

/// An attacker who replaces a release's archive also replaces its checksums.
#[test]
fn the_action_uses_no_binary_without_an_attestation() {
    let action = documents().into_iter().find(|(path, _)| path.ends_with("action.yml"));
    let action = action.unwrap().1;
    let step = steps(&action["runs"])
        .iter()
        .find(|step| step["name"] == "Install olmkit");
    let script = step.unwrap()["run"].as_str().unwrap();
    let install = |attested: bool, repository: &str| {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            use std::os::unix::fs::PermissionsExt as _;
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        // The archive and its sum, as a release has them.
        write(
            "bin/gh",
            "#!/bin/sh\nset -e\necho \"$*\" >> calls\ncase \"$1 $2\" in\n'release download')\n  mkdir olmkit-1.0.0-linux-amd64\n  \
             tar -czf olmkit-1.0.0-linux-amd64.tar.gz olmkit-1.0.0-linux-amd64\n  rmdir olmkit-1.0.0-linux-amd64\n  \
             sha256sum olmkit-1.0.0-linux-amd64.tar.gz > SHA256SUMS ;;\n'attestation verify') [ -z \"$FORGED\" ] ;;\nesac\n",
        );
        let mut search = vec![root.path().join("bin")];
        search.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let output = std::process::Command::new("bash")
            .args(["-eo", "pipefail", "-c", script])
            .current_dir(root.path())
            .env("PATH", std::env::join_paths(&search).unwrap())
            .env("RUNNER_TEMP", root.path())
            .env("RUNNER_OS", "Linux")
            .env("RUNNER_ARCH", "X64")
            .env("GITHUB_PATH", root.path().join("path"))
            .env("VERSION", "1.0.0")
            .env("REPOSITORY", repository)
            .env("FORGED", if attested { "" } else { "yes" })
            .output()
            .unwrap();
        let calls = std::fs::read_to_string(root.path().join("calls")).unwrap_or_default();
        let used = std::fs::read_to_string(root.path().join("path")).unwrap_or_default();
        let unpacked = root.path().join("olmkit-1.0.0-linux-amd64").exists();
        assert_eq!(output.status.success(), unpacked, "{output:?}");
        assert_eq!(unpacked, !used.is_empty(), "{used}");
        (unpacked, calls)
    };
    let (used, calls) = install(true, "owner/name");
    assert!(used, "{calls}");
    let verified = "attestation verify olmkit-1.0.0-linux-amd64.tar.gz --repo owner/name --signer-workflow owner/name/.github/workflows/release.yml";
    assert!(calls.contains(verified), "{calls}");
    assert!(!install(false, "owner/name").0);
    // No other repository is asked instead.
    assert_eq!(install(true, ""), (false, String::new()));
}
