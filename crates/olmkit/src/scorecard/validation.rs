//! `olm-bundle-validation`

use super::csv::crash;
use super::rules::{Answer, SC_1};
use crate::bundle::load::{self, Reading};
use crate::diagnostics::{Finding, Severity};
use crate::validate::{self, Options};

const PANIC: &str = "runtime error: invalid memory address or nil pointer dereference";

/// The rules of `bundle validate` without the optional ones.
pub(super) fn check(reading: &Reading, answer: &mut Answer) {
    let bundle = &reading.bundle;
    let result = &mut answer.result;
    let format = validate::bundle_format(bundle);
    result.log = format.log();
    if let Some(file) = &format.crash {
        let error = format!("{file} is empty. operator-sdk crashes on it");
        let finding = Finding::from_rule(&SC_1, error.clone()).file(file);
        answer
            .findings
            .push(finding.hint("write a map into the file or remove it"));
        return crash(result, error, PANIC);
    }
    if let Some(error) = format.text() {
        result.fail(error);
        answer.findings.extend(format.findings);
    }
    let directory = &bundle.manifests_dir;
    if directory == ".." || directory.starts_with("../") {
        answer.findings.extend(reading.problems.iter().cloned());
        return result.fail(format!("the manifests directory {directory} is outside the bundle"));
    }
    let (objects, fatal) = load::directory(&bundle.tree, &bundle.root, directory);
    if let Some(fatal) = fatal {
        answer.findings.extend(reading.problems.iter().cloned());
        return result.fail(fatal);
    }
    let mut bundle = bundle.clone();
    bundle.objects = objects;
    for checked in validate::scorecard_rules(&bundle, &Options::default()) {
        let Some(text) = checked.reference else { continue };
        let severity = checked.finding.severity;
        answer.findings.push(checked.finding);
        if severity == Severity::Error {
            result.fail(text);
        } else {
            result.suggest(text);
        }
    }
}
