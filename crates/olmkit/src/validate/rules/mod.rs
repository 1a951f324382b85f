//! What each rule says, with a bad and a good example: the source of `olmkit explain` and of docs/validation.md.

mod extra;
mod loading;
mod manifests;
mod optional;

use crate::diagnostics::{RuleDescription, Severity};

/// Where a rule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// operator-sdk has it; it decides the verdict.
    Reference,
    /// operator-sdk has it in an optional validator.
    Optional,
    /// It is our own; it never changes operator-sdk's verdict.
    Own,
}

/// One rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The id in findings.
    pub id: &'static str,
    /// The worst severity of its findings.
    pub severity: Severity,
    /// Where it comes from.
    pub origin: Origin,
    /// What it asks for, one sentence.
    pub summary: &'static str,
    /// An input that breaks it.
    pub bad: &'static str,
    /// The input put right.
    pub good: &'static str,
}

/// Shorthand of the tables.
type Row = (&'static str, char, &'static str, &'static str, &'static str);

/// All rules, in the order of the documentation.
pub fn all() -> impl Iterator<Item = Rule> {
    let tables: [(Origin, &'static [Row]); 4] = [
        (Origin::Reference, loading::ROWS),
        (Origin::Reference, manifests::ROWS),
        (Origin::Optional, optional::ROWS),
        (Origin::Own, extra::ROWS),
    ];
    tables.into_iter().flat_map(|(origin, rows)| {
        rows.iter().map(move |(id, severity, summary, bad, good)| Rule {
            id,
            severity: match severity {
                'E' => Severity::Error,
                'W' => Severity::Warning,
                _ => Severity::Info,
            },
            origin,
            summary,
            bad,
            good,
        })
    })
}

/// The rule with an id, in any case.
pub fn find(id: &str) -> Option<Rule> {
    all().find(|rule| rule.id.eq_ignore_ascii_case(id))
}

/// What a SARIF file says about the rules.
pub fn descriptions() -> Vec<RuleDescription> {
    all()
        .map(|rule| RuleDescription {
            id: rule.id,
            summary: rule.summary,
        })
        .collect()
}

/// The rules as the tables of docs/validation.md.
pub fn markdown() -> String {
    let mut out = String::new();
    let parts = [
        (Origin::Reference, "Rules of operator-sdk"),
        (Origin::Optional, "Rules of operator-sdk's optional validators"),
        (Origin::Own, "Rules of our own"),
    ];
    for (origin, title) in parts {
        out.push_str(&format!(
            "### {title}\n\n| rule | severity | what it asks for |\n|---|---|---|\n"
        ));
        for rule in all().filter(|rule| rule.origin == origin) {
            out.push_str(&format!(
                "| {} | {} | {} |\n",
                rule.id,
                rule.severity,
                rule.summary.replace('|', "\\|")
            ));
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_that_code_names_is_explained_and_the_other_way_round() {
        let pattern = regex::Regex::new(r#""((?:LOC|LOAD|FMT|DEP|OBJ|BND|CSV|CRD|HUB|CAP|CAT|API|COM|GP|MA|EXT|RBAC|HOOK|ICON|CERT|IMG|SIZE|FILE|CHAN|NAME|UPG|V1|SEC|POD|META|EX|DESC|KUBE)-[0-9A-Z-]+)""#)
            .expect("pattern");
        let mut named = BTreeSet::new();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        for folder in ["validate", "bundle/load"] {
            for entry in walkdir::WalkDir::new(format!("{source}/{folder}")) {
                let entry = entry.expect("entry");
                let path = entry.path();
                if path.extension().is_some_and(|extension| extension == "rs")
                    && !path.to_string_lossy().contains("/rules/")
                {
                    let text = std::fs::read_to_string(path).expect("source");
                    named.extend(pattern.captures_iter(&text).map(|captures| captures[1].to_string()));
                }
            }
        }
        let explained: BTreeSet<String> = all().map(|rule| rule.id.to_string()).collect();
        assert_eq!(
            named.difference(&explained).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "rules without explanation"
        );
        assert_eq!(
            explained.difference(&named).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "explanations without rule"
        );
        assert_eq!(all().count(), explained.len(), "an id is explained twice");
    }

    #[test]
    fn the_documentation_holds_the_current_tables() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validation.md");
        let text = std::fs::read_to_string(path).expect("docs/validation.md");
        let (before, rest) = text.split_once("<!-- rules -->\n").expect("marker");
        let (tables, after) = rest.split_once("<!-- end of rules -->").expect("marker");
        if tables != markdown() {
            if std::env::var_os("UPDATE_DOCS").is_some() {
                let current = format!("{before}<!-- rules -->\n{}<!-- end of rules -->{after}", markdown());
                std::fs::write(path, current).expect("write");
                return;
            }
            panic!("docs/validation.md is out of date: run this test with UPDATE_DOCS=1");
        }
    }
}
