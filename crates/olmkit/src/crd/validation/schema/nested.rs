//! Keywords that are not allowed below `allOf`, `anyOf`, `oneOf` and `not`: all that belong to the structure itself.

use serde_json::{Value, json};

use super::path::Path;
use super::{LISTS, is_set, pattern, properties};
use crate::crd::validation::finding::Findings;

/// Checks the alternatives of a schema. At the root, the structure must declare the fields that they name. The server
/// does not require that of alternatives further below.
pub(super) fn check(schema: &Value, is_root: bool, path: &Path<'_>, findings: &mut Findings) {
    let skips = Skips {
        any_of: is_int_or_string(schema.get("anyOf")),
        first_of_all: is_int_or_string(schema.pointer("/allOf/0/anyOf")),
    };
    alternatives(schema, is_root.then_some(schema), skips, path, findings);
}

/// The alternatives of an integer or a string.
#[derive(Clone, Copy, Default)]
struct Skips {
    any_of: bool,
    first_of_all: bool,
}

/// `skeleton` is the structural schema for the same value, if it must declare the fields of an alternative.
fn alternatives(schema: &Value, skeleton: Option<&Value>, skips: Skips, path: &Path<'_>, findings: &mut Findings) {
    for name in LISTS {
        if name == "anyOf" && skips.any_of {
            continue;
        }
        let items = schema.get(name).and_then(Value::as_array).into_iter().flatten();
        for (at, item) in items.enumerate() {
            let skips = Skips {
                any_of: skips.first_of_all && name == "allOf" && at == 0,
                first_of_all: false,
            };
            alternative(item, skeleton, skips, &Path::Alternative(path, name, at), findings);
        }
    }
    if let Some(not) = schema.get("not") {
        alternative(not, skeleton, Skips::default(), &Path::Keyword(path, "not"), findings);
    }
}

fn alternative(schema: &Value, skeleton: Option<&Value>, skips: Skips, path: &Path<'_>, findings: &mut Findings) {
    alternatives(schema, skeleton, skips, path, findings);
    pattern::check(schema, path, findings);
    const EMPTY: [&str; 5] = [
        "type",
        "title",
        "description",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-validations",
    ];
    const UNDEFINED: [&str; 4] = [
        "additionalProperties",
        "default",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    ];
    const FALSE: [&str; 4] = [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ];
    for (names, wanted) in [
        (&EMPTY[..], "empty"),
        (&UNDEFINED[..], "undefined"),
        (&FALSE[..], "false"),
    ] {
        for name in names.iter().filter(|name| is_set(schema, name)) {
            findings.forbidden(&format!("{path}.{name}"), format!("must be {wanted} to be structural"));
        }
    }
    for (name, below) in properties(schema) {
        let field = &Path::Property(path, name);
        if name == "metadata" {
            findings.forbidden(&field.to_string(), "must not be specified in a nested context");
        }
        let known = skeleton.and_then(|skeleton| skeleton.get("properties")?.get(name));
        if skeleton.is_some() && known.is_none() {
            findings.required(
                &field.to_string(),
                "must exist among the properties outside of allOf, anyOf, oneOf and not",
            );
        }
        alternative(below, known, Skips::default(), field, findings);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        let known = skeleton.and_then(|skeleton| skeleton.get("items"));
        let field = &Path::Keyword(path, "items");
        if skeleton.is_some() && known.is_none() {
            findings.required(&field.to_string(), "must exist outside of allOf, anyOf, oneOf and not");
        }
        alternative(items, known, Skips::default(), field, findings);
    }
}

/// The only case in which types are allowed in alternatives: the form of `x-kubernetes-int-or-string`.
fn is_int_or_string(alternatives: Option<&Value>) -> bool {
    alternatives.is_some_and(|alternatives| *alternatives == json!([{"type": "integer"}, {"type": "string"}]))
}
