//! Checks if OLM v1 allows replacing a CRD by a newer one: the checks of crdify, as operator-controller configures
//! them.
//!
//! They are stricter than [`compatibility`](super::compatibility), which finds losses in stored objects: every
//! difference without a specific check blocks.

mod flatten;
mod go_text;
mod property;
mod served;

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use serde_json::Value;

use crate::limits::{self, Limit};
use flatten::Flat;
use olmkit_go::structs::encode::encode_with;
use olmkit_go::structs::newer;

/// The definition that contains a problem's position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The earlier one: the item was removed.
    Old,
    /// The later one.
    New,
}

/// Something that blocks the upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The version, or the two served versions that differ: `v1 -> v2`. `None` for problems of the whole CRD.
    pub version: Option<String>,
    /// The property: `^.spec.size`.
    pub property: Option<String>,
    /// The name of crdify's validation.
    pub validation: &'static str,
    /// The message.
    pub text: String,
    /// The definition that contains the position.
    pub side: Side,
    /// JSON pointer into that definition.
    pub pointer: String,
}

impl fmt::Display for Problem {
    /// As OLM v1 writes it into the status.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.version, &self.property].into_iter().flatten() {
            write!(formatter, "{part}: ")?;
        }
        write!(formatter, "{}: {}", self.validation, self.text)
    }
}

/// A version of a definition.
#[derive(Debug, Clone, Copy)]
struct Version<'v> {
    name: &'v str,
    served: bool,
    schema: &'v Value,
    at: usize,
}

impl<'v> Version<'v> {
    fn pointer(&self) -> String {
        format!("/spec/versions/{}/schema/openAPIV3Schema", self.at)
    }

    fn flat(&self) -> Flat<'v> {
        Flat::of(self.schema, self.pointer())
    }
}

/// The versions of a CRD in Go's printed form.
fn versions(definition: &Value) -> Vec<Version<'_>> {
    list(definition)
        .iter()
        .enumerate()
        .map(|(at, version)| Version {
            name: version.get("name").and_then(Value::as_str).unwrap_or_default(),
            served: version.get("served") == Some(&Value::Bool(true)),
            schema: version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null),
            at,
        })
        .collect()
}

fn list(definition: &Value) -> &[Value] {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    versions.map(Vec::as_slice).unwrap_or_default()
}

/// The version in which a CRD stores objects: the value of `status.storedVersions` on a cluster that never had another.
#[must_use]
pub fn stored_versions(definition: &Value) -> Vec<String> {
    list(definition)
        .iter()
        .filter(|version| version.get("storage") == Some(&Value::Bool(true)))
        .filter_map(|version| Some(version.get("name")?.as_str()?.to_owned()))
        .collect()
}

/// Definitions with more properties and versions than are compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the versions and properties of CRD {definition} are too many: {count} {}; at most {} are compared{}",
    if *in_bytes { "bytes of their paths" } else { "comparisons" },
    limit(*in_bytes).shown(),
    limit(*in_bytes).way_out()
)]
pub struct TooManyProperties {
    /// The name of the definition.
    pub definition: String,
    /// Their number.
    pub count: u64,
    /// True if the bytes of their paths are counted.
    pub in_bytes: bool,
}

fn limit(in_bytes: bool) -> &'static Limit {
    match in_bytes {
        true => &limits::COMPARED_PATHS,
        false => &limits::COMPARED_PROPERTIES,
    }
}

/// Counts what will be compared before it is.
fn check_size(new: &Value, before: &[Version<'_>], now: &[Version<'_>]) -> Result<(), TooManyProperties> {
    let sizes = |versions: &[Version<'_>]| -> Vec<(u64, u64)> {
        versions.iter().map(|version| flatten::size(version.schema)).collect()
    };
    let (old, new_sizes) = (sizes(before), sizes(now));
    let sum = |sizes: &[(u64, u64)], of: fn(&(u64, u64)) -> u64| sizes.iter().map(of).fold(0, u64::saturating_add);
    let paths = sum(&old, |size| size.1).saturating_add(sum(&new_sizes, |size| size.1));
    // Each served version is compared with each later one, now and before.
    let pairs = |versions: &[Version<'_>], sizes: &[(u64, u64)]| {
        let served: Vec<u64> = versions
            .iter()
            .zip(sizes)
            .filter(|(version, _)| version.served)
            .map(|(_, size)| size.0.saturating_add(1))
            .collect();
        let others = (served.len() as u64).saturating_sub(1);
        served
            .iter()
            .fold(0, |sum: u64, size| sum.saturating_add(size.saturating_mul(others)))
    };
    let comparisons = sum(&old, |size| size.0)
        .saturating_add(sum(&new_sizes, |size| size.0))
        .saturating_add(pairs(before, &old))
        .saturating_add(pairs(now, &new_sizes));
    for (count, in_bytes) in [(comparisons, false), (paths, true)] {
        if count > limit(in_bytes).get() {
            let name = new.pointer("/metadata/name").and_then(Value::as_str);
            return Err(TooManyProperties {
                definition: name.unwrap_or_default().to_owned(),
                count,
                in_bytes,
            });
        }
    }
    Ok(())
}

/// Problems that block the upgrade from one CRD of `apiextensions.k8s.io/v1` to another with the same name. `stored`
/// are the versions in which the cluster has objects.
///
/// # Errors
/// See [`TooManyProperties`].
pub fn check(old: &Value, new: &Value, stored: &[String]) -> Result<Vec<Problem>, TooManyProperties> {
    check_printed(&printed(old), &printed(new), stored)
}

/// A CRD as Go prints it. [`check_printed`] compares this form.
pub(crate) fn printed(definition: &Value) -> Value {
    encode_with(newer(), definition, "v1.CustomResourceDefinition")
}

/// Like [`check`], for CRDs that are already [`printed`].
pub(crate) fn check_printed(old: &Value, new: &Value, stored: &[String]) -> Result<Vec<Problem>, TooManyProperties> {
    let (before, now) = (versions(old), versions(new));
    check_size(new, &before, &now)?;
    let mut problems = scope(old, new);
    let before_flat: Vec<Flat<'_>> = before.iter().map(Version::flat).collect();
    let now_flat: Vec<Flat<'_>> = now.iter().map(Version::flat).collect();
    let mut first_of: HashMap<&str, usize> = HashMap::new();
    for (at, version) in now.iter().enumerate() {
        first_of.entry(version.name).or_insert(at);
    }
    let mut same = Vec::new();
    for (version, old) in before.iter().zip(&before_flat) {
        if let Some(new) = first_of.get(version.name).and_then(|at| now_flat.get(*at)) {
            same.push((version, old, new));
        }
    }
    let mut first_same: HashMap<&str, usize> = HashMap::new();
    for (at, (version, ..)) in same.iter().enumerate() {
        first_same.entry(version.name).or_insert(at);
    }
    for version in &now {
        if let Some((_, old, new)) = first_same.get(version.name).and_then(|at| same.get(*at)) {
            problems.extend(removed_fields(version.name, old, new));
        }
    }
    problems.extend(removed_versions(&now, stored));
    for (version, old, new) in &same {
        for (property, found) in property::compare(old, new) {
            problems.extend(
                found
                    .into_iter()
                    .map(|found| found.problem(version.name, &property, old, new)),
            );
        }
    }
    problems.extend(served::check(new, (&before, &before_flat), (&now, &now_flat)));
    Ok(problems)
}

fn scope(old: &Value, new: &Value) -> Vec<Problem> {
    let scope = |definition: &Value| {
        let scope = definition.pointer("/spec/scope").and_then(Value::as_str);
        olmkit_go::strconv::quote(scope.unwrap_or_default())
    };
    let (old, new) = (scope(old), scope(new));
    let problem = Problem {
        version: None,
        property: None,
        validation: "scope",
        text: format!("scope changed : {old} -> {new}"),
        side: Side::New,
        pointer: "/spec/scope".to_owned(),
    };
    if old == new { Vec::new() } else { vec![problem] }
}

fn removed_fields(version: &str, old: &Flat<'_>, new: &Flat<'_>) -> Vec<Problem> {
    let gone = old
        .properties
        .iter()
        .filter(|(path, _)| !new.properties.contains_key(*path));
    gone.map(|(path, place)| Problem {
        version: None,
        property: None,
        validation: "existingFieldRemoval",
        text: format!("removed field : {version}.{path}"),
        side: Side::Old,
        pointer: place.pointer.clone(),
    })
    .collect()
}

fn removed_versions(now: &[Version<'_>], stored: &[String]) -> Option<Problem> {
    let there: BTreeSet<&str> = now.iter().map(|version| version.name).collect();
    let gone: Vec<&str> = stored
        .iter()
        .map(String::as_str)
        .filter(|name| !there.contains(name))
        .collect();
    (!gone.is_empty()).then(|| Problem {
        version: None,
        property: None,
        validation: "storedVersionRemoval",
        text: format!("stored versions removed : [{}]", gone.join(" ")),
        side: Side::New,
        pointer: "/spec/versions".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    /// A CRD with this number of served versions, each with this number of properties.
    fn definition(versions: usize, properties: usize, name: &str) -> Value {
        let schemas: Map<String, Value> = (0..properties)
            .map(|number| (format!("{name}{number}"), json!({"type": "string"})))
            .collect();
        let versions: Vec<Value> = (1..=versions)
            .map(|number| {
                json!({
                    "name": format!("v{number}"), "served": true, "storage": number == 1,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": schemas}},
                })
            })
            .collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"}, "versions": versions},
        })
    }

    #[test]
    fn what_is_compared_is_counted_first() {
        let small = definition(1, 1, "a");
        // 300 versions of 10 properties are within the limit, ten times as many are not.
        let many = definition(300, 10, "a");
        assert_eq!(check(&many, &many, &[]), Ok(Vec::new()));
        let error = check(&small, &definition(3000, 10, "a"), &[]).unwrap_err();
        assert!(!error.in_bytes && error.count > 10 * 3000 * 2999, "{error:?}");
        assert!(
            error.to_string().contains("--limit compared-properties=VALUE"),
            "{error}"
        );
        let error = check(&small, &definition(1, 2000, &"x".repeat(20_000)), &[]).unwrap_err();
        assert!(
            error.in_bytes && error.to_string().contains("--limit compared-paths=VALUE"),
            "{error}"
        );
    }

    #[test]
    fn renamed_properties_are_all_reported() {
        let (old, new) = (definition(1, 5000, "a"), definition(1, 5000, "b"));
        let problems = check(&old, &new, &["v1".to_owned()]).unwrap();
        let removed = problems
            .iter()
            .filter(|problem| problem.validation == "existingFieldRemoval");
        assert_eq!(removed.count(), 5000);
    }
}
