//! What may not be below `allOf`, `anyOf`, `oneOf` and `not`: all that belongs to the structure itself.

use serde_json::{Value, json};

use super::super::finding::Findings;
use super::path::Path;
use super::{LISTS, is_set, properties};

/// Checks the alternatives of a schema.
pub(super) fn check(schema: &Value, path: &Path<'_>, findings: &mut Findings) {
    alternatives(schema, Some(schema), path, findings);
}

/// `skeleton` is the structural schema for the same value; what an alternative refers to must exist there.
fn alternatives(schema: &Value, skeleton: Option<&Value>, path: &Path<'_>, findings: &mut Findings) {
    for name in LISTS {
        if name == "anyOf" && is_int_or_string(schema.get("anyOf")) {
            continue;
        }
        let items = schema.get(name).and_then(Value::as_array).into_iter().flatten();
        for (at, item) in items.enumerate() {
            let first_of_all = name == "allOf" && at == 0 && is_int_or_string(item.get("anyOf"));
            if !first_of_all {
                alternative(item, skeleton, &Path::Alternative(path, name, at), findings);
            }
        }
    }
    if let Some(not) = schema.get("not") {
        alternative(not, skeleton, &Path::Keyword(path, "not"), findings);
    }
}

fn alternative(schema: &Value, skeleton: Option<&Value>, path: &Path<'_>, findings: &mut Findings) {
    alternatives(schema, skeleton, path, findings);
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
        let any = skeleton.is_none_or(|skeleton| skeleton.get("additionalProperties").is_some_and(Value::is_object));
        if known.is_none() && !any {
            findings.required(
                &field.to_string(),
                "must exist among the properties outside of allOf, anyOf, oneOf and not",
            );
        }
        let known = known.or_else(|| skeleton.and_then(|skeleton| skeleton.get("additionalProperties")));
        alternative(below, known, field, findings);
    }
    if let Some(items) = schema.get("items") {
        let known = skeleton.and_then(|skeleton| skeleton.get("items"));
        alternative(items, known, &Path::Keyword(path, "items"), findings);
    }
}

/// The one place where types are allowed in alternatives: what `x-kubernetes-int-or-string` means.
fn is_int_or_string(alternatives: Option<&Value>) -> bool {
    alternatives.is_some_and(|alternatives| *alternatives == json!([{"type": "integer"}, {"type": "string"}]))
}
