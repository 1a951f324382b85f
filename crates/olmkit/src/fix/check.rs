//! Findings of a bundle, for a comparison before and after a fix.

use std::collections::BTreeMap;

use olmkit_scorecard::State;

use super::Reason;
use crate::bundle::load::{self, Tree};
use crate::scorecard::{self, Bundle};
use crate::validate::{self, Options, Selector};

/// Findings and results of one state of a bundle.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// Number of findings of each kind: the rule and position, and for scorecard the message.
    findings: BTreeMap<(String, String), usize>,
    /// True if operator-sdk passes the bundle, and each test of scorecard.
    passed: Vec<bool>,
}

/// `olm-bundle-validation` finds what validation finds.
const TESTS: &str = "test!=olm-bundle-validation-test";

/// scorecard suggests a status for every example without one. That is advice for the API, and every new example has it.
const ADVICE: &str = " does not have status spec. ";

impl Verdict {
    /// Runs all rules and tests.
    pub fn new(tree: &Tree, root: &str) -> Self {
        let selector = |text| Selector::parse(text).unwrap_or_default();
        let reading = load::read(tree.clone(), root);
        let mut verdict = Self::default();
        let options = Options {
            selector: selector("suite=operatorframework"),
            lints: true,
            unproven: true,
            ..Options::default()
        };
        let outcome = validate::validate(&reading, &options);
        verdict.passed.push(outcome.passed());
        for finding in outcome.findings() {
            let object = finding.object.as_deref().unwrap_or_default();
            let path = finding.path.as_deref().unwrap_or_default();
            let severity = finding.severity.as_str();
            verdict.count(finding.rule, format!("{severity} {object} {path}"));
        }
        let tests = scorecard::run(
            &Bundle::new(&reading),
            &scorecard::default_configuration(),
            &selector(TESTS),
        );
        for result in tests.items.iter().flat_map(|test| &test.status.results) {
            verdict.passed.push(result.state == State::Pass);
            let texts = result.errors.iter().chain(&result.suggestions);
            for text in texts.filter(|text| !text.contains(ADVICE)) {
                verdict.count(&result.name, text.clone());
            }
        }
        verdict
    }

    fn count(&mut self, rule: &str, place: String) {
        *self.findings.entry((rule.to_owned(), place)).or_default() += 1;
    }

    /// The first finding that was not there before, or else a result that was better.
    pub fn worse_than(&self, before: &Self) -> Option<Reason> {
        let is_new = |(finding, count): &(&(String, String), &usize)| {
            before.findings.get(*finding).is_none_or(|old| old < *count)
        };
        if let Some(((rule, _), _)) = self.findings.iter().find(is_new) {
            return Some(Reason::NewFinding(rule.clone()));
        }
        let mut results = self.passed.iter().zip(&before.passed);
        results
            .any(|(after, before)| !after && *before)
            .then_some(Reason::Worse)
    }
}
