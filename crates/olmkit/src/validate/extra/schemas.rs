//! CRD-30: what the API server refuses in the schema of a CRD, and operator-sdk leaves out.

use super::super::checked::{Checked, escape};
use super::super::context::Context;
use super::warning;
use crate::crd::validation::{ApiVersion, validate_schemas};

/// So many findings are shown for one CRD; a broken schema has the same fault in many places.
const SHOWN: usize = 10;

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut checked = Vec::new();
    for crd in context.bundle.crds().filter(|crd| crd.version() == "v1") {
        let Some(typed) = &crd.typed else { continue };
        let findings = validate_schemas(typed, ApiVersion::V1);
        for finding in findings.iter().take(SHOWN) {
            let message = format!("the API server refuses the schema: {}", finding.message);
            checked.push(warning("CRD-30", message).at(crd, &pointer(&finding.field)));
        }
        if findings.len() > SHOWN {
            let message = format!(
                "the API server has {} more faults to find in the schema",
                findings.len() - SHOWN
            );
            checked.push(warning("CRD-30", message).at(crd, "/spec/versions"));
        }
    }
    checked
}

/// The place of a field. What all versions share stands once in the API server's internal form, in the file it stands in
/// every version.
fn pointer(field: &str) -> String {
    let field = field.replace(
        "spec.validation.openAPIV3Schema",
        "spec.versions[0].schema.openAPIV3Schema",
    );
    let mut pointer = String::new();
    let mut rest = field.as_str();
    while !rest.is_empty() {
        // Names in brackets may hold dots.
        let (part, following) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']').unwrap_or((inner, "")),
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        pointer.push('/');
        pointer.push_str(&escape(part));
        rest = following.strip_prefix('.').unwrap_or(following);
    }
    pointer
}
