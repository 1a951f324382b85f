//! The rules about OLM v1 against what its own code says of real and made-up bundles.

use std::collections::BTreeSet;
use std::path::Path;

use olmkit::bundle::load::{Limits, Tree};
use serde_json::Value;
use test_support::corpus;

use super::changes::{ids, options, outcome};

/// Which of the rules OLM v1 confirms.
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
        // What cannot be loaded is not asked anything.
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

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
