//! `olm-bundle-validation`

use olmkit_scorecard::TestResult;

use super::builtin::crash;
use crate::bundle::load::{self, Reading};
use crate::diagnostics::Severity;
use crate::validate::{self, Options};

/// The rules of `bundle validate` without the optional ones.
pub(super) fn check(reading: &Reading, result: &mut TestResult) {
    let bundle = &reading.bundle;
    let format = validate::bundle_format(bundle);
    result.log = format.log();
    if let Some(file) = &format.crash {
        let error = format!("{file} is empty; operator-sdk crashes on it");
        return crash(
            result,
            error,
            "runtime error: invalid memory address or nil pointer dereference",
        );
    }
    if let Some(error) = format.text() {
        result.fail(error);
    }
    let directory = &bundle.manifests_dir;
    if directory == ".." || directory.starts_with("../") {
        return result.fail(format!("the manifests directory {directory} is outside the bundle"));
    }
    let (objects, fatal) = load::directory(&bundle.tree, &bundle.root, directory);
    if let Some(fatal) = fatal {
        return result.fail(fatal);
    }
    let bundle = load::Bundle {
        objects,
        ..bundle.clone()
    };
    for (severity, text) in validate::scorecard_texts(&bundle, &Options::default()) {
        if severity == Severity::Error {
            result.fail(text);
        } else {
            result.suggest(text);
        }
    }
}
