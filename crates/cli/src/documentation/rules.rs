//! `docs/rules.md`: what `olmkit explain` says of every rule.

use std::fmt::Write as _;

use olmkit::diagnostics::{Origin, Rule};
use olmkit::rules;

use super::check;
use crate::explain::standing;

#[test]
fn the_reference_of_rules_is_current() {
    let mut page = "\
# Rules

Every rule with its reason, an example and, for lints, what proves it. `olmkit explain RULE` prints the same. This page is made from the
program. When the rules are applied: [to bundles](validation.md), [to catalogs](catalogs.md), [before a submission](submission.md).
"
    .to_owned();
    let mut title = "";
    for rule in rules::all().iter().copied().chain(olmkit_submission::rules()) {
        if section(rule) != title {
            title = section(rule);
            writeln!(page, "\n## {title}\n\nEach is {}.", standing(rule.origin)).unwrap();
        }
        describe(rule, &mut page);
    }
    check("rules.md", &page);
}

fn section(rule: &Rule) -> &'static str {
    match rule.origin {
        Origin::OperatorSdk(_) => "Rules of operator-sdk",
        Origin::OptionalValidator(_) => "Rules of operator-sdk's optional validators",
        Origin::Scorecard(_) => "Rules of scorecard's built-in tests",
        Origin::Opm => "Rules of opm",
        Origin::Pipeline("operatorhub") => "Rules of operatorhub.io",
        Origin::Pipeline("preflight") => "Rules of preflight",
        Origin::Pipeline(_) => "Rules of the hosted pipelines",
        Origin::Lint if rule.id.starts_with("catalog-") => "Lints of catalogs",
        _ => "Lints of bundles",
    }
}

fn describe(rule: &Rule, page: &mut String) {
    writeln!(
        page,
        "\n### {}\n\n**{}** {}\n\n{}",
        rule.id,
        rule.severity,
        prose(rule.summary),
        prose(rule.why)
    )
    .unwrap();
    if let Some(proof) = &rule.proof {
        let (by, version, effect) = (proof.by.name(), proof.version, prose(proof.effect));
        writeln!(
            page,
            "\nProof ({by}; {version}): {effect} Shown by {}.",
            shown(proof.shown_by)
        )
        .unwrap();
    }
    for (title, text) in [("Bad", rule.bad), ("Good", rule.good)] {
        if !text.is_empty() {
            writeln!(page, "\n{title}:\n\n```yaml\n{}\n```", text.trim_end()).unwrap();
        }
    }
    writeln!(page, "\nSince {}.", rule.since).unwrap();
}

/// Text in which nothing is taken for Markdown's tags or links.
fn prose(text: &str) -> String {
    let mut out = String::new();
    let mut is_code = false;
    for letter in text.chars() {
        is_code ^= letter == '`';
        if !is_code && matches!(letter, '<' | '[' | '*' | '_') {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

fn shown(by: &str) -> String {
    if by.starts_with("https://") {
        format!("<{by}>")
    } else {
        format!("`{by}`")
    }
}
