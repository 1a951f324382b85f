//! The table of `docs/guides/submit.md` is made from the rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

use std::fmt::Write as _;

use olmkit::diagnostics::Origin;
use olmkit_submission::rules;

const BEGIN: &str = "<!-- rules -->\n";
const END: &str = "<!-- end of rules -->";

fn table() -> String {
    let mut text = String::from("\n| check | suite | severity | asks for | why |\n|---|---|---|---|---|\n");
    for rule in rules() {
        let Origin::Pipeline(suite) = rule.origin else {
            panic!("{} is a rule of the pipeline", rule.id);
        };
        let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        writeln!(
            text,
            "| `{}` | {suite} | {} | {} | {} |",
            rule.id,
            rule.severity,
            cell(rule.summary),
            cell(rule.why)
        )
        .unwrap();
    }
    text.push('\n');
    text
}

#[test]
fn the_documentation_holds_the_current_table() {
    let path = test_support::repository("docs/guides/submit.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (current, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
        return;
    }
    assert_eq!(
        current,
        table(),
        "docs/guides/submit.md is out of date: run UPDATE_GENERATED=1 cargo test -p olmkit-submission --test documentation"
    );
}

#[test]
fn rules_are_complete_and_unique() {
    let rules = rules();
    for rule in &rules {
        let tool = rule.id.split_once('/').map(|(tool, _)| tool);
        assert!(
            matches!(tool, Some("operatorhub" | "pipeline" | "preflight")),
            "{}",
            rule.id
        );
        assert!(
            !rule.summary.is_empty() && !rule.why.is_empty() && !rule.since.is_empty(),
            "{}",
            rule.id
        );
    }
    let mut ids: Vec<&str> = rules.iter().map(|rule| rule.id).collect();
    ids.dedup();
    assert_eq!(ids.len(), rules.len());
}
