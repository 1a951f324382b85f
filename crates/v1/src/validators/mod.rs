//! The thirteen checks of OLM v1's renderer. All of them run. Any complaint rejects the bundle.

mod webhooks;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::read::{Bundle, Place};
use olmkit_base::object::dns1123_subdomain_problems;
use olmkit_bundle::kinds::{self, Program};

/// A check by its name in operator-controller.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Validator {
    /// Name of the function.
    pub name: &'static str,
    /// The minor version of the first release that has it, among those whose rules are known.
    pub since: u64,
    check: Check,
}

/// A check: returns messages with positions.
type Check = fn(&Bundle, u64) -> Vec<(String, Place)>;

/// A check's complaint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Complaint {
    /// The name of the check.
    pub validator: &'static str,
    /// OLM v1's message.
    pub message: String,
    /// Its position.
    pub place: Place,
}

/// All checks, in the order in which they run.
pub const VALIDATORS: [Validator; 13] = {
    const fn named(name: &'static str, check: Check) -> Validator {
        newer(name, 5, check)
    }
    const fn newer(name: &'static str, since: u64, check: Check) -> Validator {
        Validator { name, since, check }
    }
    [
        named("CheckDeploymentSpecUniqueness", deployments_are_unique),
        named("CheckDeploymentNameIsDNS1123SubDomain", deployment_names),
        named("CheckCRDResourceUniqueness", definitions_are_unique),
        named("CheckOwnedCRDExistence", owned_definitions_exist),
        named("CheckPackageNameNotEmpty", package_is_named),
        newer("CheckConversionWebhookSupport", 6, webhooks::conversion_modes),
        named(
            "CheckWebhookDeploymentReferentialIntegrity",
            webhooks::deployments_exist,
        ),
        named("CheckWebhookNameUniqueness", webhooks::are_unique),
        named("CheckWebhookNameIsDNS1123SubDomain", webhooks::names),
        named(
            "CheckConversionWebhookCRDReferenceUniqueness",
            webhooks::conversions_are_unique,
        ),
        named(
            "CheckConversionWebhooksReferenceOwnedCRDs",
            webhooks::conversions_are_owned,
        ),
        newer("CheckWebhookRules", 6, webhooks::rules),
        newer("CheckObjectSupport", 9, kinds_are_known),
    ]
};

/// A release's complaints about a bundle.
pub(super) fn complaints_of(bundle: &Bundle, minor: u64) -> Vec<Complaint> {
    let run = |validator: &Validator| {
        let name = validator.name;
        let said = (validator.check)(bundle, minor).into_iter();
        said.map(move |(message, place)| Complaint {
            validator: name,
            message,
            place,
        })
    };
    let of_release = VALIDATORS.iter().filter(|validator| validator.since <= minor);
    of_release.flat_map(run).collect()
}

const DEPLOYMENTS: &str = "/spec/install/spec/deployments";
const OWNED: &str = "/spec/customresourcedefinitions/owned";

fn list<'b>(bundle: &'b Bundle, pointer: &str) -> &'b [Value] {
    let list = bundle.csv.value.pointer(pointer).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The strings of a list in a field.
fn texts<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v str> + use<'v> {
    let list = value.get(field).and_then(Value::as_array);
    list.into_iter().flatten().map(|item| item.as_str().unwrap_or_default())
}

fn deployments_are_unique(bundle: &Bundle, _: u64) -> Vec<(String, Place)> {
    let mut seen = BTreeSet::new();
    let mut twice = BTreeMap::new();
    for (at, entry) in list(bundle, DEPLOYMENTS).iter().enumerate() {
        let name = text(entry, "name");
        if !seen.insert(name) {
            twice.insert(name, at);
        }
    }
    let said = |(name, at): (&str, usize)| {
        (
            format!("cluster service version contains duplicate strategy deployment spec '{name}'"),
            bundle.csv.place(&format!("{DEPLOYMENTS}/{at}/name")),
        )
    };
    twice.into_iter().map(said).collect()
}

fn deployment_names(bundle: &Bundle, _: u64) -> Vec<(String, Place)> {
    let mut wrong = BTreeMap::new();
    for (at, entry) in list(bundle, DEPLOYMENTS).iter().enumerate() {
        let name = text(entry, "name");
        let mut problems = dns1123_subdomain_problems(name);
        if !problems.is_empty() {
            problems.sort();
            wrong.insert(name, (at, problems.join(", ")));
        }
    }
    let said = |(name, (at, problems)): (&str, (usize, String))| {
        (
            format!("invalid cluster service version strategy deployment name '{name}': {problems}"),
            bundle.csv.place(&format!("{DEPLOYMENTS}/{at}/name")),
        )
    };
    wrong.into_iter().map(said).collect()
}

fn definitions_are_unique(bundle: &Bundle, _: u64) -> Vec<(String, Place)> {
    let mut seen = BTreeSet::new();
    let mut twice = BTreeMap::new();
    for definition in &bundle.definitions {
        if !seen.insert(definition.name()) {
            twice.insert(definition.name(), definition.place("/metadata/name"));
        }
    }
    let said = |(name, place)| {
        (
            format!("bundle contains duplicate custom resource definition '{name}'"),
            place,
        )
    };
    twice.into_iter().map(said).collect()
}

fn owned_definitions_exist(bundle: &Bundle, _: u64) -> Vec<(String, Place)> {
    let there: BTreeSet<&str> = bundle.definitions.iter().map(super::Object::name).collect();
    let mut missing = BTreeMap::new();
    for (at, owned) in list(bundle, OWNED).iter().enumerate() {
        let name = text(owned, "name");
        if !there.contains(name) {
            missing.entry(name).or_insert(at);
        }
    }
    let said = |(name, at): (&str, usize)| {
        (
            format!(
                "cluster service definition references owned custom resource definition '{name}' not found in bundle"
            ),
            bundle.csv.place(&format!("{OWNED}/{at}/name")),
        )
    };
    missing.into_iter().map(said).collect()
}

fn package_is_named(bundle: &Bundle, _: u64) -> Vec<(String, Place)> {
    if !bundle.package.is_empty() {
        return Vec::new();
    }
    let place = Place {
        file: "metadata/annotations.yaml".to_owned(),
        ..Place::default()
    };
    vec![("package name is empty".to_owned(), place)]
}

fn kinds_are_known(bundle: &Bundle, minor: u64) -> Vec<(String, Place)> {
    let known = |kind: &str| kinds::is_accepted(kind, Program::OlmV1, (1, minor, 0));
    bundle
        .others
        .iter()
        .filter(|object| !known(object.kind()))
        .map(|object| {
            (
                format!(
                    "unsupported resource \"{}\" with kind \"{}\"",
                    object.name(),
                    object.kind()
                ),
                object.place("/kind"),
            )
        })
        .collect()
}
