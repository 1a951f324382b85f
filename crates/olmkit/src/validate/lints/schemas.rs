//! CRD-30: what the API server refuses in the schema of a CRD and operator-sdk does not check.

use super::super::checked::Checked;
use super::super::context::Context;
use crate::crd::validation::{ApiVersion, validate_schemas};
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::object::pointer_part;

define_rules! {
    CRD_30 = {
        id: "CRD-30",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The API server accepts the schema of a CRD: structural, with valid defaults, list types and CEL rules.",
        why: "OLM cannot install the bundle if the API server refuses the schema.",
        bad: "properties:\n  spec: {}   # no type",
        good: "properties:\n  spec: {type: object}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server refuses the definition",
            "Kubernetes 1.36; since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
}

/// At most this many findings are shown for one CRD; a broken schema has the same fault in many places.
const SHOWN: usize = 10;

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut checked = Vec::new();
    for crd in context.bundle.crds().filter(|crd| crd.version() == "v1") {
        let Some(typed) = &crd.typed else { continue };
        let findings = validate_schemas(typed, ApiVersion::V1);
        for finding in findings.iter().take(SHOWN) {
            let message = format!("the API server refuses the schema: {}", finding.message);
            checked.push(Checked::new(&CRD_30, message).at(crd, &pointer(&finding.field)));
        }
        if findings.len() > SHOWN {
            let message = format!(
                "the API server refuses the schema for {} more reasons",
                findings.len() - SHOWN
            );
            checked.push(Checked::new(&CRD_30, message).at(crd, "/spec/versions"));
        }
    }
    checked
}

/// The place of a field. What all versions share appears once in the API server's internal form, and in every version in
/// the file.
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
        pointer.push_str(&pointer_part(part));
        rest = following.strip_prefix('.').unwrap_or(following);
    }
    pointer
}
