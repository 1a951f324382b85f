//! Whether OLM v1 lets a definition take the place of an earlier one: the checks of crdify, as operator-controller configures them.
//!
//! They are stricter than [`compatibility`](super::compatibility), which asks what stored objects lose: every difference that no check
//! knows blocks.

mod flatten;
mod go_text;
mod property;
mod served;

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::types::encode::encode_with;
use crate::types::structs::newer;
use flatten::Flat;

/// Which of the two definitions has the place that a problem points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The earlier one: what is there was removed.
    Old,
    /// The later one.
    New,
}

/// Something that blocks the upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The version, or the two served versions that differ: `v1 -> v2`. None for what concerns the whole definition.
    pub version: Option<String>,
    /// The property: `^.spec.size`.
    pub property: Option<String>,
    /// The name of crdify's validation.
    pub validation: &'static str,
    /// What it says.
    pub text: String,
    /// Which definition has the place.
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

impl Version<'_> {
    fn pointer(&self) -> String {
        format!("/spec/versions/{}/schema/openAPIV3Schema", self.at)
    }

    fn flat(&self) -> Flat<'_> {
        Flat::of(self.schema, self.pointer())
    }
}

/// The versions of a definition in the form in which Go prints it.
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

/// The version in which a definition stores objects: what `status.storedVersions` is on a cluster that never had another.
#[must_use]
pub fn stored_versions(definition: &Value) -> Vec<String> {
    list(definition)
        .iter()
        .filter(|version| version.get("storage") == Some(&Value::Bool(true)))
        .filter_map(|version| Some(version.get("name")?.as_str()?.to_owned()))
        .collect()
}

/// What blocks the upgrade from one definition of `apiextensions.k8s.io/v1` to another of the same name. `stored` are the
/// versions in which the cluster has objects.
#[must_use]
pub fn check(old: &Value, new: &Value, stored: &[String]) -> Vec<Problem> {
    let print = |definition| encode_with(newer(), definition, "v1.CustomResourceDefinition");
    let (old, new) = (print(old), print(new));
    let (before, now) = (versions(&old), versions(&new));
    let mut problems = scope(&old, &new);
    let mut flat = Vec::new();
    for version in &before {
        if let Some(same) = now.iter().find(|same| same.name == version.name) {
            flat.push((version, version.flat(), same.flat()));
        }
    }
    for version in &now {
        if let Some((_, old, new)) = flat.iter().find(|(known, ..)| known.name == version.name) {
            problems.extend(removed_fields(version.name, old, new));
        }
    }
    problems.extend(removed_versions(&now, stored));
    for (version, old, new) in &flat {
        for (property, found) in property::compare(old, new) {
            problems.extend(
                found
                    .into_iter()
                    .map(|found| found.problem(version.name, &property, old, new)),
            );
        }
    }
    problems.extend(served::check(&new, &before, &now));
    problems
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
