//! FILE-3: fields that nobody reads.

use super::super::checked::Checked;
use super::super::context::Context;
use super::warning;
use crate::bundle::Object;
use crate::types::unknown::unknown_fields;

/// So many findings are shown for one object; one wrong indentation may make dozens.
const SHOWN: usize = 10;

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    context.bundle.objects.iter().flat_map(object).collect()
}

fn object(object: &Object) -> Vec<Checked> {
    let key = match (object.kind(), object.version()) {
        ("ClusterServiceVersion", _) => "ClusterServiceVersion",
        ("CustomResourceDefinition", "v1") => "v1.CustomResourceDefinition",
        ("CustomResourceDefinition", "v1beta1") => "v1beta1.CustomResourceDefinition",
        _ => return Vec::new(),
    };
    let mut unknown = unknown_fields(&object.value, key);
    // Extensions of schemas are meant for other readers.
    unknown.retain(|field| !field.name.starts_with("x-"));
    let more = unknown.len().saturating_sub(SHOWN);
    let mut findings: Vec<Checked> = unknown
        .iter()
        .take(SHOWN)
        .map(|field| {
            let kind = field.of.rsplit('.').next().unwrap_or(field.of);
            let message = format!("{kind} has no field {:?}: it is dropped without a word", field.name);
            let hint = match field.meant {
                Some(meant) => format!("was {meant:?} meant? If not, look at the indentation, or remove it"),
                None => "look at the indentation, or remove it".to_string(),
            };
            warning("FILE-3", message).at(object, &field.pointer).hint(hint)
        })
        .collect();
    if more > 0 {
        let message = format!("{more} more fields are unknown and dropped");
        findings.push(warning("FILE-3", message).at(object, ""));
    }
    findings
}
