//! Defaults must fit the schema they are in, and hold no field that it does not know.

use serde_json::Value;

use super::super::finding::Findings;
use super::path::Path;
use super::{each_below, shown};
use crate::crd::instance::{self, InstanceFault};

/// Checks all defaults of a schema.
pub(super) fn check(schema: &Value, path: &Path<'_>, findings: &mut Findings) {
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
    each_below(schema, path, &mut |below, path| check(below, path, findings));
}
