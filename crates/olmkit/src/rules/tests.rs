use crate::diagnostics::Severity;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::*;

/// The sources of all crates that define rules.
fn sources() -> Vec<(PathBuf, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = ["diagnostics", "catalog", "bundle", "v1", "olmkit"]
        .into_iter()
        .flat_map(|name| walkdir::WalkDir::new(crates.join(name).join("src")))
        .map(|entry| entry.expect("entry"));
    files
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "rs"))
        .map(|entry| {
            let text = std::fs::read_to_string(entry.path()).expect("source");
            (entry.into_path(), text)
        })
        .collect()
}

#[test]
fn no_id_is_used_twice() {
    let mut seen = BTreeSet::new();
    let twice: Vec<&str> = all()
        .iter()
        .map(|rule| rule.id)
        .filter(|id| !seen.insert(id.to_ascii_lowercase()))
        .collect();
    assert!(twice.is_empty(), "used twice: {twice:?}");
}

#[test]
fn every_rule_is_documented() {
    let gaps: Vec<String> = all()
        .iter()
        .flat_map(|rule| {
            let texts = [
                ("summary", rule.summary),
                ("why", rule.why),
                ("bad", rule.bad),
                ("good", rule.good),
                ("since", rule.since),
            ];
            let empty = texts.into_iter().filter(|(_, text)| text.trim().is_empty());
            empty
                .map(|(field, _)| format!("{}: {field}", rule.id))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(gaps.is_empty(), "empty: {gaps:?}");
    for rule in all() {
        assert!(
            crate::object::Version::parse(rule.since).is_ok(),
            "{}: since {:?}",
            rule.id,
            rule.since
        );
        assert_ne!(rule.bad, rule.good, "{}", rule.id);
    }
}

/// A finding requires a rule, and only `define_rules!` creates rules; so the registry is complete if it lists each file
/// that defines some.
#[test]
fn every_file_that_defines_rules_is_in_the_registry() {
    let mut files = 0;
    for (path, text) in sources() {
        if path.ends_with("diagnostics/src/rule.rs") || path.ends_with("rules/tests.rs") {
            continue;
        }
        files += usize::from(text.contains("\ndefine_rules! {\n"));
        if path.ends_with("diagnostics/src/tests.rs") {
            files -= 1;
        }
        assert!(!text.contains("Rule = Rule {"), "{}: use define_rules!", path.display());
    }
    assert_eq!(
        files,
        CRATES.iter().map(|files| files.len()).sum::<usize>(),
        "a file of checks is missing in FILES, or listed twice"
    );
}

/// Lints without evidence: new ones must have evidence.
const UNPROVEN: [&str; 9] = [
    "HOOK-5", "META-1", "META-4", "CHAN-2", "CHAN-3", "UPG-3", "ICON-1", "SEC-2", "DESC-1",
];

#[test]
fn a_lint_that_runs_unasked_has_a_proof() {
    let lints = || all().iter().filter(|rule| rule.origin == Origin::Lint);
    let unproven: BTreeSet<&str> = lints()
        .filter(|rule| rule.proof.is_none())
        .map(|rule| rule.id)
        .collect();
    assert_eq!(unproven, UNPROVEN.into_iter().collect());
    for rule in lints() {
        assert_eq!(rule.is_default(), rule.proof.is_some(), "{}", rule.id);
    }
}

/// The test of a lint's evidence exists, and names the rule if it is in our lint tests.
#[test]
fn proofs_name_tests_that_show_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for rule in all() {
        let Some(proof) = rule.proof else { continue };
        assert!(!proof.effect.is_empty() && !proof.version.is_empty(), "{}", rule.id);
        if proof.by == Witness::Convention {
            let is_page = proof.shown_by.starts_with("https://") || root.join(proof.shown_by).is_file();
            assert!(is_page, "{}: {}", rule.id, proof.shown_by);
            continue;
        }
        let (file, function) = proof.shown_by.split_once(": ").expect(rule.id);
        let text = std::fs::read_to_string(root.join(file)).expect(file);
        assert!(
            text.contains(&format!("fn {function}(")),
            "{}: {}",
            rule.id,
            proof.shown_by
        );
        let of_lints = file.contains("/lints/") || file.contains("/rules/");
        assert!(
            !of_lints || text.contains(&format!("\"{}\"", rule.id)),
            "{file} does not name {}",
            rule.id
        );
    }
}

#[test]
fn rules_are_found_in_any_case() {
    assert_eq!(find("csv-17").map(|rule| rule.id), Some("CSV-17"));
    assert_eq!(find("CATALOG-HEAD").map(|rule| rule.id), Some("catalog-head"));
    assert_eq!(find("CSV-1000"), None);
}

/// The documentation states that lints never change operator-sdk's result, with one exception: a bundle that `catalog
/// render` cannot read.
#[test]
fn one_lint_of_bundles_is_an_error() {
    let wrong: Vec<&str> = all()
        .iter()
        // The rules of OLM v1 run with `--profile olmv1` only.
        .filter(|rule| !rule.id.starts_with("V1-"))
        .filter(|rule| rule.origin == Origin::Lint && rule.severity == Severity::Error)
        .map(|rule| rule.id)
        .collect();
    assert_eq!(wrong, ["OPM-1"]);
}
