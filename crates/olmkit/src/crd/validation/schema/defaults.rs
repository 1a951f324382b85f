//! Defaults must fit the schema they are in, and hold no field that it does not know.

use serde_json::Value;

use super::super::finding::Findings;
use super::{below, shown, skeleton};
use crate::crd::instance::{self, InstanceFault};

/// Checks all defaults of a schema.
pub(super) fn check(schema: &Value, path: &str, findings: &mut Findings) {
    // Paths cost more than this look, and many schemas have no defaults.
    if has_default(schema) {
        check_below(schema, path, findings);
    }
}

fn has_default(schema: &Value) -> bool {
    schema.get("default").is_some() || below(schema).any(has_default)
}

fn check_below(schema: &Value, path: &str, findings: &mut Findings) {
    if let Some(default) = schema.get("default") {
        let faults = instance::check_value(schema, default);
        for fault in faults {
            let problem = match fault.fault {
                InstanceFault::Unknown => "must not have unknown fields".to_owned(),
                _ if fault.pointer.is_empty() => fault.message,
                _ => fault.to_string(),
            };
            findings.invalid(&format!("{path}.default"), shown(default), problem);
        }
    }
    for (path, below) in skeleton(schema, path) {
        check_below(below, &path, findings);
    }
}
