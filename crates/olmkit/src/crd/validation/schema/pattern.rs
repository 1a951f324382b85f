//! Regular expressions of strings.

use olmkit_cel::{Failure, GoRegex};
use serde_json::Value;

use super::path::Path;
use super::text;
use crate::crd::validation::finding::{BadValue, Findings};

/// The pattern of a string must be a Go regular expression.
pub(super) fn check(schema: &Value, path: &Path<'_>, findings: &mut Findings) {
    let pattern = text(schema, "pattern");
    // If only Go can decide, nothing is reported.
    if let Err(Failure::Error(reason)) = GoRegex::check(pattern) {
        let problem = format!("must be a valid regular expression, but isn't: {reason}");
        findings.invalid(&format!("{path}.pattern"), BadValue::text(pattern), problem);
    }
}
