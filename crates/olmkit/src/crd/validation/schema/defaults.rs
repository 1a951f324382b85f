//! Defaults must fit their schema and its rules, and contain no undeclared field.

use serde_json::Value;

use super::path::Path;
use super::{each_below, flag, properties, shown};
use crate::crd::instance::{self, InstanceFault, Work};
use crate::crd::validation::finding::Findings;

/// Fields of every object, which the server sets.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Checks all defaults of the schema of a version.
pub(super) fn check(schema: &Value, path: &Path<'_>, work: &mut Work, findings: &mut Findings) {
    for (name, below) in properties(schema) {
        if OBJECT_FIELDS.contains(&name.as_str()) {
            forbid(below, name, &Path::Property(path, name), findings);
        }
    }
    check_below(schema, path, Place::Object, work, findings);
}

fn forbid(schema: &Value, name: &str, path: &Path<'_>, findings: &mut Findings) {
    if schema.get("default").is_some() {
        findings.forbidden(
            &format!("{path}.default"),
            format!("must not be set in top-level {name}"),
        );
    }
    each_below(schema, path, &mut |below, path| forbid(below, name, path, findings));
}

/// Position of a default.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is a whole object.
    Object,
    /// It is a part of `apiVersion`, `kind` or `metadata` of an object.
    ObjectFields,
    Other,
}

fn check_below(schema: &Value, path: &Path<'_>, place: Place, work: &mut Work, findings: &mut Findings) {
    if let Some(default) = schema.get("default") {
        let mut faults = instance::check_default(schema, default, place == Place::Object, work);
        if place == Place::ObjectFields {
            // The server declares the fields of metadata itself.
            faults.retain(|fault| fault.fault != InstanceFault::Unknown);
        }
        for fault in faults {
            let problem = match fault.fault {
                InstanceFault::Unknown => "must not have unknown fields".to_owned(),
                _ if fault.pointer.is_empty() => fault.message,
                _ => fault.to_string(),
            };
            findings.invalid(&format!("{path}.default"), shown(default), problem);
        }
    }
    each_below(schema, path, &mut |below, path| {
        // The server does not check defaults of map values.
        if !matches!(path, Path::Keyword(_, "additionalProperties")) {
            let below_object =
                place == Place::Object && matches!(path, Path::Property(_, name) if OBJECT_FIELDS.contains(name));
            let place = if flag(below, "x-kubernetes-embedded-resource") {
                Place::Object
            } else if below_object || place == Place::ObjectFields {
                Place::ObjectFields
            } else {
                Place::Other
            };
            check_below(below, path, place, work, findings);
        }
    });
}
