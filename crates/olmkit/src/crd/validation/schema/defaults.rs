//! Defaults must fit the schema they are in and its rules, and hold no field that it does not know.

use serde_json::Value;

use super::super::finding::Findings;
use super::path::Path;
use super::{each_below, properties, shown};
use crate::crd::instance::{self, InstanceFault};

/// What every object has: the server sets it.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Checks all defaults of the schema of a version.
pub(super) fn check(schema: &Value, path: &Path<'_>, findings: &mut Findings) {
    for (name, below) in properties(schema) {
        if OBJECT_FIELDS.contains(&name.as_str()) {
            forbid(below, name, &Path::Property(path, name), findings);
        }
    }
    check_below(schema, path, findings);
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

fn check_below(schema: &Value, path: &Path<'_>, findings: &mut Findings) {
    if let Some(default) = schema.get("default") {
        let faults = instance::check_default(schema, default);
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
        // The server does not look at defaults of the values of maps.
        if !matches!(path, Path::Keyword(_, "additionalProperties")) {
            check_below(below, path, findings);
        }
    });
}
