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
        Flat::new(self.schema, self.pointer())
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

/// A CRD that is too large to compare.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("CRD {definition} has too many {what}: {count}; at most {}{}", what.limit().shown(), what.limit().way_out())]
pub struct TooMuchToCompare {
    /// The name of the definition.
    pub definition: String,
    /// The counted quantity.
    pub what: Compared,
    /// Its number, as far as it was counted.
    pub count: u64,
}

impl TooMuchToCompare {
    /// A problem without a comparison, for callers that report problems. Otherwise a large CRD would look unchanged.
    #[must_use]
    pub fn problem(&self) -> Problem {
        Problem {
            version: None,
            property: None,
            validation: "not compared",
            text: self.to_string(),
            side: Side::New,
            pointer: "/spec/versions".to_owned(),
        }
    }
}

/// A limited quantity of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Values of one of the two CRDs.
    All,
    /// Values of properties, in all comparisons of two versions, and their bytes.
    Values,
    /// Bytes of the properties' paths.
    Paths,
    /// Changes that block the upgrade.
    Changes,
    /// Bytes of the messages for changes.
    Messages,
}

impl Compared {
    fn limit(self) -> &'static Limit {
        match self {
            Self::All => &limits::COMPARED_VALUES,
            Self::Values => &limits::COMPARED_PROPERTIES,
            Self::Paths => &limits::COMPARED_PATHS,
            Self::Changes => &limits::COMPARED_CHANGES,
            Self::Messages => &limits::COMPARED_MESSAGES,
        }
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::All => "values",
            Self::Values => "versions and properties to compare",
            Self::Paths => "bytes in the paths of its properties",
            Self::Changes => "changes that OLM v1 blocks",
            Self::Messages => "bytes in messages for changes that OLM v1 blocks",
        })
    }
}

/// Counts a quantity of one comparison.
struct Budget<'d> {
    definition: &'d Value,
    what: Compared,
    count: u64,
}

impl Budget<'_> {
    fn spend(&mut self, count: u64) -> Result<(), TooMuchToCompare> {
        self.count = self.count.saturating_add(count);
        if self.count <= self.what.limit().get() {
            return Ok(());
        }
        let name = self.definition.pointer("/metadata/name").and_then(Value::as_str);
        Err(TooMuchToCompare {
            definition: name.unwrap_or_default().to_owned(),
            what: self.what,
            count: self.count,
        })
    }
}

/// Counts the values of two CRDs, before they are copied for the comparison.
///
/// # Errors
/// One of them has more than [`COMPARED_VALUES`](limits::COMPARED_VALUES).
pub(crate) fn check_values(old: &Value, new: &Value) -> Result<(), TooMuchToCompare> {
    let check = |definition: &Value| {
        let mut all = Budget {
            definition: new,
            what: Compared::All,
            count: 0,
        };
        all.spend(count(definition))
    };
    check(old)?;
    check(new)
}

/// Number of values in a value.
fn count(value: &Value) -> u64 {
    let below: u64 = match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(entries) => entries.values().map(count).sum(),
        _ => 0,
    };
    1 + below
}

/// Counts what will be compared before it is.
fn check_size(new: &Value, before: &[Version<'_>], now: &[Version<'_>]) -> Result<(), TooMuchToCompare> {
    let mut values = Budget {
        definition: new,
        what: Compared::Values,
        count: 0,
    };
    let mut paths = Budget {
        what: Compared::Paths,
        ..values
    };
    for versions in [before, now] {
        let sizes: Vec<flatten::Size> = versions.iter().map(|version| flatten::size(version.schema)).collect();
        let served = versions.iter().filter(|version| version.served).count() as u64;
        for (version, size) in versions.iter().zip(&sizes) {
            paths.spend(size.paths)?;
            // Each served version is also compared with each other one.
            let others = if version.served { served.saturating_sub(1) } else { 0 };
            values.spend(
                size.values
                    .saturating_add(size.values.saturating_add(1).saturating_mul(others)),
            )?;
        }
    }
    Ok(())
}

/// The problems that were found so far.
struct Problems<'d> {
    list: Vec<Problem>,
    changes: Budget<'d>,
    messages: Budget<'d>,
}

impl<'d> Problems<'d> {
    fn new(definition: &'d Value) -> Self {
        let budget = |what| Budget {
            definition,
            what,
            count: 0,
        };
        Self {
            list: Vec::new(),
            changes: budget(Compared::Changes),
            messages: budget(Compared::Messages),
        }
    }

    fn extend(&mut self, problems: impl IntoIterator<Item = Problem>) -> Result<(), TooMuchToCompare> {
        for problem in problems {
            self.changes.spend(1)?;
            self.messages.spend(problem.text.len() as u64)?;
            self.list.push(problem);
        }
        Ok(())
    }
}

/// Problems that block the upgrade from one CRD of `apiextensions.k8s.io/v1` to another with the same name. `stored`
/// are the versions in which the cluster has objects.
///
/// # Errors
/// See [`TooMuchToCompare`].
pub fn check(old: &Value, new: &Value, stored: &[String]) -> Result<Vec<Problem>, TooMuchToCompare> {
    check_values(old, new)?;
    check_printed(&printed(old), &printed(new), stored)
}

/// A CRD as Go prints it. [`check_printed`] compares this form.
pub(crate) fn printed(definition: &Value) -> Value {
    encode_with(newer(), definition, "v1.CustomResourceDefinition")
}

/// Like [`check`], for CRDs that are already [`printed`].
pub(crate) fn check_printed(old: &Value, new: &Value, stored: &[String]) -> Result<Vec<Problem>, TooMuchToCompare> {
    let (before, now) = (versions(old), versions(new));
    check_size(new, &before, &now)?;
    let mut problems = Problems::new(new);
    problems.extend(scope(old, new))?;
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
            problems.extend(removed_fields(version.name, old, new))?;
        }
    }
    problems.extend(removed_versions(&now, stored))?;
    for (version, old, new) in &same {
        for (property, found) in property::compare(old, new) {
            problems.extend(
                found
                    .into_iter()
                    .map(|found| found.problem(version.name, &property, old, new)),
            )?;
        }
    }
    served::check(new, (&before, &before_flat), (&now, &now_flat), &mut problems)?;
    Ok(problems.list)
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

fn removed_fields<'f>(
    version: &'f str,
    old: &'f Flat<'_>,
    new: &'f Flat<'_>,
) -> impl Iterator<Item = Problem> + use<'f> {
    let gone = old
        .properties
        .iter()
        .filter(|(path, _)| !new.properties.contains_key(*path));
    gone.map(move |(path, place)| Problem {
        version: None,
        property: None,
        validation: "existingFieldRemoval",
        text: format!("removed field : {version}.{path}"),
        side: Side::Old,
        pointer: place.pointer.clone(),
    })
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
    fn comparisons_are_counted_before_they_run() {
        let small = definition(1, 1, "a");
        // 300 versions of 10 properties are within the limit, ten times as many are not.
        let many = definition(300, 10, "a");
        assert_eq!(check(&many, &many, &[]), Ok(Vec::new()));
        let error = check(&small, &definition(3000, 10, "a"), &[]).unwrap_err();
        assert_eq!(error.what, Compared::Values, "{error:?}");
        assert!(
            error.to_string().contains("--limit compared-properties=VALUE"),
            "{error}"
        );
        let error = check(&small, &definition(1, 2000, &"x".repeat(20_000)), &[]).unwrap_err();
        assert!(
            error.what == Compared::Paths && error.to_string().contains("--limit compared-paths=VALUE"),
            "{error}"
        );
        // The report contains an error, so a CRD that is too large does not look unchanged.
        assert!(
            error
                .problem()
                .to_string()
                .starts_with("not compared: CRD widgets.example.com has too many")
        );
    }

    #[test]
    fn values_of_a_property_are_compared_as_often_as_their_versions() {
        // Few properties and versions, each with many values or a long text. Only the descriptions differ.
        let enums: Vec<String> = (0..2000).map(|number| format!("a{number}")).collect();
        let long = "x".repeat(100_000);
        for (versions, field, value) in [(90, "enum", json!(enums)), (1000, "description", json!(long))] {
            let mut definition = definition(versions, 1, "a");
            for at in 0..versions {
                let pointer = format!("/spec/versions/{at}/schema/openAPIV3Schema/properties/a0");
                let property = definition.pointer_mut(&pointer).unwrap().as_object_mut().unwrap();
                property.insert("title".to_owned(), json!(format!("t{at}")));
                property.insert(field.to_owned(), value.clone());
            }
            let error = check(&definition, &definition, &[]).unwrap_err();
            assert_eq!(error.what, Compared::Values, "{field}");
        }
    }

    #[test]
    fn changes_and_their_messages_are_counted() {
        let large = definition(1, 120_000, "a");
        let error = check(&large, &definition(1, 1, "b"), &[]).unwrap_err();
        assert_eq!(error.what, Compared::All);
        let error = check(&definition(1, 60_000, "a"), &definition(1, 60_000, "b"), &[]).unwrap_err();
        assert_eq!((error.what, error.count), (Compared::Changes, 50_001));
        // Each pair of versions has another pattern, so the messages are far larger than the CRD.
        let mut many = definition(60, 1, "a");
        for at in 0..60 {
            let pointer = format!("/spec/versions/{at}/schema/openAPIV3Schema/properties/a0");
            let property = many.pointer_mut(&pointer).unwrap().as_object_mut().unwrap();
            property.insert("pattern".to_owned(), json!(format!("{at}{}", "x".repeat(20_000))));
        }
        let error = check(&definition(60, 1, "a"), &many, &[]).unwrap_err();
        assert_eq!(error.what, Compared::Messages);
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
