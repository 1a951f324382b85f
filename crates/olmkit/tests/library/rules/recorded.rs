//! Compares the rules about OLM v1 with the results of its code for real and synthetic bundles, and those about OLM
//! with its recorded behavior for our bundles.

use std::collections::BTreeSet;
use std::path::Path;

use olmkit::bundle::load::{Limits, Tree};
use serde_json::Value;
use test_support::{corpus, demo_bundle};

use super::changes::{ids, options, outcome};

/// The rules that OLM v1 confirms.
fn refused(check: &Value) -> BTreeSet<&'static str> {
    let text = |key: &str| check[key].as_str().unwrap_or_default();
    let mut rules = BTreeSet::new();
    if !text("resolve").is_empty() {
        rules.insert("V1-2");
    }
    if text("standard").contains("does not support AllNamespaces") {
        rules.insert("V1-3");
    }
    rules
}

#[test]
fn olm_v1_refuses_what_rules_say() {
    let Some(root) = corpus("olmv1") else { return };
    let (mut asked, mut seen, mut wrong) = (0, BTreeSet::new(), Vec::new());
    let mut compare = |name: &str, check: &Value, tree: Tree| {
        // Bundles that cannot be loaded are not tested further.
        if check.get("load").is_some() || check.get("catalog").is_some() {
            return;
        }
        let theirs = refused(check);
        let mut ours = ids(&outcome(tree, &options("")));
        ours.retain(|rule| ["V1-2", "V1-3"].contains(rule));
        asked += 1;
        seen.extend(theirs.iter().copied());
        if ours != theirs {
            wrong.push(format!("{name}: {ours:?} instead of {theirs:?}: {check}"));
        }
    };
    for line in lines(&root.join("refusals.jsonl")) {
        let Some(input) = line["input"].as_str() else { continue };
        let tree = Tree::from_dir(&root.join(input), Limits::default()).unwrap();
        compare(input, &line, tree);
    }
    for line in lines(&root.join("synthetic.jsonl")) {
        let check = &line["check"];
        let files = line["files"].as_object().unwrap();
        let files = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str().unwrap_or_default().as_bytes().to_vec()));
        let tree = Tree::from_files(files.collect::<Vec<_>>());
        compare(check["name"].as_str().unwrap_or("without name"), check, tree);
    }
    assert!(wrong.is_empty(), "{asked} asked\n{}", wrong.join("\n"));
    assert!(asked > 100, "{asked}");
    assert_eq!(seen, BTreeSet::from(["V1-2", "V1-3"]));
}

/// The statements of `olm.json` about OLM, with the corresponding rules. RBAC-1 reports a missing service account: it
/// has no pods and no permissions.
const CLAIMS: &[(&str, &[&str])] = &[
    ("CERT-1", &["CERT-1"]),
    (
        "HOOK-1 to HOOK-4, HOOK-6, COPY-1",
        &["HOOK-1", "HOOK-2", "HOOK-3", "HOOK-4", "HOOK-6", "COPY-1", "RBAC-1"],
    ),
    ("HOOK-7", &["HOOK-7"]),
    ("KUBE-2, KUBE-3", &["KUBE-2", "KUBE-3"]),
    ("RBAC-1", &["RBAC-1"]),
    ("RBAC-2", &["RBAC-2"]),
    ("RBAC-3", &["RBAC-3", "RBAC-1"]),
    ("RBAC-4", &["RBAC-4", "RBAC-1"]),
    ("RBAC-5", &["RBAC-5"]),
    ("RBAC-6", &["RBAC-6"]),
    ("RBAC-8", &["RBAC-8"]),
    ("RBAC-9", &["RBAC-9"]),
];

/// `dev/rules/precision.sh --olm --record` installs these bundles with the real OLM and records the results.
#[test]
fn olm_did_what_rules_say() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("olm.json")).unwrap();
    let (mut happened, mut wrong) = (BTreeSet::new(), Vec::new());
    for row in &rows {
        let text = |change: &Value, at: usize| change[at].as_str().unwrap_or_default().to_owned();
        let changes = row["changes"].as_array().unwrap().iter();
        let changes: Vec<_> = changes
            .map(|change| (text(change, 0), text(change, 1), text(change, 2)))
            .collect();
        let changes: Vec<_> = changes
            .iter()
            .map(|(file, from, to)| (&**file, &**from, &**to))
            .collect();
        let folder = demo_bundle::folder(&changes);
        let tree = Tree::from_dir(&folder.path().join("demo"), Limits::default()).unwrap();
        let said = ids(&outcome(tree, &options("")));
        for (claim, happens) in row["answers"].as_object().expect("recorded answers") {
            let (claim, rules) = CLAIMS.iter().find(|(known, _)| known == claim).expect("a known claim");
            if happens == true {
                happened.insert(*claim);
            }
            if rules.iter().any(|rule| said.contains(rule)) != (happens == true) {
                wrong.push(format!("{}: {claim} is {happens}, said {said:?}", row["about"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Each claim both ways: in most rows nothing of it happens.
    let never: Vec<_> = CLAIMS.iter().filter(|(claim, _)| !happened.contains(claim)).collect();
    assert!(never.is_empty() && rows.len() > CLAIMS.len(), "{never:?}");
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
