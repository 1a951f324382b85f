//! UPG-4 to UPG-6, CRD-31 to CRD-36, EX-4: what an upgrade from an earlier bundle does to the objects that users have.

use serde_json::Value;

use super::super::against::{Against, Earlier, replaced};
use super::super::checked::Checked;
use super::super::context::{Context, Csv, field};
use super::warning;
use crate::bundle::Object;
use crate::crd::compatibility::{Loss, compare};
use crate::crd::instance::{self, InstanceFault};
use crate::object::Version;

/// So many findings of one rule are shown for one definition and one earlier bundle.
const SHOWN: usize = 10;

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let (Some(against), Some(csv)) = (context.options.against.as_deref(), context.csv()) else {
        return Vec::new();
    };
    match against {
        Against::Bundle(earlier) => from(context, &csv, earlier),
        Against::Catalog { name, catalog } => {
            let package = context.bundle.package();
            let mut findings: Vec<Checked> = unknown(&csv, name, package, catalog).into_iter().collect();
            for bundle in replaced(catalog, package, &csv) {
                match Earlier::of_blob(bundle) {
                    Ok(earlier) => findings.extend(from(context, &csv, &earlier)),
                    Err(error) => findings.push(warning("UPG-6", error.to_string()).at(csv.object, "/spec/replaces")),
                }
            }
            findings
        }
    }
}

/// `replaces` must lead to a bundle of the catalog, or the channel falls apart.
fn unknown(csv: &Csv<'_>, name: &str, package: &str, catalog: &crate::catalog::Catalog) -> Option<Checked> {
    let replaces = csv.text("/spec/replaces");
    let known = |bundle: &crate::catalog::Bundle| bundle.package == package && bundle.name == replaces;
    let is_new = !catalog.bundles.iter().any(|bundle| bundle.package == package);
    if replaces.is_empty() || is_new || catalog.bundles.iter().any(known) {
        return None;
    }
    let message = format!("{name} has no bundle {replaces} in package {package}: nobody can upgrade from it");
    Some(
        warning("UPG-4", message)
            .at(csv.object, "/spec/replaces")
            .hint("name the head of the channel that this bundle is added to"),
    )
}

fn from(context: &Context<'_>, csv: &Csv<'_>, earlier: &Earlier) -> Vec<Checked> {
    let mut findings: Vec<Checked> = version(csv, earlier).into_iter().collect();
    for old in &earlier.definitions {
        let name = old
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let new = context.bundle.crds().find(|crd| crd.name() == name);
        match new.and_then(|crd| Some((crd, crd.typed.as_ref()?))) {
            Some((crd, typed)) => findings.extend(definition(crd, old, typed, earlier)),
            // A definition that does not decode is told as LOAD-7.
            None if new.is_some() => {}
            None => {
                let message = format!(
                    "{} brought {name}, this bundle does not: its objects stay without an operator",
                    earlier.name
                );
                let hint =
                    "keep the definition until users have removed its objects, or say in the release notes what to do";
                findings.push(
                    warning("CRD-31", message)
                        .at(csv.object, "/spec/customresourcedefinitions/owned")
                        .hint(hint),
                );
            }
        }
    }
    for example in &earlier.examples {
        findings.extend(stored(context, example, earlier));
    }
    findings
}

fn version(csv: &Csv<'_>, earlier: &Earlier) -> Option<Checked> {
    let now = Version::parse_tolerant(csv.text("/spec/version")).ok()?;
    let before = earlier.version.as_ref().filter(|before| **before >= now)?;
    let message = format!(
        "spec.version {now} is not above {before} of {}, which this bundle is to follow",
        earlier.name
    );
    Some(
        warning("UPG-5", message)
            .at(csv.object, "/spec/version")
            .hint("raise the version"),
    )
}

fn definition(crd: &Object, old: &Value, new: &Value, earlier: &Earlier) -> Vec<Checked> {
    let mut findings = Vec::new();
    let changes = compare(old, new);
    for (loss, rule) in [
        (Loss::Version, "CRD-32"),
        (Loss::Identity, "CRD-33"),
        (Loss::Value, "CRD-34"),
        (Loss::Field, "CRD-35"),
        (Loss::Conversion, "CRD-36"),
    ] {
        let of_rule: Vec<_> = changes.iter().filter(|change| change.loss == loss).collect();
        for change in of_rule.iter().take(SHOWN) {
            let message = format!("since {}: {}", earlier.name, change.message);
            findings.push(warning(rule, message).at(crd, &change.pointer).hint(change.hint));
        }
        if of_rule.len() > SHOWN {
            let message = format!("since {}: {} more of this kind", earlier.name, of_rule.len() - SHOWN);
            findings.push(warning(rule, message).at(crd, "/spec/versions"));
        }
    }
    findings
}

/// An example of the earlier bundle stands for the objects in clusters, which OLM checks against the new schemas.
fn stored(context: &Context<'_>, example: &Value, earlier: &Earlier) -> Option<Checked> {
    let (group, version) = field(example, "apiVersion").split_once('/')?;
    let kind = field(example, "kind");
    let (crd, typed) = context
        .bundle
        .crds()
        .filter_map(|crd| Some((crd, crd.typed.as_ref()?)))
        .find(|(_, typed)| {
            let text = |pointer: &str| typed.pointer(pointer).and_then(Value::as_str);
            text("/spec/group") == Some(group) && text("/spec/names/kind") == Some(kind)
        })?;
    // A version that is gone is told as CRD-32.
    let (schema, _) = instance::schema_of_version(typed, version)?;
    let was_fine = earlier.definitions.iter().any(|old| {
        let same = old.pointer("/metadata/name") == typed.pointer("/metadata/name");
        let schema = instance::schema_of_version(old, version).and_then(|(schema, _)| schema);
        same && schema.is_none_or(|schema| refusal(schema, example).is_none())
    });
    let fault = refusal(schema?, example).filter(|_| was_fine)?;
    let at = typed
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .and_then(|versions| versions.iter().position(|own| field(own, "name") == version));
    let pointer = at.map_or("/spec".to_string(), |at| format!("/spec/versions/{at}/schema"));
    let message = format!(
        "the {kind} that {} gives as example is refused now: {fault}",
        earlier.name
    );
    let hint = "users have such objects; OLM refuses an upgrade under which one is no longer valid (\"updated validation is too restrictive\")";
    Some(warning("EX-4", message).at(crd, &pointer).hint(hint))
}

fn refusal(schema: &Value, object: &Value) -> Option<String> {
    instance::check(schema, object)
        .into_iter()
        .find(|finding| finding.fault != InstanceFault::Unknown)
        .map(|finding| finding.to_string())
}
