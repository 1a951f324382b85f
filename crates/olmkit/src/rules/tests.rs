use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::*;

fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = walkdir::WalkDir::new(root)
        .into_iter()
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

/// A finding takes a rule, and rules are made by `define_rules!` alone; so the registry is complete if it names each file
/// that defines some.
#[test]
fn every_file_that_defines_rules_is_in_the_registry() {
    let mut files = 0;
    for (path, text) in sources() {
        if path.ends_with("diagnostics/rule.rs") || path.ends_with("rules/tests.rs") {
            continue;
        }
        files += usize::from(text.contains("\ndefine_rules! {\n"));
        if path.ends_with("diagnostics/tests.rs") {
            files -= 1;
        }
        assert!(!text.contains("Rule = Rule {"), "{}: use define_rules!", path.display());
    }
    assert_eq!(
        files,
        FILES.len(),
        "a file of checks is missing in FILES, or stands there twice"
    );
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A title and the rules below it.
type Part<'a> = (&'a str, &'a dyn Fn(&Rule) -> bool);

/// The tables of one page.
fn tables(parts: &[Part<'_>]) -> String {
    let mut out = String::new();
    for (title, belongs) in parts {
        out.push_str(&format!(
            "### {title}\n\n| rule | severity | what it asks for | why |\n|---|---|---|---|\n"
        ));
        for rule in all().iter().filter(|rule| belongs(rule)) {
            out.push_str(&format!(
                "| {} | {} | {} | {} |\n",
                rule.id,
                rule.severity,
                cell(rule.summary),
                cell(rule.why)
            ));
        }
        out.push('\n');
    }
    out
}

fn assert_current(page: &str, tables: &str) {
    let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect(page);
    let (before, rest) = text.split_once("<!-- rules -->\n").expect("marker");
    let (current, after) = rest.split_once("<!-- end of rules -->").expect("marker");
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        let text = format!("{before}<!-- rules -->\n{tables}<!-- end of rules -->{after}");
        std::fs::write(&path, text).expect(page);
        return;
    }
    assert!(
        current == tables,
        "docs/{page} is out of date: run UPDATE_GENERATED=1 cargo test -p olmkit --lib rules"
    );
}

#[test]
fn the_documentation_holds_the_current_tables() {
    assert_current(
        "validation.md",
        &tables(&[
            ("Rules of operator-sdk", &|rule| {
                matches!(rule.origin, Origin::OperatorSdk(_))
            }),
            ("Rules of operator-sdk's optional validators", &|rule| {
                matches!(rule.origin, Origin::OptionalValidator(_))
            }),
            ("Lints", &|rule| rule.origin == Origin::Lint && !is_of_catalogs(rule)),
        ]),
    );
    assert_current(
        "catalogs.md",
        &tables(&[
            ("Rules of opm", &|rule| rule.origin == Origin::Opm),
            ("Lints", &|rule| rule.origin == Origin::Lint && is_of_catalogs(rule)),
        ]),
    );
}

#[test]
fn rules_are_found_in_any_case() {
    assert_eq!(find("csv-17").map(|rule| rule.id), Some("CSV-17"));
    assert_eq!(find("CATALOG-HEAD").map(|rule| rule.id), Some("catalog-head"));
    assert_eq!(find("CSV-1000"), None);
}
