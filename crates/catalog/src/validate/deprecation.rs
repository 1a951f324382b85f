//! Deprecations and their targets.

use std::collections::BTreeSet;

use super::Problem;
use super::facts::{DeprecationEntry, Model, PackageFacts};
use crate::model::{self, Deprecation};
use olmkit_diagnostics::{Origin, Severity, define_rules};
use olmkit_go::strconv::quote;

define_rules! {
    DEPRECATION = {
        id: "catalog-deprecation",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "Each deprecation must refer to an existing package, channel or bundle, and must be listed once.",
        why: "Other deprecations never reach users.",
        bad: "schema: olm.deprecations\npackage: demo\nentries:\n- reference: {schema: olm.channel, name: gone}",
        good: "entries:\n- reference: {schema: olm.channel, name: stable}\n  message: use the channel fast",
        since: "0.1.0",
    }
    DEPRECATION_MESSAGE = {
        id: "catalog-deprecation-message",
        severity: Severity::Error,
        origin: Origin::Opm,
        summary: "A deprecation must have a message.",
        why: "Without a message, users see the deprecation but no instructions.",
        bad: "- reference: {schema: olm.package}",
        good: "- reference: {schema: olm.package}\n  message: use the package demo-next",
        since: "0.1.0",
    }
}

/// The problem that an entry has no message.
pub fn without_message(deprecation: DeprecationEntry<'_>, object: &str) -> Option<Problem> {
    let DeprecationEntry { blob, index } = deprecation;
    let entry = blob.entries.as_ref()?.get(index)?;
    let text = "invalid deprecation: message must be set";
    entry.message.is_empty().then(|| {
        Problem::error(&DEPRECATION_MESSAGE, text, &blob.origin)
            .at(format!("/entries/{index}"))
            .of(object)
    })
}

/// Assigns deprecations to their targets.
pub fn deprecations<'c>(model: &mut Model<'c>, deprecations: &'c [Deprecation]) {
    let mut seen = BTreeSet::new();
    for (item, blob) in deprecations.iter().enumerate() {
        let name = blob.package.as_str();
        let report =
            |rule, message: String, pointer: &str| Problem::error(rule, message, &blob.origin).at(pointer).of(name);
        if name.is_empty() {
            let message = format!("package name must be set for deprecation item {item}");
            model.problems.push(report(&DEPRECATION, message, "/package"));
            continue;
        }
        let Some(package) = model.packages.get_mut(name) else {
            let message = format!("cannot apply deprecations to an unknown package {}", quote(name));
            model.problems.push(report(&DEPRECATION, message, "/package"));
            continue;
        };
        if !seen.insert(name) {
            let message = format!("expected a maximum of one deprecation per package: {}", quote(name));
            model.problems.push(report(&DEPRECATION, message, "/package"));
            continue;
        }
        let mut found = Vec::new();
        deprecation_entries(package, blob, &mut found);
        model.problems.extend(found);
    }
}

fn deprecation_entries<'c>(package: &mut PackageFacts<'c>, blob: &'c Deprecation, problems: &mut Vec<Problem>) {
    let package_name = quote(&blob.package);
    let mut references = BTreeSet::new();
    for (index, entry) in blob.entries.iter().flatten().enumerate() {
        let mut report = |message: String| {
            let pointer = format!("/entries/{index}/reference");
            problems.push(
                Problem::error(&DEPRECATION, message, &blob.origin)
                    .at(pointer)
                    .of(&blob.package),
            );
        };
        let (schema, name) = (entry.schema.as_str(), entry.name.as_str());
        let go_struct = format!(
            "declcfg.PackageScopedReference{{Schema:{}, Name:{}}}",
            quote(schema),
            quote(name)
        );
        if schema.is_empty() {
            report(format!(
                "schema must be set for deprecation entry [{index}] for package {package_name}"
            ));
            continue;
        }
        if !references.insert((schema, name)) {
            report(format!(
                "duplicate deprecation entry {go_struct} for package {package_name}"
            ));
            continue;
        }
        let deprecation = Some(DeprecationEntry { blob, index });
        match schema {
            model::BUNDLE => match package.bundles.get_mut(name) {
                Some(bundle) => bundle.deprecation = deprecation,
                None => report(format!(
                    "cannot deprecate bundle {} for package {package_name}: bundle not found",
                    quote(name)
                )),
            },
            model::CHANNEL => match package.channels.get_mut(name) {
                Some(channel) => channel.deprecation = deprecation,
                None => report(format!(
                    "cannot deprecate channel {} for package {package_name}: channel not found",
                    quote(name)
                )),
            },
            model::PACKAGE if name.is_empty() => package.deprecation = deprecation,
            model::PACKAGE => report(format!(
                "package name must be empty for deprecated package {package_name} (specified {})",
                quote(name)
            )),
            _ => report(format!(
                "cannot deprecate object {go_struct} referenced by entry {index} for package {package_name}: object schema unknown"
            )),
        }
    }
}
