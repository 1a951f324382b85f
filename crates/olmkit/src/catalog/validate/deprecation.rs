//! Deprecations and what they deprecate.

use std::collections::BTreeSet;

use super::model::{Model, PackageFacts};
use super::{Problem, quoted};
use crate::catalog::model::{self, Deprecation};

/// Which entry of a deprecations blob says that something is deprecated.
#[derive(Debug, Clone, Copy)]
pub struct Told<'c> {
    blob: &'c Deprecation,
    index: usize,
}

impl Told<'_> {
    /// The problem that users are told nothing.
    pub fn without_message(self, object: &str) -> Option<Problem> {
        let entry = self.blob.entries.iter().flatten().nth(self.index)?;
        let text = "invalid deprecation: message must be set";
        entry.message.is_empty().then(|| {
            Problem::error("catalog-deprecation-message", text, &self.blob.origin)
                .at(format!("/entries/{}", self.index))
                .of(object)
        })
    }
}

/// Brings deprecations to what they deprecate.
pub fn deprecations<'c>(model: &mut Model<'c>, deprecations: &'c [Deprecation]) {
    let mut seen = BTreeSet::new();
    for (item, blob) in deprecations.iter().enumerate() {
        let name = blob.package.as_str();
        let report =
            |rule, message: String, pointer: &str| Problem::error(rule, message, &blob.origin).at(pointer).of(name);
        if name.is_empty() {
            let message = format!("package name must be set for deprecation item {item}");
            model.problems.push(report("catalog-deprecation", message, "/package"));
            continue;
        }
        let Some(package) = model.packages.get_mut(name) else {
            let message = format!("cannot apply deprecations to an unknown package {}", quoted(name));
            model.problems.push(report("catalog-deprecation", message, "/package"));
            continue;
        };
        if !seen.insert(name) {
            let message = format!("expected a maximum of one deprecation per package: {}", quoted(name));
            model.problems.push(report("catalog-deprecation", message, "/package"));
            continue;
        }
        let mut found = Vec::new();
        deprecation_entries(package, blob, &mut found);
        model.problems.extend(found);
    }
}

fn deprecation_entries<'c>(package: &mut PackageFacts<'c>, blob: &'c Deprecation, problems: &mut Vec<Problem>) {
    let package_name = quoted(&blob.package);
    let mut references = BTreeSet::new();
    for (index, entry) in blob.entries.iter().flatten().enumerate() {
        let mut report = |message: String| {
            let pointer = format!("/entries/{index}/reference");
            problems.push(
                Problem::error("catalog-deprecation", message, &blob.origin)
                    .at(pointer)
                    .of(&blob.package),
            );
        };
        let (schema, name) = (entry.schema.as_str(), entry.name.as_str());
        let go_struct = format!(
            "declcfg.PackageScopedReference{{Schema:{}, Name:{}}}",
            quoted(schema),
            quoted(name)
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
        let told = Some(Told { blob, index });
        match schema {
            model::BUNDLE => match package.bundles.get_mut(name) {
                Some(bundle) => bundle.deprecation = told,
                None => report(format!(
                    "cannot deprecate bundle {} for package {package_name}: bundle not found",
                    quoted(name)
                )),
            },
            model::CHANNEL => match package.channels.get_mut(name) {
                Some(channel) => channel.deprecation = told,
                None => report(format!(
                    "cannot deprecate channel {} for package {package_name}: channel not found",
                    quoted(name)
                )),
            },
            model::PACKAGE if name.is_empty() => package.deprecation = told,
            model::PACKAGE => report(format!(
                "package name must be empty for deprecated package {package_name} (specified {})",
                quoted(name)
            )),
            _ => report(format!(
                "cannot deprecate object {go_struct} referenced by entry {index} for package {package_name}: object schema unknown"
            )),
        }
    }
}
