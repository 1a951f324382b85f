//! `olmkit repo check --suite operatorhub|preflight`, and on an image.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

const CSV: &str = "operators/hello/0.0.1/manifests/hello.clusterserviceversion.yaml";

/// A repository with one operator whose bundle has defects.
fn repository() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let files = [
        (
            CSV,
            "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: hello.v0.0.1\nspec:\n  \
             version: 0.0.1\n  replaces: hello.v0.0.0\n",
        ),
        (
            "operators/hello/0.0.1/metadata/annotations.yaml",
            "annotations:\n  operators.operatorframework.io.bundle.package.v1: hello\n",
        ),
    ];
    for (path, text) in files {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    directory
}

fn olmkit(root: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = assert_cmd::Command::cargo_bin("olmkit")
        .unwrap()
        .args(arguments)
        .env("HOME", root)
        .env("OLMKIT_IMAGE_STORE", root.join("store"))
        .current_dir(root)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn check(root: &Path, arguments: &[&str]) -> (i32, String, String) {
    olmkit(root, &[&["repo", "check"], arguments].concat())
}

fn names(results: &Value, key: &str) -> Vec<String> {
    let entries = results["results"][key].as_array().unwrap().iter();
    entries
        .map(|entry| entry["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn operatorhub_has_rules_of_its_own() {
    let directory = repository();
    let (code, out, _) = check(directory.path(), &["--suite", "operatorhub", "--short"]);
    assert_eq!(code, 1);
    assert!(out.contains(&format!("{CSV}:7:13")), "{out}");
    for rule in ["update-graph", "deployments", "categories", "containerImage", "sdk"] {
        assert!(out.contains(&format!("error[operatorhub/{rule}]")), "{rule}: {out}");
    }
    assert!(
        !out.contains("pipeline/") && out.contains("kiwi, lemon and orange"),
        "{out}"
    );
}

#[test]
fn preflight_has_its_own_result() {
    let directory = repository();
    let one = ["--suite", "preflight", "--operator", "hello", "--bundle", "0.0.1"];
    let (code, out, _) = check(directory.path(), &[&one[..], &["-o", "preflight-json"]].concat());
    let results: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &results["passed"]), (1, &Value::Bool(false)));
    assert_eq!(results["image"], "operators/hello/0.0.1");
    let hash = results["certification_hash"].as_str().unwrap();
    assert!(
        hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{hash}"
    );
    assert_eq!(
        names(&results, "failed"),
        ["ValidateOperatorBundle", "RequiredAnnotations"]
    );
    let (_, out, _) = check(directory.path(), &[&one[..], &["--short"]].concat());
    assert!(out.contains("error[preflight/RequiredAnnotations]"), "{out}");
    assert!(
        out.contains("warning[preflight/FollowsRestrictedNetworkEnablementGuidelines]"),
        "{out}"
    );
    assert!(out.contains("DeployableByOLM"), "{out}");
    let (_, out, _) = check(directory.path(), &["--suite", "preflight", "-o", "sarif"]);
    assert!(out.contains("preflight/RequiredAnnotations"), "{out}");
}

#[test]
fn an_image_is_checked_by_a_container_policy() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    std::fs::create_dir_all(root.join("image/licenses")).unwrap();
    std::fs::write(root.join("image/licenses/LICENSE"), "terms").unwrap();
    let build = |user: &str, name: &str, output: &str| {
        let mut arguments = vec![
            "image",
            "build",
            "directory",
            "image",
            "--tag",
            name,
            "--user",
            user,
            "--output",
            output,
        ];
        for label in [
            "name",
            "vendor",
            "version",
            "release",
            "summary",
            "description",
            "maintainer",
        ] {
            arguments.push("--label");
            arguments.push(Box::leak(format!("{label}=x").into_boxed_str()));
        }
        let (code, _, error) = olmkit(root, &arguments);
        assert_eq!(code, 0, "{error}");
    };
    let sound = "oci:sound:quay.io/example/hello:v1";
    build("65532", "quay.io/example/hello:v1", sound);
    let (code, out, error) = check(root, &["--image", sound, "--policy", "scratch-nonroot"]);
    assert_eq!(code, 0, "{out}{error}");
    assert!(out.contains("1 image checked: 0 errors and 0 warnings"), "{out}");
    let (code, out, _) = check(root, &["--image", sound, "-o", "preflight-json"]);
    let results: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, names(&results, "errors")),
        (
            1,
            vec!["HasNoProhibitedPackages".to_owned(), "HasModifiedFiles".to_owned()]
        )
    );
    assert_eq!(names(&results, "passed").len(), 7, "{out}");
    let defective = "oci:defective:quay.io/example/redhat-hello:latest";
    build("0", "quay.io/example/redhat-hello:latest", defective);
    let (code, out, _) = check(root, &["--image", defective, "--policy", "scratch-nonroot", "--short"]);
    assert_eq!(code, 1);
    for rule in ["RunAsNonRoot", "HasProhibitedContainerName"] {
        assert!(out.contains(&format!("error[preflight/{rule}]")), "{rule}: {out}");
    }
    assert!(out.contains("HasUniqueTag (the tag is latest"), "{out}");
}

#[test]
fn a_dockerfile_is_checked_before_the_build() {
    let directory = tempfile::tempdir().unwrap();
    let text = "FROM registry.access.redhat.com/ubi9\nLABEL name=\"Red Hat Hello\"\nUSER root\n";
    std::fs::write(directory.path().join("Dockerfile"), text).unwrap();
    let (code, out, _) = check(directory.path(), &["--image", "dockerfile:Dockerfile", "-o", "concise"]);
    assert_eq!(code, 1);
    for place in [
        "Dockerfile:2:1: error[preflight/HasNoProhibitedLabels]",
        "Dockerfile:3:1: error[preflight/RunAsNonRoot]",
    ] {
        assert!(out.contains(place), "{place}: {out}");
    }
    let (_, out, _) = check(directory.path(), &["--image", "dockerfile:Dockerfile"]);
    assert!(out.contains("which registry.access.redhat.com/ubi9 may have"), "{out}");
    assert!(out.contains("HasLicense (the Dockerfile does not say)"), "{out}");
    let (code, _, error) = check(directory.path(), &["--image", "dockerfile:none"]);
    assert!(code == 1 && error.contains("none"), "{error}");
}

#[test]
fn wrong_usage_names_the_way_out() {
    let directory = repository();
    for (arguments, wanted) in [
        (vec!["-o", "preflight-json"], "--operator and --bundle, or --image"),
        (
            vec!["--image", "oci:x", "--suite", "community"],
            "requires --suite preflight",
        ),
        (vec!["--image", "oci:x", "--operator", "hello"], "cannot be used with"),
        (vec!["--policy", "root"], "--image"),
    ] {
        let (code, _, error) = check(directory.path(), &arguments);
        assert_eq!(code, 2, "{arguments:?}: {error}");
        assert!(error.contains(wanted), "{arguments:?}: {error}");
    }
    let (code, _, error) = check(directory.path(), &["--image", "oci:nowhere"]);
    assert!(code == 1 && error.contains("nowhere"), "{error}");
}
