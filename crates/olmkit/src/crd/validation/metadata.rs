//! Checks of `metadata`, the same for every object.

use serde_json::Value;

use super::finding::{BadValue, CrdFinding, Findings};
use super::internal::{text, texts};
use crate::object::{dns1123_subdomain_problems, label_value_problems, qualified_name_problems};

/// Maximum bytes that keys and values of all annotations may have together.
const ANNOTATIONS_LIMIT: usize = 256 << 10;

/// Checks the metadata of a cluster-scoped object whose name is a sub-domain and equals `required_name`.
pub(super) fn check(metadata: &Value, required_name: &str, findings: &mut Findings) {
    let name = text(metadata, "name");
    let name_problems = |name: &str| {
        let mut problems = dns1123_subdomain_problems(name);
        if name != required_name {
            problems.push("must be spec.names.plural+\".\"+spec.group".to_owned());
        }
        problems
    };
    let prefix = text(metadata, "generateName");
    if !prefix.is_empty() {
        // The API server checks a prefix as if its trailing dash were a letter.
        for problem in name_problems(&prefix) {
            findings.invalid("metadata.generateName", BadValue::text(&prefix), problem);
        }
    }
    if name.is_empty() {
        findings.required("metadata.name", "name or generateName is required");
    } else {
        for problem in name_problems(&name) {
            findings.invalid("metadata.name", BadValue::text(&name), problem);
        }
    }
    if !text(metadata, "namespace").is_empty() {
        findings.forbidden("metadata.namespace", "not allowed on this type");
    }
    if let Some(generation) = metadata
        .get("generation")
        .and_then(Value::as_i64)
        .filter(|number| *number < 0)
    {
        findings.invalid(
            "metadata.generation",
            BadValue::word(generation),
            "must be greater than or equal to 0",
        );
    }
    check_maps_and_lists(metadata, findings);
}

/// Labels, annotations, owners and finalizers.
fn check_maps_and_lists(metadata: &Value, findings: &mut Findings) {
    labels(metadata, findings);
    annotations(metadata, findings);
    owner_references(metadata, findings);
    finalizers(metadata, findings);
}

/// The same for an object of any kind.
pub(in crate::crd) fn of_any_object(metadata: &Value) -> Vec<CrdFinding> {
    let mut findings = Findings::default();
    check_maps_and_lists(metadata, &mut findings);
    findings.0
}

fn pairs<'m>(metadata: &'m Value, field: &str) -> impl Iterator<Item = (&'m String, &'m str)> {
    let entries = metadata.get(field).and_then(Value::as_object);
    entries
        .into_iter()
        .flatten()
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
}

fn labels(metadata: &Value, findings: &mut Findings) {
    for (key, value) in pairs(metadata, "labels") {
        for problem in qualified_name_problems(key) {
            findings.invalid("metadata.labels", BadValue::text(key), problem);
        }
        for problem in label_value_problems(value) {
            findings.invalid("metadata.labels", BadValue::text(value), problem);
        }
    }
}

fn annotations(metadata: &Value, findings: &mut Findings) {
    let mut size = 0;
    for (key, value) in pairs(metadata, "annotations") {
        size += key.len() + value.len();
        for problem in qualified_name_problems(&key.to_lowercase()) {
            findings.invalid("metadata.annotations", BadValue::text(key), problem);
        }
    }
    if size > ANNOTATIONS_LIMIT {
        findings.too_long("metadata.annotations", ANNOTATIONS_LIMIT);
    }
}

fn owner_references(metadata: &Value, findings: &mut Findings) {
    let references = metadata.get("ownerReferences").and_then(Value::as_array);
    for reference in references.into_iter().flatten() {
        let version = text(reference, "apiVersion");
        if version.rsplit('/').next().unwrap_or_default().is_empty() {
            let problem = "version must not be empty";
            findings.invalid("metadata.ownerReferences.apiVersion", BadValue::text(&version), problem);
        }
        for field in ["kind", "name", "uid"] {
            if text(reference, field).is_empty() {
                let path = format!("metadata.ownerReferences.{field}");
                findings.invalid(&path, BadValue::text(""), format!("{field} must not be empty"));
            }
        }
    }
}

fn finalizers(metadata: &Value, findings: &mut Findings) {
    let finalizers = texts(metadata, "finalizers");
    for finalizer in &finalizers {
        for problem in qualified_name_problems(finalizer) {
            findings.invalid("metadata.finalizers", BadValue::text(finalizer), problem);
        }
    }
    let both = ["orphan", "foregroundDeletion"]
        .iter()
        .all(|name| finalizers.iter().any(|own| own == name));
    if both {
        let problem = "finalizer orphan and foregroundDeletion cannot be both set";
        findings.invalid("metadata.finalizers", BadValue::texts(&finalizers), problem);
    }
}
