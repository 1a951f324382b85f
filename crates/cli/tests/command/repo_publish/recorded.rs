//! Onboarding of real operators: those of the recorded answers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use test_support::corpus;

use super::opm;

/// Rejected operators, with a part of the message. No file may be written then. This operator has a `ci.yaml` and no
/// bundle.
const REFUSED: &[(&str, &str)] = &[("oci-capi-autoscaling-operator", "has no bundle")];

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            // Not std::fs::copy: the recording is read-only.
            std::fs::write(to, std::fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// Copies one operator with its catalogs.
fn repository(from: &Path, operator: &str, to: &Path) -> BTreeSet<String> {
    let mut catalogs = BTreeSet::new();
    copy(
        &from.join("operators").join(operator),
        &to.join("operators").join(operator),
    );
    for name in std::fs::read_dir(from.join("catalogs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
    {
        let own = Path::new("catalogs").join(&name).join(operator);
        if from.join(&own).is_dir() {
            copy(&from.join(&own), &to.join(&own));
            catalogs.insert(name.into_string().unwrap());
        }
    }
    // Any registry will do: the images of the test are not pulled.
    std::fs::write(to.join("config.yaml"), "organization: community-operators\n").unwrap();
    catalogs
}

fn olmkit(root: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = assert_cmd::Command::cargo_bin("olmkit").unwrap();
    let output = command.args(arguments).current_dir(root).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// Onboards one operator. Returns the reason if it is rejected.
fn onboard(from: &Path, operator: &str, opm: Option<&Path>) -> Result<usize, String> {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let published = repository(from, operator, root);
    let old = tempfile::tempdir().unwrap();
    if !published.is_empty() {
        copy(&root.join("catalogs"), old.path());
    }
    let mut arguments = vec!["repo", "onboard", operator, "--replace"];
    if published.is_empty() {
        arguments.extend(["--image-ref-template", "quay.io/test/{{.Name}}:v{{.Version}}"]);
    }
    let before = super::files(root);
    let (done, said) = olmkit(root, &arguments);
    if !done {
        assert_eq!(super::files(root), before, "{operator}: {said}");
        return Err(said);
    }
    let catalogs: Vec<String> = std::fs::read_dir(root.join("catalogs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in &catalogs {
        let own = format!("catalogs/{name}");
        if published.contains(name) {
            let old = old.path().join(name);
            let (same, changes) = olmkit(root, &["catalog", "diff", old.to_str().unwrap(), &own]);
            assert!(
                same && !changes.contains(&format!(" {operator}: ")),
                "{operator} {name}: {changes}"
            );
        }
        if let Some(opm) = opm {
            let output = Command::new(opm)
                .args(["validate", &own])
                .current_dir(root)
                .output()
                .unwrap();
            assert!(output.status.success(), "{operator} {name}: {output:?}");
        }
    }
    Ok(catalogs.len())
}

#[test]
fn every_recorded_operator_is_onboarded_with_the_same_graph() {
    let Some(corpus) = corpus("submission") else { return };
    let opm = opm();
    let (mut operators, mut catalogs) = (0, 0);
    let mut refused = BTreeMap::new();
    for repository in ["community", "certified"] {
        let from = corpus.join("repos").join(repository);
        let names = std::fs::read_dir(from.join("operators")).unwrap();
        for name in names.map(|entry| entry.unwrap().file_name().into_string().unwrap()) {
            match onboard(&from, &name, opm.as_deref()) {
                Ok(count) => {
                    operators += 1;
                    catalogs += count;
                }
                Err(said) => drop(refused.insert(name, said)),
            }
        }
    }
    eprintln!(
        "onboarded: {operators} operators, {catalogs} catalogs; refused: {}",
        refused.len()
    );
    let unexpected = |(name, said): &(&String, &String)| {
        let known = REFUSED.iter().find(|(operator, _)| operator == name);
        !known.is_some_and(|(_, part)| said.contains(part))
    };
    let unexpected: Vec<_> = refused.iter().filter(unexpected).collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    assert_eq!(refused.len(), REFUSED.len());
}
