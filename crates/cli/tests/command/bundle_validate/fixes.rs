//! `--fix`, `--unsafe-fixes` and `--diff`.

use std::fs;
use std::os::unix::fs::symlink;

use super::outputs::validate;
use test_support::demo_bundle::{CSV, folder};

const CAPABILITIES: (&str, &str, &str) = (
    CSV,
    "    capabilities: Basic Install\n",
    "    capabilities: basic install # by hand\n",
);

#[test]
fn fixes_are_written_and_named_and_the_rest_is_validated() {
    let folder = folder(&[CAPABILITIES]);
    let csv = folder.path().join("demo").join(CSV);
    let before = fs::read_to_string(&csv).unwrap();
    let run = validate(folder.path(), &["demo", "--fix"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    let line = format!("fixed: demo/{CSV}: spell capabilities as in \"Basic Install\"\n");
    assert!(run.err.contains(&line), "{}", run.err);
    let after = fs::read_to_string(&csv).unwrap();
    assert!(after.contains("    capabilities: Basic Install # by hand\n"), "{after}");
    let lost: Vec<&str> = before
        .lines()
        .filter(|line| !after.lines().any(|other| other == *line))
        .collect();
    assert_eq!(lost, ["    capabilities: basic install # by hand"]);
    let again = validate(folder.path(), &["demo", "--fix"]);
    assert!(!again.err.contains("fixed: "), "{}", again.err);
    assert_eq!(fs::read_to_string(&csv).unwrap(), after);
}

#[test]
fn a_difference_writes_nothing() {
    let folder = folder(&[CAPABILITIES]);
    let csv = folder.path().join("demo").join(CSV);
    let before = fs::read_to_string(&csv).unwrap();
    let run = validate(folder.path(), &["demo", "--diff"]);
    assert_eq!(run.code, 1);
    for part in [
        format!("--- demo/{CSV}\n+++ demo/{CSV}\n@@ "),
        "\n-    capabilities: basic install # by hand\n+    capabilities: Basic Install # by hand\n".to_owned(),
    ] {
        assert!(run.out.contains(&part), "{}", run.out);
    }
    assert_eq!(fs::read_to_string(&csv).unwrap(), before);
    validate(folder.path(), &["demo", "--fix"]);
    let run = validate(folder.path(), &["demo", "--diff"]);
    assert_eq!((run.code, run.out.as_str()), (0, ""));
}

#[test]
fn fixes_do_not_write_through_links() {
    let folder = folder(&[CAPABILITIES]);
    let csv = folder.path().join("demo").join(CSV);
    let other = folder.path().join("demo/elsewhere.yaml");
    fs::rename(&csv, &other).unwrap();
    symlink("../elsewhere.yaml", &csv).unwrap();
    let before = fs::read_to_string(&other).unwrap();
    let run = validate(folder.path(), &["demo", "--fix"]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("it is a symbolic link; fix its target"), "{}", run.err);
    assert_eq!(fs::read_to_string(&other).unwrap(), before);
    assert!(csv.symlink_metadata().unwrap().is_symlink());

    let run = validate(folder.path(), &["demo", "--unsafe-fixes"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("--unsafe-fixes needs --fix or --diff"), "{}", run.err);
}

/// A bundle that `make bundle` generates is overwritten: the fix belongs into the base.
#[test]
fn fixes_of_a_generated_bundle_go_into_its_base() {
    let folder = folder(&[CAPABILITIES]);
    let csv = folder.path().join("demo").join(CSV);
    let before = fs::read_to_string(&csv).unwrap();
    let bases = folder.path().join("config/manifests/bases");
    fs::create_dir_all(&bases).unwrap();
    let base = bases.join("demo.clusterserviceversion.yaml");
    let text = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  annotations:\n    \
                capabilities: basic install # base\n  name: demo.v0.0.0\nspec:\n  displayName: Demo\n";
    fs::write(&base, text).unwrap();
    let diff = validate(folder.path(), &["demo", "--diff"]);
    assert_eq!(diff.code, 1);
    assert!(
        diff.out
            .contains("+++ config/manifests/bases/demo.clusterserviceversion.yaml\n"),
        "{}",
        diff.out
    );
    let run = validate(folder.path(), &["demo", "--fix"]);
    let line =
        "fixed: config/manifests/bases/demo.clusterserviceversion.yaml: spell capabilities as in \"Basic Install\"\n";
    assert!(run.err.contains(line), "{}", run.err);
    assert!(run.err.contains("run `make bundle` to update demo"), "{}", run.err);
    assert_eq!(
        fs::read_to_string(&base).unwrap(),
        text.replace("basic install", "Basic Install")
    );
    assert_eq!(fs::read_to_string(&csv).unwrap(), before);

    // The value comes from elsewhere.
    fs::write(
        &base,
        text.replace("    capabilities: basic install # base\n", "    other: a\n"),
    )
    .unwrap();
    let run = validate(folder.path(), &["demo", "--fix"]);
    let line = format!(
        "not fixed: demo/{CSV}: spell capabilities as in \"Basic Install\": the bundle is generated, and the value"
    );
    assert!(run.err.contains(&line), "{}", run.err);
    assert_eq!(fs::read_to_string(&csv).unwrap(), before);
}

#[test]
fn fixes_of_a_bundle_with_an_unknown_source_say_that_they_are_overwritten() {
    let folder = folder(&[CAPABILITIES]);
    let annotations = folder.path().join("demo/metadata/annotations.yaml");
    let text = fs::read_to_string(&annotations).unwrap();
    let builder = "  operators.operatorframework.io.metrics.builder: operator-sdk-v1.42.3\n";
    fs::write(&annotations, format!("{}\n{builder}", text.trim_end())).unwrap();
    let run = validate(folder.path(), &["demo", "--fix"]);
    assert!(
        run.err.contains(
            "note: demo was generated by operator-sdk-v1.42.3: make the fixes in its source too, or the next `make bundle` overwrites them"
        ),
        "{}",
        run.err
    );
}

/// The note promises only fixes that `--unsafe-fixes` really applies.
#[test]
fn fixes_that_need_review_are_announced_if_they_are_possible() {
    let folder = folder(&[(CSV, "                runAsNonRoot: true\n", "")]);
    let title = "restrict the security contexts of deployment demo";
    let run = validate(folder.path(), &["demo", "--fix"]);
    let note = format!("note: --unsafe-fixes would also apply these; review the result:\n  demo/{CSV}: {title}\n");
    assert!(run.err.contains(&note), "{}", run.err);

    let bases = folder.path().join("config/manifests/bases");
    fs::create_dir_all(&bases).unwrap();
    let base =
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: demo.v0.0.0\n";
    fs::write(bases.join("demo.clusterserviceversion.yaml"), base).unwrap();
    let run = validate(folder.path(), &["demo", "--fix"]);
    let line = format!("not fixed: demo/{CSV}: {title}: the bundle is generated, and the value");
    assert!(run.err.contains(&line), "{}", run.err);
    assert!(!run.err.contains("would also apply"), "{}", run.err);
}
