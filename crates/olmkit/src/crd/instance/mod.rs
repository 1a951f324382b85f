//! Checks an object against the schema of its CustomResourceDefinition, as the API server does when the object is
//! created: defaults are filled in, unknown fields fall away, then types, bounds and CEL rules are checked.
//!
//! A quarter of the public bundles contain examples (`alm-examples`) that the API server rejects. They fill the forms
//! of the OpenShift console, so users meet them first.

mod defaults;
mod format;
mod metadata;
mod range;
mod rules;
mod schema;
mod unknown;

use std::collections::HashMap;
use std::fmt;

use olmkit_cel::{Budget, GoRegex};
use serde_json::Value;

use crate::object::pointer_part;

pub(crate) use range::impossible_bounds;

/// The message about a required field that is missing.
pub(crate) const REQUIRED: &str = "is required";

/// Kind of an object's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum InstanceFault {
    /// A value does not fit the schema. The API server rejects the object.
    Invalid,
    /// The schema allows no value at all. The API server rejects the object.
    Impossible,
    /// A CEL rule is not satisfied. The API server rejects the object.
    Rule,
    /// A field is not in the schema. The API server silently drops it.
    Unknown,
}

/// One fault of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct InstanceFinding {
    /// JSON pointer to the value.
    pub pointer: String,
    /// Kind of fault.
    pub fault: InstanceFault,
    /// The message, without the path.
    pub message: String,
}

impl fmt::Display for InstanceFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", dotted(&self.pointer), self.message)
    }
}

/// The budget of the checks of all CRDs and objects of a bundle, and the patterns that they share.
#[derive(Debug)]
pub struct Work {
    budget: Budget,
    /// Compiled patterns. None where only Go can judge, or where the budget is exhausted.
    patterns: HashMap<String, Option<GoRegex>>,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            budget: Budget::for_bundle(),
            patterns: HashMap::new(),
        }
    }
}

impl Work {
    /// Returns true if nothing is left.
    pub fn is_exhausted(&self) -> bool {
        self.budget.is_exhausted()
    }
}

/// Checks `object` against the root schema (`openAPIV3Schema`) of its version.
///
/// In `metadata`, names, labels and annotations are checked, which every object has regardless of the schema. Patterns
/// and rules that cannot be evaluated here (a syntax that only Go supports, a rule that takes too many steps) count as
/// satisfied.
pub fn check(schema: &Value, object: &Value) -> Vec<InstanceFinding> {
    check_within(schema, object, &mut Work::default())
}

/// As [`check`], for one of many objects, which share the budget `work`. When it is exhausted, patterns and rules count
/// as satisfied.
pub fn check_within(schema: &Value, object: &Value, work: &mut Work) -> Vec<InstanceFinding> {
    let mut findings = unknown::check(schema, object);
    findings.extend(refusals(schema, object, work));
    findings.sort();
    findings.dedup();
    findings
}

/// As [`check`], for an object that is created: where the version has a status subresource, the server drops the status
/// before it checks the object.
pub fn check_created(schema: &Value, object: &Value, has_status: bool, work: &mut Work) -> Vec<InstanceFinding> {
    if !has_status || object.get("status").is_none() {
        return check_within(schema, object, work);
    }
    let mut created = object.clone();
    if let Some(fields) = created.as_object_mut() {
        fields.remove("status");
    }
    // Unknown fields fall away earlier, when the object is read.
    let mut findings = unknown::check(schema, object);
    findings.extend(refusals(schema, &created, work));
    findings.sort();
    findings.dedup();
    findings
}

/// Checks only the metadata of a custom resource.
pub(crate) fn check_metadata(object: &Value) -> Vec<InstanceFinding> {
    metadata::check(object)
}

/// Why the server rejects an object.
fn refusals(schema: &Value, object: &Value, work: &mut Work) -> Vec<InstanceFinding> {
    let mut findings = Vec::new();
    let defaulted = defaults::apply(schema, object);
    findings.extend(schema::check(schema, &defaulted, work));
    findings.extend(metadata::check(object));
    // A rule assumes correct types. Otherwise it only repeats the type error less clearly.
    if !findings.iter().any(|finding| finding.fault == InstanceFault::Invalid) {
        findings.extend(rules::check(schema, &defaulted, work));
    }
    findings
}

/// Returns true if a version of a CRD has a status subresource.
pub fn has_status(crd: &Value, version: &str) -> bool {
    let shared = crd.pointer("/spec/subresources/status").is_some();
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    let own = versions
        .into_iter()
        .flatten()
        .find(|own| own.get("name").and_then(Value::as_str) == Some(version));
    shared || own.is_some_and(|own| own.pointer("/subresources/status").is_some())
}

/// Checks a default against its schema, as the API server does when the CRD is created. `is_object` is set for the default of a
/// whole object.
pub(super) fn check_default(schema: &Value, value: &Value, is_object: bool, work: &mut Work) -> Vec<InstanceFinding> {
    let mut findings = unknown::check_value(schema, value, is_object);
    metadata::check_types(schema, value, is_object, "", &mut findings);
    findings.extend(schema::check_default(schema, value, work));
    if findings.is_empty() {
        findings.extend(rules::check_default(schema, value, is_object, work));
    }
    findings
}

/// The schema of a version of a CRD (`apiextensions.k8s.io/v1` or `v1beta1`) and whether the version is served. `None`
/// when the CRD does not have the version.
pub fn schema_of_version<'c>(crd: &'c Value, version: &str) -> Option<(Option<&'c Value>, bool)> {
    let spec = crd.get("spec")?;
    let shared = spec.pointer("/validation/openAPIV3Schema");
    let versions = spec.get("versions").and_then(Value::as_array);
    let Some(found) = versions
        .into_iter()
        .flatten()
        .find(|own| own.get("name").and_then(Value::as_str) == Some(version))
    else {
        let single = spec.get("version").and_then(Value::as_str) == Some(version);
        return (single && versions.is_none()).then_some((shared, true));
    };
    let served = found.get("served").and_then(Value::as_bool).unwrap_or(false);
    Some((found.pointer("/schema/openAPIV3Schema").or(shared), served))
}

/// The versions of a CRD that have a schema, each with it. The first version of a name comes first.
pub fn schemas(crd: &Value) -> Vec<(&str, &Value)> {
    let Some(spec) = crd.get("spec") else { return Vec::new() };
    let shared = spec.pointer("/validation/openAPIV3Schema");
    match spec.get("versions").and_then(Value::as_array) {
        Some(versions) => {
            let schema = |version| Value::pointer(version, "/schema/openAPIV3Schema").or(shared);
            let mut seen = std::collections::HashSet::new();
            let versions = versions
                .iter()
                .filter_map(|version| Some((version.get("name")?.as_str()?, schema(version))));
            versions
                .filter(|(name, _)| seen.insert(*name))
                .filter_map(|(name, schema)| Some((name, schema?)))
                .collect()
        }
        None => {
            let version = spec.get("version").and_then(Value::as_str);
            version.zip(shared).into_iter().collect()
        }
    }
}

/// A JSON pointer as people write paths: `/spec/ports/0/name` is `spec.ports[0].name`.
pub(crate) fn dotted(pointer: &str) -> String {
    let mut path = String::new();
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{token}]"));
        } else {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(&token);
        }
    }
    path
}

/// The pointer of a member.
pub(super) fn member(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", pointer_part(name))
}

/// A flag of a schema.
pub(super) fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or(false)
}

#[cfg(test)]
mod tests;
