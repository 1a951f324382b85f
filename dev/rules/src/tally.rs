//! Counts for each rule how often it was correct.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use olmkit::diagnostics::{Finding, Severity};
use olmkit::rules::{self, Origin};
use serde_json::{Value, json};

use crate::answer::Answer;

/// The counts, and the answers that differ.
#[derive(Default)]
pub struct Tally {
    /// Tested CRDs.
    pub definitions: usize,
    /// Tested examples.
    pub examples: usize,
    /// Tested Deployments.
    pub deployments: usize,
    /// Operators that OLM installed.
    pub installed: usize,
    rules: BTreeMap<&'static str, Counts>,
    facts: Vec<Value>,
    /// True if claims happen, by bundle.
    answers: BTreeMap<String, BTreeMap<&'static str, bool>>,
    /// Own warnings of each bundle.
    warnings: Vec<usize>,
    /// Number of bundles with a finding, for each lint.
    bundles: BTreeMap<(&'static str, &'static str), usize>,
}

#[derive(Default)]
struct Counts {
    asked: usize,
    happens: usize,
    said: usize,
    right: usize,
    wrong: usize,
    missed: usize,
}

impl Tally {
    /// Counts one claim of a rule and whether it happens.
    pub fn count(
        &mut self,
        rule: &'static str,
        subject: (&str, &str),
        findings: &[Finding],
        happens: bool,
        answer: &Answer,
    ) {
        let said = !findings.is_empty();
        let counts = self.rules.entry(rule).or_default();
        counts.asked += 1;
        let answers = self.answers.entry(subject.0.to_owned()).or_default();
        *answers.entry(rule).or_default() |= happens;
        counts.happens += usize::from(happens);
        counts.said += usize::from(said);
        match (said, happens) {
            (true, true) => counts.right += 1,
            (true, false) => counts.wrong += 1,
            (false, true) => counts.missed += 1,
            (false, false) => return,
        }
        if said != happens {
            let said: Vec<String> = findings
                .iter()
                .map(|finding| format!("{}: {}", finding.rule, finding.message))
                .collect();
            self.facts.push(json!({
                "rule": rule, "bundle": subject.0, "what": subject.1, "said": said, "happens": happens,
                "status": answer.status, "message": answer.message, "warnings": answer.warnings,
            }));
        }
    }

    /// A claim that could not be put to the server.
    pub fn not_asked(&mut self, subject: (&str, &str), answer: &Answer) {
        self.facts.push(json!({"rule": "not asked", "bundle": subject.0, "what": subject.1, "status": answer.status, "message": answer.message}));
    }

    /// Counts the lints of a bundle that operator-sdk passes.
    pub fn findings(&mut self, findings: &[Finding]) {
        let lints: Vec<&Finding> = findings
            .iter()
            .filter(|finding| rules::find(finding.rule).is_some_and(|rule| rule.origin == Origin::Lint))
            .collect();
        let is_warning = |finding: &&&Finding| finding.severity == Severity::Warning;
        self.warnings.push(lints.iter().filter(is_warning).count());
        let ids: BTreeSet<_> = lints
            .iter()
            .map(|finding| (finding.rule, finding.severity.as_str()))
            .collect();
        for id in ids {
            *self.bundles.entry(id).or_default() += 1;
        }
    }

    /// The tested rules of a bundle, and whether their effects occurred.
    pub fn answers(&self, bundle: &str) -> impl Iterator<Item = (&'static str, bool)> {
        let answers = self.answers.get(bundle).into_iter().flatten();
        answers.map(|(claim, happens)| (*claim, *happens))
    }

    /// The answers that differ.
    pub fn facts(&self) -> &[Value] {
        &self.facts
    }

    /// Returns true if every claim was right.
    pub fn is_clean(&self) -> bool {
        self.rules.values().all(|counts| counts.wrong == 0)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| claim | asked | happens | said | true | false | missed |\n|---|---|---|---|---|---|---|"
        )?;
        for (rule, counts) in &self.rules {
            let Counts {
                asked,
                happens,
                said,
                right,
                wrong,
                missed,
            } = counts;
            writeln!(
                f,
                "| {rule} | {asked} | {happens} | {said} | {right} | {wrong} | {missed} |"
            )?;
        }
        let not_asked = self.facts.iter().filter(|fact| fact["rule"] == "not asked").count();
        writeln!(f, "\nnot asked: {not_asked}")?;
        let mut sorted = self.warnings.clone();
        sorted.sort_unstable();
        let at = |percent: usize| sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default();
        writeln!(
            f,
            "own warnings of {} bundles that pass: median {}, of nine in ten at most {}\n\n| lint | severity | bundles |\n|---|---|---|",
            sorted.len(),
            at(50),
            at(90)
        )?;
        for ((rule, severity), count) in &self.bundles {
            writeln!(f, "| {rule} | {severity} | {count} |")?;
        }
        Ok(())
    }
}
