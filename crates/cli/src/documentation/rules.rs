//! `docs/reference/rules/`: a page for each family of rules, with the descriptions of `olmkit explain`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use olmkit::diagnostics::{Family, Rule};
use olmkit::rules;

use super::check;
use crate::explain::standing;

#[test]
fn the_reference_of_rules_is_current() {
    let mut pages: BTreeMap<Family, String> = BTreeMap::new();
    let mut counts: BTreeMap<Family, usize> = BTreeMap::new();
    for rule in rules::all().iter().copied().chain(olmkit_submission::rules()) {
        let family = rule.family();
        let page = pages.entry(family).or_insert_with(|| {
            format!(
                "# {}\n\nType: {}. `olmkit explain RULE` prints one rule. This page is generated.\n",
                family.title(),
                standing(rule)
            )
        });
        describe(rule, page);
        *counts.entry(family).or_default() += 1;
    }
    let mut index = "\
# Rules

Validation rules by family. `olmkit explain RULE` prints one rule, `olmkit explain` lists all of them.
See also: [validate bundles](../../guides/validate.md), [validate catalogs](../../guides/catalogs.md), [submit](../../guides/submit.md).

| family | rules |
|---|---|
"
    .to_owned();
    for (family, page) in &pages {
        let count = counts.get(family).copied().unwrap_or_default();
        writeln!(index, "| [{}]({}.md) | {count} |", family.title(), family.file()).unwrap();
        check(&format!("reference/rules/{}.md", family.file()), page);
    }
    check("reference/rules/README.md", &index);
}

#[test]
fn the_evidence_of_rules_is_current() {
    let mut page = "\
# Evidence: rules

Each test or page shows that a rule's effect occurs with the defect and not without it. [Rules](../../reference/rules/README.md) describes the
effects. This page is generated.

| rule | verified by | version | evidence |
|---|---|---|---|
"
    .to_owned();
    for rule in rules::all().iter().copied().chain(olmkit_submission::rules()) {
        if let Some(proof) = &rule.proof {
            writeln!(
                page,
                "| {} | {} | {} | {} |",
                rule.id,
                proof.by.name(),
                proof.version,
                shown(proof.shown_by)
            )
            .unwrap();
        }
    }
    check("contributing/evidence/rules.md", &page);
}

/// The tables of fixes in the guide name the rules that have one.
#[test]
fn the_guide_lists_the_rules_with_fixes() {
    let guide = include_str!("../../../../docs/guides/validate.md");
    let (_, tables) = guide.split_once("| safe fix | finding |").unwrap();
    let (tables, _) = tables.split_once("\n## ").unwrap();
    let cells = tables
        .lines()
        .filter_map(|line| line.trim_end_matches(" |").rsplit_once("| "));
    let listed: BTreeSet<&str> = cells
        .flat_map(|(_, rules)| rules.split(", "))
        .filter(|rule| rules::find(rule).is_some())
        .collect();
    let fixed: BTreeSet<&str> = rules::all()
        .iter()
        .map(|rule| rule.id)
        .filter(|rule| olmkit::fix::flags(rule).is_some())
        .collect();
    assert_eq!(fixed.len(), 10, "{fixed:?}");
    assert_eq!(listed, fixed);
}

fn describe(rule: &Rule, page: &mut String) {
    writeln!(
        page,
        "\n## {}\n\n**{}** {}\n\n{}",
        rule.id,
        rule.severity,
        prose(rule.summary),
        prose(rule.why)
    )
    .unwrap();
    if let Some(proof) = &rule.proof {
        let effect = prose(proof.effect.trim_end_matches('.'));
        writeln!(page, "\nVerified by {} ({}): {effect}.", proof.by.name(), proof.version).unwrap();
    }
    for (title, text) in [("Bad", rule.bad), ("Good", rule.good)] {
        if !text.is_empty() {
            writeln!(page, "\n{title}:\n\n```yaml\n{}\n```", text.trim_end()).unwrap();
        }
    }
    let fix = olmkit::fix::flags(rule.id).unwrap_or("no");
    let default = if rule.is_default() {
        ""
    } else {
        " Default: off, `--rules all` runs it."
    };
    writeln!(page, "\nFix available: {fix}.{default} Since {}.", rule.since).unwrap();
}

/// Escapes Markdown's tags and links.
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
