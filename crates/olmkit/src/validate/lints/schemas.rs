//! CRD-30: errors in the schema of a CRD that the API server reports and operator-sdk does not check. CRD-37: accepted
//! schemas that reject every object.

use serde_json::Value;

use crate::bundle::Object;
use crate::crd::instance::{dotted, impossible_bounds};
use crate::crd::validation::{ApiVersion, validate_schemas_within};
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::object::pointer_part;
use crate::validate::checked::Checked;
use crate::validate::context::Context;
use olmkit_go::structs::decode::misfits;

define_rules! {
    CRD_30 = {
        id: "CRD-30",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The API server should accept the schema of a CRD: structural, with valid defaults, list types and CEL rules that are cheap enough.",
        why: "OLM cannot install the bundle if the API server rejects the schema.",
        bad: "properties:\n  spec: {}   # no type",
        good: "properties:\n  spec: {type: object}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server rejects the definition",
            "Kubernetes 1.36, since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
    CRD_37 = {
        id: "CRD-37",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The bounds of a number should be values of its type and format.",
        why: "Since Kubernetes 1.36 the API server rejects every object in which the field has a value.",
        bad: "type: integer\nformat: int32\nmaximum: 4294967295",
        good: "type: integer\nformat: int64\nmaximum: 4294967295",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server rejects an object with any value in the field",
            "Kubernetes 1.36, since 1.36",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
}

/// At most this many findings are shown for one CRD. A broken schema has the same fault in many places.
const SHOWN: usize = 10;

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut checked = Vec::new();
    let mut work = context.work.borrow_mut();
    for crd in context.bundle.crds().filter(|crd| crd.version() == "v1") {
        let Some(typed) = &crd.typed else { continue };
        // operator-sdk reads a number as text where text belongs. The server, which gets JSON, does not.
        let misfits = match crd.is_exact {
            true => Vec::new(),
            false => misfits(&crd.value, ApiVersion::V1.type_name(), false),
        };
        for misfit in misfits.iter().take(SHOWN) {
            let message = format!("the API server cannot read the definition: {}", misfit.message);
            let hint = "write the value in quotes";
            checked.push(Checked::new(&CRD_30, message).at(crd, &misfit.pointer).hint(hint));
        }
        let had_work = !work.is_exhausted();
        let findings = validate_schemas_within(typed, ApiVersion::V1, &mut work);
        if had_work && work.is_exhausted() {
            let message = "defaults here and in the CRDs that follow are not checked against patterns and rules, which take too long";
            let place = Checked::new(&CRD_30, message).at(crd, "/spec/versions");
            checked.push(place.severity(Severity::Info));
        }
        for finding in findings.iter().take(SHOWN) {
            let message = format!("the API server rejects the schema: {}", finding.message);
            checked.push(Checked::new(&CRD_30, message).at(crd, &pointer(&finding.field)));
        }
        if findings.len() > SHOWN {
            let message = format!(
                "the API server rejects the schema for {} more reasons",
                findings.len() - SHOWN
            );
            checked.push(Checked::new(&CRD_30, message).at(crd, "/spec/versions"));
        }
    }
    for crd in context.bundle.crds() {
        let shared = "/spec/validation/openAPIV3Schema".to_owned();
        let versions = crd
            .typed
            .as_ref()
            .and_then(|typed| typed.pointer("/spec/versions")?.as_array());
        let own = (0..versions.map_or(0, Vec::len)).map(|at| format!("/spec/versions/{at}/schema/openAPIV3Schema"));
        for root in own.chain([shared]) {
            let schema = crd.typed.as_ref().and_then(|typed| typed.pointer(&root));
            if let Some(schema) = schema.filter(|schema| has_impossible_bounds(schema)) {
                bounds(crd, schema, (&root, ""), &mut checked);
            }
        }
    }
    checked
}

/// Returns true if there is any finding: they are rare, and finding the positions is expensive.
fn has_impossible_bounds(schema: &Value) -> bool {
    let Some(keywords) = schema.as_object() else {
        return false;
    };
    keywords.iter().any(|(keyword, value)| match keyword.as_str() {
        "minimum" | "maximum" | "multipleOf" => !impossible_bounds(schema).is_empty(),
        "items" | "additionalProperties" => has_impossible_bounds(value),
        "properties" => value
            .as_object()
            .is_some_and(|fields| fields.values().any(has_impossible_bounds)),
        _ => false,
    })
}

/// Bounds that are outside the format's range. `pointer` is the position of the schema in the CRD, `path` that of the
/// value in an object.
fn bounds(crd: &Object, schema: &Value, (pointer, path): (&str, &str), checked: &mut Vec<Checked>) {
    for (keyword, bound, wanted) in impossible_bounds(schema) {
        let (effect, hint) = if keyword == "multipleOf" && bound <= 0.0 {
            (
                "the API server rejects every number",
                "use a positive number, or remove multipleOf",
            )
        } else {
            (
                "since Kubernetes 1.36 the API server rejects every value",
                "use a format that can hold the bound, such as int64 for 4294967295, or remove the bound",
            )
        };
        let message = format!("{}: the {keyword} {bound} is not a {wanted}: {effect}", dotted(path));
        checked.push(
            Checked::new(&CRD_37, message)
                .at(crd, &format!("{pointer}/{keyword}"))
                .hint(hint),
        );
    }
    for (name, field) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let name = pointer_part(name);
        let place = (&*format!("{pointer}/properties/{name}"), &*format!("{path}/{name}"));
        bounds(crd, field, place, checked);
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(keyword) {
            bounds(
                crd,
                inner,
                (&format!("{pointer}/{keyword}"), &format!("{path}/*")),
                checked,
            );
        }
    }
}

/// The pointer of a field. Parts that all versions share appear once in the API server's internal form, and in every
/// version in the file.
fn pointer(field: &str) -> String {
    let field = field.replace(
        "spec.validation.openAPIV3Schema",
        "spec.versions[0].schema.openAPIV3Schema",
    );
    let mut pointer = String::new();
    let mut rest = field.as_str();
    while !rest.is_empty() {
        // Names in brackets may contain dots.
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
